r"""A Gaussian process over training sets: from the losses of trainings to the laws of all points.

A training on $D_t$ with $k_t$ points has the loss

$$y_t = A(k_t) - \sum_{z \in D_t} \sum_j b_j(k_t)\,a_j(z) + \varepsilon_t, \qquad
  b_j(k) = \bigl((k - 1)/k_0\bigr)^{-j/2},$$

with the mean $A(k) = \beta_0 + \beta_1 \log k + \beta_2 / k$ and noise of variance
$s^2 (k/k_0)^{-\gamma}$. The coefficients of a point depend on its features $g_z$, and have a rest,

$$a_j(z) = \sum_f \gamma_{jf}\,g_f(z) + r_j(z), \qquad \gamma_{jf} \sim N(0, \tau_{jf}^2),
  \quad r(z) \sim N(0, S).$$

So for two training sets, with the sum $G_{tf}$ of centred features over $D_t$,

$$\mathrm{cov}(y_t, y_u) = b(k_t)^\top S\, b(k_u)\,\Bigl(|D_t \cap D_u| - \frac{k_t k_u}{n}\Bigr)
  + \sum_{jf} \tau_{jf}^2\,b_j(k_t) G_{tf}\,b_j(k_u) G_{uf} + [t = u]\,s^2 (k_t/k_0)^{-\gamma}.$$

$S$, $\tau$, $s$ and $\gamma$ maximise the likelihood, $\beta$ integrated out, under weak priors. So
features enter as far as they help. Features of one group share their $\tau_j$.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from apiece._base.typing import FloatArray, IntArray

TERMS: Final = (2, 4)  # of the series law
LEARNERS: Final = 1_200  # trainings that hyperparameters are learned from
_STEPS: Final = 60
_BLOCK: Final = 400  # training sets that are compared with all others at once
_SIGNAL: Final = 0.1  # share of the variance of losses that points explain, before data
_RIDGE: Final = 1e-8  # of the variance of losses, against rounding
_REACH: Final = 4.0  # standard deviations of their prior that settings are sought within


class Posterior(NamedTuple):
    """The coefficients of all points, and the mean loss.

    Parameters
    ----------
    mean, cov
        Of the coefficients, shapes ``(n_points, p)`` and ``(n_points, p, p)``.
    curve, curve_cov
        Coefficients of $A$, shape ``(n_curve,)``, and their covariance.
    """

    mean: FloatArray
    cov: FloatArray
    curve: FloatArray
    curve_cov: FloatArray


class _Settings(NamedTuple):
    """What is learned: a root of S, variances of features' weights, the noise and its decay."""

    root: FloatArray
    trust: FloatArray  # shape (p, n_groups)
    noise: float
    decay: float


