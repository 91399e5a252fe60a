r"""Maximum likelihood for families of any curves: Levenberg-Marquardt for all points at once.

For given decay $\beta$ of the noise a law is fitted by least squares with weights
$w = n x^\beta$; shape coordinates have the family's normal prior of precision $P$:

$$f(\theta) = \frac{m}{2}\log Q + \frac12 (s - s_0)^\top P (s - s_0), \qquad
  Q = \sum x^\beta\left(M + n(\bar\Delta - \psi(\theta))^2\right).$$

The search starts at the best shape of the family's grid. The decay is then that of the family's
tangents at the law, which are a linear family (`apiece.estimators._linear_fit`), and the law is
fitted again.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from apiece._base.batched import CONVERGED, RUNNING, solve
from apiece._base.typing import BoolArray, FloatArray, IntArray
from apiece.estimators._linear_fit import LinearFit, evaluate, fit_linear
from apiece.laws import FamilyBasis
from apiece.laws.student import normal_width_factor
from apiece.records import Moments

_ROUNDS: Final = 2  # of decay and law
_STEPS: Final = 100
_TOLERANCE: Final = 1e-13  # relative change of the objective at which a law is done


def fit_curves(
    moments: Moments, basis: FamilyBasis, *, typical: float, upper: float, has_prior: bool
) -> LinearFit:
    """Fit every point; ``beta`` lies in ``[0, upper]`` and is shrunk towards ``typical``.

    Parameters
    ----------
    moments
        Moments of ``n`` points.
    basis
        The family's curves by shape.
    has_prior
        Whether shape coordinates have the family's prior.

    Returns
    -------
    LinearFit
        With all ``p`` local coordinates as ``u``.
    """
    priors = list(basis.family.shapes.values())
    precision = np.array([has_prior / prior.spread**2 for prior in priors])
    x = np.where(moments.n > 0, moments.k / basis.k_ref, 1.0)
    beta = np.full(len(x), typical)
    search = _Search(moments, basis, x, precision)
    local = search.start(beta)
    for _ in range(_ROUNDS):
        local = search.descend(local, beta)
        slopes = basis.family.slopes(local, x, basis.k_ref)
        tangent = np.einsum("nmp,np->nm", slopes, local)
        straight = replace(moments, mean=moments.mean - search.curve(local) + tangent)
        beta = fit_linear(straight, slopes, basis.k_ref, typical=typical, upper=upper).beta
    local = search.descend(local, beta)
    return search.summary(local, beta)


class _Search:
    """The objective of all points, and its minimum."""

    def __init__(
        self, moments: Moments, basis: FamilyBasis, x: FloatArray, precision: FloatArray
    ) -> None:
        self.moments, self.basis, self.x = moments, basis, x
        self.total = moments.n.sum(axis=1)
        family = basis.family
        free = np.zeros(family.n_linear)
        self.precision = np.concatenate([free, precision])
        self.typical = np.concatenate([free, basis.typical])
        priors = family.shapes.values()
        self.low = np.concatenate([free - np.inf, [prior.low for prior in priors]])
        self.high = np.concatenate([free + np.inf, [prior.high for prior in priors]])

    def __getitem__(self, rows: BoolArray) -> _Search:
        some = copy(self)
        some.moments, some.x, some.total = self.moments.block(rows), self.x[rows], self.total[rows]
        return some

    def curve(self, local: FloatArray) -> FloatArray:
        """Evaluate the laws at the points' sizes, ``(n, m)``."""
        family, k_ref = self.basis.family, self.basis.k_ref
        return family.curve(family.from_local(local, k_ref)[:, None, :], k_ref * self.x)

    def square(self, local: FloatArray, beta: FloatArray) -> FloatArray:
        """Return the weighted residual sum of squares, ``(n,)``."""
        residual = self.moments.mean - self.curve(local)
        noise = self.x ** beta[:, None]
        return np.asarray((noise * (self.moments.m2 + self.moments.n * residual**2)).sum(axis=1))

    def objective(self, local: FloatArray, beta: FloatArray) -> FloatArray:
        """Return what is minimised, ``(n,)``."""
        before = (self.precision * (local - self.typical) ** 2).sum(axis=1) / 2
        floor = 1e-24 * self.square(np.zeros_like(local) + self.typical, beta)
        return np.asarray(self.total / 2 * np.log(self.square(local, beta) + floor) + before)

    def start(self, beta: FloatArray) -> FloatArray:
        """Return the best coordinates among the shapes of the grid, ``(n, p)``."""
        n_linear, lowest = self.basis.family.n_linear, np.full(len(self.x), np.inf)
        best = np.tile(self.typical, (len(self.x), 1))
        for shape, node in enumerate(self.basis.nodes):
            at = evaluate(self.moments, self.x, self.basis.columns(self.x, shape), beta)
            off = node - self.basis.typical
            f = at.f + (self.precision[n_linear:] * off**2).sum() / 2
            is_better = f < lowest
            lowest = np.where(is_better, f, lowest)
            best[is_better, :n_linear], best[is_better, n_linear:] = at.u[is_better], node
        return best

    def information(self, local: FloatArray, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the normal matrix of the data and the score, for noise of variance one."""
        slopes = self.basis.family.slopes(local, self.x, self.basis.k_ref)
        weighted = (self.moments.n * self.x ** beta[:, None])[..., None] * slopes
        residual = self.moments.mean - self.curve(local)
        normal = np.einsum("nmp,nmq->npq", weighted, slopes)
        return normal, np.einsum("nmp,nm->np", weighted, residual)

    def descend(self, local: FloatArray, beta: FloatArray) -> FloatArray:
        """Follow the objective downhill, ``(n, p)``."""
        start = _Iterate(local, self.objective(local, beta), np.full(len(local), 1e-3))
        end, _, _ = solve(_damped_step, start, _Rows(self, beta), max_steps=_STEPS)
        return end.local

    def summary(self, local: FloatArray, beta: FloatArray) -> LinearFit:
        """Return the laws with their covariances, for noise of variance one."""
        p = local.shape[1]
        q = self.square(local, beta)
        df = np.maximum(self.total - p - 1, 1.0)
        variance = np.maximum(q / np.maximum(self.total - p, 1.0), 1e-300)
        normal, _ = self.information(local, beta)
        known = self.precision * (variance / normal_width_factor(df))[:, None]
        normal[:, np.arange(p), np.arange(p)] += known
        size = np.sqrt(np.maximum(np.einsum("naa->na", normal), 1e-300))
        values, vectors = np.linalg.eigh(normal / size[:, :, None] / size[:, None, :])
        is_sound = values[:, 0] > 1e-11 * values[:, -1]
        inverse = 1 / np.where(is_sound[:, None], values, 1.0)
        cov = np.einsum("npa,na,nqa->npq", vectors, inverse, vectors)
        cov = cov / size[:, :, None] / size[:, None, :]
        cov[~is_sound] = np.nan
        around_zero = self.moments.m2 + self.moments.n * self.moments.mean**2
        q_total = (self.x ** beta[:, None] * around_zero).sum(axis=1)
        return LinearFit(local, cov, beta, q, q_total, np.full(len(local), float(p)), q)


class _Iterate(NamedTuple):
    """Local coordinates of each law, the objective there, and the damping of the next step."""

    local: FloatArray
    f: FloatArray
    damping: FloatArray


class _Rows(NamedTuple):
    search: _Search
    beta: FloatArray


def _damped_step(now: _Iterate, rows: _Rows) -> tuple[_Iterate, IntArray]:
    """Take a step of Levenberg and Marquardt where it leads downhill."""
    (local, f, damping), (search, beta) = now, rows
    variance = np.maximum(search.square(local, beta) / np.maximum(search.total, 1), 1e-300)
    normal, score = search.information(local, beta)
    normal = normal / variance[:, None, None]
    diagonal = np.arange(local.shape[1])
    normal[:, diagonal, diagonal] += search.precision
    score = score / variance[:, None] + search.precision * (search.typical - local)
    size = np.sqrt(np.maximum(normal[:, diagonal, diagonal], 1e-300))
    # A coordinate that a bound holds is left out, so that the others take their own best step.
    held = ((local <= search.low) & (score < 0)) | ((local >= search.high) & (score > 0))
    scaled = normal / size[:, :, None] / size[:, None, :]
    scaled[held[:, :, None] | held[:, None, :]] = 0.0
    scaled[:, diagonal, diagonal] = 1 + damping[:, None]
    score = np.where(held, 0.0, score / size)
    step = np.linalg.solve(scaled, score[..., None])[..., 0] / size
    trial = np.clip(local + step, search.low, search.high)
    f_trial = search.objective(trial, beta)
    is_better = f_trial <= f
    gain = np.where(is_better, f - f_trial, 0.0)
    local = np.where(is_better[:, None], trial, local)
    f = np.where(is_better, f_trial, f)
    damping = np.clip(np.where(is_better, damping / 10, damping * 10), 1e-9, 1e9)
    is_done = (is_better & (gain <= _TOLERANCE * (1 + np.abs(f)))) | (damping >= 1e9)
    return _Iterate(local, f, damping), np.where(is_done, CONVERGED, RUNNING)
