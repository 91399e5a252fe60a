"""Tables of any kind, and the rows that a dataset takes from them."""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np
import pandas as pd

from apiece._base.typing import AnyArray
from apiece.data._arrays import as_weights, check_rows
from apiece.data._cells import check_columns, read_cells
from apiece.data._columns import Columns
from apiece.data._groups import as_groups
from apiece.data._ids import as_ids, index_ids
from apiece.data._parts import Part, PoolAndScoring, set_aside
from apiece.data._readers import duplicate_columns, read_table
from apiece.data._rows import Rows
from apiece.data._target import Target
from apiece.errors import DataError


def as_table(source: Any, where: str, *, id_column: object = None) -> pd.DataFrame:
    """Return a table with strings as column names.

    Its index is that of a pandas frame, and row numbers from 0 otherwise.

    Parameters
    ----------
    source
        A pandas or polars frame, a DuckDB relation, an Arrow table, anything else with
        ``__arrow_c_stream__`` or ``__dataframe__``, or the csv, tsv or Parquet file of a table.
    where
        What to call its rows in messages.
    id_column
        The column that names the rows; it may also be the index.
    """
    table = (
        read_table(source) if isinstance(source, str | os.PathLike) else _as_frame(source, where)
    )
    if isinstance(id_column, str) and table.index.name == id_column:
        table = table.reset_index(drop=id_column in table.columns)
    names = [str(name) for name in table.columns]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise duplicate_columns(doubled, where)
    if not len(table):
        raise DataError(
            f"{where} came without rows: expected one row for each point. Check the step that "
            "made the table."
        )
    return table.set_axis(names, axis=1)


def _as_frame(source: Any, where: str) -> pd.DataFrame:
    """Return a table in memory as a pandas frame; a pandas frame as it is."""
    if isinstance(source, pd.DataFrame):
        return source
    import pyarrow as pa
    from pyarrow.interchange import from_dataframe

    table: Any = None
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):
        source = source.collect()  # a lazy frame of polars
    if hasattr(source, "__arrow_c_stream__"):
        table = pa.table(source)
    elif hasattr(source, "to_arrow_table"):  # a relation of an older DuckDB
        table = source.to_arrow_table()
    elif hasattr(source, "__dataframe__"):
        table = from_dataframe(source)
    if table is not None:
        frame: pd.DataFrame = table.to_pandas()
        return frame
    raise DataError(
        f"{where} came as a {type(source).__name__}: expected a pandas or polars frame, an Arrow "
        "table or the like, or the path of a csv or Parquet file. Use Dataset.from_arrays for "
        "arrays."
    )


def read_part(table: pd.DataFrame, columns: Columns, y: AnyArray, where: str) -> Part:
    """Read the rows of the pool's table, whose targets ``y`` are encoded already."""
    n_rows = len(table)
    check_rows(n_rows)
    ids = index_ids(table.index, n_rows) if columns.ids is None else ids_in(table, columns.ids)
    numbered = table.reset_index(drop=True)
    return Part(
        features_in(numbered, columns, where),
        y,
        ids,
        None if columns.groups is None else as_groups(table[columns.groups], n_rows, what="groups"),
        None if columns.weight is None else as_weights(table[columns.weight], n_rows),
    )


def split_table(
    part: Part, columns: Columns, target: Target, validation: Any, seed: int
) -> PoolAndScoring:
    """Return the pool, and the validation rows that are given as a table or set aside."""
    if validation is None or isinstance(validation, numbers.Number):
        return set_aside(part, validation, classes=target.classes, seed=seed)
    scoring = _scoring_rows(validation, columns, target)
    return PoolAndScoring(part, scoring, {"given": len(scoring.y)})


def _scoring_rows(source: Any, columns: Columns, target: Target) -> Part:
    """Read a table of validation rows like that of the pool."""
    where = "the validation rows"
    table = as_table(source, where, id_column=columns.ids).reset_index(drop=True)
    rows = features_in(table, columns, where)
    has_ids = columns.ids is not None and columns.ids in table.columns
    ids = ids_in(table, str(columns.ids)) if has_ids else None
    return Part(rows, target_in(table, target, where), ids)


def features_in(table: pd.DataFrame, columns: Columns, where: str) -> Rows:
    """Return the columns that become features, in plain types if we preprocess them."""
    if columns.roles is None:
        check_columns(table, columns.features, where)
        return table[list(columns.features)]
    return read_cells(table, columns.roles, impute=columns.impute, where=where)


def ids_in(table: pd.DataFrame, column: str) -> AnyArray:
    """Return the ids that a column holds, shape ``(n_rows,)``."""
    return as_ids(table[column], len(table), what=f"ids column {column!r}")


def target_in(table: pd.DataFrame, target: Target, where: str) -> AnyArray:
    """Return the encoded targets of further rows, shape ``(n_rows,)``."""
    if target.name not in table.columns:
        raise DataError(
            f"{where} lack the target column {target.name!r}: expected the columns of the pool's "
            "table, labels included, since a point's worth depends on its label. Add that column."
        )
    return target.encode(table[target.name], where)


def weights_in(table: pd.DataFrame, columns: Columns) -> AnyArray:
    """Return the sample weights of further rows, 1 where the table has none."""
    if columns.weight is None or columns.weight not in table.columns:
        return np.ones(len(table))
    return as_weights(table[columns.weight], len(table))
