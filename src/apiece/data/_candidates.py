"""Candidates: points that might be bought or labelled, encoded as the pool was."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from apiece._base.typing import AnyArray, FloatArray
from apiece.data._arrays import as_column, as_matrix, named_labels, own_copy
from apiece.data._cells import read_cells
from apiece.data._frames import FrameEncoder
from apiece.data._groups import as_groups
from apiece.data._ids import as_ids, check_unique, continued_ids
from apiece.data._numeric import NumericEncoder, check_numbers
from apiece.data._readers import format_of, read_npz
from apiece.data._tables import as_table, ids_in, target_in
from apiece.data._target import encode_target
from apiece.errors import DataError

if TYPE_CHECKING:
    from apiece.data._dataset import Dataset

_WHERE = "the candidates"


def read_candidates(
    dataset: Dataset, candidates: object, ids: object, groups: object
) -> tuple[FloatArray, AnyArray, AnyArray, AnyArray | None]:
    """Return features, encoded targets and ids of candidates, and the groups of all points.

    Parameters
    ----------
    dataset
        The dataset that they join.
    candidates, ids, groups
        As in `Dataset.with_candidates`.

    Returns
    -------
    tuple of FloatArray and AnyArray
        Shapes ``(n_new, n_features)``, ``(n_new,)``, ``(n_new,)`` and, unless there are no groups,
        ``(n_points + n_new,)``.
    """
    if isinstance(candidates, str | os.PathLike) and format_of(candidates) == "npz":
        arrays = read_npz(candidates)
        candidates = (arrays["X"], named_labels(arrays["y"], arrays.get("class_names")))
        ids = arrays.get("ids") if ids is None else ids
        groups = arrays.get(dataset.group_column or "") if groups is None else groups
    if isinstance(candidates, tuple) and len(candidates) == 2:
        X, y = _from_arrays(dataset, *candidates)
        given = ids
    elif isinstance(candidates, pd.DataFrame | str | os.PathLike):
        table = _table(dataset, candidates, ids)
        X, y, given = _from_table(dataset, table, ids)
        if groups is None and dataset.group_column in table.columns:
            groups = table[dataset.group_column]
    else:
        raise DataError(
            f"candidates came as a {type(candidates).__name__}: expected a pair (X, y) of arrays, "
            "a DataFrame with the columns of the pool's table, or the path of such a file. Pass "
            "one of those (--candidates rows.csv)."
        )
    return X, y, _joined_ids(dataset, given, len(X)), _joined_groups(dataset, groups, len(X))


def _from_arrays(dataset: Dataset, X: object, y: object) -> tuple[FloatArray, AnyArray]:
    matrix = as_matrix(X, "candidates' X", n_features=dataset.n_features)
    labels = as_column(y, len(matrix), "candidates' y")
    encoder = dataset.encoder if isinstance(dataset.encoder, NumericEncoder) else NumericEncoder()
    names = dataset.feature_names
    impute = encoder.fill is not None
    check_numbers(matrix, names, where=_WHERE, impute=impute, is_table=False)
    y_new = encode_target(
        labels, kind=dataset.kind, classes=dataset.classes, name=dataset.target_name, where=_WHERE
    )
    return encoder.encode(own_copy(matrix)), y_new


def _table(
    dataset: Dataset, candidates: pd.DataFrame | str | os.PathLike[str], ids: object
) -> pd.DataFrame:
    encoder = dataset.encoder
    if not isinstance(encoder, FrameEncoder):
        raise DataError(
            "candidates came as a table, but the dataset was made from arrays: expected arrays in "
            "the same space. Pass candidates=(X, y), or an npz file with X and y."
        )
    column = ids if isinstance(ids, str) else encoder.id_column
    return as_table(candidates, _WHERE, id_column=column)


def _from_table(
    dataset: Dataset, table: pd.DataFrame, ids: object
) -> tuple[FloatArray, AnyArray, object]:
    encoder = dataset.encoder
    assert isinstance(encoder, FrameEncoder)
    column = ids if isinstance(ids, str) else encoder.id_column
    cells = read_cells(table, encoder.roles, impute=encoder.impute, where=_WHERE)
    y_new = target_in(
        table, dataset.target_name, kind=dataset.kind, classes=dataset.classes, where=_WHERE
    )
    if isinstance(ids, str) and ids not in table.columns:
        raise DataError(
            f"the candidates lack the ids column {ids!r}: expected one of their columns. Name the "
            "column that holds their ids, or leave ids out."
        )
    if column is not None and (ids is None or isinstance(ids, str)) and column in table.columns:
        return encoder.encode(cells), y_new, ids_in(table, column)
    return encoder.encode(cells), y_new, ids


def _joined_groups(dataset: Dataset, given: object, n_new: int) -> AnyArray | None:
    if given is None and dataset.groups is None:
        return None
    before = np.full(dataset.n_points, "") if dataset.groups is None else dataset.groups
    new = [""] * n_new if given is None else given
    return np.concatenate([before, as_groups(new, n_new, what="groups of the candidates")])


def _joined_ids(dataset: Dataset, given: object, n_new: int) -> AnyArray:
    if given is None:
        taken = (dataset.ids, dataset.ids_val)
        names = continued_ids(taken, n_new, n_before=dataset.n_candidates)
    else:
        names = as_ids(given, n_new, what="ids of the candidates")
    if names.dtype.kind != dataset.ids.dtype.kind:
        words = {"i": "whole numbers", "U": "strings"}
        raise DataError(
            f"ids of the candidates are {words[names.dtype.kind]} such as {names[0].item()!r}, "
            f"those of the pool are {words[dataset.ids.dtype.kind]}: expected one type of id. Pass "
            "ids of the same type for both, or leave the candidates' out."
        )
    check_unique(np.concatenate([dataset.ids, names]), what="pool and candidates together")
    return names
