"""From contributions to laws: one estimator, one module, one result.

| method | what it does | when to use it |
| --- | --- | --- |
| `log_ols` | line through log means, the paper's validation | a grid, many samples a size |
| `likelihood` | Gaussian maximum likelihood, the paper's estimator | from some 30 samples a point |
| `bayes` | a population prior learned from all points | from a handful of samples a point |
"""

from __future__ import annotations

from apiece.estimators._registry import METHODS, Estimator, fit
from apiece.estimators.bayes import Bayes
from apiece.estimators.likelihood import Likelihood
from apiece.estimators.log_ols import LogOLS

__all__ = ["METHODS", "Bayes", "Estimator", "Likelihood", "LogOLS", "fit"]
