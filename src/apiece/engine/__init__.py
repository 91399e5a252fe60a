"""Engines: from a dataset and a task to the contribution of every point."""

from apiece.engine._choose import ENGINES, Engine, choose_engine
from apiece.engine._first_order import FirstOrderEngine
from apiece.engine._groups import GroupEngine, choose_group_engine
from apiece.engine._knn import KNNEngine
from apiece.engine._linear import LinearEngine
from apiece.engine._logistic import LogisticEngine
from apiece.engine._metrics import METRICS, Metric, resolve_metric
from apiece.engine._mlp import MLPEngine
from apiece.engine._models import MODELS, CoupledFolds, Model, resolve_model
from apiece.engine._refit import RefitEngine
from apiece.engine._svm import SVMEngine

__all__ = [
    "ENGINES",
    "METRICS",
    "MODELS",
    "CoupledFolds",
    "Engine",
    "FirstOrderEngine",
    "GroupEngine",
    "KNNEngine",
    "LinearEngine",
    "LogisticEngine",
    "MLPEngine",
    "Metric",
    "Model",
    "RefitEngine",
    "SVMEngine",
    "choose_engine",
    "choose_group_engine",
    "resolve_metric",
    "resolve_model",
]
