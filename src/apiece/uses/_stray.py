r"""How probable it is that a quantity is wrong, to models that have not seen the row.

The targets $y$ are a mixture of right and stray values. Right ones lie around a line $a + b f$ in
the predictions $f$, since models of few or noisy rows predict too narrowly or too widely. Their
residuals have Student's distribution, with a scale that depends on the prediction, and with a
factor on it, degrees of freedom and a share of their own above and below the line: long tails on
one side are no error. Stray values have nothing to do with the row, drawn from all targets as they
are distributed, or they have wide noise added. All of this, which kind of stray values there is,
and what share of all, is what makes the targets likeliest (expectation and maximisation); the
evidence is the likelihood ratio against no stray values.

Where some values are right for certain, as many of the others are expected to be stray as of these:
only what is beyond that is wrong.

A value is doubted only if it is clearly likelier as a stray one: where predictions say little, the
share of stray values alone would make all of them doubtful.

A value that many rows share, such as no income, says nothing: it is far from many predictions, and
right. Such rows are not judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.special import gammaln

from apiece._base.typing import BoolArray, FloatArray
from apiece.uses._wrong import EVIDENCE, Rate, Suspicion

_NOISE_EVIDENCE: Final = 10.8  # 1 of 1,000: tails of other shapes look like added noise
_AGAINST: Final = 3.0  # times likelier as a stray value than as a right one, to be doubted
_SHARED: Final = 0.04  # share of the rows with one value, from which on it is not judged
_FEWEST: Final = 30  # rows that can be judged
_TAILS: Final = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)  # degrees of freedom
_FIRST_TAIL: Final = 4  # the place among them where the search begins
_STARTS: Final = (0.02, 0.1)  # shares of stray values from which the likeliest is searched
_MOST: Final = 0.45  # share of stray values
_WIDE: Final = 3.0  # scales of residuals, the least that added noise is wide
_UNEVEN: Final = 0.8  # largest share of right values on one side of the line
_STEPS: Final = 80
_INNER: Final = 3  # steps of a scale within each
_TOLERANCE: Final = 1e-3  # of the log likelihood
_CENTRES: Final = 1_000  # targets, at most, around which others are expected
_WINDOW: Final = 0.1  # share of the rows whose residuals give the scale at a prediction


def suspect_values(
    predicted: FloatArray,
    values: FloatArray,
    is_trusted: BoolArray,
    rate: Rate | None = None,
) -> Suspicion:
    """Return how probably each value has nothing to do with its row.

    Parameters
    ----------
    predicted
        Predictions by models that have not seen the row, shape ``(n,)``.
    values
        Given targets, shape ``(n,)``.
    is_trusted
        Which of them are right for certain, shape ``(n,)``: they say what right values are like.
    rate
        Share of wrong values among the others if it is known; None estimates it.
    """
    none = Suspicion(np.zeros(len(values)), predicted, Rate(0.0, 0.0, 0.0))
    is_rare = _is_rare(values)
    is_judged = is_rare & ~is_trusted
    centre, spread = values.mean(), values.std()
    if not spread > 0 or is_judged.sum() < _FEWEST:
        return none
    y, f = (values - centre) / spread, (predicted - centre) / spread
    scale = _scale(f, np.abs(y - f - np.median(y - f)))
    density = np.zeros(len(y))
    density[is_rare] = _density_of_others(y[is_rare])
    data = _Rows(y[is_rare], f[is_rare], scale[is_rare], density[is_rare], is_trusted[is_rare])
    first = _Mixture.first(data)
    right = max((_fitted(each, data) for each in first.without_wrong(data)), key=_likelihood)
    found = [
        max((_fitted(each, data) for each in first.with_wrong(data, width)), key=_likelihood)
        for width in (None, _WIDE)
    ]
    evidence = [2 * (each.log_likelihood - right.log_likelihood) for each in found]
    kind = int(evidence[1] > max(evidence[0], _NOISE_EVIDENCE))
    more = evidence[kind] - (_NOISE_EVIDENCE if kind else EVIDENCE)
    if rate is None:
        share = found[kind].share_of_wrong() if more > 0 else 0.0
        rate = Rate(share, share, float(np.sqrt(max(more, 0.0))))
    wrong = np.zeros(len(values))
    wrong[is_rare] = _doubted(found[kind].wrong(data, rate.careful), rate)
    to = found[kind].line(f) * spread + centre
    return Suspicion(wrong, to, rate)


@dataclass(frozen=True)
class _Rows:
    """Targets and predictions in the targets' standard deviations, and scales of residuals."""

    y: FloatArray
    f: FloatArray
    scale: FloatArray
    density: FloatArray  # of all other targets at each one
    is_trusted: BoolArray


