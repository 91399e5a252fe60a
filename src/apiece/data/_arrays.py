"""From arrays in memory, or in an npz file, to a dataset."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas.api.types import is_list_like, is_numeric_dtype

from apiece._base.check import unknown_name
from apiece._base.rng import RandomState, seed_from
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data._dataset import Dataset
from apiece.data._groups import as_groups
from apiece.data._ids import as_ids, as_series
from apiece.data._numeric import NumericEncoder, check_numbers
from apiece.data._options import FilePath, Kind
from apiece.data._readers import read_npz
from apiece.data._split import carve
from apiece.data._target import encode_target, read_target
from apiece.errors import DataError

_MOST_DENSE: Final = 100_000_000  # entries up to which a sparse matrix is made dense
LEAST_ROWS: Final = 3  # one to train on, one to value, one to judge


def dataset_from_arrays(
    X: object,
    y: object,
    *,
    X_val: object,
    y_val: object,
    ids: object,
    candidates: tuple[object, object] | FilePath | None,
    candidate_ids: object,
    groups: object,
    validation: float | None,
    kind: Kind | None,
    standardize: bool,
    impute: bool,
    feature_names: Sequence[str] | None,
    random_state: RandomState,
) -> Dataset:
    """Make the dataset of `Dataset.from_arrays`."""
    matrix = as_matrix(X, "X")
    n_rows = len(matrix)
    labels = as_column(y, n_rows, "y")
    check_rows(n_rows)
    names = _feature_names(X, feature_names, matrix.shape[1])
    target_name = "target" if labels.name is None else str(labels.name)
    target = read_target(labels, kind=kind, name=target_name)
    check_numbers(matrix, names, where="the rows of X", impute=impute, is_table=False)
    row_ids = np.arange(n_rows, dtype=np.int64) if ids is None else as_ids(ids, n_rows, what="ids")
    group = None if groups is None else as_groups(groups, n_rows, what="groups")
    how: dict[str, Any] = {"from": "arrays", "standardize": standardize, "impute": impute}

    if X_val is None and y_val is None:
        seed = seed_from(random_state)
        codes = target.values if target.kind == "classification" else None
        pool, held_out = carve(n_rows, validation, seed=seed, codes=codes, classes=target.classes)
        X_pool, y_pool, pool_ids = own_copy(matrix, pool), target.values[pool], row_ids[pool]
        X_held, y_held, held_ids = (
            own_copy(matrix, held_out),
            target.values[held_out],
            row_ids[held_out],
        )
        group = None if group is None else group[pool]
        how["validation"] = {"carved": len(held_out), "seed": seed}
    else:
        _check_given(X_val, y_val, validation)
        given = as_matrix(X_val, "X_val", n_features=matrix.shape[1])
        held_labels = as_column(y_val, len(given), "y_val")
        check_numbers(given, names, where="the rows of X_val", impute=impute, is_table=False)
        X_pool, y_pool, pool_ids = own_copy(matrix), target.values, row_ids
        X_held, held_ids = own_copy(given), None
        y_held = encode_target(
            held_labels,
            kind=target.kind,
            classes=target.classes,
            name=target_name,
            where="the validation rows",
        )
        how["validation"] = {"given": len(given)}

    encoder = NumericEncoder.fit(X_pool, names, standardize=standardize, impute=impute)
    dataset = Dataset(
        points_X=encoder.encode(X_pool),
        points_y=y_pool,
        n_pool=len(X_pool),
        X_val=encoder.encode(X_held),
        y_val=y_held,
        ids=pool_ids,
        kind=target.kind,
        classes=target.classes,
        feature_names=names,
        target_name=target_name,
        preprocessing=how,
        ids_val=held_ids,
        encoder=encoder,
        groups=group,
        group_column=getattr(groups, "name", None),
    )
    if candidates is None:
        return dataset
    return dataset.with_candidates(candidates, ids=candidate_ids)


def arrays_from_npz(path: FilePath, validation: object, groups: str | None) -> dict[str, Any]:
    """Return the arguments for `Dataset.from_arrays` that an npz file holds."""
    arrays = read_npz(path)
    if groups is not None and groups not in arrays:
        raise unknown_name("array of groups", groups, arrays, DataError)
    found: dict[str, Any] = {
        key: arrays[key] for key in ("X", "y", "X_val", "y_val", "ids") if key in arrays
    }
    if groups is not None:
        found["groups"] = pd.Series(arrays[groups], name=groups)
    if "feature_names" in arrays:
        found["feature_names"] = arrays["feature_names"].tolist()
    if validation is None or isinstance(validation, numbers.Real):
        found["validation"] = validation
    else:
        held_out = read_npz(validation)  # type: ignore[arg-type]
        found["X_val"] = held_out["X"]
        found["y_val"] = named_labels(held_out["y"], held_out.get("class_names"))
    for key in ("y", "y_val"):
        if key in found:
            found[key] = named_labels(found[key], arrays.get("class_names"))
    return found


def named_labels(y: AnyArray, class_names: AnyArray | None) -> AnyArray:
    """Return the names behind codes from 0, or ``y`` itself where it holds no such codes."""
    if class_names is None or class_names.ndim != 1 or y.dtype.kind not in "iu" or not y.size:
        return y
    return class_names[y] if y.min() >= 0 and y.max() < len(class_names) else y


def as_matrix(X: object, what: str, *, n_features: int | None = None) -> AnyArray:
    """Return features as a two-dimensional array of numbers in the dtype that they came in.

    Parameters
    ----------
    X
        Anything that reads as a matrix, shape ``(n_rows, n_features)``.
    what
        What to call it in messages, such as ``"X_val"``.
    n_features
        How many columns it must have, if known.
    """
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        X = _dense(X, what)
    try:
        matrix = _as_numbers(X)
    except (TypeError, ValueError) as error:
        said = str(error).splitlines()[0].rstrip(".")
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
        y = as_series(y, what)  # np.asarray would turn a missing label beside strings into 'nan'
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


def own_copy(matrix: AnyArray, rows: IntArray | None = None) -> FloatArray:
    """Return a copy of some rows in float64, row by row in memory."""
    if rows is None:
        return np.array(matrix, dtype=np.float64, order="C")
    return np.ascontiguousarray(matrix[rows], dtype=np.float64)


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
            "or leave both out to carve a validation set from the rows."
        )
    if validation is not None:
        raise DataError(
            f"validation={validation!r} and X_val are both given: expected one of them, since a "
            "given validation set is used whole. Leave validation= (--validation) out."
        )


def _dense(X: Any, what: str) -> AnyArray:
    """Return a sparse matrix as an array, unless it would fill the memory."""
    n_entries = int(np.prod(X.shape))
    if n_entries > _MOST_DENSE:
        raise DataError(
            f"{what} is a sparse matrix of {n_entries:,} entries: expected at most "
            f"{_MOST_DENSE:,}, since models are trained on dense features. Reduce it first, for "
            "example with sklearn.decomposition.TruncatedSVD."
        )
    return np.asarray(X.toarray())


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


def _feature_names(X: object, given: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    if given is None and isinstance(X, pd.DataFrame):
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
