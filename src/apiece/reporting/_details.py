"""What a page shows of a single point: its columns, its picture, and which points are near it.

Everything here is optional and gives way: columns and pictures are taken while the page stays
within its size, and what had to be left out is said.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._base.check import some
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset, FilePath, read_table
from apiece.errors import DataError
from apiece.laws import Laws
from apiece.reporting._images import thumbnail
from apiece.reporting._payload import packed_size

if TYPE_CHECKING:
    import pandas as pd

_MOST_COLUMNS: Final = 60
_CELL_LENGTHS: Final = (2000, 500, 120)  # characters of a cell: as many as there is room for
_DIRECTIONS: Final = 16
_TEXT: Final = 15  # characters that make a cell a text rather than a word
_FLOATS: Final = 500_000  # entries of the space of near points kept as they are, beyond as bytes


@dataclass
class Room:
    """How many bytes a page still has, and what did not fit."""

    left: int
    notes: list[str] = field(default_factory=list)

    def take(self, n_bytes: int) -> bool:
        """Take that many bytes, or return False and leave all as it is."""
        if n_bytes > self.left:
            return False
        self.left -= n_bytes
        return True


@dataclass(frozen=True)
class Details:
    """Parts of the page's data: entries of its description, and arrays."""

    description: dict[str, Any]
    arrays: dict[str, AnyArray]


def neighbourhood(laws: Laws, dataset: Dataset | None, rows: pd.DataFrame | None) -> Details:
    """Return a space in which the page looks for near points: features, else columns, else laws.

    Of more than 16 features the 16 directions of largest variance are kept.
    """
    if dataset is not None:
        space, by = np.asarray(dataset.features(find(dataset, laws)), np.float64), "features"
    elif rows is not None and (numeric := _numeric(rows)).shape[1]:
        space, by = _standardized(numeric), "columns"
    else:
        space, by = _standardized(np.arcsinh(_standardized(_ends(laws)))), "law"
    n_features = space.shape[1]
    space = _leading(space)
    if space.shape[1] < n_features:
        by = f"{by} ({space.shape[1]} leading directions of {n_features:,})"
    is_known = np.asarray(np.isfinite(space).all(axis=1))
    entries: AnyArray = space.astype(np.float32)
    if space.size > _FLOATS:
        reach = 3 * float(np.sqrt((space[is_known] ** 2).mean())) if is_known.any() else 1.0
        entries = np.rint(np.clip(space / reach, -1, 1) * 127)
        entries = np.where(is_known[:, None], entries, -128).astype(np.int8)
    description = {"near": {"by": by, "width": int(space.shape[1])}}
    return Details(description, {"near": entries, "near_known": is_known.astype(np.uint8)})


def columns(laws: Laws, dataset: Dataset | None, rows: pd.DataFrame | None, room: Room) -> Details:
    """Return the columns shown for a point: those of ``rows``, else the dataset's features."""
    if rows is None and dataset is not None and hasattr(dataset.rows, "columns"):
        rows = dataset.take(find(dataset, laws))  # a table that is kept as it is
    if rows is not None:
        named = {str(name): _column(rows[name]) for name in rows.columns}
    elif dataset is not None:
        features = dataset.features(find(dataset, laws))
        named = dict(zip(dataset.feature_names, np.asarray(features).T, strict=True))
    else:
        named = {}
    listed: list[dict[str, Any]] = []
    arrays: dict[str, AnyArray] = {}
    left_out = list(named)[_MOST_COLUMNS:]
    for j, (name, values) in enumerate(list(named.items())[:_MOST_COLUMNS]):
        if isinstance(values, list):
            cells = _cut(values, room)
            if cells is not None:
                listed.append({"name": name, "text": cells})
                continue
        elif room.take(packed_size(np.asarray(values, np.float32).tobytes())):
            arrays[f"column{j}"] = np.asarray(values, np.float32)
            listed.append({"name": name, "array": f"column{j}"})
            continue
        left_out.append(name)
    if left_out:
        room.notes.append(f"{len(left_out):,} columns are not shown: {some(left_out)}.")
    return Details({"columns": listed}, arrays)


def pictures(laws: Laws, images: Any, room: Room) -> Details:
    """Return thumbnails of the points, those of largest value first if not all fit."""
    if images is None:
        return Details({}, {})
    names = laws.ids.tolist()
    if isinstance(images, Mapping):
        by_name = {str(key): image for key, image in images.items()}
        found: Any = [by_name.get(str(name)) for name in names]
    elif len(images) == len(names):
        found = images
    else:
        raise DataError(
            f"there are {len(images):,} images for {len(names):,} points: expected one for each, "
            "in the order of laws.ids. Pass a mapping from ids to images if some have none."
        )
    importance = np.abs(np.nan_to_num(laws.mean(laws.k_ref)))
    data: dict[int, bytes] = {}
    for row in np.argsort(-importance, kind="stable").tolist():
        if found[row] is None:
            continue
        encoded = thumbnail(found[row])
        if not room.take(len(encoded)):
            room.notes.append(f"Pictures of the {len(data):,} points of largest value are shown.")
            break
        data[row] = encoded
    parts = [data.get(row, b"") for row in range(len(names))]
    start = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.uint32)
    joined = np.frombuffer(b"".join(parts), dtype=np.uint8)
    return Details({}, {"picture_start": start, "pictures": joined})


