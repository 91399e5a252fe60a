"""Shards of trainings: one row for each training, with lists of points.

Columns: ``task`` and ``k`` (int32), ``loss`` (float64), ``trained`` (list of int32: positions of
the points that the model was trained on), ``scored`` (list of int32: positions of points outside
these) and ``row_loss`` (list of float32: the loss of each of ``scored``).

In memory lists are two columns: their lengths, ``n_trained`` and ``n_scored``, and their entries,
joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBERS: Final[dict[str, np.dtype[Any]]] = {
    "task": np.dtype("<i4"),
    "k": np.dtype("<i4"),
    "loss": np.dtype("<f8"),
}
_LISTS: Final[dict[str, tuple[str, np.dtype[Any]]]] = {  # the column of lengths, and a type
    "trained": ("n_trained", np.dtype("<i4")),
    "scored": ("n_scored", np.dtype("<i4")),
    "row_loss": ("n_scored", np.dtype("<f4")),
}


class TrainingRow(NamedTuple):
    """One training, on its way into a shard.

    Examples
    --------
    >>> import numpy as np
    >>> TrainingRow(0, 2, 0.5, np.array([1, 3]), np.array([0]), np.array([0.4])).k
    2
    """

    task: int
    k: int
    loss: float
    trained: AnyArray
    scored: AnyArray
    row_loss: AnyArray


def are_trainings(columns: Iterable[str]) -> bool:
    """Return whether the columns of a shard are those of trainings."""
    return "trained" in columns


def columns_of(rows: list[TrainingRow]) -> dict[str, AnyArray]:
    """Return trainings as the columns of a shard."""
    columns: dict[str, AnyArray] = {
        name: np.array([getattr(row, name) for row in rows], dtype=kind)
        for name, kind in _NUMBERS.items()
    }
    for name, (length, kind) in _LISTS.items():
        parts = [np.asarray(getattr(row, name), dtype=kind) for row in rows]
        columns[length] = np.array([len(part) for part in parts], dtype=np.dtype("<i4"))
        columns[name] = np.concatenate([np.empty(0, dtype=kind), *parts])
    return columns


def to_arrow(columns: dict[str, AnyArray]) -> pa.Table:
    """Return the columns of a shard as a table with lists."""
    import pyarrow as pa

    result: dict[str, Any] = {name: columns[name] for name in _NUMBERS}
    for name, (length, _) in _LISTS.items():
        ends = np.concatenate([[0], np.cumsum(columns[length])]).astype(np.int32)
        result[name] = pa.ListArray.from_arrays(pa.array(ends), pa.array(columns[name]))
    return pa.table(result)


def from_arrow(table: pa.Table) -> dict[str, AnyArray]:
    """Return the columns of a shard from a table with lists.

    Raises
    ------
    ValueError
        If a column is missing, or of another type.
    """
    columns: dict[str, AnyArray] = {}
    for name, kind in _NUMBERS.items():
        columns[name] = _numbers(table.column(name).combine_chunks(), name, kind)
    for name, (length, kind) in _LISTS.items():
        lists = table.column(name).combine_chunks()
        lengths = np.asarray(lists.value_lengths(), dtype=np.dtype("<i4"))
        if length in columns and not np.array_equal(columns[length], lengths):
            raise ValueError(f"column {name} has lists of other lengths")
        columns[length] = lengths
        columns[name] = _numbers(lists.flatten(), name, kind)
    return columns


def _numbers(column: Any, name: str, kind: np.dtype[Any]) -> AnyArray:
    if column.null_count:
        raise ValueError(f"column {name} has missing values")
    array: AnyArray = column.to_numpy(zero_copy_only=False)
    if array.dtype != kind:
        raise ValueError(f"column {name} is {array.dtype}, not {kind}")
    return array
