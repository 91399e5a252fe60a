"""Features and targets as people hold them, checked and ready for a network."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.errors import DataError


class TargetCodes(NamedTuple):
    """Class codes and the classes behind them, or quantities and None."""

    codes: AnyArray
    classes: AnyArray | None


def as_features(X: Any, n_points: int | None, name: str = "X") -> FloatArray:
    """Return features as a matrix with a row for each point."""
    if X is None:
        raise DataError(
            f"{name} is missing: expected the features of every valued point, which contributions "
            "do not hold. Pass dataset= with the dataset of the run (--data FILE on the command "
            "line), or X= and y= in the order of contributions.ids."
        )
    try:
        matrix = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name} holds {_kinds(X)}: expected numbers. Encode text and categories first, as "
            "Dataset.from_pandas does."
        ) from error
    rows = "one row for each point" if n_points is None else f"{n_points:,} rows, one for each id"
    if matrix.ndim != 2 or (n_points is not None and len(matrix) != n_points):
        raise DataError(
            f"{name} has shape {matrix.shape}: expected {rows} of the contributions, and a column "
            "for each feature. Pass the features of the valued points alone, in their order."
        )
    if not np.isfinite(matrix).all():
        row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
        raise DataError(
            f"{name} has a value in row {row} that is not finite: expected numbers throughout. "
            "Fill or drop it first."
        )
    return matrix


def as_target(y: Any, n_points: int, kind: str | None) -> TargetCodes:
    """Return class codes with their classes, or quantities."""
    if y is None:
        raise DataError(
            "y is missing: expected the label of every valued point. Pass y= with X=, or dataset="
            " with the dataset of the run (--data FILE on the command line)."
        )
    labels = np.asarray(y)
    if labels.shape != (n_points,):
        raise DataError(
            f"y has shape {labels.shape}: expected ({n_points},), a label for each point. Pass the "
            "labels of the valued points alone, in their order."
        )
    is_real = labels.dtype.kind == "f" and not (labels == np.floor(labels)).all()
    if kind == "regression" or (kind is None and is_real):
        quantities = as_features(labels[:, None], n_points, "y")[:, 0]
        return TargetCodes(quantities, None)
    classes, codes = np.unique(labels, return_inverse=True)
    return TargetCodes(codes.astype(np.int64), classes)


def as_codes(y: Any, n_points: int, classes: AnyArray | None) -> AnyArray:
    """Return labels of further points as the codes or quantities that a network knows."""
    if classes is None:
        return as_target(y, n_points, "regression").codes
    given = as_target(y, n_points, "classification")
    assert given.classes is not None
    unknown = ~np.isin(given.classes, classes)
    if unknown.any():
        first = given.classes[unknown].tolist()[0]
        raise DataError(
            f"y holds {first!r}, a class that the network has not seen: "
            f"expected one of {', '.join(map(str, classes[:12]))}. Leave those points out, or "
            "train with points of that class."
        )
    return np.searchsorted(classes, given.classes)[given.codes]


def as_more(
    more: Any, features: FloatArray, target: TargetCodes
) -> tuple[FloatArray, AnyArray] | None:
    """Return further labelled points in the space of the valued ones, or None."""
    if more is None or not len(more[0]):
        return None
    X = as_features(more[0], None, "more's X")
    check_width(X, features.shape[1])
    return X, as_codes(more[1], len(X), target.classes)


def check_width(X: FloatArray, n_features: int) -> None:
    """Refuse features of another number than the network was trained on."""
    if X.shape[1] != n_features:
        raise DataError(
            f"X has {X.shape[1]} features: expected {n_features}, as the network was trained on. "
            "Pass the same columns in the same order."
        )


def _kinds(values: Any) -> str:
    kinds = sorted({type(value).__name__ for value in np.asarray(values, dtype=object).ravel()})
    return " and ".join(kinds[:3])
