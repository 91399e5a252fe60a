r"""Laws predicted from features: a ridge regression of all points' contributions, in closed form.

For a learner that minimises a smooth loss, theory says on what a contribution depends. With the
error $r$ of a linear model of the target at the point, its leverage $h = x^\top\Sigma^{-1}x$ and
the variance $w$ of its label, to second order

$$\psi_k \approx \frac{1}{k}\,t^\top (r \otimes x) +
  \frac{1}{k^2}\left(a\,w\,h - b\,|r|^2 h\right),$$

as in the paper's theorem for least squares, where the bracket is $(2s^2 - e^2)\,h$. So the
coefficients of a series law are regressed on $\phi = (r \otimes x,\ |r|\sqrt h,\ |r|^2 h,\ w h)$,
the last three by class, or on these and its levels, the class, $|r|$, $|r|^2$, $h$ and $w$. Errors
are those of models as small as the training sets that the contributions come from
(`apiece.estimators._small_models`), at two sizes:

$$u_i = \Theta^\top\phi_i + s_i v_i, \qquad v_i \sim \mathcal{N}(0, S), \qquad
  \mathrm{vec}\,\Theta \sim \mathcal{N}(0, \lambda^{-1} I \otimes T),$$

with each point's unit $s_i$ and the population's $S$ from a fit without features. A point's law is
predicted without its fold; $\lambda$, whether levels are looked at, and how much the gradient
counts relative to the rest, are those that predict the held-out folds best.

Reference: Covert et al. (ICML 2024), theorems of appendix A.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import FloatArray, IntArray, Places
from apiece.estimators._features import as_features, as_more, as_target
from apiece.estimators._reader import Inputs, blank, with_more
from apiece.estimators._small_models import predict_with_small_models
from apiece.laws import Laws
from apiece.laws.sizes import middle
from apiece.records import Contributions

_FOLDS: Final = 5
_PENALTIES: Final = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
_WIDEST: Final = 300  # directions of r x x that are kept
_GRADIENT: Final = (1.0, 5.0)  # length of the gradient relative to that of the rest
_LEARNERS: Final = 5_000  # points that the regression learns from, at most


class _Evidence(NamedTuple):
    r"""Evidence of each point's contributions about its coefficients, ``v`` integrated out.

    The log likelihood of coefficients $m$ is $m^\top c - m^\top P m / 2$ up to a constant.
    """

    precision: FloatArray  # P, (n, p, p)
    score: FloatArray  # c, (n, p)

    def gain(self, mean: FloatArray) -> float:
        """Log likelihood of predictions, relative to zero."""
        bent = np.einsum("npq,nq->np", self.precision, mean)
        return float((mean * (self.score - bent / 2)).sum())


def predict_from_features(
    contributions: Contributions,
    plain: Laws,
    X: Any,
    y: Any,
    more: Any = None,
    kind: str | None = None,
) -> FloatArray:
    """Predict each point's curve from its features, by a regression that never saw the point.

    Parameters
    ----------
    contributions
        Table of contributions, of points that do not share their training sets.
    plain
        Laws of `Bayes` without features, of a linear family.
    X, y
        Features and labels of every point, in the order of ``contributions.ids``.
    more
        Features and labels of further points, to learn the target from.
    kind
        ``"classification"`` or ``"regression"``; see `Amortized`.

    Returns
    -------
    FloatArray
        Parameters of the family, shape ``(n_points, p)``.
    """
    family, k_ref = plain.family, middle(contributions.k_range)
    features = as_features(X, contributions.n_points)
    target = as_target(y, contributions.n_points, kind)
    usable = np.flatnonzero(plain.has_law & (plain.sigma > 0))
    learners = usable[:: 1 + max(len(usable) - 1, 0) // _LEARNERS]
    fold = np.full(contributions.n_points, -1)
    fold[learners] = stream(0).permutation(len(learners)) % _FOLDS
    all_points = with_more(features, target.codes, as_more(more, features, target))
    reader = blank(*all_points, target.classes)
    ends = [int(np.sqrt(k_ref * end)) for end in contributions.k_range]
    small = predict_with_small_models(reader, *all_points, len(features), ends)
    inputs = [reader.inputs(features, target.codes, output) for output in small.outputs]
    evidence = _evidence(contributions.of(Places(learners)), plain, learners, k_ref)
    prior, _ = family.priors(k_ref)
    scale = prior * np.median(plain.sigma[learners] ** 2) * k_ref ** -_beta(plain)
    best, lift = -np.inf, np.zeros((len(features), len(family.parameters)))
    for phi in _regressors(inputs, small.x):
        predicted, gain = _cross_fitted(phi, evidence, learners, fold, scale)
        if gain > best:
            best, lift = gain, predicted
    return family.from_local(lift * family.scales(np.ones(1), k_ref), k_ref)


def _beta(plain: Laws) -> float:
    return float(np.nanmedian(plain.beta))


def _evidence(sample: Contributions, plain: Laws, learners: IntArray, k_ref: float) -> _Evidence:
    """Sum up the contributions of the points to learn from."""
    moments, beta = sample.moments(), _beta(plain)
    x = np.where(moments.n > 0, moments.k / k_ref, 1.0)
    variance = plain.sigma[learners] ** 2 * k_ref**-beta
    weight = moments.n * x**beta / variance[:, None]
    terms = plain.family.prior_basis(k_ref).columns(x, 0)
    weighted = weight[..., None] * terms
    information = np.einsum("nmp,nmq->npq", weighted, terms)
    score = np.einsum("nmp,nm->np", weighted, moments.mean)
    scatter = np.asarray(plain.diagnostics["population"]["covariance"]) * variance[:, None, None]
    blunt = np.linalg.inv(np.eye(scatter.shape[1]) + information @ scatter)
    return _Evidence(blunt @ information, np.einsum("npq,nq->np", blunt, score))


def _regressors(inputs: list[Inputs], x: FloatArray) -> list[FloatArray]:
    """Return what laws may be regressed on, ``(n, q)`` each: theory alone, and with levels.

    Parameters
    ----------
    inputs
        Predictions of models of each size for the points.
    x
        Features and a constant as the models see them, shape ``(n, d + 1)``.
    """
    parts = []
    for seen in inputs:
        length, leverage = seen.size / seen.root, seen.root**2
        error = seen.direction * length[:, None]
        gradient = (error[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        by_class = np.eye(int(seen.label.max()) + 1)[seen.label]
        effect = np.stack([seen.size, seen.size**2, seen.bend], axis=1)
        effects = (by_class[:, :, None] * effect[:, None, :]).reshape(len(x), -1)
        effects /= np.sqrt((effects**2).mean(axis=0)) + 1e-300
        level = np.stack([length, length**2, leverage, seen.bend / leverage], axis=1)
        level = (level - level.mean(axis=0)) / (level.std(axis=0) + 1e-300)
        parts.append((gradient, _unit(effects), _unit(np.column_stack([by_class, level]))))
    gradient, effects, levels = (np.column_stack(part) for part in zip(*parts, strict=True))
    gradient = _unit(_longest(gradient))
    return [
        np.column_stack([length * gradient, _unit(rest)])
        for rest in (effects, np.column_stack([effects, levels]))
        for length in _GRADIENT
    ]


def _longest(columns: FloatArray) -> FloatArray:
    """Return the directions along which rows differ most, if there are many columns."""
    if columns.shape[1] <= _WIDEST:
        return columns
    sample = columns[:: 1 + len(columns) // _LEARNERS]
    values, vectors = np.linalg.eigh(sample @ sample.T)
    keep = values > 1e-9 * values[-1]
    lift = sample.T @ (vectors / np.sqrt(values.clip(1e-300)))[:, keep][:, -_WIDEST:]
    return np.asarray(columns @ lift)


def _unit(columns: FloatArray) -> FloatArray:
    """Bring rows to a mean squared length of one."""
    return np.asarray(columns / (np.sqrt((columns**2).sum(axis=1).mean()) + 1e-300))


def _cross_fitted(
    phi: FloatArray, evidence: _Evidence, learners: IntArray, fold: IntArray, scale: FloatArray
) -> tuple[FloatArray, float]:
    """Return predictions of the best penalty, ``(n, p)``, each made without the point's fold."""
    q, p = phi.shape[1], len(scale)
    phi_of_learners = phi[learners]
    normal, score = np.empty((_FOLDS, q * p, q * p)), np.empty((_FOLDS, q * p))
    for part in range(_FOLDS):
        rows = fold[learners] == part
        blocks = [
            [
                (phi_of_learners[rows] * evidence.precision[rows, a, b, None]).T
                @ phi_of_learners[rows]
                for b in range(p)
            ]
            for a in range(p)
        ]
        normal[part] = np.block(blocks)
        score[part] = (evidence.score[rows].T @ phi_of_learners[rows]).ravel()
    all_folds, total = normal.sum(axis=0), score.sum(axis=0)
    inverse = np.kron(np.linalg.inv(scale), np.eye(q))
    best, lift = -np.inf, np.zeros((len(phi), p))
    for penalty in _PENALTIES:
        theta = np.stack(
            [
                np.linalg.solve(all_folds - normal[part] + penalty * inverse, total - score[part])
                for part in range(_FOLDS)
            ]
        ).reshape(_FOLDS, p, q)
        predicted = phi @ theta.mean(axis=0).T  # points that no fold has
        for part in range(_FOLDS):
            predicted[fold == part] = phi[fold == part] @ theta[part].T
        gain = evidence.gain(predicted[learners])
        if gain > best:
            best, lift = gain, predicted
    return lift, best
