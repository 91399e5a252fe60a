from __future__ import annotations

from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC

from apiece.engines import CoupledFolds, choose_engine
from apiece.testing import EngineContract


class SVMContract(EngineContract):
    tolerance = 1e-4  # libsvm, which the refits use, is in single precision
    metric: str = "log_loss"
    estimator: object = CalibratedClassifierCV(SVC(tol=1e-8), ensemble=False, cv=CoupledFolds())

    def make(self, dataset):
        return choose_engine(dataset, model=self.estimator, metric=self.metric, engine="svm")[0]


class TestCalibratedSVM(SVMContract):
    pass


class TestCalibratedSVMUnderBrier(SVMContract):
    metric = "brier"


class TestSVMUnderHinge(SVMContract):
    estimator = SVC(C=3.0, gamma=0.2, tol=1e-8)
    metric = "hinge"


class TestSVMUnderZeroOne(SVMContract):
    estimator = SVC(gamma="auto", tol=1e-8)
    metric = "zero_one"


class TestCalibratedSVMOfThreeClasses(SVMContract):
    n_classes = 3


class TestSVMOfThreeClassesUnderHinge(SVMContract):
    n_classes = 3
    estimator = SVC(C=3.0, tol=1e-8)
    metric = "hinge"
