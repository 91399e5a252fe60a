from __future__ import annotations

from sklearn.linear_model import LinearRegression, Ridge

from apiece.engines import resolve_model
from apiece.engines._linear import LinearEngine
from apiece.losses import resolve_loss
from apiece.testing import EngineContract


class LinearContract(EngineContract):
    kind = "regression"
    tolerance = 1e-10
    estimator: object = "linear"
    metric: str | None = None

    def make(self, dataset):
        model = resolve_model(
            self.estimator, kind=dataset.kind, n_features=dataset.n_features, n_classes=0
        )
        metric = resolve_loss(self.metric, kind=dataset.kind, has_proba=False)
        return LinearEngine(dataset, model, metric)


class TestLeastSquares(LinearContract):
    pass


class TestLeastSquaresWithoutIntercept(LinearContract):
    estimator = LinearRegression(fit_intercept=False)
    metric = "absolute_error"


class TestLeastSquaresWithFewPoints(LinearContract):
    def dataset(self, seed=0, n=60, d=20):
        return super().dataset(seed, n, d)


class TestRidge(LinearContract):
    estimator = "ridge"


class TestRidgeWithFewPoints(LinearContract):
    estimator = Ridge(alpha=0.01)
    metric = "absolute_error"

    def dataset(self, seed=0, n=60, d=40):
        return super().dataset(seed, n, d)
