r"""What values are compared with: one call each, on the same rows and with the same information.

For whose label is wrong: `self_confidence` (cleanlab's; Northcutt et al., 2021), `data_oob` (Kwon
and Zou, 2023) and `knn_shapley`. For what to add to the rows that are held: `influence` (Koh and
Liang, 2017), `margin` (uncertainty sampling), `k_center` (Sener and Savarese, 2018) and
`largest_size_mean`. For either: `leave_one_out` and `random_values`. Each returns a table with the
column ``value``, indexed by id; high is to keep or to add, low is to doubt.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset
from apiece.engines import choose_engine, resolve_model
from apiece.errors import PlanError
from apiece.records import Contributions, Task
from apiece.store import Run
from apiece.uses._baselines import leave_one_out, random_values
from apiece.uses._neighbours import knn_shapley
from apiece.uses._outside import folds_of, in_folds, predict

if TYPE_CHECKING:
    import pandas as pd

    from apiece.losses import LossLike

__all__ = [
    "data_oob",
    "influence",
    "k_center",
    "knn_shapley",
    "largest_size_mean",
    "leave_one_out",
    "margin",
    "random_values",
    "self_confidence",
]

_LARGEST: Final = 0.8  # of the largest size: sizes that count as the largest
_FOLDS: Final = 5


def self_confidence(dataset: Dataset, *, random_state: RandomState = 0) -> pd.DataFrame:
    """Value every point by the probability of its label to models that have not seen it.

    Probabilities of logistic regression and of a forest are averaged, in five folds, as cleanlab's
    pipeline does. The validation rows, whose labels are trusted, train every model.

    Parameters
    ----------
    dataset
        Classification data.
    random_state
        Seed of folds and forests.

    Returns
    -------
    pandas.DataFrame
        Column ``value``, from 0 to 1, indexed by id; low is suspicious.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> data, flipped = load_demo()
    >>> value = self_confidence(data)["value"]
    >>> bool(value.iloc[flipped].mean() < 0.5 < value.mean())
    True
    """
    _check_classes(dataset, "self-confidence")
    seed = seed_from(random_state)
    fold = folds_of(dataset.points_y, _FOLDS, seed)
    X, y = _with_trusted(dataset)
    fold = np.concatenate([fold, np.full(dataset.n_validation, -1)])
    each = [in_folds(kind, X, y, fold, dataset.n_classes, seed) for kind in ("logistic", "forest")]
    rows = np.arange(dataset.n_points)
    return _table(dataset, np.mean(each, axis=0)[rows, y[rows]])


def data_oob(
    dataset: Dataset, *, n_models: int = 200, random_state: RandomState = 0
) -> pd.DataFrame:
    r"""Value every point by how well trees predict it that were trained on bootstraps without it.

    $$v_i = \frac{\sum_b 1[i \notin D_b]\,T(y_i, f_{D_b}(x_i))}{\sum_b 1[i \notin D_b]}$$

    with $T$ one for a right label and zero for a wrong one, or minus the squared error. The
    validation rows train every tree.

    Parameters
    ----------
    dataset
        The data.
    n_models
        How many trees are trained.
    random_state
        Seed of bootstraps and trees.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> data, flipped = load_demo()
    >>> value = data_oob(data, n_models=50)["value"]
    >>> bool(value.iloc[flipped].mean() < value.mean())
    True
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    if n_models != int(n_models) or n_models < 10:
        raise PlanError(
            f"n_models={n_models}: expected a whole number of at least 10, so that some are "
            "trained without each point. Pass for example n_models=200."
        )
    X, y = _with_trusted(dataset)
    n, seed = dataset.n_points, seed_from(random_state)
    kind = DecisionTreeClassifier if dataset.is_classification else DecisionTreeRegressor
    total, count = np.zeros(n), np.zeros(n)
    for number in range(int(n_models)):
        bag = stream(seed, 31, number).integers(n, size=n)
        out = np.setdiff1d(np.arange(n), bag)
        rows = np.concatenate([bag, np.arange(n, len(y))])
        predicted = kind(random_state=number).fit(X[rows], y[rows]).predict(X[out])
        right = predicted == y[out] if dataset.is_classification else -((predicted - y[out]) ** 2)
        total[out] += right
        count[out] += 1
    return _table(dataset, total / np.maximum(count, 1))


