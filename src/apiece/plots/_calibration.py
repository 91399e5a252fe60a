r"""Do intervals keep their promise? The share of what was held out that they cover, by level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.errors import DataError
from apiece.estimators._bins import Bins
from apiece.laws import Laws, quantile
from apiece.plots._style import axes, thin
from apiece.records import Contributions, small_print

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LEVELS: Final = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())
_SIZES: Final = 3


def coverage(
    laws: Laws, held_out: Contributions | Laws, *, levels: tuple[float, ...] = _LEVELS
) -> pd.DataFrame:
    r"""Measure how often intervals of each level cover what the laws have not seen.

    A mean of $n$ held-out contributions is covered if it lies within the law's error and its own
    noise together, $\sqrt{s^2 + \sum_j \sigma^2 k_j^{-\beta} / n^2}$, times the quantile.

    Parameters
    ----------
    laws
        Fitted laws, with uncertainty.
    held_out
        Contributions of the same points that had no part in the fit, such as those of later tasks
        or of larger sizes; or the true laws, where they are known.
    levels
        Levels between 0 and 1.

    Returns
    -------
    pandas.DataFrame
        One row for each size and level: ``k``, ``level``, ``coverage`` and ``n_points``.

    Raises
    ------
    DataError
        If the laws have no uncertainty, or share no point with what was held out.

    Examples
    --------
    >>> from apiece import synthetic
    >>> from apiece.estimators import Bayes
    >>> truth = synthetic.random_laws(20, random_state=0)
    >>> laws = Bayes("power").fit(synthetic.sample(truth, samples=20, random_state=0))
    >>> list(coverage(laws, truth, levels=(0.9,)))
    ['k', 'level', 'coverage', 'n_points']
    """
    import pandas as pd

    k, z, rows = (
        _true_scores(laws, held_out) if isinstance(held_out, Laws) else _scores(laws, held_out)
    )
    df = None if laws.df is None else laws.df[rows]
    known = np.isfinite(z)
    if not known.any():
        raise DataError(
            "no interval can be compared: expected laws with uncertainty, and held-out "
            "contributions or true laws of the same points. Fit by likelihood or bayes, and match "
            "the ids."
        )
    rows_of_table = []
    for j, size in enumerate(k):
        for level in levels:
            inside = (z[:, j] <= quantile(level, df))[known[:, j]]
            rows_of_table.append(
                (size, level, inside.mean() if len(inside) else np.nan, len(inside))
            )
    return pd.DataFrame(rows_of_table, columns=["k", "level", "coverage", "n_points"])


def plot_calibration(laws: Laws, held_out: Contributions | Laws, *, ax: Axes | None = None) -> Axes:
    """Plot the share of held-out means that intervals cover against the share they promise.

    On the diagonal intervals are honest; above it they are wider than they need be, below it too
    narrow.

    Parameters
    ----------
    laws, held_out
        As in `coverage`.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> from apiece import synthetic
    >>> from apiece.estimators import Bayes
    >>> truth = synthetic.random_laws(20, random_state=0)
    >>> laws = Bayes("power").fit(synthetic.sample(truth, samples=20, random_state=0))
    >>> plot_calibration(laws, truth).get_ylabel()
    'share covered'
    """
    table = coverage(laws, held_out)
    with axes(ax) as ax:
        ax.plot([0, 1], [0, 1], "--", color="0.5", linewidth=1, label="as promised")
        for (k, part), marker in zip(table.groupby("k"), "osD", strict=False):
            n_points = int(part["n_points"].iloc[0])
            ax.plot(
                part["level"], part["coverage"], f"{marker}-", linewidth=thin(),
                label=f"k = {k:,.0f} ({n_points:,} points)",
            )  # fmt: skip
        ax.set(xlabel="level of the interval", ylabel="share covered", xlim=(0, 1), ylim=(0, 1))
        ax.set_aspect("equal")
        for side in (ax.xaxis, ax.yaxis):
            side.set_major_formatter("{x:.0%}")
        ax.legend(title=small_print(laws.attrs), loc="lower right")
    return ax


def _true_scores(laws: Laws, truth: Laws) -> tuple[FloatArray, FloatArray, AnyArray]:
    """Compare with true laws at the ends and the middle of the sampled sizes."""
    rows, others = _matched(laws.ids, truth.ids)
    k = np.array([laws.k_range[0], laws.k_ref, laws.k_range[1]])
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.abs(laws.mean(k)[rows] - truth.mean(k)[others]) / laws.stderr(k)[rows]
    return k, z, rows


def _scores(laws: Laws, held_out: Contributions) -> tuple[FloatArray, FloatArray, AnyArray]:
    """Compare with means of held-out contributions in a few bins of size."""
    rows, others = _matched(laws.ids, held_out.ids)
    row_of = np.full(held_out.n_points, -1)
    row_of[others] = np.arange(len(rows))
    late = held_out.where(row_of[held_out.point] >= 0)
    point = row_of[late.point]
    bins = Bins.of(late.k, max_sizes=_SIZES, n_bins=_SIZES)
    cell = point * len(bins) + np.searchsorted(bins.edges, late.k, side="right")
    shape = (len(rows), len(bins))

    def total(values: FloatArray) -> FloatArray:
        flat = np.bincount(cell, values, minlength=shape[0] * shape[1])
        return flat.astype(np.float64).reshape(shape)

    n = total(np.ones(len(late)))
    predicted = laws.family.curve(laws.params[rows[point]], late.k.astype(np.float64))
    residual = late.delta - predicted
    variance = laws.sigma[rows[point]] ** 2 * late.k ** -laws.beta[rows[point]]
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = total(residual) / n
        noise = total(variance) / n**2
        z = np.abs(shift) / np.sqrt(laws.stderr(bins.k)[rows] ** 2 + noise)
    return bins.k, z, rows


def _matched(ids: AnyArray, others: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the rows of points that both know, by id."""
    place = {str(name): row for row, name in enumerate(others.tolist())}
    both = [(row, place[str(name)]) for row, name in enumerate(ids.tolist()) if str(name) in place]
    pairs = np.array(both, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
