r"""How far to trust what theory predicts of each point, learned from all contributions.

Theory (`apiece.engines.Surrogate`) gives a prediction of $\psi_k$ for each point, in units of the
surrogate's loss, and seven further quantities that a correction may be made of. The factor $b(k)$
by which first-order theory explains the noise of contributions turns it into the units of the
contributions. What is learned are the corrections: with the terms $T_j$,

$$\psi_k(z) \approx b(k)\,T_0(z, k)
  + k^{-2} \sum_j \left(\beta_j + \gamma_j \log\tfrac{k}{k_0}\right) k^2\,T_j(z, k), \qquad
  \beta_j, \gamma_j \sim \mathcal{N}(0, \tau^2 / \overline{T_j^2}),$$

and a constant among the $k^2 T_j$. The width $\tau$ maximises the evidence. Points that share a
training set share noise, so contributions count for less than their number: the spread of the
scores over tasks says how much less. Where points were valued rarely because their place was
settled, a contribution counts one over its chance to be drawn: corrections are for all points, not
for those of the focus. What is not known of the corrections is common to all points,
and part of every interval.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple, Protocol

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.estimators._shared_noise import Scores
from apiece.laws import Laws, Series
from apiece.records import Contributions, Table, Theory

NOISE_DECAY: Final = 1.5  # noise falls about as k^-1.5
_SIGNAL: Final = 2.0  # expected contributions fall about as k^-2
_LEAST_SCALE: Final = 0.1  # least scale over the median: quiet points do not decide alone
_BEYOND: Final = 0.3  # weight of sizes beyond those that were sampled
_STEPS: Final = 200
_TINY: Final = 1e-300


class Corrections(NamedTuple):
    """Weights of the correction, two for each term, and what is not known of them."""

    mean: FloatArray  # shape (2 n_terms + 2,)
    cov: FloatArray


class Adjustment(Protocol):
    """What was learned from contributions before the corrections of theory."""

    @property
    def k_0(self) -> float:
        """The middle of the sampled sizes."""

    def factor_at(self, k: AnyArray) -> FloatArray:
        """Return the factor of first-order theory at some sizes."""

    def worth(self, part: Contributions) -> FloatArray:
        """Return how many contributions each one counts for, given the noise of rows.

        Of a table by chance (`Contributions.by_chance`) as if all points had been valued.
        """

    def less_control(self, part: Contributions) -> FloatArray:
        """Return contributions without the noise that is known."""


def expected_laws(table: Table) -> Laws | None:
    """Return the laws that theory expects of the points, or None if it predicts nothing."""
    theory: Theory | None = getattr(table, "theory", None)
    if theory is None or theory.terms.shape[2] != 1:
        return None
    family, sizes = Series(), theory.sizes
    # Sizes beyond those that were sampled hold the curve there, and matter less.
    unit = sizes**_SIGNAL * np.where(sizes > table.k_range[1], _BEYOND, 1.0)
    basis = family.basis(sizes) * unit[:, None]
    scale = np.abs(basis).max(axis=0)
    target = (theory.terms[:, :, 0] * unit).T
    params = (np.linalg.lstsq(basis / scale, target, rcond=None)[0] / scale[:, None]).T
    return Laws.from_arrays(
        family=family,
        params=params,
        ids=table.ids,
        k_range=table.k_range,
        attrs={"estimator": "theory"},
    )


def with_row_noise(laws: Laws, theory: Theory | None) -> Laws:
    """Return laws whose intervals allow for the rows that the table happens to hold.

    Contributions of one table agree with each other, and theory with them, where another table
    would say something else. What that adds to the uncertainty of the curve at the sizes of the
    theory is brought to the law's coordinates by least squares.
    """
    if theory is None or theory.row_noise is None or laws.cov is None:
        return laws
    slopes = laws.family.gradient(laws.params, theory.sizes, laws.k_ref)
    known = np.isfinite(slopes).all(axis=(1, 2)) & np.isfinite(laws.cov).all(axis=(1, 2))
    unit = theory.sizes**_SIGNAL
    solve = np.linalg.pinv(slopes[known] * unit[:, None]) * unit
    cov = laws.cov.copy()
    cov[known] += solve @ theory.row_noise[known] @ solve.swapaxes(1, 2)
    return replace(laws, cov=cov)


def corrected(theory: Theory, factor: FloatArray, weights: Corrections, k_0: float) -> Theory:
    """Return the expected contributions of all points as the only term, and their noise.

    Parameters
    ----------
    theory
        The prediction and the terms of its correction.
    factor
        That turns predictions into the units of the contributions, shape ``(n_sizes,)``.
    weights
        Of the correction, from `theory_weights`.
    k_0
        The size at which corrections have no logarithm.
    """
    terms = _regressors(theory.terms, theory.sizes, k_0) / theory.sizes[:, None] ** _SIGNAL
    psi = factor * theory.terms[:, :, 0] + terms @ weights.mean
    noise = None
    if theory.row_noise is not None:
        noise = theory.row_noise * factor[:, None] * factor
        noise = noise + terms @ weights.cov @ terms.swapaxes(1, 2)
    return Theory(theory.sizes, psi[:, :, None], noise)


def theory_weights(table: Table, known: Adjustment) -> Corrections | None:
    """Learn the corrections to theory; None if theory predicts nothing."""
    parts = [
        part
        for part in table.parts()
        if part.theory is not None and part.theory.terms.shape[2] and len(part)
    ]
    if not parts:
        return None
    scales = [_scale(part, known.less_control(part)) for part in parts]
    least = _LEAST_SCALE * float(np.median(np.concatenate(scales)))

    def rows(number: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return regressors, target and worth of the contributions of a part."""
        part, scale = parts[number], np.maximum(scales[number], max(least, _TINY))
        weight = part.k**NOISE_DECAY / scale[part.point]
        predicted, regressors = _interpolated(part, known)
        target = known.less_control(part) - predicted
        worth = known.worth(part.by_chance())
        return (weight / part.k**_SIGNAL)[:, None] * regressors, weight * target, worth

    p = len(rows(0)[0].T)
    gram, moment = np.zeros((p, p)), np.zeros(p)
    for number in range(len(parts)):
        X, y, worth = rows(number)
        gram += (worth[:, None] * X).T @ X
        moment += (worth * y) @ X
    size = np.sqrt(np.maximum(np.diag(gram), _TINY))
    gram, moment = gram / size[:, None] / size, moment / size
    ridge = 1e-6 * np.eye(p)
    free = np.linalg.solve(gram + ridge, moment)

    scores = Scores(p)
    for number, part in enumerate(parts):
        X, y, worth = rows(number)
        scores.add(X / size * (worth * (y - X / size @ free))[:, None], part.task, part.active)
    spread = scores.noise_of_sum()
    noise = float(np.trace(np.linalg.solve(gram + ridge, spread))) / p
    mean, cov = _shrunk(gram, moment, noise)
    return Corrections(mean / size, cov / size[:, None] / size)


