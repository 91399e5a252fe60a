"""Predictions for every row by models that have not seen it, and the folds for that."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.data import guarded
from apiece.engines import resolve_model
from apiece.uses._plausible import mixture_weights, roughly

_TREES: Final = 60  # of a forest in folds
_PAIRS: Final = 50  # of trees, each on one half of the rows, so that 50 trees judge a row


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
    X: FloatArray,
    target: AnyArray,
    fold: IntArray,
    *,
    n_classes: int,
    seed: int,
    groups: AnyArray | None = None,
) -> FloatArray:
    """Predict every row by models that were trained without it.

    Two kinds of models that err differently predict: logistic (or ridge) regression in folds, and
    a forest whose trees are trained on halves of the rows.

    Parameters
    ----------
    X, target
        Features as numbers, shape ``(n, n_features)``, and class codes or quantities.
    fold
        From `folds_of`; rows of fold -1 train every model and are not predicted.
    n_classes
        How many classes there are; 0 for quantities.
    seed
        Of the forest.
    groups
        Names of groups, as in `folds_of`: a row is not judged by trees that saw its group.

    Returns
    -------
    FloatArray
        Of each kind, probabilities, shape ``(2, n, n_classes)``, or predictions, shape ``(2, n)``.
    """
    linear = in_folds("logistic" if n_classes else "ridge", X, target, fold, n_classes, seed)
    return np.stack([linear, forest_of_halves(X, target, fold >= 0, n_classes, seed, groups)])


def in_folds(
    name: str, X: FloatArray, target: AnyArray, fold: IntArray, n_classes: int, seed: int
) -> FloatArray:
    """Predict every row by models of a kind that were trained on the other folds."""
    kind = "classification" if n_classes else "regression"
    result = np.zeros((len(target), n_classes) if n_classes else len(target))
    for number in np.unique(fold[fold >= 0]):
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
        scaled = (X - centre) / np.where(spread > 0, spread, 1.0)
        model = resolve_model(name, kind=kind, n_features=X.shape[1], n_classes=n_classes)
        estimator = roughly(model.seeded(seed))
        if name == "forest":
            estimator.set_params(n_estimators=_TREES)
        fitted = estimator.fit(scaled[train], target[train])
        result[test] = predict(fitted, scaled[test], n_classes)
    return result


def forest_of_halves(
    X: FloatArray,
    target: AnyArray,
    is_judged: BoolArray,
    n_classes: int,
    seed: int,
    groups: AnyArray | None = None,
) -> FloatArray:
    """Predict every row by the trees that were trained on the halves it is not in.

    Halves come in pairs, so that one tree of each pair judges a row. All rows that are not judged
    train every tree.
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rows, trusted = np.flatnonzero(is_judged), np.flatnonzero(~is_judged)
    narrow = np.ascontiguousarray(X, dtype=np.float32)
    result = np.zeros((len(target), n_classes) if n_classes else len(target))
    for number in range(_PAIRS):
        here = groups if groups is None else groups[rows]
        half = folds_of(target[rows], 2, int(stream(seed, 29, number).integers(2**31)), here)
        for side in (0, 1):
            train, test = np.concatenate([rows[half == side], trusted]), rows[half != side]
            if n_classes:
                tree = DecisionTreeClassifier(max_features="sqrt", random_state=number)
            else:
                tree = DecisionTreeRegressor(max_features=1 / 3, random_state=number)
            tree.fit(narrow[train], target[train], check_input=False)
            result[test] += predict(tree, narrow[test], n_classes) / _PAIRS
    return result


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
    rows = guarded(rows)
    if not n_classes:
        return np.asarray(model.predict(rows), dtype=np.float64)
    proba = np.zeros((rows.shape[0], n_classes))
    if hasattr(model, "predict_proba"):
        proba[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(rows)
    else:
        proba[np.arange(len(proba)), np.asarray(model.predict(rows), dtype=np.int64)] = 1.0
    return proba
