"""From a table to a dataset: roles of the columns, validation rows, then features."""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np
import pandas as pd

from apiece._base.check import some
from apiece._base.rng import RandomState, seed_from
from apiece._base.typing import AnyArray
from apiece.data._arrays import check_rows
from apiece.data._cells import read_cells
from apiece.data._columns import as_names, check_names, decide_roles
from apiece.data._dataset import Dataset
from apiece.data._frames import FrameEncoder
from apiece.data._groups import as_groups
from apiece.data._ids import as_ids
from apiece.data._options import FilePath, Kind, Names
from apiece.data._readers import duplicate_columns, read_table
from apiece.data._split import carve
from apiece.data._target import encode_target, read_target
from apiece.errors import DataError


def dataset_from_table(
    frame: pd.DataFrame,
    *,
    target: str,
    validation: float | pd.DataFrame | FilePath | None,
    text: Names | None,
    ids: str | None,
    groups: str | None,
    drop: Names,
    categorical: Names,
    standardize: bool,
    impute: bool,
    kind: Kind | None,
    text_features: int,
    candidates: pd.DataFrame | FilePath | None,
    random_state: RandomState,
) -> Dataset:
    """Make the dataset of `Dataset.from_pandas`."""
    target, id_names = str(target), as_names(ids)
    id_column = id_names[0] if id_names else None
    table = as_table(frame, "the table", id_column=id_column)
    named = {
        "target": (target,),
        "ids": id_names,
        "groups": as_names(groups),
        "drop": as_names(drop),
        "text": as_names(text),
        "categorical": as_names(categorical),
    }
    check_names(table, named)
    for option, what in (("ids", "points"), ("groups", "groups")):
        if len(named[option]) > 1:
            raise DataError(
                f"{option}= names {len(named[option])} columns, {some(named[option])}: expected "
                f"the one that names the {what}. Join them into one column first, or pass one of "
                f"them (--{option})."
            )
    _check_text_features(text_features)
    check_rows(len(table))
    goal = read_target(table[target], kind=kind, name=target)
    skip = named["target"] + named["ids"] + named["groups"] + named["drop"]
    roles = decide_roles(table, text=named["text"], categorical=named["categorical"], skip=skip)
    cells = read_cells(table, roles, impute=impute, where="the rows of the table")
    row_ids = (
        np.arange(len(table), dtype=np.int64) if id_column is None else ids_in(table, id_column)
    )
    group = None if groups is None else as_groups(table[groups], len(table), what="groups")
    seed = seed_from(random_state)
    how: dict[str, Any] = {"from": "table", "standardize": standardize, "impute": impute}

    if isinstance(validation, pd.DataFrame | str | os.PathLike):
        where = "the validation rows"
        held = as_table(validation, where, id_column=id_column)
        held_cells = read_cells(held, roles, impute=impute, where=where)
        y_val = target_in(held, target, kind=goal.kind, classes=goal.classes, where=where)
        has_ids = id_column is not None and id_column in held.columns
        ids_val = ids_in(held, str(id_column)) if has_ids else None
        y_pool = goal.values
        how["validation"] = {"given": len(held)}
    else:
        codes = goal.values if goal.kind == "classification" else None
        pool, rest = carve(len(table), validation, seed=seed, codes=codes, classes=goal.classes)
        y_pool, y_val = goal.values[pool], goal.values[rest]
        ids_val, row_ids = row_ids[rest], row_ids[pool]
        group = None if group is None else group[pool]
        held_cells, cells = cells.take(rest), cells.take(pool)
        how["validation"] = {"carved": len(rest), "seed": seed}

    encoder, X_pool = FrameEncoder.fit(
        cells,
        roles,
        standardize=standardize,
        impute=impute,
        text_features=text_features,
        seed=seed,
        id_column=id_column,
    )
    how["columns"] = encoder.describe()
    how["dropped"] = list(named["drop"])
    if roles.text:
        how["text_seed"] = seed
    dataset = Dataset(
        points_X=X_pool,
        points_y=y_pool,
        n_pool=len(X_pool),
        X_val=encoder.encode(held_cells),
        y_val=y_val,
        ids=row_ids,
        kind=goal.kind,
        classes=goal.classes,
        feature_names=encoder.feature_names,
        target_name=target,
        preprocessing=how,
        ids_val=ids_val,
        encoder=encoder,
        groups=group,
        group_column=groups,
    )
    return dataset if candidates is None else dataset.with_candidates(candidates)


def as_table(
    source: pd.DataFrame | FilePath, where: str, *, id_column: str | None = None
) -> pd.DataFrame:
    """Return a table with strings as column names and rows numbered from 0.

    Parameters
    ----------
    source
        A DataFrame, or the csv, tsv or Parquet file that holds one.
    where
        What to call its rows in messages.
    id_column
        The column that names the rows; it may also be the index.
    """
    frame = read_table(source) if isinstance(source, str | os.PathLike) else source
    if not isinstance(frame, pd.DataFrame):
        raise DataError(
            f"{where} came as a {type(frame).__name__}: expected a pandas DataFrame, or the path "
            "of a csv or Parquet file. Use Dataset.from_arrays for arrays."
        )
    is_index = id_column is not None and frame.index.name == id_column
    table = frame.reset_index(drop=not is_index or id_column in frame.columns)
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


def ids_in(table: pd.DataFrame, column: str) -> AnyArray:
    """Return the ids that a column holds, shape ``(n_rows,)``."""
    return as_ids(table[column], len(table), what=f"ids column {column!r}")


def target_in(
    table: pd.DataFrame, target: str, *, kind: Kind, classes: AnyArray | None, where: str
) -> AnyArray:
    """Return the encoded targets of further rows, shape ``(n_rows,)``."""
    if target not in table.columns:
        raise DataError(
            f"{where} lack the target column {target!r}: expected the columns of the pool's table, "
            "labels included, since a point's worth depends on its label. Add that column."
        )
    return encode_target(table[target], kind=kind, classes=classes, name=target, where=where)


def _check_text_features(text_features: object) -> None:
    is_whole = isinstance(text_features, numbers.Integral) and not isinstance(text_features, bool)
    if not is_whole or int(text_features) < 1:  # type: ignore[call-overload]
        raise DataError(
            f"text_features={text_features!r} is no number of features: expected a whole number of "
            "at least 1. Pass for example text_features=128."
        )
