r"""Predictions at each point by models trained on few points.

A contribution at size $k$ depends on the error of a model trained on $k$ points, not on the error
of a model trained on all points. So linear models are trained on random subsets of the sampled
sizes, and each point gets the mean prediction of the models that were not trained on it. The
penalty, and whether features are standardised, are chosen by the loss on held-out points. This
approximates the model that produced the contributions, which need not be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.estimators._reader import (
    FeatureProbe,
    Inputs,
    blank,
    loss,
    penalties,
    trained,
    with_more,
)

_TRIALS: Final = 4  # subsets for each choice
_SUBSETS: Final = 24  # subsets for each size
_NODES: Final = 15  # quantiles of the error of a prediction, for points with unknown targets


class SmallModels(NamedTuple):
    """Predictions of models of each size at the points, and the features that they see."""

    outputs: list[FloatArray]  # as `FeatureProbe.inputs` takes them, (n, c)
    models: list[FloatArray]  # as `FeatureProbe` has them, (b, d + 1, c)
    x: FloatArray  # features and a constant, (n, d + 1)
    is_raw: bool  # whether they see features as they came


def predict_with_small_models(
    reader: FeatureProbe, X: FloatArray, y: AnyArray, n_own: int, sizes: list[int]
) -> SmallModels:
    """Train models on random subsets, and predict the points that they have not seen.

    Parameters
    ----------
    reader
        Units of features and targets.
    X, y
        Features, shape ``(n_all, d)``, and class codes or quantities, shape ``(n_all,)``.
    n_own
        How many of the points, from the first, are predicted.
    sizes
        Sizes of the subsets; at most half of the points are taken.
    """
    goal = y if reader.classes is not None else (y - reader.target[0]) / reader.target[1]
    views = (reader.standard(X), np.column_stack([X, np.ones(len(X))]))
    sizes = [max(1, min(size, len(X) // 2)) for size in sizes]

    def models(x: FloatArray, penalty: float, size: int, times: int) -> Iterator[FloatArray]:
        for rows in _subsets(len(x), size, times):
            yield trained(x[rows], goal[rows], penalty, reader)

    def output(x: FloatArray, size: int, coefs: list[FloatArray]) -> FloatArray:
        total, count = np.zeros((n_own, reader.coef.shape[-1])), np.zeros((n_own, 1))
        for rows, coef in zip(_subsets(len(x), size, len(coefs)), coefs, strict=True):
            is_new = ~np.isin(np.arange(n_own), rows)
            total[is_new] += reader.said(x[:n_own][is_new] @ coef)
            count[is_new] += 1
        return reader.averaged(total / np.maximum(count, 1))

    choices = []
    with np.errstate(over="ignore", invalid="ignore"):  # features as they came may be huge
        for (view, x), penalty in product(enumerate(views), penalties(reader)):
            predicted = output(x, sizes[-1], list(models(x, penalty, sizes[-1], _TRIALS)))
            choices.append((loss(predicted, goal[:n_own], reader), view, penalty))
    _, best, penalty = min(choice for choice in choices if np.isfinite(choice[0]))
    x = views[best]
    every = [list(models(x, penalty, size, _SUBSETS)) for size in sizes]
    outputs = [output(x, size, part) for size, part in zip(sizes, every, strict=True)]
    lift = _standard_units(reader) if best else np.eye(x.shape[1])
    return SmallModels(outputs, [lift @ np.stack(part) for part in every], x[:n_own], bool(best))


def _subsets(n: int, size: int, times: int) -> Iterator[IntArray]:
    """Draw the same subsets of ``n`` points every time."""
    rng = stream(0)
    for _ in range(times):
        yield rng.choice(n, size, replace=False)


def _standard_units(reader: FeatureProbe) -> FloatArray:
    """Return the matrix from coefficients of raw features to those of standardised features."""
    lift = np.diag(np.append(reader.unit, 1.0))
    lift[-1, :-1] = reader.middle
    return lift


def learn(
    X: FloatArray,
    y: AnyArray,
    classes: AnyArray | None,
    size: int,
    more: tuple[FloatArray, AnyArray] | None = None,
) -> tuple[FeatureProbe, Inputs]:
    """Train models of one size; return a reader with them, and the inputs of the points.

    Points are predicted by models that were not trained on them, as new points will be. If models
    do best with raw features, the reader measures all features in one unit.

    Parameters
    ----------
    X, y
        Features, shape ``(n, d)``, and class codes or quantities, shape ``(n,)``.
    classes
        The classes, None for quantities.
    size
        How many points each model is trained on.
    more
        Features and targets of further points to learn from.
    """
    all_points = with_more(X, y, more)
    reader = blank(*all_points, classes)
    small = predict_with_small_models(reader, *all_points, len(X), [size])
    models, output = small.models[0], small.outputs[0]
    if small.is_raw:
        standard, reader = reader.unit, blank(*all_points, classes, one_unit=True)
        models[:, :-1] *= (reader.unit / standard)[:, None]
    reader = replace(reader, coef=models)
    if classes is None:
        miss = (y - reader.target[0]) / reader.target[1] - output[:, 0]
        reader = replace(reader, errors=np.quantile(miss, (np.arange(_NODES) + 0.5) / _NODES))
    raw = reader.inputs(X, y, output)
    spread = raw.summary.std(axis=0)
    units = np.stack([raw.summary.mean(axis=0), np.where(spread > 0, spread, 1.0)])
    sizes = np.sqrt((np.stack([raw.size, raw.bend]) ** 2).mean(axis=1))
    typical = np.stack([np.zeros(2), np.where(sizes > 0, sizes, 1.0)])
    reader = replace(reader, summary_units=np.column_stack([units, typical]))
    return reader, reader.inputs(X, y, output)
