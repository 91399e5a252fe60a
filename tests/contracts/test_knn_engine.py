from __future__ import annotations

from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from apiece.engines import resolve_model
from apiece.engines._knn import KNNEngine
from apiece.losses import resolve_loss
from apiece.testing import EngineContract


class KNNContract(EngineContract):
    tolerance = 1e-10
    estimator: object = "knn"
    metric: str | None = None

    def make(self, dataset):
        model = resolve_model(
            self.estimator,
            kind=dataset.kind,
            n_features=dataset.n_features,
            n_classes=dataset.n_classes,
        )
        return KNNEngine(dataset, model, resolve_loss(self.metric, kind=self.kind, has_proba=True))


class TestKNN(KNNContract):
    pass


class TestKNNWithManyFeatures(KNNContract):
    n_classes = 4
    metric = "brier"

    def dataset(self, seed=0, n=60, d=40):
        return super().dataset(seed, n, d)


class TestWeightedKNN(KNNContract):
    n_classes = 3
    estimator = KNeighborsClassifier(4, weights="distance", metric="manhattan")
    metric = "softmax_of_proba"


class TestLabelsOfKNN(KNNContract):
    metric = "zero_one"


class TestKNNRegression(KNNContract):
    kind = "regression"


class TestWeightedKNNRegression(KNNContract):
    kind = "regression"
    estimator = KNeighborsRegressor(3, weights="distance")
    metric = "absolute_error"