def influence(
    dataset: Dataset,
    *,
    have: Any = None,
    model: Any = "auto",
    metric: LossLike = None,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    r"""Value every point by its influence on the model of the held rows, to first order.

    $$v_i = \nabla L(f_H)^\top H^{-1} \nabla \ell_i$$

    Parameters
    ----------
    dataset
        The data. Without a validation set the points that are not held score in turns, or all of
        them, in five folds; a point is never scored by its fold.
    have
        Ids of the held rows; all of the pool by default.
    model, metric
        As in `collect`; least squares, ridge or logistic regression.
    random_state
        Seed of the folds.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> data, _ = load_demo()
    >>> len(influence(data, have=data.ids[:50])) == data.n_points
    True
    """
    everyone = replace(dataset, n_pool=dataset.n_points, groups=None)  # candidates may be held
    engine, _ = choose_engine(everyone, model=model, metric=metric, engine="first-order")
    held, points = _held(dataset, have), np.arange(dataset.n_points)
    if dataset.n_validation:
        return _table(dataset, engine.run(Task(0, held, points, 0)).delta)
    free = np.setdiff1d(points, held)
    scoring = free if len(free) >= 2 * _FOLDS else points
    fold = folds_of(dataset.points_y[scoring], _FOLDS, seed_from(random_state))
    total, count = np.zeros((2, dataset.n_points))
    for number in range(_FOLDS):
        rows = scoring[fold == number]
        others = np.setdiff1d(points, rows)
        task = Task(0, np.setdiff1d(held, rows), others, 0)
        total[others] += engine.scored_by(rows).run(task).delta
        count[others] += 1
    return _table(dataset, total / count)


def margin(
    dataset: Dataset, *, have: Any = None, model: Any = "auto", random_state: RandomState = 0
) -> pd.DataFrame:
    """Value every point by how unsure the model of the held rows is; labels are not looked at.

    The value is minus the difference between the probabilities of the two likeliest classes.

    Parameters
    ----------
    dataset, have, model
        As in `influence`; a model with ``predict_proba``, and no validation set is needed.
    random_state
        Seed of the model.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> data, _ = load_demo()
    >>> bool((margin(data, have=data.ids[:50])["value"] <= 0).all())
    True
    """
    _check_classes(dataset, "the margin")
    result = resolve_model(
        model, kind=dataset.kind, n_features=dataset.n_features, n_classes=dataset.n_classes
    )
    held = _held(dataset, have)
    fitted = result.seeded(seed_from(random_state)).fit(dataset.take(held), dataset.points_y[held])
    proba = np.sort(predict(fitted, dataset.rows, dataset.n_classes), axis=1)
    return _table(dataset, proba[:, -2] - proba[:, -1])


def k_center(dataset: Dataset, *, have: Any = None, take: int | None = None) -> pd.DataFrame:
    """Value points by how far they are from all that is held or was picked before them.

    The farthest point is picked first, then the one that is farthest from the held rows and
    that pick, and so on. Distances are Euclidean, so features should be on one scale. Labels are
    not looked at.

    Parameters
    ----------
    dataset, have
        As in `margin`.
    take
        How many points are picked; the others have the value 0. By default all.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0], [1.0], [9.0], [8.5]], [0, 1, 0, 1], validation=0)
    >>> k_center(data, have=[0])["value"].tolist()
    [0.0, 1.0, 9.0, 0.5]
    """
    X, held = dataset.points_X, _held(dataset, have)
    left = len(X) - len(held)
    if take is not None and not 1 <= take <= left:
        raise PlanError(
            f"take={take} cannot be picked: expected 1 to {left}, the points that are not held. "
            "Ask for fewer."
        )
    square = np.einsum("ij,ij->i", X, X)
    nearest = np.full(len(X), np.inf)
    for row in held:
        nearest = np.minimum(nearest, square - 2 * X @ X[row] + square[row])
    value = np.zeros(len(X))
    nearest[held] = -np.inf
    for _ in range(left if take is None else take):
        row = int(np.argmax(nearest))
        value[row] = np.sqrt(max(nearest[row], 0.0))
        nearest = np.minimum(nearest, square - 2 * X @ X[row] + square[row])
        nearest[row] = -np.inf
    return _table(dataset, value)


def largest_size_mean(run: Run | Contributions) -> pd.DataFrame:
    """Value every point by the mean of its contributions at the largest sampled sizes.

    These are sizes of at least 0.8 times the largest. No law is fitted.

    Parameters
    ----------
    run
        A run, or its contributions.

    Examples
    --------
    >>> table = Contributions.from_arrays(point=[0, 0, 1], k=[10, 100, 90], delta=[1.0, 0.2, 0.3])
    >>> largest_size_mean(table)["value"].tolist()
    [0.2, 0.3]
    """
    import pandas as pd

    table = run.contributions() if isinstance(run, Run) else run
    is_large = table.k >= _LARGEST * table.k.max()
    point, delta = table.point[is_large], table.delta[is_large]
    is_known = np.isfinite(delta)
    count = np.bincount(point[is_known], minlength=len(table.ids))
    total = np.bincount(point[is_known], delta[is_known], minlength=len(table.ids))
    with np.errstate(invalid="ignore"):
        return pd.DataFrame({"value": total / count}, index=pd.Index(table.ids, name="point"))


def _table(dataset: Dataset, value: FloatArray) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({"value": value}, index=pd.Index(dataset.ids, name="point"))


def _with_trusted(dataset: Dataset) -> tuple[FloatArray, AnyArray]:
    """Return features and targets of the points, then of the validation rows."""
    return (
        np.concatenate([dataset.points_X, dataset.X_val]),
        np.concatenate([dataset.points_y, dataset.y_val]),
    )


def _held(dataset: Dataset, have: Any) -> IntArray:
    return np.arange(dataset.n_pool) if have is None else np.unique(dataset.positions(have))


def _check_classes(dataset: Dataset, what: str) -> None:
    if not dataset.is_classification:
        raise PlanError(
            f"{what} is about labels, and the target is a quantity: expected classes. Pass another "
            "dataset, or data_oob."
        )
