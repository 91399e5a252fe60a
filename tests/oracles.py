"""Slow and obvious references."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from apiece.engines import CoupledFolds
from apiece.records import Contributions


def refit_deltas(dataset, task, estimator, loss):
    """Train with and without each point of the task, the way a user would write it."""

    def loss_of(rows, extra=None):
        X, y = dataset.X[rows], dataset.y[rows]
        if extra is not None:
            X = np.vstack([X, dataset.features(np.array([extra]))])
            y = np.append(y, dataset.targets(np.array([extra])))
        return loss(clone(estimator).fit(X, y))

    base = loss_of(task.subset)
    return base, np.array([base - loss_of(task.subset, point) for point in task.points])


def interior_point(Q, y, C):
    """Minimise a'Qa / 2 - sum(a) over 0 <= a <= C, y'a = 0, by Mehrotra's steps."""
    n = len(y)
    half = np.full(n, C / 2)
    size = max(1.0, np.abs(Q @ half).max())
    x = np.concatenate([half, [0.0], np.full(2 * n, size)])  # a, b, and multipliers u, v
    for _ in range(200):
        try:
            step = _interior_step(Q, y, C, x)
        except np.linalg.LinAlgError:
            break
        if step is None or not np.isfinite(step).all():
            break
        x = x + step
    return x[:n]


def _interior_step(Q, y, C, x):
    n = len(y)
    a, b, u, v = x[:n], x[n], x[n + 1 : 2 * n + 1], x[2 * n + 1 :]
    s = C - a
    mu = (u @ a + v @ s) / (2 * n)
    if mu < 1e-16 * C:
        return None
    residual = Q @ a - 1 + y * b - u + v
    M = np.zeros((n + 1, n + 1))
    M[:n, :n], M[:n, n], M[n, :n] = Q + np.diag(u / a + v / s), y, y

    def direction(goal_a, goal_s):
        rhs = np.append(goal_a / a - goal_s / s - u + v - residual, -(y @ a))
        *da, db = np.linalg.solve(M, rhs)
        da = np.array(da)
        du, dv = (goal_a - u * da) / a - u, (goal_s + v * da) / s - v
        positive, change = np.concatenate([a, s, u, v]), np.concatenate([da, -da, du, dv])
        falls = change < 0
        longest = (positive[falls] / -change[falls]).min(initial=1.0)
        return longest, da, db, du, dv

    t, da, db, du, dv = direction(0.0, 0.0)
    after = ((u + t * du) @ (a + t * da) + (v + t * dv) @ (s - t * da)) / (2 * n)
    goal = after**3 / mu**2
    t, da, db, du, dv = direction(goal - da * du, goal + da * dv)
    return 0.995 * t * np.concatenate([da, [db], du, dv])


class InteriorPointSVC(ClassifierMixin, BaseEstimator):
    """The binary SVC with the RBF kernel, in double precision, which libsvm is not."""

    def __init__(self, C=1.0, gamma="scale"):
        self.C = C
        self.gamma = gamma

    def _kernel(self, X):
        return np.exp(-self.gamma_ * ((X[:, None] - self.X_) ** 2).sum(axis=2))

    def fit(self, X, y):
        self.classes_, self.X_ = np.unique(y), X
        rules = {"scale": 1 / (X.shape[1] * X.var()), "auto": 1 / X.shape[1]}
        self.gamma_ = rules[self.gamma] if isinstance(self.gamma, str) else self.gamma
        sign, K = np.where(y == self.classes_[1], 1.0, -1.0), self._kernel(X)
        a = interior_point(K * sign[:, None] * sign, sign, self.C)
        share, gap = a / self.C, sign - K @ (a * sign)
        inside = np.minimum(share, 1 - share)
        if (inside > 1e-7).any():
            self.b_ = np.average(gap, weights=np.where(inside > 1e-7, inside, 0.0))
        else:  # any intercept of an interval; libsvm takes the middle
            from_below = (sign > 0) == (share < 0.5)
            self.b_ = (gap[from_below].max() + gap[~from_below].min()) / 2
        self.weight_ = a * sign
        excess = sign * (self.b_ - gap)
        if np.abs(share - np.clip(share - excess, 0, 1)).max() > 1e-5:
            raise ArithmeticError("the interior point method did not converge")
        return self

    def decision_function(self, X):
        return self._kernel(X) @ self.weight_ + self.b_

    def predict(self, X):
        return self.classes_[(self.decision_function(X) >= 0).astype(int)]


