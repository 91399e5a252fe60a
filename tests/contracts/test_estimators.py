from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apiece.estimators import Amortized, Auto, Bayes, Likelihood, LogOLS
from apiece.laws import Series
from apiece.testing import EstimatorContract


class TestLogOLS(EstimatorContract):
    def make(self):
        return LogOLS()


class TestLikelihood(EstimatorContract):
    def make(self):
        return Likelihood()


class TestLikelihoodOfASeries(EstimatorContract):
    def make(self):
        return Likelihood(family="series")


class TestBayes(EstimatorContract):
    def make(self):
        return Bayes()


class TestBayesOfTwoTerms(EstimatorContract):
    def make(self):
        return Bayes(family=Series(terms=(2, 4)))


class TestBayesOfPowerLaws(EstimatorContract):
    def make(self):
        return Bayes(family="power")


@dataclass(frozen=True)
class WithFeatures:
    """The amortized estimator with features of the ten points."""

    estimator: Amortized

    def fit(self, contributions):
        X = np.random.default_rng(0).normal(size=(contributions.n_points, 2))
        return self.estimator.fit(contributions, X, np.arange(contributions.n_points) % 2)


class TestAmortized(EstimatorContract):
    def make(self):
        return WithFeatures(Amortized(epochs=40, width=8))


class TestAuto(EstimatorContract):
    def make(self):
        return Auto()
