"""The paper's tables and figures from one command, each next to the numbers in the paper.

They are made from ordinary runs under one folder. Each run is collected once, shared by all
items that need it, and continued if it was interrupted.
"""

from __future__ import annotations

from apiece.papers._items import names
from apiece.papers._reproduce import estimate, measured, reproduce
from apiece.papers._scale import SCALES, Scale

__all__ = ["SCALES", "Scale", "estimate", "measured", "names", "reproduce"]