@dataclass(frozen=True)
class _Mixture:
    """Right and stray values; pairs are about values above and below the line."""

    start: float  # of the line at a prediction of zero
    slope: float
    above: float  # share of right values above the line
    scales: tuple[float, float]
    tails: tuple[int, int]  # places in `_TAILS`
    rate: float  # share of stray values; 0 stays
    usual: float  # the same among those that are right for certain
    is_usual: bool  # whether both are the same
    width: float | None  # of added noise, in scales; None for values drawn from all
    log_likelihood: float

    @classmethod
    def first(cls, rows: _Rows) -> _Mixture:
        """Return a start without stray values."""
        middle = float(np.median(rows.y - rows.f))
        tails = (_FIRST_TAIL, _FIRST_TAIL)
        return cls(middle, 1.0, 0.5, (1.0, 1.0), tails, 0.0, 0.0, True, None, -np.inf)

    def without_wrong(self, rows: _Rows) -> list[_Mixture]:
        """Return starts without wrong values: with stray ones only if they can be right."""
        starts = _STARTS if rows.is_trusted.any() else ()
        return [self, *(replace(self, rate=start, usual=start) for start in starts)]

    def with_wrong(self, rows: _Rows, width: float | None) -> list[_Mixture]:
        """Return starts with wrong values."""
        usual = 0.5 if rows.is_trusted.any() else 0.0
        each = [replace(self, rate=start, usual=usual * start) for start in _STARTS]
        return [replace(one, is_usual=False, width=width) for one in each]

    def share_of_wrong(self) -> float:
        """Return the share of wrong values among those that may be wrong."""
        return max(0.0, (self.rate - self.usual) / (1 - self.usual))

    def line(self, f: FloatArray) -> FloatArray:
        """Return where right values lie."""
        return self.start + self.slope * f

    def residuals(self, rows: _Rows) -> FloatArray:
        """Return residuals in scales of their prediction."""
        return np.asarray((rows.y - self.line(rows.f)) / rows.scale)

    def wrong(self, rows: _Rows, share: float) -> FloatArray:
        """Return how probably each value is wrong, if this share of them is."""
        rate = share + (1 - share) * self.usual
        stray, _ = replace(self, rate=rate).stray(rows)
        return np.where(rows.is_trusted, 0.0, stray * share / max(rate, 1e-300))

    def stray(self, rows: _Rows) -> tuple[FloatArray, float]:
        """Return how probably each value is stray, and the log likelihood of all."""
        residual = self.residuals(rows)
        right = np.empty(len(residual))
        for side, (is_here, share) in enumerate(_sides(residual, self.above)):
            density = _density(residual[is_here], self.scales[side], self.tails[side])
            right[is_here] = 2 * share * density / rows.scale[is_here]
        if self.width is None:
            stray = rows.density
        else:
            stray = _normal(residual / self.width) / self.width / rows.scale
        rate = np.where(rows.is_trusted, self.usual, self.rate)
        stray, right = rate * stray, (1 - rate) * right
        total = np.maximum(stray + right, 1e-300)
        return stray / total, float(np.log(total).sum())

    def improved(self, rows: _Rows, stray: FloatArray) -> _Mixture:
        """Return what is likeliest if values are stray with these probabilities."""
        residual, right = self.residuals(rows), 1 - stray
        weight = np.empty(len(residual))
        scales, tails = list(self.scales), list(self.tails)
        for side, (is_here, _) in enumerate(_sides(residual, self.above)):
            here, part = residual[is_here], right[is_here]
            scales[side], tails[side] = _likeliest(here, part, scales[side], tails[side])
            df = _TAILS[tails[side]]
            pull = (df + 1) / (df + (here / scales[side]) ** 2)
            weight[is_here] = part * pull / (scales[side] * rows.scale[is_here]) ** 2
        share = float(right[residual > 0].sum() / right.sum())
        start, slope = _line(rows, weight)
        width = self.width
        if width is not None:
            spread = float(np.sqrt(stray @ residual**2 / max(float(stray.sum()), 1e-300)))
            width = max(spread, _WIDE * max(scales))
        return replace(
            self,
            start=start,
            slope=slope,
            above=float(np.clip(share, 1 - _UNEVEN, _UNEVEN)),
            scales=(scales[0], scales[1]),
            tails=(tails[0], tails[1]),
            rate=_mean(stray[~rows.is_trusted | self.is_usual]),
            usual=_mean(stray[rows.is_trusted | self.is_usual]),
            width=width,
        )


