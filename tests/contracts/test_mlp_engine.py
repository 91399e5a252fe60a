from __future__ import annotations

from sklearn.neural_network import MLPClassifier, MLPRegressor

from apiece.engines import resolve_model
from apiece.engines._mlp import MLPEngine
from apiece.losses import resolve_loss
from apiece.testing import EngineContract

SETTINGS = {
    "hidden_layer_sizes": 8,
    "learning_rate_init": 0.01,
    "max_iter": 40,
    "batch_size": 10**6,
    "n_iter_no_change": 40,
    "random_state": 0,
}


def make(dataset, model, metric=None, engine=MLPEngine):
    found = resolve_model(
        model, kind=dataset.kind, n_features=dataset.n_features, n_classes=dataset.n_classes
    )
    loss = resolve_loss(metric, kind=dataset.kind, has_proba=found.has_proba)
    return engine(dataset, found, loss)


class TestBinaryMLP(EngineContract):
    tolerance = 1e-9  # 40 steps in double precision that differ by the order of sums

    def make(self, dataset):
        return make(dataset, MLPClassifier(**SETTINGS))


class TestMulticlassMLP(EngineContract):
    n_classes = 3
    tolerance = 1e-9

    def make(self, dataset):
        return make(dataset, MLPClassifier(**SETTINGS), "brier")


class TestRegressionMLP(EngineContract):
    kind = "regression"
    tolerance = 1e-9

    def make(self, dataset):
        return make(dataset, MLPRegressor(**SETTINGS))
