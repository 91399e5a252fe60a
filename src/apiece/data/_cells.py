"""The cells of a table that become features, checked and in plain types.

Numbers become floats, categories become strings, texts stay texts, and each embedding is spread
over columns of numbers. Nothing is learned here: the transformer learns, from the pool only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
from pandas.api import types

from apiece._base.check import some
from apiece._base.text import in_shell
from apiece._base.typing import AnyArray, FloatArray
from apiece.data._columns import Roles
from apiece.errors import DataError

_HUGE: Final = 1e15  # where rounding a mean leaves ones
_SAME: Final = 1e-12  # of the largest number: a smaller spread is little more than rounding


def read_cells(table: pd.DataFrame, roles: Roles, *, impute: bool, where: str) -> pd.DataFrame:
    """Read the columns that become features.

    Parameters
    ----------
    table
        A table; its index holds the row numbers for messages.
    roles
        The columns to read, and what they are.
    impute
        Whether missing cells are allowed.
    where
        What to call the rows in messages, such as ``"the candidates"``.

    Returns
    -------
    DataFrame
        Numeric and boolean columns as float64 and categories as strings, nan where missing; texts
        as strings, empty where missing; a column ``name[j]`` for each number of an embedding.

    Raises
    ------
    DataError
        For absent columns, cells that are not numbers, infinite numbers and missing cells.
    """
    check_columns(table, roles.columns, where)
    if not impute:
        counts = table[list(roles.columns)].isna().sum()
        if counts.any():
            missing = {str(name): int(n) for name, n in counts[counts > 0].items()}
            raise _unusable(missing, where, "missing", is_table=True)
    names = roles.numeric + roles.boolean
    blocks = [pd.DataFrame(_as_numbers(table, names, where), columns=list(names))]
    for name, width in roles.embedding.items():
        columns = [f"{name}[{j}]" for j in range(width)]
        blocks.append(pd.DataFrame(_as_vectors(table[name], width, where), columns=columns))
    numbers = pd.concat(blocks, axis=1)
    check_numbers(
        numbers.to_numpy(), list(numbers.columns), where=where, impute=impute, is_table=True
    )
    words = {name: as_words(table[name]) for name in roles.categorical}
    words |= {name: _as_texts(table[name]) for name in roles.text}
    return pd.concat([numbers, pd.DataFrame(words, dtype=object)], axis=1) if words else numbers


def check_columns(table: pd.DataFrame, columns: Sequence[str], where: str) -> None:
    """Raise an error that names the columns that a table lacks."""
    absent = [name for name in columns if name not in table.columns]
    if absent:
        raise DataError(
            f"{where} lack the column{'s' * (len(absent) > 1)} {some(absent)}: expected the "
            f"columns of the pool's table, {some(columns)}. Add what is absent, or drop it from "
            f"the table as well (drop=[{absent[0]!r}], --drop {in_shell(absent[0])})."
        )


def check_numbers(
    X: AnyArray, names: Sequence[str], *, where: str, impute: bool, is_table: bool
) -> None:
    """Raise an error that names the features with infinite or missing values.

    Parameters
    ----------
    X
        Numbers of any dtype, shape ``(n_rows, n_features)``, or those that a sparse matrix stores.
    names
        The features' names, shape ``(n_features,)``.
    where
        What to call the rows in messages, such as ``"the validation rows"``.
    impute
        Whether missing values are allowed.
    is_table
        Whether the rows come from a table, whose columns can be dropped.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if X.dtype.kind != "f" or np.isfinite(X.sum(dtype=np.float64)):
            return
    for what, test in (("infinite", np.isinf), ("missing", np.isnan)):
        counts = test(X).sum(axis=0)
        if counts.any() and not (impute and what == "missing"):
            by_name = {str(names[j]): int(counts[j]) for j in np.flatnonzero(counts).tolist()}
            raise _unusable(by_name, where, what, is_table=is_table)


def check_scale(X: AnyArray, names: Sequence[str], *, standardize: bool, impute: bool) -> None:
    """Raise an error for features of the pool that cannot be standardised or imputed.

    Parameters
    ----------
    X
        The pool's numbers, nan where missing, shape ``(n_pool, n_features)``.
    names
        The features' names, shape ``(n_features,)``.
    standardize, impute
        What is to be done to them.
    """
    empty = (
        [str(names[j]) for j in np.flatnonzero(np.isnan(X).all(axis=0)).tolist()] if impute else []
    )
    if empty:
        raise DataError(
            f"{some(empty)} has no value at all in the pool: expected at least one to impute from. "
            f"Leave it out (drop=[{empty[0]!r}] or --drop {in_shell(empty[0])} for a table), or "
            "fill it in."
        )
    if standardize and X.size:
        largest = np.nanmax(np.abs(X), axis=0).astype(np.float64)
        j = int(np.argmax(largest))
        if largest[j] > 1e150:  # whose squares would overflow
            raise DataError(
                f"{str(names[j])!r} reaches {largest[j]:.3g}, too large to standardise: expected "
                "numbers whose squares are finite. Rescale it, or pass standardize=False (--raw)."
            )
        spread = (np.nanmax(X, axis=0) - np.nanmin(X, axis=0)).astype(np.float64)
        lost = np.flatnonzero((largest > _HUGE) & (spread <= _SAME * largest))
        if len(lost):
            name = str(names[lost[0]])
            raise DataError(
                f"{name!r} is {largest[lost[0]]:.3g} in every row, up to the precision of numbers: "
                "expected differences that are larger next to its size. Drop it (drop="
                f"[{name!r}], --drop {in_shell(name)}), subtract a constant, or pass it as "
                f"categories (categorical=[{name!r}], --categorical {in_shell(name)})."
            )


