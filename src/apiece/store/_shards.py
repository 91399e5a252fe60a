"""Shards: Parquet files of contributions that any tool can read, with a digest of their content.

Columns: ``task`` (int32), ``k`` (int32), ``point`` (int32, a position in ``points.parquet``),
``delta`` and ``loss`` (float64, in units of the loss), ``control`` (float64, what theory predicts
for the contribution) and ``active`` (int32, the blocks of rows that its task drew from, as bits),
both left out where scoring rows do not rotate. The file's metadata, under the key
``apiece``, is JSON with the shard's place in the run and a digest of its columns, so that a
truncated or altered file is noticed and computed again. Runs in which a training serves all points
hold trainings instead (`_training_shards`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Required, TypedDict, Unpack

import numpy as np

from apiece._base.files import read_footer, read_table
from apiece._base.text import first_line
from apiece._base.typing import AnyArray
from apiece.errors import StoreError
from apiece.store._layout import Unit
from apiece.store._training_shards import (
    TrainingRow,
    are_trainings,
    columns_of,
    from_arrow,
    to_arrow,
)

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1

_COLUMNS: dict[str, np.dtype[Any]] = {
    "task": np.dtype("<i4"),
    "k": np.dtype("<i4"),
    "point": np.dtype("<i4"),
    "delta": np.dtype("<f8"),
    "loss": np.dtype("<f8"),
    "control": np.dtype("<f8"),
    "active": np.dtype("<i4"),
}


_ROTATING = ("control", "active")  # columns of runs whose scoring rows rotate


class TaskRows(NamedTuple):
    """The contributions of one task, on their way into a shard.

    Examples
    --------
    >>> TaskRows(task=0, k=10, points=np.arange(2), delta=np.zeros(2), loss=0.5).k
    10
    """

    task: int
    k: int
    points: AnyArray
    delta: AnyArray
    loss: float
    control: AnyArray | None = None
    active: int = 0


@dataclass(frozen=True)
class Footer:
    """Description of a shard, which can be read without its contributions.

    Parameters
    ----------
    index
        Place of its unit of work in the run.
    n_rows
        How many contributions it holds.
    end_task
        One past the last task of the unit.
    certificate
        The largest remaining error the engine reported, or nan.
    notes
        Counts that the engine reported, summed over the tasks.
    failed
        Message for each task that could not be computed; such a shard is not complete.
    digest
        Digest of the shard's columns and description; empty if it was not read from a file.

    Examples
    --------
    >>> Footer(0, n_rows=2, end_task=1).holds_more_than(Footer(0, n_rows=1, end_task=1))
    True
    """

    index: int
    n_rows: int
    end_task: int
    certificate: float = float("nan")
    notes: dict[str, int] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    digest: str = field(default="", compare=False)

    def completes(self, unit: Unit) -> bool:
        """Whether it holds all of that unit of work, or more (the run has grown since)."""
        return not self.failed and self.end_task >= unit.tasks.stop

    def holds_more_than(self, other: Footer) -> bool:
        """Whether a shard should take the place of another one of the same unit of work.

        Contributions depend on the plan alone, so that more rows include the fewer.
        """
        return self._amount > other._amount

    @property
    def _amount(self) -> tuple[int, int, int]:
        return self.n_rows, self.end_task, -len(self.failed)


@dataclass(frozen=True, eq=False)
class Shard:
    """The contributions of one unit of work.

    Parameters
    ----------
    footer
        Its place in the run, and what the engine said about it.
    columns
        ``task``, ``k``, ``point``, ``delta``, ``loss``, ``control``, ``active``, each of shape
        ``(n_rows,)``.

    Examples
    --------
    >>> shard = make_shard(0, [TaskRows(0, 10, np.arange(2), np.zeros(2), 0.5)], end_task=1)
    >>> len(shard), shard.columns["k"].tolist()
    (2, [10, 10])
    """

    footer: Footer
    columns: dict[str, AnyArray]

    def __len__(self) -> int:
        return self.footer.n_rows

    @property
    def index(self) -> int:
        """Place of its unit of work in the run."""
        return self.footer.index


class FooterFields(TypedDict, total=False):
    """Fields of the footer of a new shard, in addition to index and number of rows."""

    end_task: Required[int]
    certificate: float
    notes: dict[str, int]
    failed: dict[int, str]


def make_shard(index: int, tasks: Iterable[TaskRows], **meta: Unpack[FooterFields]) -> Shard:
    """Build a shard from the contributions of its tasks.

    Examples
    --------
    >>> rows = TaskRows(task=0, k=10, points=np.arange(2), delta=np.array([0.1, -0.2]), loss=0.5)
    >>> make_shard(0, [rows], end_task=1).columns["delta"]
    array([ 0.1, -0.2])
    """
    rows = [TaskRows(*task) for task in tasks]
    counts = [len(row.points) for row in rows]

    def repeat(values: list[Any], name: str) -> AnyArray:
        return np.repeat(np.array(values, dtype=_COLUMNS[name]), counts)

    def join(values: list[AnyArray], name: str) -> AnyArray:
        empty = np.empty(0, dtype=_COLUMNS[name])
        return np.concatenate([empty, *values]).astype(_COLUMNS[name], copy=False)

    columns = {
        "task": repeat([row.task for row in rows], "task"),
        "k": repeat([row.k for row in rows], "k"),
        "point": join([row.points for row in rows], "point"),
        "delta": join([row.delta for row in rows], "delta"),
        "loss": repeat([row.loss for row in rows], "loss"),
        "control": join(
            [np.zeros(len(row.points)) if row.control is None else row.control for row in rows],
            "control",
        ),
        "active": repeat([row.active for row in rows], "active"),
    }
    return Shard(Footer(index, sum(counts), **meta), columns)


def make_training_shard(index: int, rows: list[TrainingRow], **meta: Unpack[FooterFields]) -> Shard:
    """Build a shard from trainings.

    Examples
    --------
    >>> row = TrainingRow(0, 2, 0.5, np.array([1, 3]), np.array([0]), np.array([0.4]))
    >>> len(make_training_shard(0, [row], end_task=1))
    1
    """
    return Shard(Footer(index, len(rows), **meta), columns_of(rows))


def encode_shard(shard: Shard) -> bytes:
    """Return the shard as the bytes of a Parquet file.

    Examples
    --------
    >>> shard = make_shard(0, [TaskRows(0, 10, np.arange(2), np.zeros(2), 0.5)], end_task=1)
    >>> encode_shard(shard)[:4]
    b'PAR1'
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    foot = shard.footer
    meta: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "shard": foot.index,
        "end_task": foot.end_task,
        "certificate": None if np.isnan(foot.certificate) else foot.certificate,
        "notes": foot.notes,
        "failed": {str(task): message for task, message in foot.failed.items()},
    }
    meta["digest"] = _digest(shard.columns, meta)
    sink = pa.BufferOutputStream()
    table, how = _as_table(shard.columns)
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        write_statistics=False,
        store_schema=False,
        **how,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"apiece": json.dumps(meta)})
    return bytes(sink.getvalue())


