r"""How probable it is that the target of a row is wrong, to models that have not seen the row.

For classes, a share $\rho$ of the labels is wrong, in favour of any of the other $C - 1$ classes.
Models that were trained without the row give probabilities $p_c$. The given labels then have

$$P(y \mid x) = \frac{\rho}{C - 1} + \Bigl(1 - \frac{\rho C}{C - 1}\Bigr) q_y(x), \qquad
  q_c \propto e^{b_c} p_c^{\,a},$$

and $a$, $b$ and $\rho$ are those that make them likeliest. Where classes merely overlap, sure
predictions become right as they become surer, and $\rho = 0$ explains the labels as well; wrong
labels hold the share of right predictions below one. So the likelihood ratio against $\rho = 0$ is
the evidence of wrong labels. Models that are sure without reason find wrong labels where there are
none, so the share that a mixture of models finds is lowered until the likelihood of the steadiest
of them, a linear model, does not speak against it. Where its classes overlap so much that it cannot
know, it has no say. A label is wrong with the posterior probability that follows. It is doubted
only if the features speak against it too: if another class has the larger likelihood, whatever the
base rates are.

Classes that overlap and labels that are wrong can make the same table, so the labels alone cannot
tell them apart. Rows with right labels can: their labels follow $q$ itself, $\rho = 0$. Their
classes may be somewhat more or less frequent than those of the others, $b_c + s_c$ with
$s_c \sim \mathcal{N}(0, 1)$.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import log_softmax

from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray

EVIDENCE: Final = 2.7  # twice a logarithm of likelihoods, which chance exceeds in 5 of 100 tables
_REJECTED: Final = 4.0  # the same for a share that is too large: two standard errors
_HALVINGS: Final = 7
_TINY: Final = 1e-4  # a model that is sure and wrong does not decide alone
_STARTS: Final = (0.03, 0.2)  # rates from which the likeliest is searched


class Rate(NamedTuple):
    """Share of wrong labels.

    Attributes
    ----------
    likeliest
        The share that makes the labels likeliest.
    careful
        A standard error less, for what must not be too much.
    sure
        Standard errors between the share and none.
    """

    likeliest: float
    careful: float
    sure: float


class Suspicion(NamedTuple):
    """How probably each target is wrong.

    Attributes
    ----------
    wrong
        Probability that the target is wrong, shape ``(n,)``.
    to
        What it should rather be, shape ``(n,)``.
    rate
        Share of wrong targets.
    """

    wrong: FloatArray
    to: AnyArray
    rate: Rate


def rate_of_wrong(
    probas: tuple[FloatArray, FloatArray], labels: IntArray, is_trusted: BoolArray
) -> Rate:
    r"""Return the share of wrong labels.

    Evidence $E$ is twice the logarithm of a ratio of likelihoods, so a share is about $\sqrt E$
    standard errors above none, and $1 - 1 / \sqrt E$ of it is left a standard error lower. Nothing
    is wrong where chance could have made the evidence of every model.

    Parameters
    ----------
    probas
        Probabilities of the classes, shape ``(n, n_classes)``, by the model whose share is taken,
        and by a steadier one, which limits the share to what is at most two standard errors above
        its own, and which may add to the evidence.
    labels
        Given class codes, shape ``(n,)``.
    is_trusted
        Which labels are right for certain, shape ``(n,)``.
    """
    first, second = (_Profile.of(_Rows.of(proba, labels, is_trusted)) for proba in probas)
    if max(first.evidence, second.evidence) < EVIDENCE:
        return Rate(0.0, 0.0, 0.0)
    likeliest = second.at_most(first.likeliest)
    evidence = max(first.evidence, (first.evidence + second.evidence) / 2)
    sure = float(np.sqrt(max(evidence, 1.0)))
    return Rate(likeliest, likeliest * (1 - 1 / sure), sure)


def suspect_labels(
    proba: FloatArray, labels: IntArray, is_trusted: BoolArray, rate: Rate
) -> Suspicion:
    """Return how probably each label is wrong, with a careful share of wrong ones.

    Parameters
    ----------
    proba
        Probabilities of the classes by models that have not seen the row, ``(n, n_classes)``.
    labels
        Given class codes, shape ``(n,)``.
    is_trusted
        Which labels are right for certain, shape ``(n,)``: these are never wrong.
    rate
        Share of wrong labels among the others.
    """
    rows = _Rows.of(proba, labels, is_trusted)
    right = np.exp(rows.log_right(_calibrated(rows, rate.careful).x))
    wrong, to = _posterior(right, labels, rate.careful)
    return Suspicion(np.where(is_trusted, 0.0, wrong), to, rate)


class _Rows(NamedTuple):
    """Given labels, and what models that have not seen the rows predict."""

    log: FloatArray  # logarithms of probabilities, (n, n_classes)
    labels: IntArray
    is_trusted: BoolArray

    @classmethod
    def of(cls, proba: FloatArray, labels: IntArray, is_trusted: BoolArray) -> _Rows:
        return cls(np.log(np.clip(proba, _TINY, 1.0)), labels, is_trusted)

    def log_right(self, theta: FloatArray) -> FloatArray:
        """Return logarithms of the probabilities of the right classes, ``(n, n_classes)``."""
        n_classes = self.log.shape[1]
        shift = self.is_trusted[:, None] * theta[1 + n_classes : 1 + 2 * n_classes]
        score = np.exp(theta[0]) * self.log + theta[1 : 1 + n_classes] + shift
        return np.asarray(log_softmax(score, axis=1))


class _Profile(NamedTuple):
    """Likelihood of shares of wrong labels."""

    rows: _Rows
    likeliest: float
    best: float  # least sum of negative logarithms
    evidence: float  # twice how much larger that is without wrong labels

    @classmethod
    def of(cls, rows: _Rows) -> _Profile:
        plain = _calibrated(rows, 0.0)
        fits = [_calibrated(rows, None, (*plain.x, start)) for start in _STARTS]
        best = min(fits, key=lambda fit: fit.fun)
        rate = _rate_of(best.x[-1], rows.log.shape[1])
        return cls(rows, rate, float(best.fun), float(2 * (plain.fun - best.fun)))

    def at_most(self, rate: float) -> float:
        """Return a share, lowered to where it is not too large for these predictions."""
        low, high = min(self.likeliest, rate), rate
        if self._is_possible(high):
            return high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._is_possible(middle) else (low, middle)
        return low

    def _is_possible(self, rate: float) -> bool:
        if rate <= self.likeliest:
            return True
        return float(2 * (_calibrated(self.rows, rate).fun - self.best)) < _REJECTED


def _rate_of(free: float, n_classes: int) -> float:
    """Return the share of wrong labels, below that of guessing, from a number without bounds."""
    return float(0.9 * (n_classes - 1) / n_classes / (1 + np.exp(-free)))


def _calibrated(rows: _Rows, rate: float | None, start: Any = None) -> Any:
    """Return the likeliest ``log a``, ``b`` and ``s``, and the rate unless it is given.

    ``start`` holds the parameters and the rate where the search begins.
    """
    from scipy.optimize import minimize

    n_classes, labels, each = rows.log.shape[1], rows.labels, np.arange(len(rows.log))
    n_theta = 1 + 2 * n_classes
    most = 0.9 * (n_classes - 1) / n_classes

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        share = _rate_of(theta[-1], n_classes) if rate is None else rate
        other = np.where(rows.is_trusted, 0.0, share / (n_classes - 1))
        right = np.exp(rows.log_right(theta))
        own = right[each, labels]
        seen = np.maximum(other + (1 - other * n_classes) * own, 1e-12)
        slope = -(1 - other * n_classes) * own / seen
        by_score = -slope[:, None] * right
        by_score[each, labels] += slope
        gradient = np.empty(len(theta))
        # A weak prior holds the calibration near that of the models.
        gradient[0] = (by_score * rows.log).sum() * np.exp(theta[0])
        gradient[1 : 1 + n_classes] = by_score.sum(axis=0)
        gradient[1 + n_classes : n_theta] = by_score[rows.is_trusted].sum(axis=0)
        gradient[:n_theta] += theta[:n_theta]
        if rate is None:
            by_rate = ((own * n_classes - 1) / seen)[~rows.is_trusted].sum() / (n_classes - 1)
            gradient[-1] = by_rate * share * (1 - share / most)
        prior = 0.5 * float(theta[:n_theta] @ theta[:n_theta])
        return float(prior - np.log(seen).sum()), gradient

    first = np.zeros(n_theta)
    if start is not None:
        *parts, share = start
        share = min(share, 0.5 * most)
        first = np.array([*parts, np.log(share / (most - share))])
    return minimize(objective, first, jac=True, method="L-BFGS-B")


def _posterior(right: FloatArray, labels: IntArray, rate: float) -> tuple[FloatArray, IntArray]:
    """Return how probably the likeliest other label is the right one, and that label."""
    rows, n_classes = np.arange(len(labels)), right.shape[1]
    other = rate / (n_classes - 1) * right
    other[rows, labels] = 0.0
    to = other.argmax(axis=1)
    total = other.sum(axis=1) + (1 - rate) * right[rows, labels]
    wrong = other[rows, to] / np.maximum(total, 1e-300)
    base = np.maximum(np.bincount(labels, minlength=n_classes) / len(labels), _TINY)
    likelihood = right / base
    return np.where(likelihood[rows, to] > likelihood[rows, labels], wrong, 0.0), to
