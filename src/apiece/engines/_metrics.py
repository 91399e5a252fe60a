r"""Metrics: losses on the validation set, so that a contribution is positive when a point helps.

With validation labels $y_j$ and predicted probabilities $p_j$, each is a mean over the $n$
validation points:

- ``log_loss``: $-\log p_{j, y_j}$, with probabilities clipped at machine epsilon as scikit-learn
  does (a single loss is at most 36.04).
- ``softmax_of_proba``: $-\log \mathrm{softmax}(p_j)_{y_j}$, probabilities taken as if they were
  logits. It lies in a narrow band, and is here because the paper's code computes it.
- ``brier``: $(p_{j,1} - y_j)^2$ for two classes, $\sum_c (p_{j,c} - 1[y_j = c])^2$ for more.
- ``zero_one``: the share of wrong labels.
- ``hinge``: $\max(0, 1 - s_j f_j)$ for two classes, with the decision value $f_j$ and $s_j = 1$ for
  the second class, $-1$ for the first; for more classes $\max(0, 1 - f_{j,y_j} + \max_{c \ne y_j}
  f_{j,c})$.
- ``squared_error``, ``absolute_error``: for regression.

A callable ``(y_true, prediction) -> loss`` works too. For a classifier ``y_true`` holds class codes
(positions in ``dataset.classes``) and ``prediction`` the probabilities, shape
``(n, n_classes)``, or predicted codes when the model has no ``predict_proba``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from apiece._base.check import unknown_name
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.errors import ModelError

Needs = Literal["proba", "label", "decision", "value"]


@dataclass(frozen=True)
class Metric:
    """A loss, and what it needs from a model.

    Parameters
    ----------
    name
        Its name in manifests and on axes.
    needs
        ``proba`` (class probabilities), ``label`` (class codes), ``decision`` (decision values) or
        ``value`` (a regression).
    loss
        ``(y_true, prediction) -> float``.
    """

    name: str
    needs: Needs
    loss: Callable[[AnyArray, AnyArray], float]

    @property
    def kind(self) -> str:
        """The kind of data the metric is for."""
        return "regression" if self.needs == "value" else "classification"


def _of_true_class(y_true: IntArray, proba: FloatArray) -> FloatArray:
    return np.asarray(proba[np.arange(len(y_true)), y_true])


def log_loss(y_true: IntArray, proba: FloatArray) -> float:
    """Mean negative log probability of the true class, clipped at machine epsilon."""
    eps = np.finfo(np.float64).eps
    return float(-np.log(np.clip(_of_true_class(y_true, proba), eps, 1.0)).mean())


def softmax_of_proba(y_true: IntArray, proba: FloatArray) -> float:
    """Cross-entropy of the softmax of *probabilities*, as the paper's code computes it."""
    return float((np.log(np.exp(proba).sum(axis=1)) - _of_true_class(y_true, proba)).mean())


def brier(y_true: IntArray, proba: FloatArray) -> float:
    """Mean squared distance between probabilities and the one-hot truth (halved if binary)."""
    distance = proba.copy()
    distance[np.arange(len(y_true)), y_true] -= 1.0
    half = 0.5 if proba.shape[1] == 2 else 1.0
    return float(half * (distance**2).sum(axis=1).mean())


def zero_one(y_true: AnyArray, labels: AnyArray) -> float:
    """Share of wrong labels."""
    return float(np.mean(y_true != labels))


def hinge(y_true: IntArray, decision: FloatArray) -> float:
    """Mean hinge loss of decision values, shape ``(n,)`` or, beyond two classes, ``(n, c)``."""
    if decision.ndim == 1:
        margin = np.where(y_true == 1, decision, -decision)
    else:
        others = decision.copy()
        others[np.arange(len(y_true)), y_true] = -np.inf
        margin = _of_true_class(y_true, decision) - others.max(axis=1)
    return float(np.maximum(0.0, 1.0 - margin).mean())


def squared_error(y_true: FloatArray, prediction: FloatArray) -> float:
    """Mean squared error."""
    return float(np.mean((y_true - prediction) ** 2))


def absolute_error(y_true: FloatArray, prediction: FloatArray) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(y_true - prediction)))


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("log_loss", "proba", log_loss),
        Metric("softmax_of_proba", "proba", softmax_of_proba),
        Metric("brier", "proba", brier),
        Metric("zero_one", "label", zero_one),
        Metric("hinge", "decision", hinge),
        Metric("squared_error", "value", squared_error),
        Metric("absolute_error", "value", absolute_error),
    )
}


def _name_of(metric: Callable[[Any, Any], float]) -> str:
    """Name a callable so that another one is not taken for it: two lambdas differ by their code."""
    name = getattr(metric, "__qualname__", type(metric).__qualname__)
    name = f"{getattr(metric, '__module__', '')}.{name}"
    code = getattr(metric, "__code__", None)
    if "<" not in name or code is None:
        return name
    constants = [item for item in code.co_consts if isinstance(item, int | float | str)]
    words = repr((code.co_code, code.co_names, constants)).encode()
    return f"{name}#{hashlib.blake2b(words, digest_size=4).hexdigest()}"


def resolve_metric(
    metric: str | Metric | Callable[[Any, Any], float] | None, *, kind: str, has_proba: bool
) -> Metric:
    """Turn what a user passed into a metric that fits the data.

    Parameters
    ----------
    metric
        A name, a callable ``(y_true, prediction) -> loss``, or None for the default: ``log_loss``
        for classification, ``squared_error`` for regression.
    kind
        ``classification`` or ``regression``.
    has_proba
        Whether the model predicts probabilities.
    """
    if isinstance(metric, Metric):
        found = metric
    elif metric is None:
        found = METRICS["log_loss" if kind == "classification" else "squared_error"]
    elif isinstance(metric, str):
        if metric not in METRICS:
            raise unknown_name("metric", metric, METRICS)
        found = METRICS[metric]
    elif callable(metric):
        needs: Needs = "value" if kind == "regression" else "proba" if has_proba else "label"
        found = Metric(_name_of(metric), needs, metric)
    else:
        raise ModelError(
            f"metric is {metric!r}: expected a name ({', '.join(METRICS)}) or a callable "
            "(y_true, prediction) -> loss. Pass for example metric='log_loss'."
        )
    if found.kind != kind:
        fitting = ", ".join(name for name, known in METRICS.items() if known.kind == kind)
        raise ModelError(
            f"metric {found.name!r} is for {found.kind}, but the data is a {kind}: expected one of "
            f"{fitting}. Pick one of these, or pass kind={found.kind!r} when reading the data."
        )
    return found
