"""From laws to picks: which points to add at the size a dataset has."""

from __future__ import annotations

from apiece.selection._redundancy import Joint, Together
from apiece.selection._rules import Quotas, Rules, make_rules
from apiece.selection._select import select

__all__ = ["Joint", "Quotas", "Rules", "Together", "make_rules", "select"]
