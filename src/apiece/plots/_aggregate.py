r"""The law of the whole dataset, $\epsilon + b\,k^{-\lambda}$, through mean losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apiece._base.typing import FloatArray
from apiece.estimators import Aggregate
from apiece.plots._bins import in_bins
from apiece.plots._style import axes, size_axis, thin
from apiece.records import Contributions

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def binned_losses(
    contributions: Contributions, n_bins: int = 8
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return size, mean and standard error of the losses $L(f_D)$ of tasks, in log-spaced bins.

    Examples
    --------
    >>> table = Contributions.from_arrays(
    ...     point=[0] * 4, k=[9, 9, 20, 20], delta=[0.0] * 4, loss=[1.0, 3.0, 0.5, 0.5]
    ... )
    >>> binned_losses(table)[1]
    array([2. , 0.5])
    """
    _, first = np.unique(contributions.task, return_index=True)
    first = first[np.isfinite(contributions.loss[first])]
    return in_bins(contributions.k[first], contributions.loss[first], n_bins)


def plot_aggregate(
    aggregate: Aggregate,
    *,
    contributions: Contributions | None = None,
    until: int | None = None,
    level: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot how the loss falls with the number of training points.

    Parameters
    ----------
    aggregate
        What `apiece.aggregate` returns.
    contributions
        What it was fitted to: mean losses in bins of size are shown with standard errors.
    until
        Draw up to this cardinality, dashed beyond the largest measured one; by default twice that.
    level
        Coverage of the shaded interval.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> from apiece.estimators import fit_aggregate
    >>> k = np.repeat([20, 40, 80, 160, 320], 4)
    >>> table = Contributions.from_arrays(
    ...     point=np.zeros(20), k=k, delta=np.zeros(20), loss=0.2 + 3 / k + 1e-3 * np.arange(20)
    ... )
    >>> plot_aggregate(fit_aggregate(table)).get_xlabel()
    'cardinality k'
    """
    k_min, k_max = aggregate.k_range[0], aggregate.k_known
    inner = np.geomspace(k_min, k_max, 41)
    beyond = np.geomspace(k_max, max(k_max, 2 * k_max if until is None else until), 41)
    k = np.concatenate([inner, beyond])
    low, high = aggregate.interval(k, level=level)
    with axes(ax) as ax:
        law = rf"{aggregate.eps:.3g} + {aggregate.b:.3g} / $k^{{{aggregate.lam:.2f}}}$"
        (line,) = ax.plot(inner, aggregate.mean(inner), label=law)
        ax.plot(beyond, aggregate.mean(beyond), "--", color=line.get_color())
        ax.fill_between(
            k,
            low,
            high,
            alpha=0.15,
            linewidth=0,
            color=line.get_color(),
            label=f"{level:.0%} interval",
        )
        if contributions is not None:
            size, mean, error = binned_losses(contributions)
            ax.errorbar(
                size,
                mean,
                error,
                fmt="o",
                elinewidth=thin(),
                color=line.get_color(),
                label="mean of training sets",
            )
        if aggregate.anchor is not None:
            ax.plot(
                [aggregate.anchor.k],
                [aggregate.anchor.loss],
                "D",
                color=line.get_color(),
                label="nearly all rows",
            )
        ax.axhline(aggregate.eps, color="0.5", linestyle=":", linewidth=1, label="floor")
        size_axis(ax)
        ax.set_ylabel(f"mean {aggregate.attrs.get('metric') or 'loss'}")
        ax.legend()
    return ax
