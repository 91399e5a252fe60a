"""How long it takes, against two scikit-learn fits for every contribution."""

from __future__ import annotations

from typing import Final

import pandas as pd

from apiece.papers._bench import Bench
from apiece.papers._exhibit import Artifact, exhibit
from apiece.papers._runs import TITLES

_NEEDS: Final = ("grid", "losses", "models", "uniform", "beyond", "candidates")
_REFITTED: Final = 10  # points that are refitted at each of three sizes


@exhibit(
    "speed",
    "Time of every run, against refitting twice",
    *_NEEDS,
    paper="No times are given; its code fits two models for every contribution.",
    note="*minutes*: time to collect the run, without pauses. Columns *ms each* and *ms "
    "refitted* are processor time per contribution, by the engine and by refitting the same model "
    f"({_REFITTED} points at each of three sizes). Column *hours refitted* is the "
    "run at that rate.",
)
def speed(bench: Bench) -> Artifact:
    """List the runs, how long each took, and how long two fits per contribution would take."""
    rows = []
    for setting in dict.fromkeys(bench.settings(_NEEDS)):
        fast = bench.seconds_each(setting)
        refit = bench.seconds_each(setting, engine="refit", points=_REFITTED)
        table = bench.contributions(setting)
        rows.append(
            {
                "data": bench.title(setting.dataset),
                "model": TITLES[setting.model],
                "loss": setting.metric,
                "sizes": setting.design,
                "points": table.n_points,
                "contributions": len(table),
                "minutes": bench.minutes(setting),
                "ms each": 1e3 * fast,
                "ms refitted": 1e3 * refit,
                "times faster": refit / fast,
                "hours refitted": len(table) * refit / 3600,
            }
        )
    return Artifact(pd.DataFrame(rows))
