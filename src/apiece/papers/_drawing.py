"""Drawing and describing the laws of a grid: rows, histograms, lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd

from apiece._base.typing import BoolArray, FloatArray
from apiece.laws import Laws
from apiece.papers._items import Artifact, panels
from apiece.papers._runs import TITLES, Setting
from apiece.papers._workspace import Workspace
from apiece.plots._style import size_axis

RELIABLE: Final = 0.8  # the paper leaves out points of lower R² where it shows parameters
_QUANTILES: Final = (0.2, 0.4, 0.6, 0.8)


def setting_columns(work: Workspace, setting: Setting) -> dict[str, Any]:
    """Return the columns that describe a setting: data, model, points, samples per size."""
    table = work.contributions(setting)
    return {
        "data": work.title(setting.dataset),
        "model": TITLES[setting.model],
        "points": table.n_points,
        "samples per size": round(len(table) / table.n_points / len(np.unique(table.k))),
    }


def words(work: Workspace, setting: Setting) -> str:
    """Name a setting in a title."""
    return f"{work.title(setting.dataset)}, {TITLES[setting.model]}"


def reliable(laws: Laws) -> BoolArray:
    """Return which points follow their line well enough for its slope to mean something."""
    return np.asarray((laws.r2 >= RELIABLE) & laws.has_law)


def quartiles(values: FloatArray) -> dict[str, float]:
    """Return the quartiles of values that are known."""
    known = values[np.isfinite(values)]
    cuts = np.quantile(known, [0.25, 0.5, 0.75]) if len(known) else np.full(3, np.nan)
    return dict(zip(("lower quartile", "median", "upper quartile"), cuts.tolist(), strict=True))


def histogram(ax: Any, values: FloatArray, name: str) -> None:
    """Draw a histogram over points; the outer 1 % on each side join the outer bars."""
    known = values[np.isfinite(values)]
    if not len(known):
        ax.text(0.5, 0.5, "no point's line\nis above the noise", ha="center", va="center")
        ax.set(xticks=[], yticks=[])
        return
    low, high = np.quantile(known, [0.01, 0.99])
    bins = int(np.clip(len(known) // 3, 5, 30))
    ax.hist(np.clip(known, low, high), bins=bins, edgecolor="white", linewidth=0.3)
    ax.set(xlabel=name, ylabel="points")


def for_each(
    work: Workspace,
    settings: list[Setting],
    draw: Callable[[Setting, Any], list[dict[str, Any]]],
) -> Artifact:
    """Show one panel for each grid; ``draw`` fills its axes and returns its rows."""
    rows = []
    with panels(len(settings)) as (figure, axes):
        for setting, ax in zip(settings, axes, strict=True):
            rows += [{**setting_columns(work, setting), **row} for row in draw(setting, ax)]
            ax.set_title(words(work, setting))
    return Artifact(pd.DataFrame(rows), figure)


def histograms(
    work: Workspace,
    quantity: Callable[[Laws], FloatArray],
    name: str,
    only: Callable[[Laws], BoolArray] | None = reliable,
) -> Artifact:
    """Show a quantity of the laws as one histogram for each grid, and its quartiles."""

    def draw(setting: Setting, ax: Any) -> list[dict[str, Any]]:
        laws = work.laws(setting)
        values = quantity(laws)[only(laws)] if only else quantity(laws)
        histogram(ax, values, name)
        return [quartiles(values)]

    return for_each(work, work.grids("models"), draw)


def lines(work: Workspace, setting: Setting, ax: Any) -> None:
    """Draw mean contributions and lines of the points at quantiles of alpha."""
    laws, (k, psi, _) = work.laws(setting), work.means(setting)
    rows = np.flatnonzero(reliable(laws))
    order = rows[np.argsort(laws.alpha[rows])]
    for share in _QUANTILES if len(order) else ():
        row = order[round(share * (len(order) - 1))]
        (line,) = ax.plot(k, np.abs(laws.mean(k)[row]), label=f"{laws.alpha[row]:.2f}")
        marker = "o" if laws.c[row] > 0 else "v"
        ax.plot(k, np.abs(psi[row]), marker, color=line.get_color(), markersize=4)
    ax.set(yscale="log", ylabel="|mean contribution|")
    size_axis(ax)
    ax.legend(title="alpha")
