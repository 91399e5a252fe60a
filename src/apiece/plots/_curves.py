r"""Curves of chosen points: expected contribution $\psi_k$ against cardinality $k$."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.laws import Laws
from apiece.laws.beyond import quiet
from apiece.plots._bins import in_bins
from apiece.plots._style import axes, size_axis, thin
from apiece.records import Contributions, small_print

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Curves:
    """The numbers behind the plot.

    Parameters
    ----------
    ids
        The points, shape ``(n,)``.
    k
        Cardinalities, shape ``(n_k,)``.
    mean, low, high
        Expected contributions and their intervals, each of shape ``(n, n_k)``.
    is_sampled
        Which cardinalities lie in the sampled range, shape ``(n_k,)``.

    Examples
    --------
    >>> from apiece.laws import Laws
    >>> numbers = curves(Laws.from_arrays(c=[0.5], alpha=[1.0]), [0])
    >>> numbers.mean.shape == (1, len(numbers.k))
    True
    """

    ids: AnyArray
    k: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    is_sampled: AnyArray


def curves(
    laws: Laws, points: Sequence[object], *, until: int | None = None, level: float = 0.9
) -> Curves:
    """Compute the curves of some points, by id, up to cardinality ``until`` or that of the pool.

    Examples
    --------
    >>> from apiece.laws import Laws
    >>> numbers = curves(Laws.from_arrays(c=[0.5], alpha=[1.0]), [0], until=2000)
    >>> float(numbers.k[-1]), bool(numbers.is_sampled[-1])
    (2000.0, False)
    """
    selected = laws.select(np.array([laws.place(point) for point in points]))
    k_min, k_max = laws.k_range
    k = np.geomspace(k_min, max(until or laws.k_pool, k_max), 200)
    k = np.unique(np.append(k, float(k_max)))
    with quiet():  # what is extrapolated is drawn dashed
        low, high = selected.interval(k, level=level)
        mean = selected.mean(k)
    return Curves(selected.ids, k, mean, low, high, k <= k_max)


def binned_means(
    contributions: Contributions, point: object, n_bins: int = 8
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return size, mean and standard error of one point's contributions in log-spaced bins.

    Examples
    --------
    >>> table = Contributions.from_arrays(point=[0, 0, 0], k=[9, 9, 20], delta=[1.0, 3.0, 2.0])
    >>> binned_means(table, 0)[1]
    array([2.])
    """
    is_point = contributions.ids[contributions.point].astype(str) == str(point)
    return in_bins(contributions.k[is_point], contributions.delta[is_point], n_bins)


def sign_of(means: FloatArray) -> str:
    """Say whether a point helps or harms at the sampled sizes, from the smallest to the largest.

    >>> sign_of(np.array([-1.0, -2.0])), sign_of(np.array([0.2, -0.1]))
    ('harms', 'helps, then harms')
    """
    first, last = ("helps" if mean > 0 else "harms" for mean in (means[0], means[-1]))
    return first if first == last else f"{first}, then {last}"


def plot_curves(
    laws: Laws,
    points: Sequence[object],
    *,
    contributions: Contributions | None = None,
    until: int | None = None,
    level: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Plot what chosen points are expected to contribute at every cardinality.

    Parameters
    ----------
    laws
        Fitted laws.
    points
        Ids of the points.
    contributions
        Samples, shown as their means in bins of size with standard errors.
    until
        Draw up to this cardinality, dashed beyond the sampled range; by default up to the size of
        the pool.
    level
        Coverage of the shaded interval.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> ax = plot_curves(Laws.from_arrays(c=[0.5, 0.2], alpha=[1.0, 0.5]), [0, 1], until=5000)
    >>> ax.get_xlabel()
    'cardinality k'
    """
    numbers = curves(laws, points, until=until, level=level)
    with axes(ax) as ax:
        for i, name in enumerate(numbers.ids):
            inside = numbers.is_sampled
            sign = sign_of(numbers.mean[i, inside])
            (line,) = ax.plot(numbers.k[inside], numbers.mean[i, inside], label=f"{name} ({sign})")
            color = line.get_color()
            outside = ~inside | (numbers.k == numbers.k[inside][-1])
            ax.plot(numbers.k[outside], numbers.mean[i, outside], "--", color=color)
            ax.fill_between(
                numbers.k, numbers.low[i], numbers.high[i], color=color, alpha=0.15, linewidth=0
            )
            if contributions is not None:
                size, mean, error = binned_means(contributions, name)
                marker = "o" if sign.startswith("helps") else "v"
                ax.errorbar(size, mean, error, fmt=marker, color=color, elinewidth=thin())
        size_axis(ax)
        if (numbers.mean > 0).all():
            ax.set_yscale("log")
            ax.set_ylim(numbers.mean.min() / 4, numbers.mean.max() * 4)
        else:
            ax.axhline(0, color="0.5", linewidth=0.8)
        ax.set_ylabel(f"contribution ({laws.attrs.get('metric', 'loss')})")
        lines = [f"point, {level:.0%} interval", small_print(laws.attrs)]
        ax.legend(title="\n".join(line for line in lines if line))
    return ax