def as_words(column: pd.Series) -> AnyArray:
    """Return categories as strings, nan where missing, shape ``(n_rows,)`` of objects.

    Whole numbers read the same whether they are stored as integers or as floats.

    >>> as_words(pd.Series([1.0, None, 2.5])).tolist()
    ['1', nan, '2.5']
    """
    codes, uniques = pd.factorize(column)
    words = [_word(value) for value in np.asarray(uniques, dtype=object).tolist()]
    return np.array([*words, np.nan], dtype=object)[codes]


def _word(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _as_texts(column: pd.Series) -> AnyArray:
    cells = zip(column.astype(object).tolist(), column.isna().tolist(), strict=True)
    return np.array(["" if is_missing else str(text) for text, is_missing in cells], dtype=object)


def _as_vectors(column: pd.Series, width: int, where: str) -> FloatArray:
    """Return embeddings as a matrix, nan where a cell is missing, shape ``(n_rows, width)``."""
    is_missing = column.isna().to_numpy()
    cells = column[~is_missing]
    vectors = np.full((len(column), width), np.nan)
    odd = [(row, cell) for row, cell in cells.items() if np.shape(cell) != (width,)]
    if odd:
        raise DataError(
            f"column {column.name!r} holds {str(odd[0][1])[:40]!r} at row {odd[0][0]} of {where}: "
            f"expected a list of {width} numbers, as in the pool. Fix that cell, or drop the "
            f"column (drop=[{column.name!r}], --drop {in_shell(column.name)})."
        )
    if len(cells):
        vectors[~is_missing] = np.stack([np.asarray(cell, dtype=np.float64) for cell in cells])
    return vectors


def _as_numbers(table: pd.DataFrame, names: tuple[str, ...], where: str) -> FloatArray:
    """Return columns as float64 with nan where missing, shape ``(n_rows, n_columns)``."""
    columns = {}
    for name in names:
        column = table[name]
        is_category = isinstance(column.dtype, pd.CategoricalDtype)
        if is_category or not types.is_numeric_dtype(column.dtype):
            given = column.astype(object)
            column = pd.to_numeric(given, errors="coerce")
            is_bad = column.isna() & given.notna()
            if is_bad.any():
                raise _not_numbers(name, given, is_bad.to_numpy(), where)
        columns[name] = column
    if not columns:
        return np.empty((len(table), 0))
    return pd.DataFrame(columns).to_numpy(dtype=np.float64, na_value=np.nan)


def _unusable(counts: dict[str, int], where: str, what: str, *, is_table: bool) -> DataError:
    """Build the error for missing or infinite values: ``counts`` of them by column."""
    listed = ", ".join(f"{name!r} ({count:,})" for name, count in list(counts.items())[:5])
    more = f" and {len(counts) - 5:,} more" if len(counts) > 5 else ""
    column, first = "column" if is_table else "feature", next(iter(counts))
    remedies = ["fix them"]
    if what == "missing":
        remedies.append("pass impute=True (--impute) to fill them from the pool")
    if is_table:
        remedies.append(f"drop the column (drop=[{first!r}], --drop {in_shell(first)})")
    expected = "a value in every cell" if what == "missing" else "finite numbers"
    return DataError(
        f"{where} hold {what} values in {column} {listed}{more}: expected {expected}. "
        f"F{', or '.join(remedies)[1:]}."
    )


def _not_numbers(name: str, column: pd.Series, is_bad: AnyArray, where: str) -> DataError:
    first = int(np.flatnonzero(is_bad)[0])
    return DataError(
        f"column {name!r} is numeric, but {int(is_bad.sum()):,} of {int(column.notna().sum()):,} "
        f"values in {where} are not, first {column.iloc[first]!r} at row {column.index[first]}: "
        "expected numbers alone. Fix those cells (empty ones can be filled with impute=True, "
        f"--impute), drop the column (drop=[{name!r}], --drop {in_shell(name)}), "
        f"or take its values as categories (categorical=[{name!r}], --categorical "
        f"{in_shell(name)})."
    )
