"""What laws say about each other: where the order of two points swaps."""

from __future__ import annotations

from apiece.analysis._crossings import crossing, crossings

__all__ = ["crossing", "crossings"]
