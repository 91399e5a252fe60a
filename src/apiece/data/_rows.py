"""Rows of features as models get them: an array, a sparse matrix or a frame.

Engines that compute with numbers need a dense float64 matrix, which `as_dense` makes. The refit
engine trains on the rows as they are: float32 stays float32, sparse stays sparse, and a frame keeps
its columns by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from apiece._base.typing import FloatArray, IntArray
from apiece.errors import DataError

# A float32 or float64 matrix, a scipy.sparse matrix in CSR format, or a pandas DataFrame.
Rows: TypeAlias = Any

MOST_DENSE: Final = 100_000_000  # entries up to which a sparse matrix is made dense
_BLOCK: Final = 4_096  # rows of a sparse matrix that are made dense at a time


def is_frame(rows: Rows) -> bool:
    """Return whether rows are a frame."""
    return hasattr(rows, "iloc")


def is_sparse(rows: Rows) -> bool:
    """Return whether rows are a sparse matrix."""
    return hasattr(rows, "toarray") and hasattr(rows, "nnz")


def float_type(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    """Return the type that numbers are kept in: float32 stays, anything else becomes float64."""
    return np.float32 if dtype == np.float32 else np.float64


def take_rows(rows: Rows, positions: IntArray | slice) -> Rows:
    """Return the rows at some positions, in the type that they have.

    Examples
    --------
    >>> take_rows(np.eye(3), np.array([2, 0]))
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    return rows.iloc[positions] if is_frame(rows) else rows[positions]


def guarded(rows: Rows) -> Rows:
    """Return rows that a model can predict and not change: a read-only view of an array, or a copy.

    Examples
    --------
    >>> guarded(np.eye(2)).flags.writeable
    False
    """
    if not isinstance(rows, np.ndarray):
        return rows.copy()
    view = rows.view()
    view.flags.writeable = False
    return view


def join_rows(first: Rows, second: Rows) -> Rows:
    """Return the rows of two parts, one below the other, in the type of the first.

    Examples
    --------
    >>> join_rows(np.zeros((2, 3)), np.ones((1, 3))).shape
    (3, 3)
    """
    if is_frame(first):
        import pandas as pd

        return pd.concat([first, second], ignore_index=True)
    if is_sparse(first):
        import scipy.sparse

        joined = scipy.sparse.vstack([first, scipy.sparse.csr_array(second)], format="csr")
        return joined.astype(first.dtype)
    dense = second.toarray() if is_sparse(second) else second
    return np.concatenate([first, dense], dtype=first.dtype)


def why_not_dense(rows: Rows) -> str | None:
    """Say in words why rows cannot become a dense matrix; None if they can."""
    if is_frame(rows):
        return "the table is kept as it is (preprocess=None)"
    if is_sparse(rows) and int(np.prod(rows.shape)) > MOST_DENSE:
        return (
            f"the sparse matrix has {int(np.prod(rows.shape)):,} entries, more than "
            f"{MOST_DENSE:,}, too many for a dense one"
        )
    return None


def as_dense(rows: Rows) -> FloatArray:
    """Return rows as a dense float64 matrix, shape ``(n_rows, n_features)``.

    Raises
    ------
    DataError
        For a frame, and for a sparse matrix that would fill the memory.
    """
    obstacle = why_not_dense(rows)
    if obstacle is not None:
        raise DataError(
            f"{obstacle}: expected features as a dense matrix of numbers, which only engine='refit'"
            " does without. Reduce it first, for example with sklearn.decomposition.TruncatedSVD."
        )
    dense = rows.toarray() if is_sparse(rows) else rows
    return np.ascontiguousarray(dense, dtype=np.float64)


def parts_of(name: str, rows: Rows) -> Iterator[tuple[str, Rows]]:
    """Yield the content of rows for a digest, part by part.

    Equal numbers yield equal parts in any type of matrix. A frame yields a hash for each cell,
    column by column, with the names and dtypes of its columns.
    """
    if not is_frame(rows):
        yield name, rows
        return
    import pandas as pd

    for column, dtype in zip(rows.columns, rows.dtypes, strict=True):
        cells = rows[column]
        try:
            hashes = pd.util.hash_pandas_object(cells, index=False)
        except TypeError:  # cells such as lists
            words = cells.map(lambda cell: repr(np.asarray(cell).tolist()))
            hashes = pd.util.hash_pandas_object(words, index=False)
        yield f"{name}[{column}:{dtype}]", hashes.to_numpy().view(np.int64)


def dense_blocks(rows: Rows) -> Iterator[FloatArray]:
    """Yield a sparse matrix as dense blocks of rows."""
    for start in range(0, rows.shape[0], _BLOCK):
        yield np.ascontiguousarray(rows[start : start + _BLOCK].toarray(), dtype=np.float64)