@dataclass(frozen=True, eq=False)
class Process:
    """Losses of trainings as a Gaussian process.

    Parameters
    ----------
    y
        Losses, shape ``(n_trainings,)``.
    k
        Sizes of the training sets, shape ``(n_trainings,)``.
    members
        Sparse matrix of 0 and 1 (``scipy.sparse.csr_array``): which points each set holds, shape
        ``(n_trainings, n_points)``.
    features
        Features of the points, each with mean 0 and variance 1, shape
        ``(n_points, n_features)``.
    group
        The group of each feature, from 0 on without gaps, shape ``(n_features,)``.
    n_learners
        How many trainings at most hyperparameters are learned from.
    """

    y: FloatArray
    k: FloatArray
    members: Any
    features: FloatArray
    group: IntArray
    n_learners: int = LEARNERS

    @cached_property
    def k_ref(self) -> float:
        """The size at which coefficients are anchored."""
        return float(np.exp(np.log(self._others).mean()))

    @cached_property
    def _others(self) -> FloatArray:
        return np.maximum(self.k - 1.0, 1.0)  # points next to the one that is valued

    @cached_property
    def _x(self) -> FloatArray:
        return self._others / self.k_ref

    @cached_property
    def _terms(self) -> FloatArray:
        return np.stack([self._x ** (-j / 2) for j in TERMS], axis=1)

    @cached_property
    def _mean_terms(self) -> FloatArray:
        return self.curve_terms(self.k)

    def curve_terms(self, k: FloatArray) -> FloatArray:
        """Return the terms of the mean loss at some sizes, as many as the data determine."""
        x = k / self.k_ref
        n_terms = min(3, len(np.unique(self.k)))
        return np.stack([np.ones_like(x), np.log(x), 1 / x], axis=1)[:, :n_terms]

    @cached_property
    def _scale(self) -> float:
        """The standard deviation of losses around their mean curve, or one."""
        rest = self.y - self._mean_terms @ np.linalg.lstsq(self._mean_terms, self.y, rcond=None)[0]
        return float(rest.std()) or 1.0

    @cached_property
    def _centred(self) -> FloatArray:
        return np.asarray(self.features - self.features.mean(axis=0))

    @cached_property
    def _sums(self) -> FloatArray:
        """Sums of features over training sets times each term, shape ``(n_trainings, p q)``."""
        total = np.asarray(self.members @ self._centred)
        each: FloatArray = np.einsum("tj,tf->tjf", self._terms, total)
        return each.reshape(len(total), len(TERMS) * total.shape[1])

    def _spread(self, trust: FloatArray) -> FloatArray:
        """Return the variance of the weight of each feature and term, shape ``(p q,)``."""
        return trust[:, self.group].ravel()

    def _overlap(self, rows: IntArray) -> FloatArray:
        """Return how many points training sets share, less what is expected by chance."""
        part = self.members[rows]
        found = np.empty((len(rows), len(rows)))
        for start in range(0, len(rows), _BLOCK):
            others = part[start : start + _BLOCK].toarray()
            found[:, start : start + _BLOCK] = part @ others.T
        sizes = self.k[rows]
        found -= np.outer(sizes, sizes) / self.members.shape[1]
        return found

    @cached_property
    def _learners(self) -> IntArray:
        """Trainings drawn at random: at regular steps, a grid of sizes would lose some sizes."""
        n = len(self.y)
        return np.sort(np.random.default_rng(0).permutation(n)[: self.n_learners])

    @cached_property
    def settings(self) -> _Settings:
        """What the likelihood of some of the trainings says."""
        from scipy.optimize import minimize

        problem = _Likelihood(self, self._learners)
        reach = _REACH * problem.width
        found = minimize(
            problem,
            problem.start,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(problem.centre - reach, problem.centre + reach, strict=True)),
            options={"maxiter": _STEPS},
        )
        return problem.unpack(found.x)

    def posterior(self) -> Posterior:
        """Return the coefficients of all points given all trainings."""
        from scipy.linalg import cho_factor, cho_solve

        known, B, G = self.settings, self._terms, self._sums
        S, T = known.root @ known.root.T, self._spread(known.trust)
        K = self._overlap(np.arange(len(self.y)))
        K *= B @ S @ B.T
        K += (G * T) @ G.T
        _add_noise(K, known.noise * self._x**-known.decay)
        P = cho_solve(cho_factor(K, lower=True, overwrite_a=True), np.eye(len(K)))
        X = self._mean_terms
        PX = P @ X
        curve_cov: FloatArray = np.linalg.inv(X.T @ PX).astype(np.float64)
        curve = curve_cov @ (PX.T @ (self.y / self._scale))
        P -= PX @ curve_cov @ PX.T
        weight = P @ (self.y / self._scale)
        rest = np.asarray(self.members.T @ (B * weight[:, None])) - self._share @ (
            B * weight[:, None]
        )
        learned = (T * (G.T @ weight)).reshape(len(TERMS), self.features.shape[1])
        mean = -(rest @ S + self._centred @ learned.T)
        prior = np.einsum("zf,jf->zj", self._centred**2, T.reshape(learned.shape))
        cov = S + np.einsum("zj,jl->zjl", prior, np.eye(len(TERMS))) - self._explained(P, S, T)
        scale = self._scale
        return Posterior(scale * mean, scale**2 * cov, scale * curve, scale**2 * curve_cov)

    @cached_property
    def _share(self) -> FloatArray:
        return np.asarray(self.k / self.members.shape[1])

    def _explained(self, P: FloatArray, S: FloatArray, T: FloatArray) -> FloatArray:
        r"""Return by how much trainings lower the covariance of each point, ``(n_points, p, p)``.

        That is $C_z P C_z^	op$, with the covariance $C_z$ of the point's coefficients and the
        losses: a part from the rest, $S b_t$ times whether training $t$ holds the point (less the
        share of points that it holds), and a part from features.
        """
        B, p = self._terms, len(TERMS)
        n, q = self.features.shape
        U = P @ self._sums
        square = (self._sums.T @ U).reshape(p, q, p, q)
        own = self._centred[:, None, :] * T.reshape(p, q)
        found = np.einsum("zje,jelf,zlf->zjl", own, square, own, optimize=True)
        by_task = np.einsum("tj,tf->tjf", B, U).reshape(len(B), p * p * q)
        cross = np.asarray(self.members.T @ by_task) - self._share @ by_task
        mixed = np.einsum("zjlf,zlf->zjl", cross.reshape(n, p, p, q), own)
        mixed = S @ mixed
        found += mixed + mixed.transpose(0, 2, 1)
        common = B * self._share[:, None]
        through = P @ common
        square = common.T @ through
        by_task = np.einsum("tj,tl->tjl", B, through).reshape(len(B), -1)
        cross = np.asarray(self.members.T @ by_task).reshape(n, p, p)
        inside = square - cross - cross.transpose(0, 2, 1)
        holds = self.members.tocsc()
        for point in range(n):
            tasks = holds.indices[holds.indptr[point] : holds.indptr[point + 1]]
            inside[point] += B[tasks].T @ P[np.ix_(tasks, tasks)] @ B[tasks]
        return np.asarray(found + S @ inside @ S)