def _shrunk(gram: FloatArray, moment: FloatArray, noise: float) -> Corrections:
    r"""Return the posterior of the weights of columns of unit length, by evidence.

    $\tau^2 \leftarrow (\lVert\beta\rVert^2 + \mathrm{tr}\,\Sigma) / p$ with
    $\Sigma = (G/s^2 + I/\tau^2)^{-1}$, until it stands still.
    """
    if noise <= 0:
        return Corrections(np.zeros(len(moment)), np.zeros(gram.shape))
    values, vectors = np.linalg.eigh(gram / noise)
    values, turned = np.maximum(values, 0.0), vectors.T @ moment / noise
    tau2 = max(float((turned**2).mean() / max(values.max(), _TINY) ** 2), _TINY)
    for _ in range(_STEPS):
        spread = 1 / (values + 1 / tau2)
        before, tau2 = tau2, max(float(((spread * turned) ** 2 + spread).mean()), _TINY)
        if abs(tau2 - before) < 1e-6 * tau2:
            break
    spread = 1 / (values + 1 / tau2)
    return Corrections(vectors @ (spread * turned), (vectors * spread) @ vectors.T)


def _scale(part: Contributions, delta: FloatArray) -> FloatArray:
    """Return the root mean square of each point's contributions, brought to one size."""
    square = np.bincount(part.point, (delta * part.k**NOISE_DECAY) ** 2, part.n_points)
    return np.sqrt(square / np.maximum(part.counts(), 1))


def _regressors(terms: FloatArray, sizes: FloatArray, k_0: float) -> FloatArray:
    r"""Return terms and 1, in units of $k^{-2}$, and the same times $\log(k/k_0)$."""
    ones = np.ones((*terms.shape[:2], 1))
    scaled = np.concatenate([terms * sizes[None, :, None] ** _SIGNAL, ones], axis=2)
    return np.concatenate([scaled, scaled * np.log(sizes / k_0)[None, :, None]], axis=2)


def _interpolated(part: Contributions, known: Adjustment) -> tuple[FloatArray, FloatArray]:
    """Return prediction and regressors of each contribution, between the sizes of the theory."""
    theory = part.theory
    if theory is None:
        raise ValueError("the contributions come without theory: expected its terms")
    grid = _regressors(theory.terms, theory.sizes, known.k_0)
    log_k, log_sizes = np.log(part.k), np.log(theory.sizes)
    if len(log_sizes) == 1:
        found = np.asarray(grid[part.point, 0])
    else:
        place = np.clip(np.searchsorted(log_sizes, log_k) - 1, 0, len(log_sizes) - 2)
        share = (log_k - log_sizes[place]) / (log_sizes[place + 1] - log_sizes[place])
        low, high = grid[part.point, place], grid[part.point, place + 1]
        found = np.asarray(low + share[:, None] * (high - low))
    return known.factor_at(part.k) * found[:, 0] / part.k**_SIGNAL, found
