from __future__ import annotations

from apiece.estimators import Bayes, Likelihood, LogOLS
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
