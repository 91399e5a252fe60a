"""Predictions for every row by models that have not seen it, and the folds for that."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.engines import resolve_model
from apiece.uses._plausible import mixture_weights

_TREES: Final = 60
_KINDS: Final = {"classification": ("logistic", "forest"), "regression": ("ridge", "forest")}


def folds_of(target: AnyArray, n_folds: int, seed: int, groups: AnyArray | None = None) -> IntArray:
    """Return the fold of every row, shape ``(n,)``, with about the same targets in each.

    Rows of a group share a fold; an empty name is no group.
    """
    rng = stream(seed, 23)
    order = rng.permutation(len(target))
    order = order[np.argsort(target[order], kind="stable")]
    fold = np.empty(len(target), dtype=np.int64)
    fold[order] = np.arange(len(target)) % n_folds
    if groups is not None:
        names, member = np.unique(groups.astype(str), return_inverse=True)
        shared = rng.permutation(len(names)) % n_folds
        fold = np.where(names[member] == "", fold, shared[member])
    return fold


def outside(
    X: FloatArray, target: AnyArray, fold: IntArray, *, n_classes: int, seed: int
) -> FloatArray:
    """Predict every row by models that were trained on the other folds.

    Two kinds of models that err differently predict: logistic (or ridge) regression, and a forest.

    Parameters
    ----------
    X, target
        Features as numbers, shape ``(n, n_features)``, and class codes or quantities.
    fold
        From `folds_of`; rows of fold -1 train every model and are not predicted.
    n_classes
        How many classes there are; 0 for quantities.
    seed
        Of the forests.

    Returns
    -------
    FloatArray
        Of each kind, probabilities, shape ``(2, n, n_classes)``, or predictions, shape ``(2, n)``.
    """
    kind = "classification" if n_classes else "regression"
    shape = (len(target), n_classes) if n_classes else (len(target),)
    each = np.zeros((2, *shape))
    for number in np.unique(fold[fold >= 0]):
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
        scaled = (X - centre) / np.where(spread > 0, spread, 1.0)
        for position, name in enumerate(_KINDS[kind]):
            model = _build(name, kind, X.shape[1], n_classes, seed)
            model.fit(scaled[train], target[train])
            each[position][test] = predict(model, scaled[test], n_classes)
    return each


def mixed(each: FloatArray, target: AnyArray) -> FloatArray:
    """Mix what kinds of models predict, shape ``(n_kinds, n, n_classes)`` or ``(n_kinds, n)``.

    Weights are those under which the labels are likeliest; quantities are weighted by errors.
    """
    if each.ndim == 3:
        weights = mixture_weights(each[:, np.arange(len(target)), target])
        return np.asarray(np.einsum("m,mnc->nc", weights, each))
    error = np.median(np.abs(each - target), axis=1) ** 2
    weights = 1 / np.maximum(error, 1e-12 * max(float(error.max()), 1e-12))
    return np.asarray(weights @ each / weights.sum())


def predict(model: Any, rows: Any, n_classes: int) -> FloatArray:
    """Return probabilities of all classes, also of those a model was not trained on, or values."""
    if not n_classes:
        return np.asarray(model.predict(rows), dtype=np.float64)
    proba = np.zeros((rows.shape[0], n_classes))
    if hasattr(model, "predict_proba"):
        proba[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(rows)
    else:
        proba[np.arange(len(proba)), np.asarray(model.predict(rows), dtype=np.int64)] = 1.0
    return proba


def _build(name: str, kind: str, n_features: int, n_classes: int, seed: int) -> Any:
    model = resolve_model(name, kind=kind, n_features=n_features, n_classes=n_classes).seeded(seed)
    return model.set_params(n_estimators=_TREES) if name == "forest" else model
