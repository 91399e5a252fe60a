"""How objects look in a notebook: a title and a small table, with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def facts_html(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """Return a title and a table of two columns.

    >>> facts_html("Run", [("metric", "<b>")])
    '<b>Run</b><table><tr><th>metric</th><td>&lt;b&gt;</td></tr></table>'
    """
    rows = (f"<tr><th>{escape(name)}</th><td>{escape(str(fact))}</td></tr>" for name, fact in facts)
    return f"<b>{escape(title)}</b><table>{''.join(rows)}</table>"


def table_html(title: str, table: pd.DataFrame) -> str:
    """Return a title and the first and last rows of a table."""
    rows = table.to_html(max_rows=8, float_format="{:.4g}".format, border=0)
    return f"<b>{escape(title)}</b>{rows}"
