r"""The nearest-neighbour engine: a point matters only where it enters a neighbourhood.

With the $K$ nearest points of $D$ at weights $w_i$ (1, or one over the distance), the prediction
at a validation row is $\sum_i w_i t_i / \sum_i w_i$, where $t_i$ is the target, or the one-hot
class. A point $z$ nearer than the $K$-th nearest enters, and the $K$-th leaves, so that

$$\Delta(z, D) = \frac{1}{n} \sum_{v:\, d(v, z) < d_K(v)} \ell_v(D) - \ell_v(D \cup z)$$

is a sum over the few validation rows $v$ that $z$ enters. A metric that is not a mean over rows is
evaluated on the whole prediction, with these rows replaced.

Squared Euclidean distances come from matrix products, with a bound on their rounding error. If two
compared distances are closer than the bound, both are computed again from differences. So
neighbourhoods are those of exact comparisons, and equal rows are at distance zero, which
scikit-learn's brute-force search does not guarantee. Among equal distances the point that is
earlier in $D$ counts as nearer, and $z$ comes last; scikit-learn does not define the order.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np

from apiece._base.batched import dot
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset
from apiece.engines._base import Engine
from apiece.engines._models import Model
from apiece.losses import Loss
from apiece.records import Outcome, Task

_EPS: Final = float(np.finfo(np.float64).eps)
_TABLE: Final = 1 << 25  # distances that are kept from task to task: 256 MB
_BLOCK: Final = 1 << 19  # numbers in the arrays of a block: 4 MB, for the cache
_FEW_FEATURES: Final = 16  # features up to which differences are as fast as a matrix product
_ACCURACY: Final = 1e-11  # relative error of the distances that become weights
_ORDERS: Final = {
    **dict.fromkeys(("manhattan", "cityblock", "l1"), 1.0),
    **dict.fromkeys(("euclidean", "l2"), 2.0),
    "chebyshev": math.inf,
}


def _order_of(estimator: Any) -> float | None:
    """Return p of the Minkowski distance that an estimator uses; None for other distances."""
    if estimator.metric == "minkowski":
        return float(estimator.p) if estimator.p is not None and estimator.p >= 1 else None
    return _ORDERS.get(estimator.metric) if isinstance(estimator.metric, str) else None


class KNNEngine(Engine):
    """Nearest neighbours: contributions of all points from one table of distances.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> engine, _ = choose_engine(load_demo()[0], model="knn")
    >>> engine.run(Task(0, np.arange(30), np.arange(30, 33), seed=0)).delta.shape
    (3,)
    """

    name: ClassVar[str] = "knn"
    is_quick: ClassVar[bool] = True
    made_for: ClassVar[tuple[str, ...]] = ("KNeighborsClassifier", "KNeighborsRegressor")

    @classmethod
    def supports(cls, dataset: Dataset, model: Model, metric: Loss) -> str | None:
        """Return None if the engine computes what refitting the model would, else why not."""
        from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

        estimator = model.estimator
        wanted = KNeighborsClassifier if dataset.is_classification else KNeighborsRegressor
        if type(estimator) is not wanted:
            return f"{model.name} is not a nearest-neighbour model"
        if callable(estimator.weights):
            return "weights is a callable"
        if estimator.weights not in (None, "uniform", "distance"):
            return f"weights is {estimator.weights!r}"
        if not isinstance(estimator.n_neighbors, int | np.integer) or estimator.n_neighbors < 1:
            return f"n_neighbors is {estimator.n_neighbors!r}"
        if estimator.metric_params:
            return "metric_params are given"
        if _order_of(estimator) is None:
            p = f", p={estimator.p}" if estimator.metric == "minkowski" else ""
            return f"metric={estimator.metric!r}{p}"
        return None

    @cached_property
    def _space(self) -> _Space:
        return _Space(self.dataset, _order_of(self.model.estimator) or 2.0)

    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every point of the task.

        Raises
        ------
        EngineError
            As the refit engine does: if ``D`` has fewer points than a neighbourhood or lacks a
            class, or if the metric fails.
        """
        data, n_neighbors = self.dataset, int(self.model.estimator.n_neighbors)
        is_weighted = self.model.estimator.weights == "distance"
        n_seen = len(np.unique(data.y[task.subset])) if self.metric.needs == "proba" else 0
        is_short = task.cardinality < n_neighbors or 0 < n_seen < data.n_classes
        if is_short or not self._space.is_finite:
            return self.refit(task)
        around = _Around(self._space, task.subset, n_neighbors, is_weighted)
        all_rows = np.arange(data.n_validation)
        base = self._finish(around.predict(all_rows, around.target, around.weight))
        loss = self.loss_or_nan(data.y_val, base)
        if not math.isfinite(loss):
            return self.refit(task)

        table = self._table(around, base)
        delta = np.empty(len(task.points))
        step = _BLOCK // (data.n_validation * max(1, data.n_classes)) + 1
        for start in range(0, len(delta), step):
            points = task.points[start : start + step]
            z, v, weight = around.entries(points)
            target = data.targets(points)[z]
            if table is not None:
                gain = table[v, target]
            else:
                gain = self._gain(around, base, loss, (z, v, target, weight))
            delta[start : start + step] = np.bincount(z, weights=gain, minlength=len(points))

        return self.completed(task, loss, delta, _ACCURACY if is_weighted else 0.0)

    def _table(self, around: _Around, base: AnyArray) -> FloatArray | None:
        """Return gains by row and class that enters, if they depend on no more and are few."""
        shape = self.dataset.n_validation, self.dataset.n_classes
        is_few = 0 < shape[0] * shape[1] ** 2 <= _BLOCK
        if around.is_weighted or not is_few or not self.metric.is_mean_of_rows:
            return None
        v, code = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
        return self._gain(around, base, 0.0, (v, v, code, np.ones(len(v)))).reshape(shape)

    def _gain(
        self, around: _Around, base: AnyArray, loss: float, entries: tuple[AnyArray, ...]
    ) -> FloatArray:
        """Return what each entry of a point, at a row, with a target and weight, contributes.

        If the metric is not a mean over rows, the point's first entry gets the whole contribution.
        """
        z, v, target, weight = entries
        y, rows = self.dataset.y_val, self.metric.rows
        after = self._finish(around.predict(v, target, weight))
        if self.metric.is_mean_of_rows:
            return np.asarray(rows(y[v], base[v]) - rows(y[v], after)) / len(y)
        gain = np.zeros(len(z))
        starts = np.flatnonzero(np.diff(z, prepend=-1))
        for start, end in zip(starts, np.append(starts[1:], len(z)), strict=True):
            prediction = base.copy()
            prediction[v[start:end]] = after[start:end]
            gain[start] = loss - self.loss_or_nan(y, prediction)
        return gain

    def _finish(self, mean: FloatArray) -> AnyArray:
        """Turn weighted means, shape ``(m, n_targets)``, into what the metric needs."""
        if self.metric.needs == "value":
            return mean[:, 0]
        return mean if self.metric.needs == "proba" else np.asarray(mean.argmax(axis=1))


