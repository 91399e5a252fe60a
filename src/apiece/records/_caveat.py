"""What must be said next to a result: what it is for, and whether it is approximate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from apiece.records._scope import in_words, scope_of, scoped

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


def small_print(attrs: Mapping[str, Any]) -> str | None:
    """Return what a result is for and its caveat, for the legend of a plot; None if neither is.

    >>> small_print({"design": {"name": "grid", "scoring": "rotating"}})
    'for the population the rows come from'
    """
    parts = [in_words(scope_of(attrs)), caveat(attrs)]
    return "\n".join(part for part in parts if part) or None


def marked(table: pd.DataFrame, attrs: Mapping[str, Any]) -> pd.DataFrame:
    """Say in ``table.attrs["scope"]`` what a table of points is for (see `scope_of`).

    If contributions are approximate, ``table.attrs["caveat"]`` says so, and a column
    ``approximate`` is added.

    Examples
    --------
    >>> import pandas as pd
    >>> engine = {"name": "first-order", "is_exact": False}
    >>> list(marked(pd.DataFrame({"value": [0.1]}), {"engine": engine}))
    ['value', 'approximate']
    """
    scoped(table, scope_of(attrs))
    weakness = caveat(attrs)
    if weakness:
        table["approximate"] = True
        table.attrs["caveat"] = weakness
    return table