def _add_noise(K: FloatArray, noise: FloatArray) -> None:
    """Add noise to the diagonal, and a little more, so that rounding leaves K positive."""
    diagonal = np.diag(K) + noise
    K[np.diag_indices(len(K))] = diagonal * (1 + _RIDGE)


class _Likelihood:
    """The negative log likelihood of some trainings, and its gradient."""

    def __init__(self, process: Process, rows: IntArray) -> None:
        p, n_groups = len(TERMS), int(process.group.max(initial=-1)) + 1
        self.process, self.B, self.G = process, process._terms[rows], process._sums[rows]
        self.X, self.y = process._mean_terms[rows], process.y[rows] / process._scale
        self.log_x = np.log(process._x[rows])
        self.overlap = process._overlap(rows)
        self.places = np.tril_indices(p)
        self.is_diagonal = self.places[0] == self.places[1]
        size = np.log(_SIGNAL / max(float(np.diag(self.overlap).mean()), 1.0)) / 2
        first = np.where(self.is_diagonal, size - 0.7 * (self.places[0] > 0), 0.0)
        width = np.where(self.is_diagonal, 1.0, 10 * np.exp(size))
        width[0] = 2.0
        many = np.bincount(process.group, minlength=n_groups)
        weights = np.tile(size - np.log(np.maximum(many, 1)) / 2, p)
        self.centre = np.concatenate([first, weights, [np.log(1 - _SIGNAL), 1.0]])
        self.width = np.concatenate([width, np.full(len(weights), 2.0), [2.0, 1.0]])
        self.start = self.centre.copy()
        self.start[len(first) : -2] -= 1.0

    def unpack(self, theta: FloatArray) -> _Settings:
        """Return what a point of the search stands for."""
        n_root, p = len(self.is_diagonal), self.B.shape[1]
        root = np.zeros((p, p))
        root[self.places] = np.where(self.is_diagonal, np.exp(theta[:n_root]), theta[:n_root])
        n_groups = (len(theta) - n_root - 2) // p
        trust = np.exp(2 * theta[n_root:-2]).reshape(p, n_groups)
        return _Settings(root, trust, float(np.exp(theta[-2])), float(theta[-1]))

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        from scipy.linalg import cho_factor, cho_solve

        known, group = self.unpack(theta), self.process.group
        noise = known.noise * np.exp(-known.decay * self.log_x)
        K = self.overlap * (self.B @ (known.root @ known.root.T) @ self.B.T)
        K += (self.G * self.process._spread(known.trust)) @ self.G.T
        _add_noise(K, noise)
        factor = cho_factor(K, lower=True, overwrite_a=True)
        P = cho_solve(factor, np.eye(len(K)))
        PX = P @ self.X
        inner = self.X.T @ PX
        P -= PX @ np.linalg.solve(inner, PX.T)
        weighed = P @ self.y
        away = (theta - self.centre) / self.width
        value = np.log(np.diag(factor[0])).sum() + np.linalg.slogdet(inner)[1] / 2
        value += self.y @ weighed / 2 + away @ away / 2
        by_K = (P - np.outer(weighed, weighed)) / 2
        by_root = (2 * self.B.T @ (by_K * self.overlap) @ self.B @ known.root)[self.places]
        by_weight = ((by_K @ self.G) * self.G).sum(axis=0)
        by_weight = by_weight.reshape(len(known.trust), len(group))
        by_trust = np.stack(
            [np.bincount(group, row, minlength=known.trust.shape[1]) for row in by_weight]
        )
        by_noise = np.diag(by_K) * noise
        gradient = np.concatenate(
            [
                np.where(self.is_diagonal, by_root * known.root[self.places], by_root),
                (2 * known.trust * by_trust).ravel(),
                [by_noise.sum(), -by_noise @ self.log_x],
            ]
        )
        return float(value), gradient + away / self.width