class _Around:
    """The neighbours in ``D`` of every validation row, and what happens when a point enters.

    ``target`` and ``weight``, shape ``(n,)``, are those of the K-th nearest, which leaves.
    """

    def __init__(self, space: _Space, subset: IntArray, K: int, is_weighted: bool) -> None:
        self.space, self.is_weighted = space, is_weighted
        positions, distance = _nearest(space, subset, K)
        self.leaving, self.edge = positions[:, -1], distance[:, -1]
        self.slack = space.slack(slice(None), self.edge)
        row = np.repeat(np.arange(len(positions)), K)
        weight = self._weight(positions.ravel(), row, distance.ravel()).reshape(-1, K)
        self.weight = weight[:, -1].copy()
        is_zero = np.isinf(weight)
        self.has_zero = np.asarray(is_zero.any(axis=1))
        weight[self.has_zero] = is_zero[self.has_zero]
        targets = space.data.targets(positions)
        self.target = targets[:, -1]
        self.mass = weight[:, :-1].sum(axis=1)
        if space.data.is_classification:
            self.votes = np.zeros((len(positions), space.data.n_classes))
            np.add.at(self.votes, (row.reshape(-1, K)[:, :-1], targets[:, :-1]), weight[:, :-1])
        else:
            self.votes = (weight * targets)[:, :-1].sum(axis=1, keepdims=True)

    def _weight(self, points: IntArray, v: IntArray, distance: FloatArray) -> FloatArray:
        """Return the weight of each point at its row ``v``, infinite at distance zero."""
        if not self.is_weighted:
            return np.ones(len(v))
        if self.space.is_product:
            rough = np.flatnonzero(self.slack[v] > _ACCURACY * distance)
            distance[rough] = self.space.exactly(points[rough], v[rough])
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / (np.sqrt(distance) if self.space.p == 2 else distance))

    def entries(self, points: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return which points ``z`` enter at which rows ``v``, in order, and with what weight."""
        space, distances = self.space, self.space.between(points)
        close = np.flatnonzero(distances <= self.edge + 2.0 * self.slack)
        z, v = np.divmod(close, distances.shape[1])
        distance = distances.ravel()[close]
        tied = np.flatnonzero(distance >= (self.edge - 2.0 * self.slack)[v])
        if len(tied):
            enters, rows = np.ones(len(z), dtype=bool), v[tied]
            enters[tied] = space.is_product and (
                space.exactly(points[z[tied]], rows) < space.exactly(self.leaving[rows], rows)
            )
            z, v, distance = z[enters], v[enters], distance[enters]
        return z, v, self._weight(points[z] if self.is_weighted else z, v, distance)

    def predict(self, v: IntArray, target: AnyArray, weight: FloatArray) -> FloatArray:
        """Return the weighted mean at rows ``v`` once a target has taken the K-th place.

        As in scikit-learn, points at distance zero share all the weight if there are any.
        Shape ``(m, n_classes)``, or ``(m, 1)`` for a regression.
        """
        votes, mass = self.votes[v], self.mass[v]
        if self.is_weighted:
            is_zero, has_zero = np.isinf(weight), self.has_zero[v]
            votes[is_zero & ~has_zero], mass[is_zero & ~has_zero] = 0.0, 0.0
            weight = np.where(is_zero | has_zero, is_zero, weight)
        if self.space.data.is_classification:
            votes[np.arange(len(v)), target] += weight
        else:
            votes[:, 0] += weight * target
        votes /= (mass + weight)[:, None]
        return votes


class _Space:
    """Distances of points from validation rows, squared for p = 2.

    If ``is_product``, `between` may differ from `exactly` by `slack`; else it is exact.
    """

    def __init__(self, data: Dataset, p: float) -> None:
        self.data, self.p = data, p
        self.is_product = p == 2 and data.n_features > _FEW_FEATURES
        largest = max(max(X.max(), -X.min()) for X in (data.points_X, data.X_val))
        self.is_finite = largest < 1e280 ** (0.5 if p == math.inf else 1.0 / max(2.0, p))
        self.centre = data.X_val.mean(axis=0)
        self.rows = data.X_val - self.centre
        self.squares = dot(self.rows, self.rows)
        self.table: FloatArray | None = None
        if self.is_finite and data.n_points * data.n_validation <= _TABLE:
            table = np.empty((data.n_points, data.n_validation))
            step = _BLOCK // data.n_validation + 1
            for start in range(0, data.n_points, step):
                block = slice(start, start + step)
                table[block] = self._between(data.points_X[block], slice(None))
            self.table = table

    def between(self, points: IntArray, rows: slice = slice(None)) -> FloatArray:
        """Return the distances of points from some of the rows, shape ``(m, n)``."""
        if self.table is not None:
            return self.table[points, rows]
        return self._between(self.data.points_X.take(points, axis=0), rows)

    def _between(self, X: FloatArray, rows: slice) -> FloatArray:
        if not self.is_product:
            from scipy.spatial.distance import cdist

            V = self.data.X_val[rows]
            return cdist(X, V, "sqeuclidean") if self.p == 2 else cdist(X, V, "minkowski", p=self.p)
        X = X - self.centre
        squared: FloatArray = X @ (-2.0 * self.rows[rows].T)
        squared += self.squares[rows]
        squared += dot(X, X)[:, None]
        return squared

    def exactly(self, points: IntArray, rows: IntArray) -> FloatArray:
        """Return the squared distances of pairs of a point and a row, from their differences."""
        squared = np.empty(len(points))
        step = _BLOCK // self.data.n_features + 1
        for start in range(0, len(points), step):
            block = slice(start, start + step)
            difference = self.data.points_X.take(points[block], axis=0)
            difference -= self.data.X_val.take(rows[block], axis=0)
            squared[block] = np.square(difference, out=difference).sum(axis=1)
        return squared

    def slack(self, rows: slice, reach: FloatArray) -> FloatArray:
        r"""Bound the error of `between` for squared distances up to ``reach`` from each row.

        A product of $d$ terms is off by $d\,\epsilon\,|v|\,|x|$ at most, and $|x|^2$ is at most
        $2\,|v|^2 + 2\,|v - x|^2$.
        """
        factor = (self.data.n_features + 8) * _EPS if self.is_product else 0.0
        return np.asarray(factor * (3.0 * self.squares[rows] + 2.0 * np.maximum(reach, 0.0)))


def _nearest(space: _Space, subset: IntArray, K: int) -> tuple[IntArray, FloatArray]:
    """Return the K nearest of ``D`` to every row, nearest first, and their distances.

    Both have shape ``(n, K)``. Of equally distant points the earlier in ``subset`` comes first.
    """
    n = space.data.n_validation
    positions, nearest = np.empty((n, K), dtype=np.int64), np.empty((n, K))
    step = min(_BLOCK // len(subset), 1 << 15) + 1
    for start in range(0, n, step):
        block = slice(start, min(start + step, n))
        distances = space.between(subset, block)
        bound = _at_least_kth(distances, K)
        slack = space.slack(block, bound)
        close = np.flatnonzero(distances <= bound + 2.0 * slack)
        member, row = np.divmod(close, len(bound))
        distance = distances.ravel()[close]
        order = _sorted(row, distance)
        gap = np.diff(distance[order]) - 2.0 * slack[row[order[1:]]]
        is_tied = (gap <= 0.0) & (np.diff(row[order]) == 0)
        if space.is_product and is_tied.any():
            tied = np.union1d(order[:-1][is_tied], order[1:][is_tied])
            distance[tied] = space.exactly(subset[member[tied]], row[tied] + start)
            order = _sorted(row, distance)
        first = np.searchsorted(row[order], np.arange(len(bound)))
        first_k = order[first[:, None] + np.arange(K)]
        positions[block], nearest[block] = subset[member[first_k]], distance[first_k]
    return positions, nearest


def _at_least_kth(distances: FloatArray, K: int) -> FloatArray:
    """Return a bound on the K-th smallest of every column: the K-th of the minima of groups."""
    size = max(1, len(distances) // (8 * K))
    n_groups = len(distances) // size
    grouped = distances[: size * n_groups].reshape(n_groups, size, -1)
    return np.asarray(np.partition(grouped.min(axis=1), K - 1, axis=0)[K - 1])


def _sorted(row: IntArray, distance: FloatArray) -> IntArray:
    """Return the order by row (65,536 at most), then by distance, then as given."""
    order = np.argsort(distance, kind="stable")
    return order[np.argsort(row[order].astype(np.uint16), kind="stable")]  # a radix sort
