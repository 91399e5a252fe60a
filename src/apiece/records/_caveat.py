"""Caveat of results from approximate contributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def caveat(attrs: Mapping[str, Any]) -> str | None:
    """Return the caveat of a result from approximate contributions, or None.

    Parameters
    ----------
    attrs
        Provenance of the result; ``attrs["engine"]`` describes the engine.

    Examples
    --------
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
    """Add a column ``approximate`` to a table of points from approximate contributions.

    ``table.attrs["caveat"]`` then holds the caveat.

    Examples
    --------
    >>> import pandas as pd
    >>> engine = {"name": "first-order", "is_exact": False}
    >>> list(marked(pd.DataFrame({"value": [0.1]}), {"engine": engine}))
    ['value', 'approximate']
    """
    weakness = caveat(attrs)
    if weakness:
        table["approximate"] = True
        table.attrs["caveat"] = weakness
    return table
