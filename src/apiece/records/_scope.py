"""What a result is for: the population that rows come from, the given scoring rows, or both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pandas as pd

POPULATION: Final = "population"
SCORING_ROWS: Final = "scoring rows"
ALL_ROWS: Final = "all rows"
_WORDS: Final = {
    POPULATION: "for the population the rows come from",
    SCORING_ROWS: "for the given scoring rows",
    ALL_ROWS: "for rows such as those of the table and the validation set together",
}


def scope_of(attrs: Mapping[str, Any]) -> str | None:
    """Return what a result is for, or None if its provenance does not say.

    Parameters
    ----------
    attrs
        Provenance of the result: ``attrs["design"]["scoring"]`` is ``"rotating"`` where rows take
        turns in scoring, ``"sample"`` for a validation set that is a sample of the population, and
        missing for one that is all that matters.

    Returns
    -------
    str or None
        ``"population"`` or ``"scoring rows"``.

    Examples
    --------
    >>> scope_of({"design": {"name": "grid", "scoring": "rotating"}})
    'population'
    >>> scope_of({"design": {"name": "grid"}})
    'scoring rows'
    """
    design = attrs.get("design")
    if design is None:
        return None
    return SCORING_ROWS if design.get("scoring") is None else POPULATION


def scoped(table: pd.DataFrame, scope: str | None) -> pd.DataFrame:
    """Say in ``table.attrs["scope"]`` what a table is for, if that is known.

    >>> import pandas as pd
    >>> scoped(pd.DataFrame({"value": [0.1]}), "population").attrs
    {'scope': 'population'}
    """
    if scope is not None:
        table.attrs["scope"] = scope
    return table


def in_words(scope: str | None) -> str | None:
    """Return a scope as people read it; None if it is not known.

    >>> in_words("population")
    'for the population the rows come from'
    """
    return None if scope is None else _WORDS[scope]
