"""Results where decisions are made: in cleanlab's Datalab, Hugging Face datasets and FiftyOne.

None of these libraries is needed, or imported, unless it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from apiece._base.optional import optional
from apiece.errors import DataError
from apiece.uses._advice import Advice

if TYPE_CHECKING:
    import pandas as pd

Task = Literal["classification", "regression"]

__all__ = ["add_columns", "datalab_issue_manager", "set_fields"]


def datalab_issue_manager(task: Task = "classification") -> type:
    """Register the issue ``apiece`` with cleanlab's Datalab, and return its manager.

    Then ``lab.find_issues(issue_types={"apiece": {"advice": advice}})`` adds the columns
    ``is_apiece_issue`` (whether the advice is not to keep the row) and ``apiece_score`` (how
    probable the given target is, from 0 to 1; low is suspicious) to ``lab.get_issues()``. Without
    ``advice``, pass ``features`` (shape ``(n, n_features)``), and `advise` is asked about them and
    the labels of the lab.

    Parameters
    ----------
    task
        The task of the lab: ``classification`` or ``regression``.

    Returns
    -------
    type
        A subclass of cleanlab's ``IssueManager``.

    Examples
    --------
    >>> from apiece.uses.interop import datalab_issue_manager
    >>> datalab_issue_manager().issue_name  # doctest: +SKIP
    'apiece'
    """
    managers = optional(
        "cleanlab.datalab.internal.issue_manager", extra="cleanlab", purpose="Issues of Datalab"
    )
    factory = optional(
        "cleanlab.datalab.internal.issue_manager_factory",
        extra="cleanlab",
        purpose="Issues of Datalab",
    )

    class ApieceIssueManager(managers.IssueManager):  # type: ignore[misc, name-defined]  # no stubs
        """Rows that `apiece.advise` would relabel, drop or check."""

        issue_name = "apiece"
        description = "Rows that apiece advises to relabel, to drop or to check."

        def find_issues(self, advice: Advice | None = None, features: Any = None, **_: Any) -> None:
            labels = np.asarray(self.datalab.labels)
            found = _advised(features, labels, task) if advice is None else advice
            table = _by_row(found.table(), len(labels))
            score = np.clip(table["probability"].to_numpy(), 0.0, 1.0)
            import pandas as pd

            self.issues = pd.DataFrame(
                {"is_apiece_issue": table["advice"].to_numpy() != "keep", "apiece_score": score}
            )
            self.summary = self.make_summary(score=float(score.mean()))
            self.info = self.collect_info(found, table)

        def collect_info(self, found: Advice, table: pd.DataFrame) -> dict[str, Any]:
            return {
                "headline": found.headline(),
                "advice": table["advice"].tolist(),
                "to": table["to"].tolist(),
            }

    factory.register(ApieceIssueManager, task=task)
    return ApieceIssueManager


def add_columns(
    rows: Any,
    table: Advice | pd.DataFrame,
    *,
    ids: str | None = None,
    columns: Sequence[str] | None = None,
    prefix: str = "apiece_",
) -> Any:
    """Add results to a Hugging Face ``datasets.Dataset``, as columns.

    Parameters
    ----------
    rows
        The dataset, or anything with ``column_names`` and ``add_column``.
    table
        Advice, values or picks: a table indexed by id.
    ids
        Column of ``rows`` that holds the ids; None if ids are the numbers of the rows.
    columns
        Columns of the table to add; all by default.
    prefix
        What the names of the new columns begin with.

    Returns
    -------
    datasets.Dataset
        With a new column for each, missing where the table has no row of that id.

    Examples
    --------
    >>> import pandas as pd
    >>> class Rows(dict):  # what is used of a datasets.Dataset
    ...     column_names = property(list)
    ...     def add_column(self, name, values):
    ...         return Rows(self | {name: values})
    >>> values = pd.DataFrame({"value": [0.2, 0.1]}, index=["r1", "r0"])
    >>> add_columns(Rows(name=["r0", "r1"]), values, ids="name")["apiece_value"]
    [0.1, 0.2]
    """
    frame, chosen = _columns(table, columns)
    if ids is not None and ids not in rows.column_names:
        raise DataError(
            f"the dataset has no column {ids!r}: expected the one that holds the ids, one of "
            f"{', '.join(rows.column_names)}. Name it as ids=."
        )
    keys = range(len(rows)) if ids is None else rows[ids]
    # Ids may be numbers here and text there.
    matched = frame.set_axis(frame.index.map(str)).reindex([str(key) for key in keys])
    if matched[chosen].isna().all(axis=None):
        raise DataError(
            "no id of the table is among the rows: expected ids as they were when the data was "
            "read. Name their column as ids=."
        )
    for name in chosen:
        rows = rows.add_column(f"{prefix}{name}", _plain(matched[name]))
    return rows


def set_fields(
    samples: Any,
    table: Advice | pd.DataFrame,
    *,
    key_field: str = "id",
    columns: Sequence[str] | None = None,
    prefix: str = "apiece_",
) -> None:
    """Set results as fields of a FiftyOne dataset or view, by id.

    Parameters
    ----------
    samples
        The dataset or view, or anything with FiftyOne's ``set_values``.
    table, columns, prefix
        As in `add_columns`.
    key_field
        The field of a sample that holds the id.

    Examples
    --------
    >>> import pandas as pd
    >>> class Samples:  # what is used of a FiftyOne dataset
    ...     def set_values(self, field, values, key_field):
    ...         print(field, values, key_field)
    >>> set_fields(Samples(), pd.DataFrame({"value": [0.1]}, index=["r0"]), key_field="name")
    apiece_value {'r0': 0.1} name
    """
    frame, chosen = _columns(table, columns)
    keys = [str(key) for key in frame.index]
    for name in chosen:
        values = dict(zip(keys, _plain(frame[name]), strict=True))
        samples.set_values(f"{prefix}{name}", values, key_field=key_field)


def _advised(features: Any, labels: Any, task: Task) -> Advice:
    import apiece

    if features is None:
        raise DataError(
            "neither advice nor features are given: expected one of them. Pass "
            'issue_types={"apiece": {"advice": apiece.advise(dataset)}}.'
        )
    dataset = apiece.Dataset.from_arrays(features, labels, validation=0, kind=task)
    return apiece.advise(dataset, progress=False)


def _by_row(table: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return the table in the order of the rows, whose numbers are ids unless there are others."""
    if len(table) != n:
        raise DataError(
            f"the advice is about {len(table):,} rows, and the lab has {n:,}: expected the same "
            "rows. Ask for advice about all of them (validation=0)."
        )
    numbers = np.arange(n)
    return table.loc[numbers] if set(table.index) == set(numbers.tolist()) else table


def _columns(
    table: Advice | pd.DataFrame, columns: Sequence[str] | None
) -> tuple[pd.DataFrame, list[str]]:
    frame = table.table() if isinstance(table, Advice) else table
    chosen = list(frame.columns if columns is None else columns)
    unknown = [name for name in chosen if name not in frame]
    if unknown:
        raise DataError(
            f"the table has no column {unknown[0]!r}: expected some of "
            f"{', '.join(map(str, frame.columns))}. Name these."
        )
    return frame, chosen


def _plain(column: pd.Series[Any]) -> list[Any]:
    """Return values as plain Python objects, None where missing."""
    return [None if value != value else value for value in column.astype(object).tolist()]
