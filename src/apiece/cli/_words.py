"""The words that options accept, for ``--help``: written out, so that help loads no library.

A test compares each list with the registry that it repeats.
"""

from __future__ import annotations

from typing import Final

MODELS: Final = (
    *("logistic", "linear", "ridge", "poisson", "mlp", "svm", "knn", "tree", "forest"),
    *("boosting", "xgboost", "lightgbm", "catboost"),
)
ENGINES: Final = (
    *("auto", "refit", "reuse", "linear", "logistic", "poisson", "knn", "mlp", "svm"),
    *("first-order", "mlp-single"),
)
LOSSES: Final = (
    *("log_loss", "softmax_of_proba", "brier", "zero_one", "hinge", "squared_error"),
    *("absolute_error", "poisson_deviance"),
)
DESIGNS: Final = ("uniform", "grid", "log-uniform")
KINDS: Final = (
    *("shapley", "distributional", "data-shapley", "beta-shapley", "banzhaf", "loo"),
    *("weights",),
)
