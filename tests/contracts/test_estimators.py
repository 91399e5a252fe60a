from __future__ import annotations

from apiece.estimators import Likelihood, LogOLS
from apiece.testing import EstimatorContract


class TestLogOLS(EstimatorContract):
    def make(self):
        return LogOLS()


class TestLikelihood(EstimatorContract):
    def make(self):
        return Likelihood()
