"""The paper from one command: its tables and figures, each beside what the paper reports.

They are made from ordinary runs under one folder, which are collected once, shared by all that
need them, and continued where they stopped.
"""

from __future__ import annotations

from apiece.papers._exhibit import names
from apiece.papers._reproduce import estimate, reproduce
from apiece.papers._scale import SCALES, Scale

__all__ = ["SCALES", "Scale", "estimate", "names", "reproduce"]
