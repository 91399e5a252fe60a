"""How well each method and family predicts sizes it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from apiece._base.check import one_of
from apiece.estimators import Backtest
from apiece.laws import Laws
from apiece.plots._style import axes, size_axis, thin

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SCORES: Final = {
    "r2": "share of the variation predicted (R²)",
    "correlation": "correlation with held-out means",
    "coverage": "share of held-out means covered",
}
_FLOOR: Final = -0.25  # where scores that are worse than useless are drawn


def plot_backtest(
    backtest: Laws | Backtest | pd.DataFrame,
    of: Literal["r2", "correlation", "coverage"] = "r2",
    *,
    level: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Plot how well the larger sizes are predicted by laws fitted on the smaller ones.

    Scores below -0.25 are drawn there, with their number.

    Parameters
    ----------
    backtest
        Laws fitted with ``backtest=True`` or ``method="auto"``, what `apiece.estimators.backtest`
        returns, or the table of either.
    of
        ``r2``, ``correlation``, or ``coverage`` of the intervals.
    level
        Coverage that the intervals promised.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> from apiece import synthetic
    >>> from apiece.estimators import backtest
    >>> truth = synthetic.random_laws(20, random_state=0)
    >>> table = synthetic.sample(truth, samples=30, random_state=0)
    >>> plot_backtest(backtest(table)).get_xlabel()
    'held-out cardinality k'
    """
    one_of("score", of, tuple(SCORES))
    if isinstance(backtest, Laws):
        table = backtest.backtest()
    else:
        table = backtest.table() if isinstance(backtest, Backtest) else backtest
    groups = list(table.groupby(["method", "family"], sort=False))
    with axes(ax) as ax:
        shift = np.linspace(-0.012, 0.012, max(len(groups), 2))
        for ((method, family), part), marker, by in zip(groups, "osD^vPX", shift, strict=False):
            k = part["k"].to_numpy() * np.exp(by)  # next to each other where scores are alike
            score = part[of].to_numpy(np.float64)
            shown = np.maximum(score, _FLOOR)  # nan stays nan
            (line,) = ax.plot(k, shown, f"{marker}-", linewidth=thin(), label=f"{method}, {family}")
            for x, true in zip(k[score < _FLOOR], score[score < _FLOOR], strict=True):
                ax.annotate(
                    f"{true:.1f}", (x, _FLOOR), xytext=(0, 5), ha="center",
                    textcoords="offset points", fontsize="small", color=line.get_color(),
                )  # fmt: skip
        if of == "coverage":
            ax.axhline(
                level, color="0.5", linestyle="--", linewidth=1, label=f"promised {level:.0%}"
            )
        size_axis(ax)
        ax.set_xlabel("held-out cardinality k")
        low = float(table[of].clip(lower=_FLOOR).min()) if table[of].notna().any() else 0.0
        ax.set_ylim(low - 0.5 * (1.02 - low), 1.02)  # room for the legend
        ax.set_ylabel(SCORES[of])
        ax.legend()
    return ax
