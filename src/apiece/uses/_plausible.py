r"""How plausible a label is to models that have not seen the point.

For a point with features $x$ and label $y$, $m$ models of each kind are trained on random halves
$D_j$ of the pool without the point, together with the validation rows, whose labels are trusted:

$$\pi(x, y) = \frac{1}{m} \sum_{j=1}^{m} \hat p_{D_j \cup V}(y \mid x),$$

mixed over kinds of models that err differently, with the weights under which the labels of the pool
are likeliest (stacking). Like Data-OOB (Kwon and Zou, 2023) it uses models that were trained
without the point; unlike it, it keeps their probabilities and trains on trusted rows, too. The
*value* of a point is another question: a wrong label may help, and a right one may harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._base.progress import track
from apiece._base.rng import RandomState, seed_from
from apiece._base.typing import FloatArray, Positions
from apiece.collection import Design, drawn_from, make_plan
from apiece.data import Dataset
from apiece.engines import Model, resolve_model
from apiece.errors import ModelError, PlanError

if TYPE_CHECKING:
    import pandas as pd

_STEPS: Final = 100
_TREES: Final = 10  # of a forest by name; many forests are averaged
_TOLERANCE: Final = 1e-4  # of a solver whose probabilities are averaged or compared
_TINY: Final = 1e-6  # a model that is sure and wrong is not ruled out by one label


def plausibility(
    dataset: Dataset,
    *,
    models: Sequence[Any] = ("logistic", "forest"),
    draws: int = 5,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Return how plausible each label is to models that were not trained on the point.

    Parameters
    ----------
    dataset
        Classification data; the labels of its validation rows are trusted.
    models
        Kinds of models, names or estimators with ``predict_proba``, whose probabilities are mixed.
    draws
        How many models of each kind judge every point, at least.
    random_state
        Seed of the training sets.

    Returns
    -------
    pandas.DataFrame
        Indexed by point id, pool and candidates: ``label``, ``plausibility`` (probability of that
        label; low is suspicious), ``likeliest`` (the most plausible label) and ``p_likeliest``.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> data, flipped = load_demo()
    >>> table = plausibility(data, models=("logistic",))
    >>> bool(table["plausibility"].iloc[flipped].mean() < table["plausibility"].mean())
    True
    """
    import pandas as pd

    if not dataset.is_classification:
        raise PlanError(
            f"target {dataset.target_name!r} is a quantity, and labels are judged here: expected "
            "classes. apiece.advise (apiece advise) judges quantities; pass kind='classification' "
            "(--task classification) if these are classes."
        )
    if draws != int(draws) or draws < 1:
        raise PlanError(
            f"draws={draws} models: expected a whole number of at least 1. Pass for example 5."
        )
    kinds = [_resolved(model, dataset) for model in models]
    if not kinds:
        raise PlanError("models is empty: expected at least one. Pass for example ('logistic',).")
    seed = seed_from(random_state)
    each = np.stack([_outside(dataset, kind, int(draws), seed) for kind in kinds])
    pool = np.arange(dataset.n_pool)
    weights = mixture_weights(each[:, pool, dataset.y])
    proba = np.einsum("m,mnc->nc", weights, each)
    assert dataset.classes is not None
    own, best = dataset.points_y, proba.argmax(axis=1)
    rows = np.arange(dataset.n_points)
    return pd.DataFrame(
        {
            "label": dataset.classes[own],
            "plausibility": proba[rows, own],
            "likeliest": dataset.classes[best],
            "p_likeliest": proba[rows, best],
        },
        index=pd.Index(dataset.ids, name="point"),
    )


def mixture_weights(likelihood: FloatArray) -> FloatArray:
    """Return the mixture that makes the labels likeliest, by expectation and maximisation.

    ``likelihood`` has shape ``(n_models, n_points)``, the result ``(n_models,)``.
    """
    weights = np.full(len(likelihood), 1.0 / len(likelihood))
    for _ in range(_STEPS):
        part = weights[:, None] * np.maximum(likelihood, _TINY)
        weights = (part / part.sum(axis=0)).mean(axis=1)
    return weights


def roughly(estimator: Any) -> Any:
    """Return an estimator that is solved well enough for predictions, and so in less time.

    Models by name are solved to many digits, which contributions of single points need.
    """
    from sklearn.linear_model import LogisticRegression

    if isinstance(estimator, LogisticRegression) and estimator.tol < _TOLERANCE:
        solver = "lbfgs" if estimator.solver == "newton-cholesky" else estimator.solver
        return estimator.set_params(tol=_TOLERANCE, solver=solver)
    return estimator


def _resolved(model: Any, dataset: Dataset) -> Model:
    result = resolve_model(
        model, kind=dataset.kind, n_features=dataset.n_features, n_classes=dataset.n_classes
    )
    if not result.has_proba:
        raise ModelError(
            f"{result.name} has no predict_proba: expected models that predict probabilities. Pass "
            "another one, or wrap it in CalibratedClassifierCV."
        )
    return result


def _outside(dataset: Dataset, model: Model, draws: int, seed: int) -> FloatArray:
    """Return mean class probabilities by models trained without each point, ``(n_points, c)``."""
    n_pool, n_classes = dataset.n_pool, dataset.n_classes
    plan = make_plan(
        Design.of([max(n_pool // 2, n_classes)], name="grid", samples=draws),
        **drawn_from(dataset),
        points=Positions(np.arange(dataset.n_points)),
        seed=seed,
    )
    total = np.zeros((dataset.n_points, n_classes))
    count = np.zeros(dataset.n_points)
    for index in track(range(len(plan))):
        task = plan[index]
        fresh = roughly(model.seeded(task.seed))
        if model.name == "forest":
            fresh = fresh.set_params(n_estimators=_TREES)
        fitted = fresh.fit(
            np.concatenate([dataset.X[task.subset], dataset.X_val]),
            np.concatenate([dataset.y[task.subset], dataset.y_val]),
        )
        total[task.points] += fitted.predict_proba(dataset.features(task.points))
        count[task.points] += 1
    return np.asarray(total / count[:, None])
