"""Engines: from a dataset and a task to the contribution of every point."""

from apiece.engines._base import Engine
from apiece.engines._choose import ENGINES, EngineChoice, EngineName, choose_engine
from apiece.engines._first_order import FirstOrderEngine
from apiece.engines._groups import GroupEngine, choose_group_engine
from apiece.engines._knn import KNNEngine
from apiece.engines._linear import LinearEngine
from apiece.engines._logistic import LogisticEngine
from apiece.engines._mlp import MLPEngine, SingleMLPEngine
from apiece.engines._models import (
    MODELS,
    CoupledFolds,
    Model,
    base_name,
    is_model_name,
    resolve_model,
    weight_option,
)
from apiece.engines._poisson import PoissonEngine
from apiece.engines._refit import RefitEngine
from apiece.engines._reuse import ReuseEngine
from apiece.engines._sample import ScoringSample, sample_of
from apiece.engines._surrogate import Surrogate, is_described, surrogate_of
from apiece.engines._svm import SVMEngine

__all__ = [
    "ENGINES",
    "MODELS",
    "CoupledFolds",
    "Engine",
    "EngineChoice",
    "EngineName",
    "FirstOrderEngine",
    "GroupEngine",
    "KNNEngine",
    "LinearEngine",
    "LogisticEngine",
    "MLPEngine",
    "Model",
    "PoissonEngine",
    "RefitEngine",
    "ReuseEngine",
    "SVMEngine",
    "ScoringSample",
    "SingleMLPEngine",
    "Surrogate",
    "base_name",
    "choose_engine",
    "choose_group_engine",
    "is_described",
    "is_model_name",
    "resolve_model",
    "sample_of",
    "surrogate_of",
    "weight_option",
]
