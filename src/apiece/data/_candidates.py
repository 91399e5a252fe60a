"""Candidates: points that might be bought or labelled, made into features as the pool was."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from apiece._base.typing import AnyArray
from apiece.data._arrays import as_column, as_rows, named_labels
from apiece.data._groups import as_groups
from apiece.data._ids import as_ids, check_unique, continued_ids, is_row_numbers
from apiece.data._parts import Part
from apiece.data._preprocess import as_features, transform
from apiece.data._readers import format_of, read_npz
from apiece.data._rows import is_frame
from apiece.data._tables import as_table, features_in, ids_in, target_in, weights_in
from apiece.data._target import Target
from apiece.errors import ApieceWarning, DataError

if TYPE_CHECKING:
    from apiece.data._points import PointSet

_WHERE = "the candidates"


def read_candidates(dataset: PointSet, candidates: Any, ids: object, groups: object) -> Part:
    """Return the features, encoded targets, ids and weights of candidates.

    Parameters
    ----------
    dataset
        The dataset that they join.
    candidates, ids, groups
        As in `Dataset.with_candidates`.

    Returns
    -------
    Part
        The candidates alone, but ``groups`` of all points, old and new; None without any.
    """
    if isinstance(candidates, str | os.PathLike) and format_of(candidates) == "npz":
        arrays = read_npz(candidates)
        candidates = (arrays["X"], named_labels(arrays["y"], arrays.get("class_names")))
        ids = arrays.get("ids") if ids is None else ids
        groups = arrays.get(dataset.group_column or "") if groups is None else groups
    target = Target(dataset.kind, dataset.points_y, dataset.classes, dataset.target_name)
    if isinstance(candidates, tuple) and len(candidates) == 2:
        new = _from_arrays(dataset, *candidates, target)
    else:
        new, ids, groups = _from_table(dataset, candidates, target, ids, groups)
    n_new = len(new.y)
    return new._replace(
        ids=_joined_ids(dataset, ids, n_new), groups=_joined_groups(dataset, groups, n_new)
    )


def _from_arrays(dataset: PointSet, X: object, y: object, target: Target) -> Part:
    """Read ``(X, y)``; of a dataset made from a table, ``X`` holds finished features."""
    is_finished = dataset.columns is not None
    how = dataset.preprocessing
    steps: Any = {
        "standardize": not is_finished and bool(how.get("standardize")),
        "impute": not is_finished and bool(how.get("impute")),
    }
    is_auto = "preprocess" not in how or is_finished
    rows = as_rows(
        X,
        "candidates' X",
        where=_WHERE,
        steps=steps if is_auto else None,
        n_features=dataset.n_features if is_auto else None,
    )
    labels = as_column(y, rows.shape[0], "candidates' y")
    features = as_features(rows) if is_finished else transform(dataset.transformer, rows, _WHERE)
    if is_frame(features) != is_frame(dataset.rows):
        raise DataError(
            f"candidates' X came as a {type(X).__name__}, the dataset keeps a "
            f"{type(dataset.rows).__name__}: expected rows of the same type. Pass those."
        )
    return Part(features, target.encode(labels, _WHERE), weight=np.ones(len(labels)))


def _from_table(
    dataset: PointSet, candidates: Any, target: Target, ids: object, groups: object
) -> tuple[Part, object, object]:
    """Return rows of a table, and the ids and groups that were given or that the table holds."""
    columns = dataset.columns
    if isinstance(candidates, np.ndarray | list | tuple):
        raise DataError(
            f"candidates came as a {type(candidates).__name__}: expected a pair (X, y) of arrays, "
            "a frame with the columns of the pool's table, or the path of such a file. Pass one of "
            "those (--candidates rows.csv)."
        )
    if columns is None:
        raise DataError(
            "candidates came as a table, but the dataset was made from arrays: expected arrays in "
            "the same space. Pass candidates=(X, y), or an npz file with X and y."
        )
    id_column = ids if isinstance(ids, str) else columns.ids
    named = as_table(candidates, _WHERE, id_column=id_column)
    table = named.reset_index(drop=True)
    if isinstance(ids, str) and ids not in table.columns:
        raise DataError(
            f"the candidates lack the ids column {ids!r}: expected one of their columns. Name the "
            "column that holds their ids, or leave ids out."
        )
    rows = transform(dataset.transformer, features_in(table, columns, _WHERE), _WHERE)
    y = target_in(table, target, _WHERE)
    if ids is None or isinstance(ids, str):
        has_column = id_column is not None and id_column in table.columns
        ids = ids_in(table, str(id_column)) if has_column else _ids_of_index(dataset, named.index)
    if groups is None and columns.groups in table.columns:
        groups = table[columns.groups]
    return Part(rows, y, weight=weights_in(table, columns)), ids, groups


def _ids_of_index(dataset: PointSet, index: pd.Index) -> AnyArray | None:
    """Return the ids in an index; None if it counts rows or names other points."""
    if is_row_numbers(index) or index.nlevels > 1 or dataset.columns is None:
        return None
    ids = as_ids(index.to_series(), len(index), what="the index of the candidates")
    taken = [dataset.ids] if dataset.ids_val is None else [dataset.ids, dataset.ids_val]
    is_taken = any(
        np.isin(ids, known).any() for known in taken if known.dtype.kind == ids.dtype.kind
    )
    if not is_taken and ids.dtype.kind == dataset.ids.dtype.kind:
        return ids
    if is_taken:
        warnings.warn(
            "the index of the candidates holds ids of other points, so it cannot name them: they "
            "get new ids. Pass ids=, or change the index.",
            ApieceWarning,
            stacklevel=5,
        )
    return None


def _joined_groups(dataset: PointSet, given: object, n_new: int) -> AnyArray | None:
    if given is None and dataset.groups is None:
        return None
    before = np.full(dataset.n_points, "") if dataset.groups is None else dataset.groups
    new = [""] * n_new if given is None else given
    return np.concatenate([before, as_groups(new, n_new, what="groups of the candidates")])


def _joined_ids(dataset: PointSet, given: object, n_new: int) -> AnyArray:
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
