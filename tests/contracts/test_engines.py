from __future__ import annotations

import numpy as np

from apiece import Dataset
from apiece.engines import choose_engine
from apiece.testing import EngineContract


class TestRefitLogistic(EngineContract):
    def make(self, dataset):
        return choose_engine(dataset, model="logistic", engine="refit")[0]


class TestRefitMulticlassTree(EngineContract):
    n_classes = 3

    def make(self, dataset):
        return choose_engine(dataset, model="tree", metric="brier", engine="refit")[0]


class TestRefitRidge(EngineContract):
    kind = "regression"

    def make(self, dataset):
        return choose_engine(dataset, model="ridge", engine="refit")[0]


class TestRefitSVM(EngineContract):
    def make(self, dataset):
        return choose_engine(dataset, model="svm", engine="refit")[0]


class TestLogistic(EngineContract):
    def make(self, dataset):
        return choose_engine(dataset, model="logistic", engine="logistic")[0]


class TestLogisticUnderZeroOne(EngineContract):
    def make(self, dataset):
        return choose_engine(dataset, model="logistic", metric="zero_one", engine="logistic")[0]


class TestFirstOrder(EngineContract):
    correlation = 0.9

    def make(self, dataset):
        return choose_engine(dataset, engine="first-order")[0]


class TestFirstOrderRegression(EngineContract):
    kind = "regression"
    correlation = 0.7  # 12 points in four dimensions: their leverage is neglected

    def make(self, dataset):
        return choose_engine(dataset, model="ridge", engine="first-order")[0]


class TestNetworksInSinglePrecision(EngineContract):
    correlation = 0.99

    def make(self, dataset):
        return choose_engine(dataset, model="mlp", engine="mlp-single")[0]


class TestLogisticWithThreeClasses(EngineContract):
    n_classes = 3

    def make(self, dataset):
        return choose_engine(dataset, model="logistic", engine="logistic")[0]


class TestLogisticWithFiveClassesUnderBrier(EngineContract):
    n_classes = 5

    def make(self, dataset):
        return choose_engine(dataset, model="logistic", metric="brier", engine="logistic")[0]


class TestLogisticWithThreeClassesUnderZeroOne(EngineContract):
    n_classes = 3

    def make(self, dataset):
        return choose_engine(dataset, model="logistic", metric="zero_one", engine="logistic")[0]


class TestPoisson(EngineContract):
    kind = "regression"

    def dataset(self, seed=0, n=60, d=4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n + 42, d))
        y = rng.poisson(np.exp(1 + 0.4 * X[:, 0])).astype(float)
        return Dataset.from_arrays(
            X[:n],
            y[:n],
            X_val=X[n : n + 40],
            y_val=y[n : n + 40],
            candidates=(X[n + 40 :], y[n + 40 :]),
            kind="regression",
        )

    def make(self, dataset):
        return choose_engine(dataset, model="poisson", metric="poisson_deviance")[0]
