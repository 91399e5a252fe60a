r"""Carving a validation set out of the rows: seeded, and stratified by class.

Of class $c$ with $n_c$ of the $n$ rows, a validation set of $m$ rows takes $m_c$ rows with
$\sum_c m_c = m$, as close to $m\,n_c/n$ as whole numbers allow (largest remainder) and with
$1 \le m_c \le n_c - 1$, so that every class keeps a row on each side, however rare it is.
"""

from __future__ import annotations

import numbers
from typing import Final

import numpy as np

from apiece._base.check import some
from apiece._base.rng import stream
from apiece._base.typing import AnyArray, IntArray
from apiece.errors import DataError

_CARVING: Final = 0x63617276  # the stream of the carving, apart from those of the tasks


def carve(
    n_rows: int,
    validation: object,
    *,
    seed: int,
    codes: IntArray | None = None,
    classes: AnyArray | None = None,
) -> tuple[IntArray, IntArray]:
    """Split rows into pool and validation, both in rising order.

    Parameters
    ----------
    n_rows
        Number of rows, at least 3.
    validation
        A fraction in (0, 1), or a count of rows.
    seed
        The same seed carves the same rows.
    codes, classes
        For classification, the class of every row as a position in ``classes``, shape
        ``(n_rows,)``, and the labels themselves, shape ``(n_classes,)``.

    Returns
    -------
    tuple of IntArray
        Rows of the pool, shape ``(n_pool,)``, and of the validation set, shape
        ``(n_validation,)``; together all rows, once.
    """
    rng = stream(seed, _CARVING)
    if codes is None or classes is None:
        taken = rng.permutation(n_rows)[: validation_rows(validation, n_rows)]
    else:
        counts = np.bincount(codes, minlength=len(classes))
        _check_rare(counts, classes, codes)
        total = validation_rows(validation, n_rows, n_classes=len(classes))
        shuffled = rng.permutation(n_rows)
        by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
        rank = np.arange(n_rows) - np.repeat(np.cumsum(counts) - counts, counts)
        taken = by_class[rank < np.repeat(spread(counts, total), counts)]
    is_validation = np.zeros(n_rows, dtype=bool)
    is_validation[taken] = True
    return np.flatnonzero(~is_validation), np.flatnonzero(is_validation)


def validation_rows(validation: object, n_rows: int, n_classes: int = 1) -> int:
    """Return how many rows ``validation`` sets aside.

    >>> validation_rows(0.1, 500), validation_rows(40, 500)
    (50, 40)
    """
    least, most = n_classes, n_rows - max(2, n_classes)
    is_whole = isinstance(validation, numbers.Integral) and not isinstance(validation, bool)
    if isinstance(validation, numbers.Real) and not isinstance(validation, numbers.Integral):
        fraction = float(validation)
        if 0 < fraction < 1:
            return min(max(round(fraction * n_rows), least), most)
    if not isinstance(validation, numbers.Integral) or not is_whole:
        raise DataError(
            f"validation={validation!r} is no validation set: expected a fraction between 0 and 1, "
            "a whole number of rows, or for tables a DataFrame or file of rows. Pass for example "
            "validation=0.2 (--validation 0.2) or validation=200 (--validation 200)."
        )
    n_carved = int(validation)
    if not least <= n_carved <= most:
        for_each = f", at least one for each of the {n_classes} classes" if n_classes > 1 else ""
        raise DataError(
            f"validation={n_carved} does not fit a table of {n_rows:,} rows: expected "
            f"{least} to {most:,} rows{for_each} on either side. Pass a size in that "
            "range, or leave validation out: rows then take turns in scoring."
        )
    return n_carved


def spread(counts: IntArray, total: int) -> IntArray:
    """Share ``total`` rows out in proportion to ``counts``, leaving every class 1 on each side.

    Parameters
    ----------
    counts
        Rows of each class, shape ``(n_classes,)``, each at least 2.
    total
        Rows to take, from ``n_classes`` to ``sum(counts) - n_classes``.

    Returns
    -------
    IntArray
        Rows to take of each class, shape ``(n_classes,)``, from 1 to ``counts - 1``.

    Examples
    --------
    >>> spread(np.array([90, 8, 2]), 20)
    array([18,  1,  1])
    """
    quota = total * counts / counts.sum()
    taken: IntArray = np.maximum(np.floor(quota).astype(np.int64), 1)
    while (missing := total - int(taken.sum())) != 0:
        if missing > 0:
            taken[np.argmax(np.where(taken < counts - 1, quota - taken, -np.inf))] += 1
        else:
            taken[np.argmin(np.where(taken > 1, quota - taken, np.inf))] -= 1
    return taken


def _check_rare(counts: IntArray, classes: AnyArray, codes: IntArray) -> None:
    rare = np.flatnonzero(counts < 2)
    if not len(rare):
        return
    row = int(np.flatnonzero(codes == rare[0])[0])
    named = f"class {classes[rare[0]].item()!r} has a single row (row {row})"
    if len(rare) > 1:
        named = f"classes {some(classes[rare].tolist())} have a single row each"
    raise DataError(
        f"{named}: expected at least 2 rows of every class, one for the pool and one for the "
        "validation set. Add rows, merge or remove the class, or bring a validation set of your "
        "own (X_val= and y_val= for arrays, validation='rows.csv' or --validation rows.csv for "
        "tables); if the target is a quantity, pass kind='regression' (--task regression)."
    )
