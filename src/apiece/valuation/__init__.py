"""From laws to values: one number for each point, with its interval."""

from __future__ import annotations

from apiece.valuation._value import KINDS, value

__all__ = ["KINDS", "value"]
