"""From what a user passed as ``metric`` to the loss it stands for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

from apiece._base.check import unknown_name
from apiece.errors import ModelError
from apiece.losses._loss import FunctionLoss, Loss, Needs
from apiece.losses._plain import AbsoluteError, Hinge, PoissonDeviance, SquaredError, ZeroOne
from apiece.losses._proba import Brier, LogLoss, SoftmaxOfProba

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        LogLoss(),
        SoftmaxOfProba(),
        Brier(),
        ZeroOne(),
        Hinge(),
        SquaredError(),
        AbsoluteError(),
        PoissonDeviance(),
    )
}

LossName = Literal[
    "log_loss",
    "softmax_of_proba",
    "brier",
    "zero_one",
    "hinge",
    "squared_error",
    "absolute_error",
    "poisson_deviance",
    "accuracy",
    "mse",
    "mae",
]
LossLike = LossName | Loss | Callable[[Any, Any], float] | None

# Everyday names. A value is a mean over rows, which some measures of a model are not.
_ALSO = {"accuracy": "zero_one", "mse": "squared_error", "mae": "absolute_error"}
_NEAREST = {
    **dict.fromkeys(("f1", "roc_auc", "auc", "precision", "recall"), "log_loss"),
    **dict.fromkeys(("r2", "rmse"), "squared_error"),
}


def stored_loss(name: str | None) -> Loss | None:
    """Return the loss that a name in a stored result stands for; None for a loss of a user.

    Examples
    --------
    >>> stored_loss("squared_error").is_squared
    True
    """
    return LOSSES.get(name or "")


def is_squared(name: str | None) -> bool:
    """Whether the loss of that name is in squared units of the target.

    Examples
    --------
    >>> is_squared("squared_error"), is_squared("log_loss"), is_squared("my.loss")
    (True, False, False)
    """
    loss = stored_loss(name)
    return loss is not None and loss.is_squared


def _name_of(metric: Callable[[Any, Any], float]) -> str:
    """Name a callable for manifests and axes; its code is compared by a digest."""
    while isinstance(metric, functools.partial):
        metric = metric.func
    name = getattr(metric, "__qualname__", type(metric).__qualname__)
    return f"{getattr(metric, '__module__', '')}.{name}"


def resolve_loss(metric: LossLike | str, *, kind: str, has_proba: bool) -> Loss:
    """Turn what a user passed into a loss that fits the data.

    Parameters
    ----------
    metric
        A name (``accuracy``, ``mse`` and ``mae`` stand for ``zero_one``, ``squared_error`` and
        ``absolute_error``), a `Loss`, a callable ``(y_true, prediction) -> loss``, or None for the
        default: ``log_loss`` for classification, ``squared_error`` for regression. For a classifier
        ``y_true`` holds class codes (positions in ``dataset.classes``) and ``prediction`` the
        probabilities, or predicted codes when the model has no ``predict_proba``.
    kind
        ``classification`` or ``regression``.
    has_proba
        Whether the model predicts probabilities.

    Raises
    ------
    UnknownNameError
        If no loss has that name.
    ModelError
        If it is none of these, or a loss for another kind of data.

    Examples
    --------
    >>> resolve_loss("brier", kind="classification", has_proba=True).needs
    'proba'
    >>> resolve_loss(None, kind="regression", has_proba=False).name
    'squared_error'
    """
    if isinstance(metric, Loss):
        loss = metric
    elif metric is None:
        loss = LOSSES["log_loss" if kind == "classification" else "squared_error"]
    elif isinstance(metric, str):
        metric = _ALSO.get(metric, metric)
        if metric in _NEAREST:
            raise ModelError(
                f"metric {metric!r} is not a mean over rows, so points have no share in it: "
                f"expected one of {', '.join((*LOSSES, *_ALSO))}. Use {_NEAREST[metric]!r}."
            )
        if metric not in LOSSES:
            raise unknown_name("metric", metric, LOSSES)
        loss = LOSSES[metric]
    elif callable(metric):
        needs: Needs = "value" if kind == "regression" else "proba" if has_proba else "label"
        loss = FunctionLoss(_name_of(metric), needs, metric)
    else:
        raise ModelError(
            f"metric is {metric!r}: expected a name ({', '.join(LOSSES)}), an apiece.Loss object "
            "or a callable (y_true, prediction) -> loss. Pass for example metric='log_loss'."
        )
    if loss.kind != kind:
        fitting = ", ".join(name for name, known in LOSSES.items() if known.kind == kind)
        raise ModelError(
            f"metric {loss.name!r} is for {loss.kind}, but the data is a {kind}: expected one of "
            f"{fitting}. Pick one of these, or pass kind={loss.kind!r} when reading the data."
        )
    return loss