def _as_table(columns: dict[str, AnyArray]) -> tuple[pa.Table, dict[str, Any]]:
    """Return columns as a table, and how a file should encode them."""
    import pyarrow as pa

    if are_trainings(columns):
        return to_arrow(columns), {"use_dictionary": ["k"]}
    names = _stored_names(columns)
    rotates = len(names) == len(_COLUMNS)
    encoding = {"point": "DELTA_BINARY_PACKED", "delta": "BYTE_STREAM_SPLIT"}
    return pa.table({name: columns[name] for name in names}), {
        "use_dictionary": ["task", "k", "loss", *(["active"] if rotates else [])],
        "column_encoding": encoding | ({"control": "BYTE_STREAM_SPLIT"} if rotates else {}),
    }


def decode_shard(data: bytes, where: str) -> Shard:
    """Read the shard that is stored at ``where``, and check it against its digest.

    Raises
    ------
    StoreError
        If the file is truncated, altered, or not a shard of this schema.

    Examples
    --------
    >>> shard = make_shard(0, [TaskRows(0, 10, np.arange(2), np.zeros(2), 0.5)], end_task=1)
    >>> len(decode_shard(encode_shard(shard), "memory"))
    2
    """
    import pyarrow as pa

    with _checked(where):
        table = read_table(pa.BufferReader(data))
        meta = json.loads((table.schema.metadata or {})[b"apiece"])
        if are_trainings(table.column_names):
            columns = from_arrow(table)
        else:
            columns = {name: _column(table, name) for name in _COLUMNS}
        digest = meta.pop("digest")
        if digest != _digest(columns, meta):
            raise ValueError("its contents do not match its digest")
        return Shard(_footer({**meta, "digest": digest}, table.num_rows), columns)


def decode_footer(file: BinaryIO, where: str) -> Footer:
    """Read the description of the shard at ``where``, unchecked against its columns.

    Raises
    ------
    StoreError
        If the file is truncated, or not a shard of this schema.
    """
    with _checked(where):
        n_rows, metadata = read_footer(file)
        return _footer(json.loads(metadata[b"apiece"]), n_rows)


def _footer(meta: dict[str, Any], n_rows: int) -> Footer:
    if meta["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"its schema version is {meta['schema_version']}")
    certificate = meta["certificate"]
    return Footer(
        index=int(meta["shard"]),
        n_rows=n_rows,
        end_task=int(meta["end_task"]),
        certificate=float("nan") if certificate is None else float(certificate),
        notes={str(name): int(count) for name, count in meta["notes"].items()},
        failed={int(task): str(message) for task, message in meta["failed"].items()},
        digest=str(meta.get("digest", "")),
    )


@contextmanager
def _checked(where: str) -> Iterator[None]:
    """Turn any error of reading a damaged file into one that names the file."""
    import pyarrow as pa

    try:
        yield
    except MemoryError:  # no fault of the file
        raise
    except (
        *(pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError),
        *(OverflowError, RecursionError),
    ) as error:
        raise StoreError(
            f"{where} is damaged ({first_line(error)}): expected a shard that apiece wrote. "
            "Collect again with the same settings: that shard alone is computed again."
        ) from error


def _column(table: pa.Table, name: str) -> AnyArray:
    if name in _ROTATING and name not in table.column_names:
        return np.zeros(table.num_rows, dtype=_COLUMNS[name])
    column = table.column(name)
    if column.null_count:
        raise ValueError(f"column {name} has missing values")
    array: AnyArray = column.to_numpy()
    if array.dtype != _COLUMNS[name]:
        raise ValueError(f"column {name} is {array.dtype}, not {_COLUMNS[name]}")
    return array


def _stored_names(columns: dict[str, AnyArray]) -> list[str]:
    """Return the columns that a file holds: those of rotating rows only where rows rotate."""
    rotates = bool(columns["active"].any())
    return [name for name in _COLUMNS if rotates or name not in _ROTATING]


def _digest(columns: dict[str, AnyArray], meta: dict[str, Any]) -> str:
    digest = hashlib.blake2b(json.dumps(meta, sort_keys=True).encode(), digest_size=16)
    for name in sorted(columns) if are_trainings(columns) else _stored_names(columns):
        kind = _COLUMNS.get(name, columns[name].dtype)
        digest.update(np.ascontiguousarray(columns[name], dtype=kind).data)
    return digest.hexdigest()
