"""Choice of the engine of a run: the requested one, or the fastest exact one for the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from apiece._base.check import one_of
from apiece.data import Dataset
from apiece.engines._base import Engine
from apiece.engines._first_order import FirstOrderEngine
from apiece.engines._knn import KNNEngine
from apiece.engines._linear import LinearEngine
from apiece.engines._logistic import LogisticEngine
from apiece.engines._mlp import MLPEngine, SingleMLPEngine
from apiece.engines._models import Model, resolve_model, weight_option
from apiece.engines._poisson import PoissonEngine
from apiece.engines._refit import RefitEngine
from apiece.engines._reuse import ReuseEngine
from apiece.engines._svm import SVMEngine
from apiece.errors import ModelError
from apiece.losses import Loss, LossLike, resolve_loss

# Engines that "auto" may choose, in this order, and those that are chosen by name alone.
_FAST: tuple[type[Engine], ...] = (
    LinearEngine,
    LogisticEngine,
    PoissonEngine,
    KNNEngine,
    MLPEngine,
    SVMEngine,
    FirstOrderEngine,
    SingleMLPEngine,
)
_ALL: tuple[type[Engine], ...] = (RefitEngine, ReuseEngine, *_FAST)
_BY_NAME: dict[str, type[Engine]] = {kind.name: kind for kind in _ALL}
ENGINES = ("auto", *_BY_NAME)

EngineName = Literal[
    "auto",
    "refit",
    "linear",
    "logistic",
    "poisson",
    "knn",
    "mlp",
    "mlp-single",
    "svm",
    "first-order",
    "reuse",
]
EngineChoice = EngineName | type[Engine] | Engine


def choose_engine(
    dataset: Dataset,
    *,
    model: Any = "auto",
    metric: LossLike = None,
    engine: EngineChoice = "auto",
) -> tuple[Engine, str]:
    """Return the engine for a run, and the reason in words.

    Parameters
    ----------
    dataset
        The points and the validation set.
    model
        A built-in name or an estimator with scikit-learn's interface.
    metric
        A name, a callable ``(y_true, prediction) -> loss``, or None for the default.
    engine
        ``auto`` for the fastest exact one, an engine by name, a subclass of `Engine`, or an
        `Engine`, of which further settings are kept.

    Raises
    ------
    UnknownNameError
        If no engine or model has that name.
    ModelError
        If model, metric, engine and data do not fit each other.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> engine, reason = choose_engine(load_demo()[0])
    >>> engine.name, reason
    ('logistic', 'exact and fast for logistic')
    """
    if isinstance(engine, str):
        one_of("engine", engine, ENGINES)
    chosen = resolve_model(
        model, kind=dataset.kind, n_features=dataset.n_features, n_classes=dataset.n_classes
    )
    loss = resolve_loss(metric, kind=dataset.kind, has_proba=chosen.has_proba)
    if loss.needs == "proba" and not chosen.has_proba:
        raise ModelError(
            f"{chosen.name} has no predict_proba, which metric {loss.name!r} needs: expected a "
            "model that predicts probabilities. Pass another model, wrap it in "
            "CalibratedClassifierCV, or use metric='zero_one' (--metric zero_one)."
        )
    if loss.needs == "decision":
        chosen = chosen.uncalibrated()
        if not hasattr(chosen.estimator, "decision_function"):
            raise ModelError(
                f"{chosen.name} has no decision_function, which metric {loss.name!r} needs: "
                "expected a model with decision values, such as svm or logistic. Pass another "
                "model, or use metric='zero_one' (--metric zero_one)."
            )
    if dataset.sample_weight is not None:
        weight_option(chosen.estimator)
    if engine != "auto":
        return _requested(engine, dataset, chosen, loss), "as requested"
    if dataset.needs_refit is not None:
        return RefitEngine(dataset, chosen, loss), f"the others cannot, since {dataset.needs_refit}"
    why = f"no faster exact engine for {chosen.name}"
    for kind in _FAST:
        if not kind.is_exact:
            continue
        obstacle = kind.supports(dataset, chosen, loss)
        if obstacle is None:
            return kind(dataset, chosen, loss), f"exact and fast for {chosen.name}"
        if type(chosen.estimator).__name__ in kind.made_for:
            why = f"engine {kind.name!r} cannot compute it: {obstacle}"
    return RefitEngine(dataset, chosen, loss), why


def _requested(engine: EngineChoice, dataset: Dataset, model: Model, loss: Loss) -> Engine:
    """Return the engine that the user requested, or raise if it cannot compute the run."""
    kind = _BY_NAME[engine] if isinstance(engine, str) else engine
    if not issubclass(kind if isinstance(kind, type) else type(kind), Engine):
        raise ModelError(
            f"engine is {engine!r}: expected a name ({', '.join(ENGINES)}) or a subclass of "
            "apiece.engines.Engine. Pass for example engine='auto'."
        )
    obstacle = kind.supports(dataset, model, loss)
    if kind in _FAST and obstacle is None:
        obstacle = dataset.needs_refit
    if obstacle is not None:
        raise ModelError(
            f"engine {kind.name!r} cannot compute this run: {obstacle}. Expected a model it is "
            "made for. Pass engine='auto' (--engine auto), which picks one that can."
        )
    if isinstance(kind, Engine):
        return replace(kind, dataset=dataset, model=model, metric=loss)
    return kind(dataset, model, loss)
