"""What laws say about each other, about classes, about the boundary, and about theory."""

from __future__ import annotations

from apiece.analysis._boundary import boundary, boundary_relation
from apiece.analysis._crossings import crossing, crossings
from apiece.analysis._exchange import exchange
from apiece.analysis._means import means
from apiece.analysis._models import compare_laws
from apiece.analysis._movers import movers
from apiece.analysis._theory import theory

__all__ = [
    "boundary",
    "boundary_relation",
    "compare_laws",
    "crossing",
    "crossings",
    "exchange",
    "means",
    "movers",
    "theory",
]
