"""Common part of experiments: rows held out for testing, training, and draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import AnyArray, FloatArray, IntArray, Positions
from apiece.collection import Design, DrawnPlan, drawn_from, make_plan
from apiece.data import Dataset, guarded, take_rows
from apiece.engines import Model, choose_engine
from apiece.errors import PlanError
from apiece.losses import Loss, LossLike

_LEAST_ROWS: Final = 50
_MOST_TESTED: Final = 1_000


@dataclass(frozen=True, eq=False)
class Trial:
    """A dataset to value points in, and rows that have no part in it, on which a value is tested.

    The test rows are half of the validation rows; without a validation set, a fifth of the rows of
    the pool (at most 1,000), and the others take turns in scoring.

    Parameters
    ----------
    dataset
        The points, and the validation rows on which they are valued, if there are any.
    X_test, y_test
        The rows to test on.
    model, metric
        What is trained, and its loss.
    seed
        Seed of all random numbers.
    """

    dataset: Dataset
    X_test: FloatArray
    y_test: AnyArray
    model: Model
    metric: Loss
    seed: int

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        *,
        model: Any,
        metric: LossLike,
        seed: int,
        test: tuple[FloatArray, AnyArray] | None = None,
    ) -> Trial:
        """Set rows aside to test on, class by class, unless they are given."""
        if test is None and not dataset.n_validation:
            dataset, test = _carved(dataset, seed)
        if test is not None:
            engine, _ = choose_engine(dataset, model=model, metric=metric, engine="refit")
            part = replace(dataset, groups=None)  # experiments are about points
            return cls(part, *test, engine.model, engine.metric, seed)
        if dataset.n_validation < 20:
            raise PlanError(
                f"the validation set has {dataset.n_validation} rows: expected at least 20, half "
                "of which test what was valued on the others. Hold out more rows."
            )
        engine, _ = choose_engine(dataset, model=model, metric=metric, engine="refit")
        rng = stream(seed, 1)
        order = rng.permutation(dataset.n_validation)
        if dataset.is_classification:
            order = order[np.argsort(dataset.y_val[order], kind="stable")]
        valued, tested = np.sort(order[::2]), np.sort(order[1::2])
        ids = dataset.ids_val
        part = replace(
            dataset,
            groups=None,  # experiments are about points
            rows_val=take_rows(dataset.rows_val, valued),
            y_val=dataset.y_val[valued],
            ids_val=None if ids is None else ids[valued],
        )
        X_test, y_test = take_rows(dataset.rows_val, tested), dataset.y_val[tested]
        return cls(part, X_test, y_test, engine.model, engine.metric, seed)

    @property
    def measures(self) -> dict[str, str]:
        """The results of `score`, in words."""
        measures = {"gain": f"fall of {self.metric.name} on test rows"}
        if self.dataset.is_classification:
            measures["accuracy"] = "rise of the share of test rows predicted rightly"
        return measures

    def score(self, rows: IntArray, y: AnyArray | None = None) -> FloatArray:
        """Train on points and return minus the loss and, for classes, the accuracy on test rows.

        Parameters
        ----------
        rows
            Positions of the training points.
        y
            Targets of all points, instead of those of the dataset.
        """
        data = self.dataset
        targets = data.points_y if y is None else y
        fitted = self.model.seeded(self.seed).fit(data.take(rows), targets[rows])
        labels = np.asarray(fitted.predict(guarded(self.X_test)))
        is_proba = self.metric.needs == "proba"
        seen = fitted.predict_proba(guarded(self.X_test)) if is_proba else labels
        scores = [-self.metric.value(self.y_test, seen)]
        if data.is_classification:
            scores.append(float(np.mean(labels == self.y_test)))
        return np.array(scores)

    def draws(self, size: int, repeats: int) -> DrawnPlan:
        """Plan training sets of a size, drawn from the pool as a run draws them."""
        return make_plan(
            Design.of((size, size), name="grid", samples=repeats),
            **drawn_from(self.dataset),
            points=Positions(np.array([self.dataset.n_pool])),  # never inside
            seed=int(stream(self.seed, 2, size).integers(2**31)),
        )


def _carved(dataset: Dataset, seed: int) -> tuple[Dataset, tuple[FloatArray, AnyArray]]:
    """Take a fifth of the pool, at most 1,000 rows, out of it to test on, classes in proportion."""
    if dataset.n_pool < _LEAST_ROWS:
        raise PlanError(
            f"the data has {dataset.n_pool} rows: expected at least {_LEAST_ROWS}, a fifth of "
            "which test what was valued on the others. Pass more rows."
        )
    order = stream(seed, 1).permutation(dataset.n_pool)
    if dataset.is_classification:
        order = order[np.argsort(dataset.y[order], kind="stable")]
    n_test = min(dataset.n_pool // 5, _MOST_TESTED)
    places = np.linspace(0, len(order) - 1, n_test).round().astype(np.int64)
    tested, kept = np.sort(order[places]), np.sort(np.delete(order, places))
    outside = np.arange(dataset.n_pool, dataset.n_points)
    part = dataset.with_points(np.concatenate([kept, outside]), n_pool=len(kept))
    return part, (dataset.take(tested), dataset.y[tested])


def moved_outside(dataset: Dataset, n: int | None, seed: int) -> Dataset:
    """Return the dataset with random points of the pool, 1,000 or half, as its candidates instead.

    Raises
    ------
    PlanError
        If the pool is too small to spare them.
    """
    most = dataset.n_pool - (1 if dataset.n_validation else _LEAST_ROWS)
    n = min(1000, -(-most // 2)) if n is None else n
    if not 1 <= n <= most:
        fewer = f"expected 1 to {most}. Pass n_candidates={-(-most // 2)} (--n-candidates), more"
        none = f"{_LEAST_ROWS} stay to train, test and score. Pass more"
        raise PlanError(
            f"{n} points cannot leave a pool of {dataset.n_pool} to be candidates: "
            f"{fewer if most >= 1 else none} rows, or candidates (--candidates)."
        )
    order = stream(seed, 3).permutation(dataset.n_pool)
    order = np.concatenate([np.sort(order[n:]), np.sort(order[:n])])
    part = replace(dataset, groups=None)
    return part.with_points(order, n_pool=dataset.n_pool - n)
