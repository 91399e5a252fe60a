"""The campaign: from a request to a store that holds all of its contributions."""

from apiece.campaign._collect import collect
from apiece.campaign._compute import compare, compute
from apiece.campaign._pools import dismiss_workers
from apiece.campaign._request import (
    default_sizes,
    describe,
    group_table,
    point_table,
    positions,
    stored,
)

__all__ = [
    "collect",
    "compare",
    "compute",
    "default_sizes",
    "describe",
    "dismiss_workers",
    "group_table",
    "point_table",
    "positions",
    "stored",
]
