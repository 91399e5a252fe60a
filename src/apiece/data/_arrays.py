"""Arrays in memory, or in an npz file, read and checked."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas.api.types import is_list_like, is_numeric_dtype

from apiece._base.check import unknown_name
from apiece._base.text import first_line
from apiece._base.typing import AnyArray, FloatArray
from apiece.data._cells import check_numbers
from apiece.data._groups import as_groups
from apiece.data._ids import as_ids, as_series, index_ids
from apiece.data._options import FilePath, Kind, Steps
from apiece.data._parts import Part, PoolAndScoring, set_aside
from apiece.data._readers import read_npz
from apiece.data._rows import Rows, as_dense, float_type, is_frame, is_sparse
from apiece.data._target import Target, read_target
from apiece.errors import DataError

LEAST_ROWS: Final = 3  # one to train on, one to value, one to judge


def read_arrays(
    X: object,
    y: object,
    ids: object,
    groups: object,
    weight: object,
    *,
    kind: Kind | None,
    steps: Steps | None,
) -> tuple[Part, Target]:
    """Read the rows of `Dataset.from_arrays`.

    Parameters
    ----------
    X, y, ids, groups, weight, kind
        As in `Dataset.from_arrays`.
    steps
        Whether to standardise and to impute; None if a transformer or model of the user gets the
        rows, which are then neither checked nor turned into a matrix.
    """
    rows = as_rows(X, "X", where="the rows of X", steps=steps)
    n_rows = rows.shape[0]
    labels = as_column(y, n_rows, "y")
    check_rows(n_rows)
    name = "target" if labels.name is None else str(labels.name)
    target = read_target(labels, kind=kind, name=name)
    if ids is None:
        row_ids = index_ids(getattr(X, "index", None), n_rows)
    else:
        row_ids = as_ids(ids, n_rows, what="ids")
    group = None if groups is None else as_groups(groups, n_rows, what="groups")
    weights = None if weight is None else as_weights(weight, n_rows)
    return Part(rows, target.values, row_ids, group, weights), target


def split_arrays(
    part: Part,
    target: Target,
    given: tuple[object, object, float | None],
    *,
    steps: Steps | None,
    seed: int,
) -> PoolAndScoring:
    """Return the pool, and the validation rows that are given or set aside.

    ``given`` holds ``X_val``, ``y_val`` and ``validation`` of `Dataset.from_arrays`.
    """
    X_val, y_val, validation = given
    if X_val is None and y_val is None:
        return set_aside(part, validation, classes=target.classes, seed=seed)
    _check_given(X_val, y_val, validation)
    width = part.rows.shape[1]
    rows = as_rows(X_val, "X_val", where="the rows of X_val", steps=steps, n_features=width)
    labels = as_column(y_val, rows.shape[0], "y_val")
    scoring = Part(rows, target.encode(labels, "the validation rows"))
    return PoolAndScoring(part, scoring, {"given": len(scoring.y)})


def as_rows(
    X: Any, what: str, *, where: str, steps: Steps | None, n_features: int | None = None
) -> Rows:
    """Return features as an array or a sparse matrix of checked numbers, or a frame as it is.

    Parameters
    ----------
    X
        Features, shape ``(n_rows, n_features)``.
    what, where
        What to call them and their rows in messages.
    steps
        As in `read_arrays`. Only rows that are neither standardised nor imputed stay sparse.
    n_features
        How many columns there must be, if known.
    """
    if steps is None and is_frame(X):
        return X
    rows = as_matrix(X, what, n_features=n_features)
    if steps is None:
        return rows
    if is_sparse(rows):
        if not any(steps.values()) and np.isfinite(rows.data).all():
            return rows
        rows = as_dense(rows)
    names = array_names(X, None, rows.shape[1])
    check_numbers(rows, names, where=where, impute=steps["impute"], is_table=False)
    return rows.astype(float_type(rows.dtype), copy=False)


def arrays_from_npz(
    path: FilePath, validation: float | FilePath | None, groups: str | None
) -> dict[str, Any]:
    """Return the arguments for `Dataset.from_arrays` that an npz file holds."""
    arrays = read_npz(path)
    if groups is not None and groups not in arrays:
        raise unknown_name("array of groups", groups, arrays, DataError)
    chosen: dict[str, Any] = {
        key: arrays[key]
        for key in ("X", "y", "X_val", "y_val", "ids", "sample_weight")
        if key in arrays
    }
    if groups is not None:
        chosen["groups"] = pd.Series(arrays[groups], name=groups)
    if "feature_names" in arrays:
        chosen["feature_names"] = arrays["feature_names"].tolist()
    if validation is None or isinstance(validation, int | float | numbers.Real):
        chosen["validation"] = validation
    else:
        held_out = read_npz(validation)
        chosen["X_val"] = held_out["X"]
        chosen["y_val"] = named_labels(held_out["y"], held_out.get("class_names"))
    for key in ("y", "y_val"):
        if key in chosen:
            chosen[key] = named_labels(chosen[key], arrays.get("class_names"))
    return chosen


def named_labels(y: AnyArray, class_names: AnyArray | None) -> AnyArray:
    """Return the names behind codes from 0, or ``y`` itself where it holds no such codes."""
    if class_names is None or class_names.ndim != 1 or y.dtype.kind not in "iu" or not y.size:
        return y
    return class_names[y] if y.min() >= 0 and y.max() < len(class_names) else y


def as_matrix(X: Any, what: str, *, n_features: int | None = None) -> Rows:
    """Return features as a matrix of numbers, sparse or not, in the dtype that they came in.

    Parameters
    ----------
    X
        Anything that reads as a matrix, shape ``(n_rows, n_features)``.
    what
        What to call it in messages, such as ``"X_val"``.
    n_features
        How many columns it must have, if known.
    """
    try:
        matrix: Any = X.tocsr() if is_sparse(X) else _as_numbers(X)
    except (TypeError, ValueError) as error:
        said = first_line(error)
        raise DataError(
            f"{what} cannot be read as numbers ({said}): expected an array of shape (rows, "
            "features). For columns of words use Dataset.from_pandas, which encodes them."
        ) from error
    if matrix.ndim != 2:
        shape = "(-1, 1)" if matrix.ndim < 2 else "(len(X), -1)"
        raise DataError(
            f"{what} has shape {matrix.shape}: expected two dimensions, (rows, features). Pass for "
            f"example X.reshape{shape}."
        )
    if matrix.shape[1] == 0:
        raise DataError(
            f"{what} has shape {matrix.shape}, no features: expected at least one. Pass an array "
            "of shape (rows, features)."
        )
    if n_features is not None and matrix.shape[1] != n_features:
        raise DataError(
            f"{what} has {matrix.shape[1]:,} features, the pool has {n_features:,}: expected the "
            "same features in the same order. Make both with the same steps."
        )
    return matrix


def as_column(y: object, n_rows: int, what: str) -> pd.Series:
    """Return targets as a Series of ``n_rows`` entries, numbered from 0."""
    if isinstance(y, pd.DataFrame) and y.shape[1] == 1:
        y = y.iloc[:, 0]
    if isinstance(y, list | tuple) and not any(is_list_like(label) for label in y):
        y = as_series(y, what)  # np.asarray would turn a missing label among strings into 'nan'
    elif not isinstance(y, pd.Series):
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise DataError(
                f"{what} has shape {values.shape}: expected one dimension, a label for each row. "
                f"Pass {what}.argmax(axis=1) if it is one-hot."
            )
        y = as_series(values, what)
    if len(y) != n_rows:
        raise DataError(
            f"{what} has {len(y):,} entries for {n_rows:,} rows of features: expected one label "
            "for each row. Pass arrays of one length."
        )
    return y.reset_index(drop=True)


def as_weights(weight: Any, n_rows: int) -> FloatArray:
    """Return weights of rows as float64, shape ``(n_rows,)``."""
    try:
        weights = np.array(weight, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.full(1, np.nan)
    is_good = weights.shape == (n_rows,) and (np.isfinite(weights) & (weights >= 0)).all()
    if not is_good or not weights.any():
        raise DataError(
            f"sample_weight has shape {np.shape(weight)} for {n_rows:,} rows, or holds weights "
            "that are negative, missing, no numbers or all zero: expected a weight of at least 0 "
            "for each row. Fix them, or leave sample_weight out."
        )
    return weights


def check_rows(n_rows: int) -> None:
    """Raise an error for fewer rows than a pool and a validation set need."""
    if n_rows < LEAST_ROWS:
        raise DataError(
            f"the data has {n_rows} rows: expected at least {LEAST_ROWS}, one to train on, one to "
            "value and one to judge by. Pass more rows."
        )


def _check_given(X_val: object, y_val: object, validation: object) -> None:
    if X_val is None or y_val is None:
        given, absent = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
        raise DataError(
            f"{given} is given without {absent}: expected both or neither. Pass {absent} as well, "
            "or leave both out: rows then take turns in scoring."
        )
    if validation is not None:
        raise DataError(
            f"validation={validation!r} and X_val are both given: expected one of them, since a "
            "given validation set is used whole. Leave validation= (--validation) out."
        )


def _as_numbers(X: Any) -> AnyArray:
    """Return an array of numbers, with nan where a frame or a mask says missing."""
    if isinstance(X, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(X.astype(np.float64), np.nan))
    if isinstance(X, pd.DataFrame) and all(is_numeric_dtype(dtype) for dtype in X.dtypes):
        return X.to_numpy(dtype=np.float64, na_value=np.nan)
    matrix = np.asarray(X)
    if matrix.dtype.kind not in "biufO":
        raise TypeError(f"its dtype is {matrix.dtype}")
    return matrix.astype(np.float64) if matrix.dtype.kind == "O" else matrix


def array_names(X: Any, given: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    """Return a name for each feature: those given, those of a frame, or ``x0``, ``x1``, ..."""
    if given is None and is_frame(X):
        given = X.columns.tolist()
    if given is None:
        return tuple(f"x{j}" for j in range(n_features))
    names = tuple(str(name) for name in given)
    if len(names) != n_features:
        raise DataError(
            f"feature_names has {len(names):,} names, X has {n_features:,} features: expected a "
            "name for each. Pass as many names as columns, or none."
        )
    return names
