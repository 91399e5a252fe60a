r"""The law of the whole dataset: how the loss falls with the number of training points.

$$\mathbb{E}_{|D|=k}[L(f_D)] = \epsilon + b\,k^{-\lambda}, \qquad
  \mathrm{Var}[L(f_D) \mid k] = s^2 (k/k_\mathrm{ref})^{-\gamma}$$

from the losses $L(f_D)$ that the tasks computed anyway, and those of models trained on nearly all
rows (`Anchor`). Given $(\lambda, \gamma)$ the best $\epsilon$, $b$ and $s$ are known in closed
form, so both are walked through on a grid. $\epsilon$ and $\lambda$ are often hard to separate: a
slow decay to a low floor looks like a fast one to a higher floor. So intervals average over the
grid, each $(\lambda, \gamma)$ weighted by its likelihood, a wide prior of $\lambda$, and the
probability that $\epsilon$ is not below what the loss can reach.

Some learning curves follow no such law: with many features the loss may rise until the classes can
no longer be separated, and then fall fast. If the loss at the anchor is away from the law by more
than noise explains, the law is bent to it beyond the sampled sizes, and its intervals are wider by
as much as the bend, the more so the farther beyond the anchor.

Two errors are the same at all sizes, so that no number of tasks shows them: which rows score (the
spread of the folds of the anchor), and which rows the pool holds (for fixed scoring rows, as much
as the noise of one training set of the pool's size). Intervals hold both.

Reference: Covert et al. (ICML 2024), equation 2; Hoffmann et al. (2022).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from apiece._base.arrow import ArrowTable
from apiece._base.html import table_html
from apiece._base.typing import FloatArray
from apiece.errors import DataError, FitError, PlanError
from apiece.laws.provenance import provenance
from apiece.laws.sizes import check_sizes, middle
from apiece.records import Anchor, Moments, Trained, in_words, scope_of, scoped

if TYPE_CHECKING:
    import pandas as pd

_LAMBDAS: Final = (0.02, 5.0)
_STEPS: Final = 60  # exponents on the grid, which is refined around the most likely one
_ROUNDS: Final = 4
_GAMMAS: Final = np.linspace(-1.0, 6.0, 29)
_TYPICAL: Final = 0.6  # the prior of lambda is log-normal around it, wide by a factor of e
_SMALLEST: Final = 1e-24  # residual sum of squares that rounding leaves, relative to the total
_DRAWS: Final = 4_000
_FOLDS: Final = 4.0  # training sets that the overlapping ones of a cross-validation are worth
# Fractions of these spread evenly over a cube, the generalised golden ratio of six dimensions.
_EVEN: Final = 1.1127756842787055 ** -np.arange(1.0, 7.0)


@dataclass(frozen=True, eq=False)
class Aggregate(ArrowTable):
    r"""The law $\epsilon + b\,k^{-\lambda}$ of the mean loss, with its uncertainty.

    Parameters
    ----------
    eps, b, lam
        Floor $\epsilon$, scale $b$ and exponent $\lambda$: the median exponent, and the best floor
        and scale with it.
    sigma, gamma
        Scale of the noise of one loss at the middle size, and the decay of its variance.
    k_range
        The smallest and the largest cardinality of the tasks.
    n_tasks
        How many losses there were.
    draws
        Laws that the losses allow, each as likely as the others, shape ``(n_draws, 4)``:
        $\epsilon$, $b\,k_\mathrm{ref}^{-\lambda}$, $\lambda$, and an error that is the same at
        all sizes. $k_\mathrm{ref}$ is the geometric mean of ``k_range``.
    bend
        By how much the loss at the anchor is away from $\epsilon + b\,k^{-\lambda}$ beyond what
        noise explains; `mean` follows it beyond the sampled sizes.
    lowest
        The smallest loss that is possible, or None.
    anchor
        Losses of models trained on nearly all rows, or None.
    attrs
        Version, dataset, model, metric, creation time.

    Examples
    --------
    >>> from apiece import Contributions
    >>> k = np.repeat([50, 100, 200, 400], 5)
    >>> losses = 0.2 + 3 / k + 1e-3 * np.random.default_rng(0).normal(size=20)
    >>> table = Contributions.from_arrays(point=np.zeros(20), k=k, delta=np.zeros(20), loss=losses)
    >>> bool(abs(fit_aggregate(table).mean(200) - 0.215) < 1e-3)
    True
    """

    eps: float
    b: float
    lam: float
    sigma: float
    gamma: float
    k_range: tuple[int, int]
    n_tasks: int
    draws: FloatArray
    bend: float = 0.0
    lowest: float | None = None
    anchor: Anchor | None = None
    attrs: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Aggregate: {self.headline()}>"

    def _repr_html_(self) -> str:
        return table_html(f"Aggregate: {self.headline()}", self.table())

    @property
    def scope(self) -> str | None:
        """What the losses are for: ``"population"`` or ``"scoring rows"``; None if not known."""
        return scope_of(self.attrs)

    @property
    def k_known(self) -> int:
        """The largest size at which losses were measured, the anchor's included."""
        return max(self.k_range[1], 0 if self.anchor is None else self.anchor.k)

    def mean(self, k: npt.ArrayLike) -> FloatArray:
        r"""Return $\epsilon + b\,k^{-\lambda}$, bent to the anchor, in the shape of ``k``."""
        sizes, is_number = check_sizes(k)
        near, _ = self._towards_anchor(sizes)
        loss = self._possible(self.eps + self.b * sizes**-self.lam + self.bend * near)
        return np.asarray(loss[0] if is_number else loss)

    def interval(self, k: npt.ArrayLike, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return the interval ``(low, high)`` around ``mean(k)``, each in its shape.

        It covers the mean loss of random training sets of that size, not one of them: on the
        scoring rows of the run, or on new rows if scoring rows rotated.
        """
        _check_level(level)
        sizes, is_number = check_sizes(k)
        eps, height, lam, shift = self.draws.T
        ends = np.empty((2, len(sizes)))
        near, beyond = self._towards_anchor(sizes)
        away = abs(self.bend) * _students(_even(len(eps))[:, 5], np.inf)
        for j, x in enumerate(sizes / middle(self.k_range)):
            losses = eps + height * x**-lam + shift
            losses += self.bend * near[j] + away * (near[j] / 2 + beyond[j])
            ends[:, j] = np.quantile(losses, [(1 - level) / 2, (1 + level) / 2])
        low, high = _around(self.mean(sizes), *self._possible(ends))
        return (low[0], high[0]) if is_number else (low, high)

    def table(self, level: float = 0.9) -> pd.DataFrame:
        """Return ``value``, ``low`` and ``high`` of ``eps``, ``b`` and ``lambda``."""
        import pandas as pd

        _check_level(level)
        eps, height, lam, _ = self.draws.T
        columns = np.stack([eps, height * middle(self.k_range) ** lam, lam])
        ends = np.quantile(columns, [(1 - level) / 2, (1 + level) / 2], axis=1)
        value = np.array([self.eps, self.b, self.lam])
        low, high = _around(value, *ends)
        table = pd.DataFrame(
            {"value": value, "low": low, "high": high},
            index=pd.Index(["eps", "b", "lambda"], name="parameter"),
        )
        return scoped(table, self.scope)

    def headline(self) -> str:
        """Describe the law in one line: the loss at the largest size known, and at twice that."""
        near, far = self.k_known, 2 * self.k_known
        low, high = self.interval(far)
        sign = "-" if self.b < 0 else "+"
        where = f"up to {self.k_range[1]:,} points " if self.bend else ""
        return (
            f"loss {self.mean(near):.4g} at {near:,} points, "
            f"{self.mean(far):.4g} ({low:.4g} to {high:.4g}) at {far:,}; "
            f"{where}about {self.eps:.4g} {sign} {abs(self.b):.3g} / k^{self.lam:.3g}"
            + (f", {in_words(self.scope)}" if self.scope else "")
        )

    def _towards_anchor(self, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how near the anchor sizes are, from 0 to 1, and how often doubled beyond it."""
        k_max = self.k_range[1]
        if self.anchor is None or self.anchor.k <= k_max:
            return np.zeros(len(sizes)), np.zeros(len(sizes))
        near = np.log(sizes / k_max) / np.log(self.anchor.k / k_max)
        return near.clip(0, 1), np.maximum(np.log2(sizes / self.anchor.k), 0.0)

    def _possible(self, loss: FloatArray) -> FloatArray:
        return loss if self.lowest is None else np.maximum(loss, self.lowest)


def fit_aggregate(contributions: Trained, *, lowest: float | None = None) -> Aggregate:
    """Fit the law of the mean loss from the losses of the tasks.

    Parameters
    ----------
    contributions
        A run, or a table of contributions with ``loss``, the loss of the model trained on each
        task's ``D``.
    lowest
        The smallest loss that is possible; by default that of the metric, such as 0 for the log
        loss, and none for a metric of your own.

    Raises
    ------
    FitError
        If losses are unknown, or there are fewer than four tasks or three sizes.

    Examples
    --------
    >>> from apiece.records import Contributions
    >>> k = np.repeat([20, 40, 80, 160, 320], 8)
    >>> noise = 1e-3 * np.random.default_rng(0).normal(size=len(k))
    >>> zeros = np.zeros(len(k))
    >>> table = Contributions.from_arrays(point=zeros, k=k, delta=zeros, loss=0.2 + 3 / k + noise)
    >>> bool(abs(fit_aggregate(table).mean(100) - 0.23) < 0.01)
    True
    """
    from apiece.losses import LOSSES

    if not hasattr(contributions, "losses"):
        raise DataError(
            f"an object of type {type(contributions).__name__} holds no losses: expected a run or "
            "Contributions. Pass apiece.open(path) for a stored run."
        )
    losses, attrs = contributions.losses(), contributions.attrs
    anchor: Anchor | None = getattr(contributions, "anchor", None)
    if lowest is None and attrs.get("metric") in LOSSES:
        lowest = LOSSES[attrs["metric"]].lowest
    sizes, n = losses.k[0], losses.n[0]
    _check_losses(len(sizes), int(n.sum()))
    k_range = int(sizes[0]), int(sizes[-1])
    observed = _Observed.of(losses, k_range, anchor, lowest)
    grid = _refined(observed)
    n_pool = attrs.get("n_pool") or k_range[1]
    rotates = (attrs.get("design") or {}).get("scoring") == "rotating"
    x_pool = None if rotates else float(np.log(max(n_pool, k_range[1]) / middle(k_range)))
    draws = observed.in_units(_draw(grid, observed, x_pool))
    if anchor is not None and len(anchor.losses) > 1:
        draws[:, 3] += anchor.stderr * _students(_even(_DRAWS)[:, 4], len(anchor.losses) - 1)

    lam = float(np.median(draws[:, 2]))
    at = _walk(observed, np.array([lam]), _GAMMAS)
    best = int(np.argmax(at.log_likelihood[0]))
    floor, slope = at.coef[0, best]
    if observed.lowest is not None and floor < observed.lowest:
        (c00, c01), _ = at.cov[0, best]
        slope += (observed.lowest - floor) * (c01 / c00 if c00 > 0 else 0.0)
        floor = observed.lowest
    law = Aggregate(
        eps=float(floor * observed.unit + observed.shift),
        b=float(slope * observed.unit * middle(k_range) ** lam),
        lam=lam,
        sigma=float(np.sqrt(at.s2[0, best]) * observed.unit),
        gamma=float(_GAMMAS[best]),
        k_range=k_range,
        n_tasks=int(n.sum()),
        draws=draws,
        lowest=lowest,
        anchor=anchor,
        attrs={**attrs, **provenance("aggregate", {})},
    )
    return replace(law, bend=_bend(law))


def _bend(law: Aggregate) -> float:
    """Return the part of the distance between law and anchor that noise does not explain."""
    if law.anchor is None or law.anchor.k <= law.k_range[1]:
        return 0.0
    away = law.anchor.loss - float(law.mean(law.anchor.k))
    eps, height, lam, _ = law.draws.T
    x = law.anchor.k / middle(law.k_range)
    noise = law.sigma**2 * x**-law.gamma / min(len(law.anchor.losses), _FOLDS)
    known = noise + float(np.var(eps + height * x**-lam))
    return away * max(0.0, 1 - known / away**2) if away else 0.0


class _Observed(NamedTuple):
    """Losses by size, in units in which they are about one."""

    x: FloatArray  # log (k / k_ref), (m,)
    n: FloatArray
    mean: FloatArray
    m2: FloatArray
    shift: float
    unit: float
    lowest: float | None

    @classmethod
    def of(
        cls, losses: Moments, k_range: tuple[int, int], anchor: Anchor | None, lowest: float | None
    ) -> _Observed:
        k, n, level, m2 = losses.k[0], losses.n[0], losses.mean[0], losses.m2[0]
        if anchor is not None:
            worth = min(len(anchor.losses), _FOLDS)
            k, n = np.append(k, anchor.k), np.append(n, worth)
            level, m2 = np.append(level, anchor.loss), np.append(m2, 0.0)
        shift = float(n @ level / n.sum())
        unit = float((np.abs(level - shift) + np.sqrt(m2)).max()) or 1.0
        return cls(
            np.log(k / middle(k_range)),
            n.astype(np.float64),
            (level - shift) / unit,
            m2 / unit**2,
            shift,
            unit,
            None if lowest is None else (lowest - shift) / unit,
        )

    def in_units(self, draws: FloatArray) -> FloatArray:
        """Return draws in units of the loss."""
        return draws * [self.unit, self.unit, 1.0, self.unit] + [self.shift, 0.0, 0.0, 0.0]


class _Grid(NamedTuple):
    r"""Fits of $(\epsilon, b, s)$, with leading axes ``(n_lambdas, n_gammas)``."""

    lambdas: FloatArray
    log_likelihood: FloatArray
    coef: FloatArray
    cov: FloatArray
    s2: FloatArray
    df: float

    def possible(self, lowest: float | None) -> FloatArray:
        """Return the probability that the floor is not below ``lowest``."""
        from scipy.special import stdtr

        if lowest is None:
            return np.ones(self.s2.shape)
        sd = np.sqrt(self.cov[..., 0, 0])
        above = self.coef[..., 0] - lowest
        z = above / np.where(sd > 0, sd, 1e-12)
        return np.maximum(stdtr(self.df, z), 1e-300)

    def weights(self, lowest: float | None, *, by_width: bool = True) -> FloatArray:
        """Return the weight of every grid point, with sum 1; by its width on a log scale or not."""
        log = np.log(self.lambdas)
        prior = -0.5 * (log - np.log(_TYPICAL)) ** 2
        prior += np.log(np.gradient(log)) if by_width else 0.0
        height = self.log_likelihood + prior[:, None] + np.log(self.possible(lowest))
        weight = np.exp(height - height.max())
        return np.asarray(weight / weight.sum())


def _refined(observed: _Observed) -> _Grid:
    """Return the grid over exponents, finer and finer around the most likely one."""
    lambdas = np.geomspace(*_LAMBDAS, _STEPS)
    grid = _walk(observed, lambdas, _GAMMAS)
    for _ in range(_ROUNDS):
        best = int(np.argmax(grid.weights(observed.lowest, by_width=False).max(axis=1)))
        low, high = lambdas[max(best - 1, 0)], lambdas[min(best + 1, len(lambdas) - 1)]
        lambdas = np.union1d(lambdas, np.geomspace(low, high, _STEPS // 2))
        grid = _walk(observed, lambdas, _GAMMAS)
    return grid


def _draw(grid: _Grid, observed: _Observed, x_pool: float | None) -> FloatArray:
    """Draw laws from the grid, shape ``(n_draws, 4)``: floor, height, exponent and common error."""
    u = _even(_DRAWS)
    weight = grid.weights(observed.lowest)
    cell = np.searchsorted(np.cumsum(weight.ravel()), u[:, 0]).clip(0, weight.size - 1)
    row, column = np.unravel_index(cell, weight.shape)
    (c0, c1), cov = grid.coef[row, column].T, grid.cov[row, column]
    sd = np.sqrt(cov[:, 0, 0])
    # Floors above the lowest possible: the upper part of Student's t.
    above = grid.possible(observed.lowest)[row, column]
    z = -_students(u[:, 1] * above, grid.df)
    floor = c0 + sd * z
    if observed.lowest is not None:
        floor = np.maximum(floor, observed.lowest)
    slope = cov[:, 0, 1] / np.where(sd > 0, cov[:, 0, 0], 1.0)
    rest = np.maximum(cov[:, 1, 1] - slope * cov[:, 0, 1], 0.0)
    spread = np.sqrt(rest * (grid.df + z**2) / (grid.df + 1))
    height = c1 + slope * (floor - c0) + spread * _students(u[:, 2], grid.df + 1)
    shift = np.zeros(_DRAWS)
    if x_pool is not None:
        noise = np.sqrt(grid.s2[row, column] * np.exp(-_GAMMAS[column] * x_pool))
        shift = noise * _students(u[:, 3], grid.df)
    return np.stack([floor, height, grid.lambdas[row], shift], axis=1)


def _walk(observed: _Observed, lambdas: FloatArray, gammas: FloatArray) -> _Grid:
    r"""Fit $(\epsilon, b, s)$ for every $(\lambda, \gamma)$ of the grid.

    With weights $w = n e^{\gamma x}$ and $u = e^{-\lambda x}$, weighted least squares of the means
    on $(1, u)$ leaves $Q$, and the log likelihood is $-\frac{m}{2}\log Q + \frac{\gamma}{2}\sum n
    x$ up to a constant, where two degrees of freedom are taken off $m$ for the coefficients.
    """
    x, n, mean, m2 = observed[:4]
    w = n * np.exp(gammas[:, None] * x)  # (c, m)
    u = np.exp(-lambdas[:, None] * x)  # (g, m)
    total = w.sum(axis=1)
    wm = w @ mean
    middle_u = u @ w.T / total  # (g, c)
    d = u[:, None, :] - middle_u[:, :, None]
    spread = np.einsum("cm,gcm->gc", w, d**2)
    slope = np.einsum("cm,gcm->gc", w * mean, d) / np.maximum(spread, 1e-300)
    floor = wm / total - slope * middle_u
    residual = mean - floor[..., None] - slope[..., None] * u[:, None, :]
    within = np.exp(gammas[:, None] * x) @ m2
    q = within + np.einsum("cm,gcm->gc", w, residual**2)
    around = within + w @ mean**2
    q = np.maximum(q, _SMALLEST * around + 1e-300)
    m = float(n.sum())
    log_likelihood = -(m - 2) / 2 * np.log(q) + gammas / 2 * float(n @ x)
    df = max(m - 3, 1.0)
    s2 = q / df
    by_slope = s2 / np.maximum(spread, 1e-300)
    cov = np.empty((*q.shape, 2, 2))
    cov[..., 0, 0] = s2 / total + middle_u**2 * by_slope
    cov[..., 0, 1] = cov[..., 1, 0] = -middle_u * by_slope
    cov[..., 1, 1] = by_slope
    return _Grid(lambdas, log_likelihood, np.stack([floor, slope], axis=-1), cov, s2, df)


def _even(n: int) -> FloatArray:
    """Return ``n`` points that fill a cube evenly, shape ``(n, 6)``, each inside (0, 1)."""
    return np.asarray(((np.arange(1, n + 1)[:, None] * _EVEN) % 1.0).clip(1e-9, 1 - 1e-9))


def _students(u: FloatArray, df: float) -> FloatArray:
    """Return quantiles of Student's t."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(df, u))


def _around(value: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return an interval that holds the value, by whatever little it missed."""
    return np.minimum(low, value), np.maximum(high, value)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise PlanError(
            f"level={level} is not a coverage: expected a number between 0 and 1. "
            "Pass for example level=0.9."
        )


def _check_losses(n_sizes: int, n_tasks: int) -> None:
    if not n_sizes:
        raise FitError(
            "the losses of the models trained on D are unknown: expected them in "
            "contributions.loss, where a run stores them. Pass a run, or contributions with loss="
        )
    if n_sizes < 3 or n_tasks < 4:
        raise FitError(
            f"{n_tasks} losses at {n_sizes} sizes do not determine a floor, a scale and an "
            "exponent: expected four tasks at three sizes or more. Collect more sizes."
        )
