"""From laws to picks: which points to add at the size a dataset has."""

from __future__ import annotations

from apiece.selection._select import select

__all__ = ["select"]
