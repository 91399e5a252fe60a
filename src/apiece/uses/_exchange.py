r"""Exchange rates: how many rows of one group are worth one row of another, at a size.

A group $A$ that entered with $n_A$ rows is worth $\psi_k(A) / n_A$ a row, and

$$r_k(A, B) = \frac{\psi_k(A) / n_A}{\psi_k(B) / n_B}$$

rows of $B$ are worth one row of $A$ when the training set holds $k$ rows. Rows of a large group are
worth less because there are more of them; where groups differ much in size, let the same number of
rows of each enter (``group_size``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from apiece._base.check import unknown_name
from apiece._base.rng import RandomState
from apiece._base.typing import FloatArray, IntArray
from apiece.errors import DataError, PlanError
from apiece.laws import Laws
from apiece.laws.sizes import check_sizes
from apiece.laws.student import check_level
from apiece.records import scope_of, scoped

if TYPE_CHECKING:
    import pandas as pd

_DRAWS: Final = 2000


def exchange(
    laws: Laws,
    *,
    at: npt.ArrayLike | None = None,
    pairs: Sequence[tuple[object, object]] | None = None,
    rows: Mapping[Any, int] | None = None,
    most: int = 100,
    level: float = 0.9,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    r"""Say how many rows of one group are worth one row of another.

    Parameters
    ----------
    laws
        Laws of groups, or of points, each of which counts as one row.
    at
        Sizes, a number or shape ``(n_k,)``; the largest that was sampled by default.
    pairs
        Pairs of groups; by default all whose first is worth more a row than the second, and the
        second more than nothing.
    rows
        How many rows each group entered with; by default as the run says.
    most
        How many pairs to list at each size, those with the largest rates first.
    level
        Coverage of the interval.
    random_state
        Seed of the draws behind it.

    Returns
    -------
    pandas.DataFrame
        One row for each pair and size: ``group``, ``other``, ``k``, ``rate`` (how many rows of
        ``other`` are worth one row of ``group``; nan unless both help), ``low`` and ``high`` from
        joint draws of both laws (infinite where the other may be worth nothing), ``p_more``
        (probability that a row of ``group`` is worth more), ``per_row`` and ``other_per_row``
        (contributions in units of the loss).

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[5.0, 2.0], alpha=[1.0, 1.0], ids=["web", "lab"])
    >>> rates = exchange(laws, at=100, rows={"web": 10, "lab": 1})
    >>> rates[["group", "other", "rate"]].values.tolist()
    [['lab', 'web', 4.0]]
    """
    import pandas as pd

    if most < 1:
        raise PlanError(f"most={most} pairs: expected at least 1. Pass for example most=100.")
    check_level(level)
    sizes, _ = check_sizes(laws.k_range[1] if at is None else at)
    n_rows = _rows(laws, rows)
    each = laws.mean(sizes) / n_rows[:, None]
    params = laws.draws(_DRAWS, random_state=random_state)
    tables = []
    for column, k in enumerate(sizes):
        if pairs is None:
            first, second = _all_pairs(each[:, column], most)
        else:
            given = [[laws.place(name) for name in pair] for pair in pairs]
            first, second = np.array(given, dtype=np.int64).reshape(-1, 2).T
        drawn = _drawn(laws, params, float(k), np.unique([first, second])) / n_rows
        low, high, p_more = _intervals(drawn[:, first], drawn[:, second], level)
        one, two = each[first, column], each[second, column]
        rate = np.divide(one, two, out=np.full(len(one), np.nan), where=(one > 0) & (two > 0))
        tables.append(
            pd.DataFrame(
                {
                    "group": laws.ids[first].astype(object),
                    "other": laws.ids[second].astype(object),
                    "k": k,
                    "rate": rate,
                    "low": low,
                    "high": high,
                    "p_more": p_more,
                    "per_row": one,
                    "other_per_row": two,
                }
            )
        )
    return scoped(pd.concat(tables, ignore_index=True), scope_of(laws.attrs))


def _rows(laws: Laws, rows: Mapping[Any, int] | None) -> FloatArray:
    """Return with how many rows each group entered, shape ``(n_points,)``."""
    known = laws.provenance.groups if rows is None else rows
    if known is None:
        return np.ones(laws.n_points)
    by_name = {str(name): count for name, count in known.items()}
    names = laws.ids.astype(str).tolist()
    for name in names:
        if name not in by_name:
            raise unknown_name("group, without a number of rows,", name, by_name, DataError)
    counts = np.array([by_name[name] for name in names], dtype=np.float64)
    if not (counts > 0).all():
        raise DataError(
            f"rows holds {counts.min():g}: expected how many rows each group entered with, at "
            "least 1. Pass rows={name: count}."
        )
    return counts


def _all_pairs(value: FloatArray, most: int) -> tuple[IntArray, IntArray]:
    """Return pairs of rows that help, the better first; the largest rates first."""
    helps = np.flatnonzero(value > 0)
    order = helps[np.argsort(-value[helps], kind="stable")]
    first, second = np.triu_indices(len(order), 1)
    first, second = order[first], order[second]
    largest = np.argsort(-value[first] / value[second], kind="stable")[:most]
    return first[largest], second[largest]


def _drawn(laws: Laws, params: FloatArray, k: float, rows: IntArray) -> FloatArray:
    """Evaluate every draw of some laws at a size; nan for the others, shape ``(n, n_points)``."""
    values = np.full(params.shape[:2], np.nan)
    size = np.array([k])
    with np.errstate(invalid="ignore", over="ignore"):  # draws from a hopeless fit are wild
        for row in rows:
            values[:, row] = laws.family.mean(params[:, row], size)[:, 0]
    return values


def _intervals(
    one: FloatArray, two: FloatArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return low, high and the chance that the first is worth more, each ``(n_pairs,)``."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # A row that helps is worth any number of rows that do not.
        rate = np.where(two > 0, np.maximum(one, 0.0) / two, np.where(one > 0, np.inf, 0.0))
    is_known = np.isfinite(one).all(axis=0) & np.isfinite(two).all(axis=0)
    if not rate.shape[1]:
        return np.empty(0), np.empty(0), np.empty(0)
    low = np.quantile(rate, (1 - level) / 2, axis=0, method="lower")
    high = np.quantile(rate, (1 + level) / 2, axis=0, method="higher")
    p_more = (one > two).mean(axis=0)
    low, high, p_more = (np.where(is_known, part, np.nan) for part in (low, high, p_more))
    return low, high, p_more
