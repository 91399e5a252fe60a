from __future__ import annotations

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
