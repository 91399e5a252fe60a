"""The cells of a table that become features, read and checked once.

Numbers become one array, categories become words, texts stay texts. Nothing is learned here: that
is the encoder's part, from the pool's rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api import types

from apiece._base.check import some
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data._columns import Roles
from apiece.data._numeric import check_numbers, missing_error
from apiece.errors import DataError


@dataclass(frozen=True)
class Cells:
    """Cells of some rows, by what they are.

    Parameters
    ----------
    numbers
        Numeric, then boolean columns, nan where missing, shape ``(n_rows, n_numbers)``.
    words
        Categorical columns as strings, None where missing, each of shape ``(n_rows,)``.
    texts
        Text columns, empty where missing, each of shape ``(n_rows,)``.
    """

    numbers: FloatArray
    words: dict[str, AnyArray]
    texts: dict[str, AnyArray]

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: IntArray) -> Cells:
        """Return a copy of some rows."""
        return Cells(
            self.numbers[rows],
            {name: column[rows] for name, column in self.words.items()},
            {name: column[rows] for name, column in self.texts.items()},
        )


def read_cells(table: pd.DataFrame, roles: Roles, *, impute: bool, where: str) -> Cells:
    """Read the columns that become features.

    Parameters
    ----------
    table
        A table; its index holds the row numbers for messages.
    roles
        The columns to read, and what they are.
    impute
        Whether missing cells are welcome.
    where
        What to call the rows in messages, such as ``"the candidates"``.

    Raises
    ------
    DataError
        For absent columns, numbers that are none, infinite numbers and missing cells.
    """
    absent = [name for name in roles.columns if name not in table.columns]
    if absent:
        raise DataError(
            f"{where} lack the column {some(absent)}: expected the columns of the pool's table, "
            f"{some(roles.columns)}. Add what is absent, or drop it from the table as well "
            f"(drop=[{absent[0]!r}], --drop {absent[0]})."
        )
    names = roles.numeric + roles.boolean
    numbers = _as_numbers(table, names, where)
    check_numbers(numbers, names, where=where, impute=True, is_table=True)
    if not impute:
        counts = table[list(roles.columns)].isna().sum()
        if counts.any():
            raise missing_error({str(k): int(v) for k, v in counts[counts > 0].items()}, where)
    return Cells(
        numbers,
        {name: as_words(table[name]) for name in roles.categorical},
        {name: _as_texts(table[name]) for name in roles.text},
    )


def as_words(column: pd.Series) -> AnyArray:
    """Return categories as strings, None where missing, shape ``(n_rows,)`` of objects.

    Whole numbers read the same whether they are stored as integers or as floats.

    >>> as_words(pd.Series([1.0, None, 2.5])).tolist()
    ['1', None, '2.5']
    """
    codes, uniques = pd.factorize(column)
    words = [_word(value) for value in np.asarray(uniques, dtype=object).tolist()]
    return np.array([*words, None], dtype=object)[codes]


def _word(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _as_texts(column: pd.Series) -> AnyArray:
    cells = zip(column.astype(object).tolist(), column.isna().tolist(), strict=True)
    return np.array(["" if is_missing else str(text) for text, is_missing in cells], dtype=object)


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
    numbers = pd.DataFrame(columns).to_numpy(dtype=np.float64, na_value=np.nan)
    return np.array(numbers, order="C")


def _not_numbers(name: str, column: pd.Series, is_bad: AnyArray, where: str) -> DataError:
    first = int(np.flatnonzero(is_bad)[0])
    return DataError(
        f"column {name!r} is numeric, but {int(is_bad.sum()):,} of {int(column.notna().sum()):,} "
        f"values in {where} are not, first {column.iloc[first]!r} at row {column.index[first]}: "
        "expected numbers alone. Mend those cells (empty ones can be filled with impute=True, "
        f"--impute), drop the column (drop=[{name!r}], --drop {name}), "
        f"or take its values as categories (categorical=[{name!r}], --categorical {name})."
    )
