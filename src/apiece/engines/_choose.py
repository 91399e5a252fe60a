"""Which engine computes a run: the one asked for, or the fastest exact one that fits the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from apiece._base.check import one_of
from apiece.data import Dataset
from apiece.engines import _first_order, _knn, _linear, _logistic, _mlp, _svm
from apiece.engines._first_order import FirstOrderEngine
from apiece.engines._knn import KNNEngine
from apiece.engines._linear import LinearEngine
from apiece.engines._logistic import LogisticEngine
from apiece.engines._mlp import MLPEngine
from apiece.engines._models import Model, resolve_model
from apiece.engines._refit import RefitEngine
from apiece.engines._svm import SVMEngine
from apiece.errors import ModelError
from apiece.losses import Loss, resolve_loss
from apiece.records import Outcome, Task

# Every fast engine, with the test that says whether it computes what refitting would (or, if it is
# not exact, whether it can approximate that).
_FAST: dict[str, tuple[type[Any], Callable[[Dataset, Model, Loss], str | None]]] = {
    "linear": (LinearEngine, _linear.supports),
    "logistic": (LogisticEngine, _logistic.supports),
    "knn": (KNNEngine, _knn.supports),
    "mlp": (MLPEngine, _mlp.supports),
    "svm": (SVMEngine, _svm.supports),
    "first-order": (FirstOrderEngine, _first_order.supports),
}
ENGINES = ("auto", "refit", *_FAST)
# Which engine a model is for, should only its settings or the data stand against it.
_MADE_FOR = {
    "LinearRegression": "linear",
    "Ridge": "linear",
    "LogisticRegression": "logistic",
    "KNeighborsClassifier": "knn",
    "KNeighborsRegressor": "knn",
    "MLPClassifier": "mlp",
    "MLPRegressor": "mlp",
    "SVC": "svm",
    "CalibratedClassifierCV": "svm",
}


class Engine(Protocol):
    """What every engine promises: the outcome of a task depends on the task alone."""

    @property
    def name(self) -> str:
        """The word that chooses it."""
        ...

    @property
    def is_exact(self) -> bool:
        """Whether contributions equal those of a converged refit."""
        ...

    @property
    def rows_per_shard(self) -> int:
        """How many contributions make a unit of work of a few seconds."""
        ...

    @property
    def model(self) -> Model:
        """What is trained."""
        ...

    @property
    def metric(self) -> Loss:
        """The loss on the validation set."""
        ...

    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every point of the task."""
        ...


def choose_engine(
    dataset: Dataset,
    *,
    model: Any = "auto",
    metric: str | Loss | Callable[[Any, Any], float] | None = None,
    engine: str = "auto",
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
        ``auto`` for the fastest exact one, or the engine by name.
    """
    one_of("engine", engine, ENGINES)
    found = resolve_model(
        model, kind=dataset.kind, n_features=dataset.n_features, n_classes=dataset.n_classes
    )
    loss = resolve_loss(metric, kind=dataset.kind, has_proba=found.has_proba)
    if loss.needs == "proba" and not found.has_proba:
        raise ModelError(
            f"{found.name} has no predict_proba, which metric {loss.name!r} needs: expected a "
            "model that predicts probabilities. Pass another model, wrap it in "
            "CalibratedClassifierCV, or use metric='zero_one' (--metric zero_one)."
        )
    if loss.needs == "decision":
        found = found.uncalibrated()
        if not hasattr(found.estimator, "decision_function"):
            raise ModelError(
                f"{found.name} has no decision_function, which metric {loss.name!r} needs: "
                "expected a model with decision values, such as svm or logistic. Pass another "
                "model, or use metric='zero_one' (--metric zero_one)."
            )
    if engine == "refit":
        return RefitEngine(dataset, found, loss), "as asked"
    why = f"no faster exact engine for {found.name}"
    for name, (build, supports) in _FAST.items():
        if engine != name and not (engine == "auto" and build.is_exact):
            continue
        obstacle = supports(dataset, found, loss)
        if obstacle is None:
            reason = "as asked" if engine == name else f"exact and fast for {found.name}"
            return build(dataset, found, loss), reason
        if engine == name:
            raise ModelError(
                f"engine {name!r} cannot compute this run: {obstacle}. Expected a model it is made "
                "for. Pass engine='auto' (--engine auto), which picks one that can."
            )
        if name == _MADE_FOR.get(type(found.estimator).__name__):
            why = f"engine {name!r} cannot compute it: {obstacle}"
    return RefitEngine(dataset, found, loss), why
