"""Sampling: which training sets are drawn, and which points are valued against each."""

from apiece.sampling._design import DESIGNS, Design, log_spaced
from apiece.sampling._groups import GroupPlan, make_group_plan
from apiece.sampling._plan import DrawnPlan, make_plan

__all__ = [
    "DESIGNS",
    "Design",
    "DrawnPlan",
    "GroupPlan",
    "log_spaced",
    "make_group_plan",
    "make_plan",
]
