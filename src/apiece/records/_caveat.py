"""What must be said beside results that rest on approximate contributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def caveat(attrs: Mapping[str, Any]) -> str | None:
    """Return what must be said beside any result from approximate contributions, or None.

    Parameters
    ----------
    attrs
        Where the result comes from; ``attrs["engine"]`` describes the engine.

    >>> caveat({"engine": {"name": "first-order", "is_exact": False, "correlation": 0.973}})
    'approximate: engine first-order, correlation 0.973 with exact contributions'
    """
    engine = attrs.get("engine") or {}
    if engine.get("is_exact", True):
        return None
    known = engine.get("correlation")
    measured = "not measured" if known is None else f"{known:.3f} with exact contributions"
    return f"approximate: engine {engine['name']}, correlation {measured}"


def marked(table: pd.DataFrame, attrs: Mapping[str, Any]) -> pd.DataFrame:
    """Mark a table of points that rests on approximate contributions, by a column of its own.

    ``table.attrs["caveat"]`` then holds the words.
    """
    weakness = caveat(attrs)
    if weakness:
        table["approximate"] = True
        table.attrs["caveat"] = weakness
    return table
