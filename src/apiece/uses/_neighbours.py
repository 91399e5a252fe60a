r"""KNN-Shapley: exact Shapley values when the model is nearest neighbours, in closed form.

For one scoring row with target $t$, let players be sorted by distance, $1, \ldots, N$. A set $S$
is worth what its $K$ nearest members predict (Jia et al., PVLDB 2019):

$$U(S) = \frac{1}{K} \sum_{j \in S_K} 1[y_j = t] \quad\text{or}\quad
  U(S) = -\Bigl(\frac{1}{K} \sum_{j \in S_K} y_j - t\Bigr)^2,$$

for classes and for quantities, $S_K$ being the $\min(K, |S|)$ nearest of $S$. Neighbours in the
order have values that differ by little that is simple. Let $u_j$ be the terms of the sum,
$m = \min(K, i)$; whether $i$ is among the $K$ nearest of $S \cup i$ has probability $m / i$, so

$$s_i - s_{i+1} = (u_i - u_{i+1})\,\frac{m}{i}$$

for classes, and for quantities, with $R$ the sum over the $K - 1$ nearest of $S$,

$$s_i - s_{i+1} = -(u_i - u_{i+1})\Bigl[(u_i + u_{i+1} - 2t)\,\frac{m}{i}
  + 2\,\frac{m(m-1)}{2 i (i-1)} \sum_{l < i} u_l
  + 2 \sum_{l > i+1} \frac{m_l (m_l + 1)}{2 (l-1)(l-2)}\,u_l\Bigr],$$

$m_l = \min(K - 1, l - 2)$: the last two terms are $2\,\mathbb{E}[R]$. Values sum to
$U(\text{all}) - U(\emptyset)$, which fixes the level. Sorting is all the work.

Without a validation set every row of the pool scores the others: the players are then all points
but the row itself, and a point's value is the mean over the rows that are not the point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.data import Dataset
from apiece.errors import PlanError
from apiece.records import scoped

if TYPE_CHECKING:
    import pandas as pd

_ENTRIES: Final = 4_000_000  # distances held at once: 32 MB


def knn_shapley(dataset: Dataset, *, n_neighbors: int = 5) -> pd.DataFrame:
    r"""Value every point by its exact Shapley value for nearest neighbours, mean over scoring rows.

    The players are all points of the dataset, pool and candidates; distances are Euclidean, so
    features should be on one scale. Of equal distances the earlier point counts as nearer.
    Quantities are taken around the mean of all points, which is what the empty set predicts. The
    validation set scores; without one, every row of the pool scores the other points.

    Parameters
    ----------
    dataset
        Points, and the validation set if there is one.
    n_neighbors
        $K$, how many neighbours predict.

    Returns
    -------
    pandas.DataFrame
        Column ``value``, indexed by id: a share of scoring rows predicted rightly, or a decrease
        of the squared error; positive helps. Values are exact and have no interval.

    Examples
    --------
    >>> dataset = Dataset.from_arrays(
    ...     [[0.0], [1.0], [2.0]], [0, 1, 1], X_val=[[0.1], [0.2]], y_val=[0, 0]
    ... )
    >>> knn_shapley(dataset, n_neighbors=1)["value"].tolist()
    [1.0, 0.0, 0.0]
    """
    import pandas as pd

    if n_neighbors != int(n_neighbors) or n_neighbors < 1:
        raise PlanError(
            f"n_neighbors={n_neighbors}: expected a whole number of at least 1. "
            "Pass for example n_neighbors=5."
        )
    is_own = not dataset.n_validation  # rows of the pool score the other points
    X, V = dataset.points_X, dataset.X if is_own else dataset.X_val
    y, target = dataset.points_y, dataset.y if is_own else dataset.y_val
    if not dataset.is_classification:
        y, target = y - y.mean(), target - dataset.points_y.mean()
    total = np.zeros(len(X))
    square = np.einsum("ij,ij->i", X, X)
    step = max(1, _ENTRIES // len(X))
    for start in range(0, len(V), step):
        rows, t = V[start : start + step], target[start : start + step, None]
        # The square of the scoring row is the same for all players, and left out.
        distance = square - 2 * rows @ X.T
        if is_own:
            distance[np.arange(len(rows)), np.arange(start, start + len(rows))] = -np.inf
        order = np.argsort(distance, axis=1, kind="stable")[:, int(is_own) :]
        if dataset.is_classification:
            ordered = _of_classes((y[order] == t).astype(np.float64) / n_neighbors, n_neighbors)
        else:
            ordered = _of_quantities(y[order] / n_neighbors, t, n_neighbors)
        total += np.bincount(order.ravel(), ordered.ravel(), minlength=len(X))
    n_scoring = np.full(len(X), float(len(V)))
    n_scoring[: dataset.n_pool] -= is_own  # a row does not score itself
    table = pd.DataFrame({"value": total / n_scoring}, index=pd.Index(dataset.ids, name="point"))
    return scoped(table, dataset.scope)


def _of_classes(u: FloatArray, n_neighbors: int) -> FloatArray:
    """Return the values of sorted players, shape ``(n_rows, n_players)``."""
    i = np.arange(1, u.shape[1])
    steps = (u[:, :-1] - u[:, 1:]) * (np.minimum(n_neighbors, i) / i)
    return _summing_to(steps, u[:, :n_neighbors].sum(axis=1))


def _of_quantities(u: FloatArray, t: AnyArray, n_neighbors: int) -> FloatArray:
    """Return the values of sorted players, shape ``(n_rows, n_players)``."""
    n = u.shape[1]
    i = np.arange(1, n, dtype=np.float64)
    m = np.minimum(n_neighbors, i)
    before = m * (m - 1) / (2 * i * np.maximum(i - 1, 1))
    position = np.arange(1, n + 1, dtype=np.float64)
    m_after = np.clip(position - 2, 0, n_neighbors - 1)
    after = m_after * (m_after + 1) / (2 * np.maximum((position - 1) * (position - 2), 1))
    nearer = np.cumsum(u, axis=1)[:, :-1] - u[:, :-1]  # sum over l < i
    farther = np.cumsum((after * u)[:, ::-1], axis=1)[:, ::-1]  # sum over l >= i
    beyond = np.concatenate([farther[:, 2:], np.zeros((len(u), 1))], axis=1)[:, : n - 1]
    others = before * nearer + beyond
    steps = -(u[:, :-1] - u[:, 1:]) * ((u[:, :-1] + u[:, 1:] - 2 * t) * (m / i) + 2 * others)
    everyone = u[:, :n_neighbors].sum(axis=1)
    return _summing_to(steps, t[:, 0] ** 2 - (everyone - t[:, 0]) ** 2)


def _summing_to(steps: FloatArray, total: FloatArray) -> FloatArray:
    """Return values whose successive differences are ``steps`` and whose sum is ``total``."""
    n = steps.shape[1] + 1
    values = np.zeros((len(steps), n))
    values[:, :-1] = np.cumsum(steps[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(values + ((total - values.sum(axis=1)) / n)[:, None])