def _fitted(mixture: _Mixture, rows: _Rows) -> _Mixture:
    """Return the likeliest mixture, by expectation and maximisation."""
    last = -np.inf
    for _ in range(_STEPS):
        stray, log_likelihood = mixture.stray(rows)
        mixture = replace(mixture, log_likelihood=log_likelihood)
        if abs(log_likelihood - last) < _TOLERANCE:
            break
        last = log_likelihood
        mixture = mixture.improved(rows, stray)
    return mixture


def _likelihood(mixture: _Mixture) -> float:
    return mixture.log_likelihood


def _mean(stray: FloatArray) -> float:
    return min(float(stray.mean()), _MOST) if len(stray) else 0.0


def _doubted(wrong: FloatArray, rate: Rate) -> FloatArray:
    """Return how probably values are wrong, zero where the row itself hardly speaks against it."""
    is_against = _odds(wrong) >= _AGAINST * _odds(np.asarray(rate.careful))
    return np.where(is_against, wrong, 0.0)


def _odds(probability: FloatArray) -> FloatArray:
    return np.asarray(probability / np.maximum(1 - probability, 1e-300))


def _is_rare(values: FloatArray) -> BoolArray:
    """Return which values few rows share."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(count[place] <= max(_SHARED * len(values), 1.0))


def _sides(residual: FloatArray, above: float) -> tuple[tuple[BoolArray, float], ...]:
    """Return which residuals are above and below zero, and the share of right values there."""
    is_above = residual > 0
    return (is_above, above), (~is_above, 1 - above)


def _density(residual: FloatArray, scale: float, tail: int) -> FloatArray:
    """Return Student's density."""
    df = _TAILS[tail]
    constant = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * np.pi) - np.log(scale)
    return np.asarray(np.exp(constant - (df + 1) / 2 * np.log1p((residual / scale) ** 2 / df)))


def _density_of_others(y: FloatArray) -> FloatArray:
    """Return how densely all other targets lie at each one, with normal kernels."""
    n = len(y)
    ordered = np.sort(y)
    quarter = (np.quantile(ordered, 0.75) - np.quantile(ordered, 0.25)) / 1.34
    spread = min(quarter, y.std()) or y.std() or 1.0
    width = 0.9 * spread * n**-0.2  # Silverman's rule
    centres = ordered[:: -(-n // _CENTRES)]
    total = np.zeros(n)
    for centre in centres:
        total += _normal((y - centre) / width)
    others = total / len(centres) - _normal(np.zeros(1)) / n
    return np.asarray(np.maximum(others * n / (n - 1), 1e-12) / width)


def _normal(x: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi))


def _likeliest(
    residual: FloatArray, right: FloatArray, scale: float, tail: int
) -> tuple[float, int]:
    """Return the likeliest scale and tail of one side, among the tails next to a known one."""
    if not right.sum() > 0:
        return scale, tail
    best = (-np.inf, scale, tail)
    for near in range(max(tail - 1, 0), min(tail + 2, len(_TAILS))):
        df, new = _TAILS[near], scale
        for _ in range(_INNER):
            pull = right * (df + 1) / (df + (residual / new) ** 2)
            new = max(float(np.sqrt(pull @ residual**2 / right.sum())), 1e-6)
        fit = float(right @ np.log(np.maximum(_density(residual, new, near), 1e-300)))
        best = max(best, (fit, new, near))
    return best[1], best[2]


def _line(rows: _Rows, weight: FloatArray) -> tuple[float, float]:
    """Return the start and slope of the line by weighted least squares."""
    share = weight / weight.sum()
    mean_f, mean_y = float(share @ rows.f), float(share @ rows.y)
    away = rows.f - mean_f
    spread = float(share @ away**2)
    slope = float(share @ (away * (rows.y - mean_y))) / spread if spread > 1e-12 else 1.0
    return mean_y - slope * mean_f, slope


def _scale(predicted: FloatArray, size: FloatArray) -> FloatArray:
    """Return the robust scale of residuals around each prediction, shape ``(n,)``."""
    from scipy.ndimage import median_filter
    from scipy.stats import t

    order = np.argsort(predicted, kind="stable")
    window = max(15, round(_WINDOW * len(size)))
    local = np.empty(len(size))
    local[order] = median_filter(size[order], size=window, mode="nearest")
    overall = np.median(size)
    tiny = 1e-9 * max(float(size.max()), 1.0)
    return np.asarray(np.maximum(np.maximum(local, 0.5 * overall), tiny) / t.ppf(0.75, 3.0))
