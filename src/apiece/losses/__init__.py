"""Losses on the validation set, so that a contribution is positive when a point helps.

A name such as ``log_loss`` is short for an object; `Loss` is the base class for others.
"""

from apiece.losses._loss import FunctionLoss, Loss, Needs, SoftmaxSeries
from apiece.losses._plain import AbsoluteError, Hinge, PoissonDeviance, SquaredError, ZeroOne
from apiece.losses._proba import Brier, LogLoss, SoftmaxOfProba
from apiece.losses._resolve import LOSSES, LossLike, LossName, is_squared, resolve_loss, stored_loss

__all__ = [
    "LOSSES",
    "AbsoluteError",
    "Brier",
    "FunctionLoss",
    "Hinge",
    "LogLoss",
    "Loss",
    "LossLike",
    "LossName",
    "Needs",
    "PoissonDeviance",
    "SoftmaxOfProba",
    "SoftmaxSeries",
    "SquaredError",
    "ZeroOne",
    "is_squared",
    "resolve_loss",
    "stored_loss",
]
