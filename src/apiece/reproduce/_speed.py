"""How long it takes, against two scikit-learn fits for every contribution."""

from __future__ import annotations

from typing import Final

import pandas as pd

from apiece.reproduce._bench import TITLES, Bench
from apiece.reproduce._exhibit import Shown, exhibit
from apiece.reproduce._scale import SCALES

_REFITTED: Final = 10  # points that are refitted at each of three sizes


@exhibit(
    "speed",
    "Time of a contribution, against refitting twice",
    *("grid", "models"),
    paper="No times are given; its code fits two models for every contribution.",
)
def speed(bench: Bench) -> Shown:
    """Time both ways at three sizes, in one process; days are those of the paper's own grid."""
    rows = []
    for setting in bench.grids("models"):
        fast = bench.seconds_each(setting)
        refit = bench.seconds_each(setting, engine="refit", points=_REFITTED)
        paper = SCALES["paper"]
        effort = paper.grid[setting.model]
        contributions = effort.points * effort.samples * paper.n_sizes
        rows.append(
            {
                "data": bench.title(setting.dataset),
                "model": TITLES[setting.model],
                "ms each": 1e3 * fast,
                "ms refitted": 1e3 * refit,
                "times faster": refit / fast,
                "hours at the paper's scale": contributions * fast / 3600,
                "hours refitted": contributions * refit / 3600,
            }
        )
    return Shown(pd.DataFrame(rows))
