"""How long it takes, against two scikit-learn fits for every contribution."""

from __future__ import annotations

from typing import Final

import pandas as pd

from apiece.papers._items import Artifact, paper_item
from apiece.papers._runs import TITLES
from apiece.papers._workspace import Workspace

_NEEDS: Final = ("grid", "losses", "models", "uniform", "beyond", "candidates")
_REFITTED: Final = 10  # points that are refitted at each of three sizes


@paper_item(
    "speed",
    "Time of every run, against refitting twice",
    *_NEEDS,
    paper="No times are given; its code fits two models for every contribution.",
    note="*minutes*: to collect the run, without pauses. *ms each*, *ms refitted*: processor time "
    f"per contribution, by the engine and by refits ({_REFITTED} points at three sizes).",
)
def speed(work: Workspace) -> Artifact:
    """List the runs, how long each took, and how long two fits per contribution would take."""
    rows = []
    for setting in dict.fromkeys(work.settings(_NEEDS)):
        fast = work.seconds_each(setting)
        refit = work.seconds_each(setting, engine="refit", points=_REFITTED)
        table = work.contributions(setting)
        rows.append(
            {
                "data": work.title(setting.dataset),
                "model": TITLES[setting.model],
                "loss": setting.metric,
                "sizes": setting.design,
                "points": table.n_points,
                "contributions": len(table),
                "minutes": work.minutes(setting),
                "ms each": 1e3 * fast,
                "ms refitted": 1e3 * refit,
                "times faster": refit / fast,
                "hours refitted": len(table) * refit / 3600,
            }
        )
    return Artifact(pd.DataFrame(rows))
