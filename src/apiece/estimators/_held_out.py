r"""Contributions split for cross-fitting, and the errors of a network on held-out points.

Points are split into folds, one per member of the network, which learns from the other points.
Contributions of one task share a part of their noise, because it enters through the model trained
on $D$. A member that was trained on other points of the same tasks has learned that part, and would
look too good on held-out points. So tasks shared by several points are split into folds, too: a
member is evaluated on other points *and* other tasks than those it was trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from apiece._base.typing import BoolArray, FloatArray, IntArray
from apiece.estimators._bins import Bins
from apiece.records import Contributions, Moments

_BINS: Final = 24
_ROUNDS: Final = 200


@dataclass(frozen=True)
class Split:
    """Moments of the contributions in columns, and the folds of points and columns.

    Parameters
    ----------
    moments
        Moments, shape ``(n_points, n_columns)`` each; sizes are merged into 24 bins a fold.
    point_fold
        The fold of each point, shape ``(n_points,)``.
    column_fold
        The fold of each column's tasks, shape ``(n_columns,)``; -1 for tasks of one point alone.
    """

    moments: Moments
    point_fold: IntArray
    column_fold: IntArray

    @classmethod
    def of(cls, contributions: Contributions, n_folds: int, rng: np.random.Generator) -> Split:
        """Split points and shared tasks into folds."""
        point_fold = rng.permutation(contributions.n_points) % n_folds
        tasks, place, counts = np.unique(
            contributions.task, return_inverse=True, return_counts=True
        )
        task_fold = np.full(len(tasks), -1)
        is_shared = counts > 1
        if is_shared.sum() >= n_folds:
            task_fold[is_shared] = rng.permutation(int(is_shared.sum())) % n_folds
        bins = Bins.of(contributions.k, max_sizes=_BINS, n_bins=_BINS)
        parts, folds = [], []
        for fold in np.unique(task_fold):
            part = contributions.where(task_fold[place] == fold).moments()
            part = bins.merge(part, point_k=True) if part.k.shape[1] > len(bins) else part
            parts.append(part)
            folds.append(np.full(part.k.shape[1], fold))
        joined = (
            np.concatenate([getattr(part, name) for part in parts], axis=1)
            for name in ("k", "n", "mean", "m2")
        )
        return cls(Moments(*joined), point_fold, np.concatenate(folds))

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        return int(self.point_fold.max()) + 1

    def learned(self, rows: slice | IntArray) -> BoolArray:
        """Which entries each member learns from, shape ``(n_members, n_rows, n_columns)``."""
        member = np.arange(self.n_folds)[:, None, None]
        is_other = self.point_fold[rows][:, None] != member
        return np.asarray(is_other & (self.column_fold != member))

    def judged(self, rows: slice | IntArray) -> BoolArray:
        """Return which entries each member is judged by, in the same shape."""
        member = np.arange(self.n_folds)[:, None, None]
        is_free = (self.column_fold == member) | (self.column_fold == -1)
        return np.asarray((self.point_fold[rows][:, None] == member) & is_free)


def scatter_and_noise(
    residual: FloatArray, n: FloatArray, m2: FloatArray, variance: FloatArray, gradient: FloatArray
) -> tuple[FloatArray, float]:
    r"""Return how far laws lie from their predictions, and how much of the misfit is noise.

    The deviation of a point's law in units of its own is $u \sim \mathcal{N}(0, T)$, and held-out
    contributions depend on it through $r = G u + \varepsilon$, $\varepsilon \sim \mathcal{N}(0,
    \varphi V)$. The network's variance $V$ holds the misfit of its laws, too, so the share
    $\varphi$ that varies within a point is estimated with $T$, both by expectation maximisation of
    the marginal likelihood.

    Parameters
    ----------
    residual, n, m2
        Mean contributions less the prediction, how many they are (0 where a member is not judged)
        and their sum of squared deviations, each of shape ``(n_points, m)``.
    variance
        Predicted variance of one contribution, shape ``(n_points, m)``.
    gradient
        Derivatives of the curve by the scaled coordinates, shape ``(n_points, m, p)``.

    Returns
    -------
    tuple of FloatArray and float
        $T$, shape ``(p, p)``, and $\varphi$.
    """
    weight = n / variance
    information = np.einsum("nma,nm,nmb->nab", gradient, weight, gradient)
    score = np.einsum("nma,nm,nm->na", gradient, weight, residual)
    square = (weight * residual**2 + np.where(n > 0, m2, 0.0) / variance).sum()
    p, total = gradient.shape[2], n.sum()
    is_judged = np.asarray(n.sum(axis=1) > 0)
    information, score = information[is_judged], score[is_judged]
    covariance, share = 0.1 * np.eye(p), 1.0
    for _ in range(_ROUNDS if len(score) else 0):
        spread = covariance @ np.linalg.inv(np.eye(p) + information @ covariance / share)
        mean = np.einsum("nab,nb->na", spread, score) / share
        left = square - 2 * (mean * score).sum() + np.einsum("nab,na,nb->", information, mean, mean)
        left += np.einsum("nab,nba->", information, spread)
        share = float(np.clip(left / total, 1e-6, 1e6))
        covariance = spread.mean(axis=0) + mean.T @ mean / len(mean)
        covariance = (covariance + covariance.T) / 2
    return covariance, share


def without_member_spread(scatter: FloatArray, apart: FloatArray) -> FloatArray:
    r"""Return the scatter around the mean of the members, from that around single members.

    For any truth $\psi$ the errors of members and of their mean obey
    $\frac{1}{M}\sum_m (\psi_m - \psi)^2 = (\bar\psi - \psi)^2 + \frac{1}{M}\sum_m (\psi_m -
    \bar\psi)^2$: what the members disagree about is gained by averaging. At most nine tenths of the
    scatter are taken off in any direction.

    Parameters
    ----------
    scatter
        Covariance of laws around single predictions, shape ``(p, p)``.
    apart
        Predictions of members less their mean, in the same units, shape ``(n_members, n, p)``.
    """
    ambiguity = np.einsum("mna,mnb->ab", apart, apart) / (apart.shape[0] * apart.shape[1])
    values, vectors = np.linalg.eigh(scatter)
    root = vectors * np.sqrt(np.maximum(values, 1e-12 * values.max() + 1e-300))
    back = np.linalg.inv(root)
    left, turned = np.linalg.eigh(np.eye(len(scatter)) - back @ ambiguity @ back.T)
    whole = root @ turned
    return np.asarray((whole * np.clip(left, 0.1, 1.0)) @ whole.T)
