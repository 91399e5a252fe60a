r"""How doubtful the target of a row is to models that have not seen it.

For classes, labels are wrong at a rate $\rho$, in favour of any of the other $C - 1$ classes. The
rate is the share of labels that differ from the prediction among the rows whose prediction is
surest (anchors; Liu and Tao, 2016, Patrini et al., 2017). Where that is zero within its error, no
label is doubted: a rare class, or a region where classes overlap, is no evidence of wrong labels.
Rows are ranked by the logarithm of how much likelier another label is, and that is the smaller of
two: by the probabilities, and by the probabilities over the base rates of the classes (a likelihood
ratio), so that no label is doubted for being rare.

For quantities, residuals are a mixture of Student's distribution with a scale that depends on the
prediction, and of values that have nothing to do with the row, drawn from all targets.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.stats import norm, t

from apiece._base.typing import FloatArray, IntArray

_SUREST: Final = (0.1, 0.2, 0.3)  # shares of each predicted class that are anchors
_FEWEST: Final = 20  # anchors
_TINY: Final = 1e-4  # a model that is sure and wrong does not decide alone
_DF: Final = 3.0  # of residuals: heavy tails are no evidence of wrong values
_STEPS: Final = 50
_WINDOW: Final = 0.1  # share of the rows whose residuals give the scale at a prediction


def noise_rate(proba: FloatArray, labels: IntArray) -> tuple[float, float]:
    """Return the share of wrong labels, and its lower bound (less one standard error).

    Parameters
    ----------
    proba
        Probabilities of the classes by models that have not seen the row, ``(n, n_classes)``.
    labels
        Class codes at hand, shape ``(n,)``.
    """
    predicted, sure = proba.argmax(axis=1), proba.max(axis=1)
    differs = predicted != labels
    place = np.empty(len(labels))  # from the surest of a predicted class (0) to the least sure (1)
    for label in np.unique(predicted):
        rows = np.flatnonzero(predicted == label)
        rows = rows[np.argsort(-sure[rows], kind="stable")]
        place[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
    rates = []
    for share in _SUREST:
        anchors = differs[place <= share]
        if len(anchors) >= _FEWEST:
            rate = float(anchors.mean())
            rates.append((rate, rate - np.sqrt(rate * (1 - rate) / len(anchors))))
    rate, low = min(rates, default=(0.0, 0.0))
    most = 0.9 * (proba.shape[1] - 1) / proba.shape[1]
    return min(rate, most), float(np.clip(low, 0.0, most))


def label_doubt(proba: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
    """Return how much likelier the best other label is, as a logarithm, and that label.

    Parameters
    ----------
    proba, labels
        As in `noise_rate`.
    """
    rows = np.arange(len(labels))
    log = np.log(np.maximum(proba, _TINY))
    base = np.log(np.maximum(np.bincount(labels, minlength=proba.shape[1]) / len(labels), _TINY))
    other = log.copy()
    other[rows, labels] = -np.inf
    to = other.argmax(axis=1)
    ratio = log[rows, to] - log[rows, labels]
    return np.minimum(ratio, ratio - base[to] + base[labels]), to


def value_posterior(predicted: FloatArray, values: FloatArray) -> FloatArray:
    """Return how probable it is that each value has nothing to do with its row, shape ``(n,)``.

    Parameters
    ----------
    predicted
        Predictions by models that have not seen the row, shape ``(n,)``.
    values
        Targets at hand, shape ``(n,)``.
    """
    residual = values - predicted
    residual = residual - np.median(residual)
    scale = _scale(predicted, np.abs(residual))
    spread = values.std()
    if not spread > 0:
        return np.zeros(len(values))
    right = t.pdf(residual / scale, _DF) / scale
    stray = norm.pdf((values - values.mean()) / spread) / spread
    rate = 0.05
    for _ in range(_STEPS):
        wrong = rate * stray / (rate * stray + (1 - rate) * right)
        rate = min(float(wrong.mean()), 0.4)
    rate = max(0.0, rate - np.sqrt(rate * (1 - rate) / len(values)))
    return np.asarray(rate * stray / (rate * stray + (1 - rate) * right))


def _scale(predicted: FloatArray, size: FloatArray) -> FloatArray:
    """Return the robust scale of residuals around each prediction, shape ``(n,)``."""
    from scipy.ndimage import median_filter

    order = np.argsort(predicted, kind="stable")
    window = max(15, round(_WINDOW * len(size)))
    local = np.empty(len(size))
    local[order] = median_filter(size[order], size=window, mode="nearest")
    overall = np.median(size)
    tiny = 1e-9 * max(float(size.max()), 1.0)
    # t with 3 degrees of freedom has its upper quartile at 0.765.
    return np.asarray(np.maximum(np.maximum(local, 0.5 * overall), tiny) / t.ppf(0.75, _DF))