def find(dataset: Dataset, laws: Laws) -> IntArray:
    """Return the positions in the dataset of the points that have laws."""
    place = {str(name): position for position, name in enumerate(dataset.ids.tolist())}
    missing = [name for name in laws.ids.tolist() if str(name) not in place]
    if missing:
        raise DataError(
            f"the dataset lacks {len(missing):,} of the points, such as {missing[0]!r}: expected "
            "the dataset that was collected from. Pass that one, or leave it out."
        )
    return np.array([place[str(name)] for name in laws.ids.tolist()], dtype=np.int64)


def rows_of(laws: Laws, source: pd.DataFrame | FilePath, ids: str | None = None) -> pd.DataFrame:
    """Return the rows of a table that belong to the points, in their order.

    Parameters
    ----------
    source
        A table or its file: a row for each point, known by the index or by a column.
    ids
        The column of ids; None for the index, in a file the row numbers from 0.
    """
    return keyed_rows(laws, source, ids).reindex([str(name) for name in laws.ids.tolist()])


def keyed_rows(laws: Laws, source: pd.DataFrame | FilePath, ids: str | None = None) -> pd.DataFrame:
    """Return all rows of a table by their ids, as text; those of the points must be among them."""
    table = read_table(source) if isinstance(source, str | os.PathLike) else source
    if ids is not None and ids not in table.columns:
        raise DataError(
            f"the table has no column {ids!r}: expected the column that names the points, one of "
            f"{some(table.columns.tolist())}. Pass ids= (--ids) with its name."
        )
    keyed = table if ids is None else table.set_index(ids)
    keyed = keyed.set_axis(keyed.index.map(str), axis=0)
    names = [str(name) for name in laws.ids.tolist()]
    known = set(keyed.index)
    missing = [name for name in names if name not in known]
    if len(missing) == len(names) or keyed.index.has_duplicates:
        problem = (
            "names some rows twice"
            if keyed.index.has_duplicates
            else f"has none of the points, such as {names[0]!r}"
        )
        raise DataError(
            f"the table of rows {problem}: expected one row for each point, known by its id. Name "
            "the column of ids with ids= (--ids), or set it as the index."
        )
    return keyed


def text_column(rows: pd.DataFrame | None) -> str | None:
    """Return the column that says best what a row is: that with the longest texts, if any.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"source": ["web"], "review": ["a film that I would see again"]})
    >>> text_column(rows)
    'review'
    """
    if rows is None:
        return None
    lengths = {
        str(name): float(rows[name].dropna().astype(str).str.len().median())
        for name in rows.columns
        if rows[name].dtype.kind not in "biufMm" and rows[name].notna().any()
    }
    best = max(lengths, key=lambda name: lengths[name], default=None)
    return best if best is not None and lengths[best] >= _TEXT else None


def _ends(laws: Laws) -> FloatArray:
    return laws.mean(np.array([laws.k_range[0], laws.k_ref, laws.k_range[1]]))


def _numeric(rows: pd.DataFrame) -> FloatArray:
    found = [np.asarray(rows[n], np.float64) for n in rows.columns if rows[n].dtype.kind in "iuf"]
    return np.stack(found, axis=1) if found else np.empty((len(rows), 0))


def _standardized(space: FloatArray) -> FloatArray:
    """Bring columns to unit spread; a column without any becomes zero."""
    is_known = np.isfinite(space)
    n = np.maximum(is_known.sum(axis=0), 1)
    apart = space - np.where(is_known, space, 0.0).sum(axis=0) / n
    spread = np.sqrt((np.where(is_known, apart, 0.0) ** 2).sum(axis=0) / n)
    return np.asarray(apart / np.where(spread > 0, spread, 1.0))


def _leading(space: FloatArray) -> FloatArray:
    if space.shape[1] <= _DIRECTIONS:
        return space
    known = space[np.isfinite(space).all(axis=1)]
    if not len(known):
        return space[:, :_DIRECTIONS]
    _, vectors = np.linalg.eigh(np.atleast_2d(np.cov(known, rowvar=False)))
    return np.asarray((space - known.mean(axis=0)) @ vectors[:, : -_DIRECTIONS - 1 : -1])


def _column(values: pd.Series[Any]) -> FloatArray | list[str]:
    if values.dtype.kind in "iuf":
        return np.asarray(values, dtype=np.float64)
    missing = values.isna()
    return ["" if gone else str(cell) for cell, gone in zip(values, missing, strict=True)]


def _cut(cells: list[str], room: Room) -> list[str] | None:
    """Shorten cells to what fits, or return None."""
    for length in _CELL_LENGTHS:
        cut = [cell if len(cell) <= length else cell[: length - 1] + "…" for cell in cells]
        if room.take(packed_size(json.dumps(cut).encode("ascii"))):
            return cut
    return None