class OneVersusOneSVC(ClassifierMixin, BaseEstimator):
    """A machine for each pair of classes, at the width of all points; votes as scikit-learn's."""

    def __init__(self, C=1.0, gamma="scale"):
        self.C = C
        self.gamma = gamma

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        rules = {"scale": 1 / (X.shape[1] * X.var()), "auto": 1 / X.shape[1]}
        gamma = rules[self.gamma] if isinstance(self.gamma, str) else self.gamma
        self.machines_ = {}
        for i, j in combinations(range(len(self.classes_)), 2):
            of = (y == self.classes_[i]) | (y == self.classes_[j])
            self.machines_[i, j] = InteriorPointSVC(self.C, gamma).fit(X[of], y[of])
        return self

    def decision_function(self, X):
        if len(self.classes_) == 2:
            return self.machines_[0, 1].decision_function(X)
        votes, total = np.zeros((2, len(X), len(self.classes_)))
        for (i, j), machine in self.machines_.items():
            f = machine.decision_function(X)
            votes[:, j] += f > 0
            votes[:, i] += f <= 0
            total[:, j] += f
            total[:, i] -= f
        self.votes_ = votes
        return votes + total / (3 * (1 + np.abs(total)))

    def predict(self, X):
        self.decision_function(X)
        return self.classes_[self.votes_.argmax(axis=1)]


class CalibratedSVC(ClassifierMixin, BaseEstimator):
    """Platt's sigmoids on coupled folds, solved further than scikit-learn does."""

    def __init__(self, svc=None):
        self.svc = svc

    def fit(self, X, y):
        self.classes_, held_out = np.unique(y), {}
        for train, out in CoupledFolds().split(X, y):
            machine = clone(self.svc).fit(X[train], y[train])
            for row, f in zip(out, machine.decision_function(X[out]), strict=True):
                held_out[row] = f
        columns = np.array([held_out[row] for row in range(len(y))]).reshape(len(y), -1)
        positive = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        self.sigmoids_ = np.array(
            [_sigmoid(f, y == c) for c, f in zip(positive, columns.T, strict=True)]
        )
        self.machine_ = clone(self.svc).fit(X, y)
        return self

    def predict_proba(self, X):
        f = self.machine_.decision_function(X).reshape(len(X), -1)
        m = self.sigmoids_[:, 0] * f + self.sigmoids_[:, 1]
        if m.shape[1] == 1:
            return np.concatenate([expit(-m), expit(m)], axis=1)
        return expit(m) / expit(m).sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _sigmoid(f, is_positive):
    """Slope and offset of Platt's sigmoid."""
    n, n1 = len(f), is_positive.sum()
    target = np.where(is_positive, (n1 + 1) / (n1 + 2), 1 / (n - n1 + 2))
    F = np.column_stack([(f - f.mean()) / f.std(), np.ones(n)])
    w = np.array([0.0, np.log((n1 + 1) / (n - n1 + 1))])

    def loss(w):
        return (np.logaddexp(0, F @ w) - target * (F @ w)).sum()

    for _ in range(100):
        p = expit(F @ w)
        step = -np.linalg.lstsq((F.T * p * (1 - p)) @ F, F.T @ (p - target), rcond=1e-13)[0]
        while loss(w + step) > loss(w) * (1 + 1e-13) and np.abs(step).max() > 1e-12:
            step = step / 2
        w = w + step
    return w[0] / f.std(), w[1] - w[0] * f.mean() / f.std()


def semivalues(utility, n, weight):
    """Sum every marginal contribution of every player by enumeration of all subsets.

    ``utility`` maps a frozenset of players to a number; ``weight(k)`` is what one subset of size k
    of the others counts.
    """
    values = np.zeros(n)
    for player in range(n):
        others = [other for other in range(n) if other != player]
        for k in range(n):
            for subset in combinations(others, k):
                s = frozenset(subset)
                values[player] += weight(k) * (utility(s | {player}) - utility(s))
    return values


def game_contributions(utility, n):
    """Every marginal contribution of a game as a table: point, size of the others, delta."""
    rows = [
        (player, k, utility(frozenset(subset) | {player}) - utility(frozenset(subset)))
        for player in range(n)
        for k in range(n)
        for subset in combinations([other for other in range(n) if other != player], k)
    ]
    point, k, delta = zip(*rows, strict=True)
    return Contributions.from_arrays(point=point, k=k, delta=delta)
