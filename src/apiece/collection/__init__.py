"""Collection: from a request to a store that holds all of its contributions."""

from __future__ import annotations

from apiece._base.progress import ProgressEvent
from apiece.collection import until
from apiece.collection._collect import collect
from apiece.collection._compute import compare, compute
from apiece.collection._design import DESIGNS, Design, log_spaced
from apiece.collection._plan import DrawnPlan, drawn_from, make_plan
from apiece.collection._planning import Forecast, plan
from apiece.collection._rotation import largest_size, valued_share
from apiece.collection._work import Done, Job, work
from apiece.collection.pools import Pool, WorkersLost, dismiss_workers

__all__ = [
    "DESIGNS",
    "Design",
    "Done",
    "DrawnPlan",
    "Forecast",
    "Job",
    "Pool",
    "ProgressEvent",
    "WorkersLost",
    "collect",
    "compare",
    "compute",
    "dismiss_workers",
    "drawn_from",
    "largest_size",
    "log_spaced",
    "make_plan",
    "plan",
    "until",
    "valued_share",
    "work",
]
