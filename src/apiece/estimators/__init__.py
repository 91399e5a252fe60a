"""From contributions to laws: one estimator, one module, one result.

| method | what it does | when to use it |
| --- | --- | --- |
| `log_ols` | line through log means, the paper's validation | a grid, many samples per size |
| `likelihood` | Gaussian maximum likelihood, each point alone | power laws, from ten samples on |
| `auto` | whichever predicts held-out sizes best | when you do not want to choose |
| `bayes` | a population prior learned from all points | from a handful of samples per point |
| `amortized` | a network from features to laws | few samples per point, known features, torch |
| `reuse` | a Gaussian process over training sets | runs of trainings (`engine="reuse"`) |

`fit_aggregate` is about the dataset as a whole: how its loss falls with size.
"""

from __future__ import annotations

from apiece.estimators._amortized_network import AmortizedNetwork
from apiece.estimators._estimator import Estimator, Features, opened, refuse_groups
from apiece.estimators._fit import OnFailure, aggregate, fit
from apiece.estimators._registry import (
    DEFAULT_METHOD,
    METHODS,
    MethodName,
    as_estimator,
    default_method,
    rebuilt,
)
from apiece.estimators._responses import plain_contributions
from apiece.estimators.aggregate import Aggregate, fit_aggregate
from apiece.estimators.amortized import Amortized
from apiece.estimators.auto import Auto
from apiece.estimators.backtest import Backtest, backtest
from apiece.estimators.bayes import Bayes
from apiece.estimators.likelihood import Likelihood
from apiece.estimators.log_ols import LogOLS
from apiece.estimators.reuse import Reuse

__all__ = [
    "DEFAULT_METHOD",
    "METHODS",
    "Aggregate",
    "Amortized",
    "AmortizedNetwork",
    "Auto",
    "Backtest",
    "Bayes",
    "Estimator",
    "Features",
    "Likelihood",
    "LogOLS",
    "MethodName",
    "OnFailure",
    "Reuse",
    "aggregate",
    "as_estimator",
    "backtest",
    "default_method",
    "fit",
    "fit_aggregate",
    "opened",
    "plain_contributions",
    "rebuilt",
    "refuse_groups",
]
