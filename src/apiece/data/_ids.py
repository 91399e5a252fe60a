"""Names of points: whole numbers or strings, each of them once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas.api import types

from apiece._base.check import check_text, some
from apiece._base.typing import AnyArray, IntArray
from apiece.errors import ApieceWarning, DataError

_LONGEST: Final = 200  # characters; a longer one is a text, and a million of them fill the memory


def as_ids(values: object, n_rows: int, *, what: str) -> AnyArray:
    """Return ids as int64 or strings, shape ``(n_rows,)``, or say why they cannot name the points.

    Parameters
    ----------
    values
        Whole numbers or anything that reads as a string.
    n_rows
        How many there must be.
    what
        What to call them in messages, such as ``"column 'id'"``.

    Examples
    --------
    >>> as_ids([3.0, 1.0], 2, what="ids").tolist()
    [3, 1]
    """
    series = as_series(values, what)
    if len(series) != n_rows:
        raise DataError(
            f"{what} names {len(series):,} rows, the data has {n_rows:,}: expected one id for "
            "each row. Pass as many ids as rows."
        )
    missing = np.flatnonzero(series.isna().to_numpy())
    if len(missing):
        raise DataError(
            f"{what} is missing on {len(missing):,} rows, first at row {missing[0]}: expected an "
            "id on every row. Fill in those ids, or leave ids out to use the row numbers."
        )
    ids = _plain(series)
    if ids.dtype.kind == "U" and ids.dtype.itemsize > 4 * _LONGEST:
        longest = int(np.argmax(np.char.str_len(ids)))
        raise DataError(
            f"{what} holds {str(ids[longest])[:40]!r}… with {len(str(ids[longest])):,} characters "
            f"at row {longest}: expected ids of at most {_LONGEST}. Use a column of short names, "
            "or leave ids out to use the row numbers."
        )
    check_unique(ids, what=what)
    return ids


def index_ids(index: Any, n_rows: int) -> AnyArray:
    """Return the ids that an index stands for, shape ``(n_rows,)``; row numbers without one.

    An index that cannot name the rows, since entries repeat or are missing, is left aside with a
    warning.
    """
    numbers = np.arange(n_rows, dtype=np.int64)
    if not isinstance(index, pd.Index) or is_row_numbers(index):
        return numbers
    try:
        if index.nlevels > 1:
            raise DataError(f"the index has {index.nlevels} levels: expected one")
        return as_ids(index.to_series(), n_rows, what="the index")
    except DataError as error:
        warnings.warn(
            f"{str(error).partition(': expected')[0]}, so it cannot name the rows: ids are row "
            "numbers from 0. Find points with frame.iloc, not frame.loc, or name them with ids=.",
            ApieceWarning,
            stacklevel=4,
        )
        return numbers


def is_row_numbers(index: pd.Index) -> bool:
    """Return whether an index just counts the rows from 0."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def as_series(values: Any, what: str) -> pd.Series:
    """Return values as a Series, which refuses text with half a character in it."""
    try:
        return pd.Series(values)
    except UnicodeEncodeError:
        check_text(what, values)
        raise


def check_unique(ids: AnyArray, *, what: str) -> None:
    """Raise an error that names the ids that occur more than once."""
    index = pd.Index(ids)
    if not index.is_unique:
        doubled = index[index.duplicated()].unique().tolist()
        raise DataError(
            f"{what} repeats {some(doubled)}: expected every id once. Rename or "
            "remove those rows, or leave ids out to use the row numbers."
        )


def continued_ids(taken: Iterable[AnyArray | None], n_new: int, *, n_before: int) -> AnyArray:
    """Return ids for ``n_new`` candidates that clash with none ``taken``, shape ``(n_new,)``.

    Whole numbers go on after the largest one; next to strings they read ``candidate-0`` and so on,
    counted on from the ``n_before`` candidates that are already there.
    """
    given = [ids for ids in taken if ids is not None and len(ids)]
    if all(ids.dtype.kind == "i" for ids in given):
        first = 1 + max((int(ids.max()) for ids in given), default=-1)
        return np.arange(first, first + n_new, dtype=np.int64)
    return np.array([f"candidate-{n_before + j}" for j in range(n_new)], dtype=np.str_)


def find_ids(wanted: object, ids: AnyArray, *, others: AnyArray | None) -> IntArray:
    """Return the positions of ``wanted`` in ``ids``, shape ``(n_wanted,)``.

    Parameters
    ----------
    wanted
        One id or several; numbers written as strings are understood.
    ids
        The ids of all points, shape ``(n_points,)``.
    others
        Ids of the validation rows, for the message if one of them is requested.
    """
    names = np.atleast_1d(np.asarray(wanted)).ravel().tolist()
    read = _as_number if ids.dtype.kind == "i" else str
    keys = pd.Index([read(name) for name in names], dtype=object)
    positions = pd.Index(ids).get_indexer(keys)
    lost = np.flatnonzero(positions < 0)
    if len(lost):
        unknown = [names[j] for j in lost]
        held = set() if others is None else {str(other) for other in others.tolist()}
        in_validation = [name for name in unknown if str(name) in held]
        raise DataError(
            f"no point has the id {some(unknown)}"
            + (f" ({some(in_validation)} in the validation set)" if in_validation else "")
            + f": expected ids of the {len(ids):,} points of the pool and the candidates, such as "
            f"{some(ids[:3].tolist())}. Ask for ids listed in dataset.ids."
        )
    return positions.astype(np.int64)


def _as_number(name: object) -> object:
    try:
        return int(name) if isinstance(name, str) else name
    except ValueError:
        return name


def _plain(series: pd.Series) -> AnyArray:
    values = series.infer_objects()
    if types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype):
        numbers = values.to_numpy()
        if (numbers == np.floor(numbers)).all() and (np.abs(numbers) < 2.0**63).all():
            return numbers.astype(np.int64)
    return np.array([str(name) for name in values.tolist()], dtype=np.str_)
