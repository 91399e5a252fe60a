r"""The law of the whole dataset: how the loss falls with the number of training points.

$$\mathbb{E}_{|D|=k}[L(f_D)] = \epsilon + b\,k^{-\lambda}, \qquad
  \mathrm{Var}[L(f_D) \mid k] = s^2 (k/k_\mathrm{ref})^{-\gamma}$$

from the losses $L(f_D)$ that the tasks computed anyway. Given $(\lambda, \gamma)$ the best
$\epsilon$, $b$ and $s$ are known in closed form, so both are walked through on a grid. $\epsilon$
and $\lambda$ are often hard to tell apart: a slow decay to a low floor looks like a fast one to a
higher floor. So intervals average over the grid, each $(\lambda, \gamma)$ weighted by its
likelihood.

Reference: Covert et al. (ICML 2024), equation 2; Hoffmann et al. (2022).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from apiece._base.html import table_html
from apiece._base.typing import FloatArray
from apiece.errors import FitError, PlanError
from apiece.laws.provenance import provenance
from apiece.laws.sizes import check_sizes, middle
from apiece.records import Trained

if TYPE_CHECKING:
    import pandas as pd

_LAMBDAS: Final = np.geomspace(0.02, 5.0, 100)
_GAMMAS: Final = np.linspace(-1.0, 6.0, 29)
_SMALLEST: Final = 1e-24  # residual sum of squares that rounding leaves, relative to the total
_NEGLIGIBLE: Final = 1e-4  # weight of a grid point that no interval feels


@dataclass(frozen=True, eq=False)
class Aggregate:
    r"""The law $\epsilon + b\,k^{-\lambda}$ of the mean loss, with its uncertainty.

    Parameters
    ----------
    eps, b, lam
        The most likely floor $\epsilon$, scale $b$ and exponent $\lambda$.
    sigma, gamma
        Scale of the noise of one loss at the middle size, and the decay of its variance.
    k_range
        The smallest and the largest cardinality of the tasks.
    n_tasks
        How many losses there were.
    grid
        The exponents $\lambda$ that are not ruled out, shape ``(g,)``.
    weight
        Their weights, shape ``(g,)``, with sum 1.
    coef, cov
        For each of them $(\epsilon, b\,k_\mathrm{ref}^{-\lambda})$ and the covariance, shapes
        ``(g, 2)`` and ``(g, 2, 2)``.
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
    grid: FloatArray
    weight: FloatArray
    coef: FloatArray
    cov: FloatArray
    attrs: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Aggregate: {self.headline()}>"

    def _repr_html_(self) -> str:
        return table_html(f"Aggregate: {self.headline()}", self.table())

    def mean(self, k: npt.ArrayLike) -> FloatArray:
        r"""Return the most likely $\epsilon + b\,k^{-\lambda}$, in the shape of ``k``."""
        sizes, is_number = check_sizes(k)
        loss = self.eps + self.b * sizes**-self.lam
        return np.asarray(loss[0] if is_number else loss)

    def interval(self, k: npt.ArrayLike, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return the interval ``(low, high)`` around ``mean(k)``, each in its shape.

        It covers the mean loss of random training sets of that size, not one of them.
        """
        sizes, is_number = check_sizes(k)
        shape = (sizes / middle(self.k_range)) ** -self.grid[:, None]
        basis = np.stack([np.ones_like(shape), shape], axis=-1)
        centre = np.einsum("gka,ga->gk", basis, self.coef)
        spread = np.sqrt(np.einsum("gka,gab,gkb->gk", basis, self.cov, basis).clip(0))
        low, high = self._quantiles(centre, spread, level)
        return (low[0], high[0]) if is_number else (low, high)

    def table(self, level: float = 0.9) -> pd.DataFrame:
        """Return ``value``, ``low`` and ``high`` of ``eps``, ``b`` and ``lambda``."""
        import pandas as pd

        k_ref = middle(self.k_range)
        to_b = k_ref**self.grid
        sd = np.sqrt(np.einsum("gaa->ga", self.cov).clip(0))
        centre = np.stack([self.coef[:, 0], self.coef[:, 1] * to_b, self.grid], axis=1)
        spread = np.stack([sd[:, 0], sd[:, 1] * to_b, np.zeros_like(to_b)], axis=1)
        low, high = self._quantiles(centre, spread, level)
        return pd.DataFrame(
            {"value": [self.eps, self.b, self.lam], "low": low, "high": high},
            index=pd.Index(["eps", "b", "lambda"], name="parameter"),
        )

    def headline(self) -> str:
        """Describe the law in one line."""
        k_max = self.k_range[1]
        low, high = self.interval(10 * k_max)
        return (
            f"loss {self.mean(k_max):.4g} at {k_max:,} points, "
            f"{self.mean(10 * k_max):.4g} ({low:.4g} to {high:.4g}) at {10 * k_max:,}; "
            f"about {self.eps:.4g} + {self.b:.3g} / k^{self.lam:.3g}"
        )

    def _quantiles(
        self, centre: FloatArray, spread: FloatArray, level: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return quantiles of the mixture over the grid; ``(g, m)`` gives twice ``(m,)``."""
        from scipy.special import stdtr, stdtrit

        if not 0 < level < 1:
            raise PlanError(
                f"level={level} is not a coverage: expected a number between 0 and 1. "
                "Pass for example level=0.9."
            )
        freedom = self.n_tasks - 3
        wide = -stdtrit(freedom, (1 - level) / 4) * spread
        unit = np.where(spread > 0, spread, 1e-12 * np.abs(centre) + 1e-300)
        ends = []
        for p in ((1 - level) / 2, (1 + level) / 2):
            low, high = (centre - 2 * wide).min(axis=0), (centre + 2 * wide).max(axis=0)
            for _ in range(45):
                at = (low + high) / 2
                below = self.weight @ stdtr(freedom, (at - centre) / unit) < p
                low, high = np.where(below, at, low), np.where(below, high, at)
            ends.append((low + high) / 2)
        return ends[0], ends[1]


def fit_aggregate(contributions: Trained) -> Aggregate:
    """Fit the law of the mean loss from the losses of the tasks.

    Parameters
    ----------
    contributions
        A run, or a table of contributions with ``loss``, the loss of the model trained on each
        task's ``D``.

    Raises
    ------
    FitError
        If losses are unknown, or there are fewer than four tasks or three sizes.
    """
    losses = contributions.losses()
    sizes, n, level, m2 = losses.k[0], losses.n[0], losses.mean[0], losses.m2[0]
    if not len(sizes):
        raise FitError(
            "the losses of the models trained on D are unknown: expected them in "
            "contributions.loss, where a run stores them. Pass a run, or contributions with loss="
        )
    n_tasks = int(n.sum())
    if len(sizes) < 3 or n_tasks < 4:
        raise FitError(
            f"{n_tasks} losses at {len(sizes)} sizes do not determine a floor, a scale and an "
            "exponent: expected four tasks at three sizes or more. Collect more sizes."
        )
    k_ref = middle((int(sizes[0]), int(sizes[-1])))
    shift = float(n @ level) / n_tasks
    unit = float((np.abs(level - shift) + np.sqrt(m2)).max()) or 1.0
    mean, m2 = (level - shift) / unit, m2 / unit**2
    x = np.log(sizes / k_ref)

    moments = x, n, mean, m2
    log_likelihood, coef, cov, _ = _walk(*moments, _LAMBDAS, _GAMMAS)
    best = np.unravel_index(int(np.argmax(log_likelihood)), log_likelihood.shape)
    near = _LAMBDAS[best[0]] * (_LAMBDAS[1] / _LAMBDAS[0]) ** np.linspace(-1, 1, 201)
    fine, heights, _, s2 = _walk(*moments, near, _GAMMAS[best[1] :][:1])
    top = int(np.argmax(fine[:, 0]))
    weight = np.exp(log_likelihood - log_likelihood.max())
    weight /= weight.sum()
    coef = coef * unit + np.array([shift, 0.0])
    cov = cov * unit**2
    kept = weight > _NEGLIGIBLE * weight.max()
    lam = float(near[top])
    height = heights[top, 0] * unit + np.array([shift, 0.0])
    return Aggregate(
        eps=float(height[0]),
        b=float(height[1] * k_ref**lam),
        lam=lam,
        sigma=float(np.sqrt(s2[top, 0]) * unit),
        gamma=float(_GAMMAS[best[1]]),
        k_range=(int(sizes[0]), int(sizes[-1])),
        n_tasks=n_tasks,
        grid=np.broadcast_to(_LAMBDAS[:, None], weight.shape)[kept],
        weight=weight[kept] / weight[kept].sum(),
        coef=coef[kept],
        cov=cov[kept],
        attrs={**contributions.attrs, **provenance("aggregate", {})},
    )


def _walk(
    x: FloatArray,
    n: FloatArray,
    mean: FloatArray,
    m2: FloatArray,
    lambdas: FloatArray,
    gammas: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    r"""Fit $(\epsilon, b, s)$ for every $(\lambda, \gamma)$ of the grid.

    With weights $w = n e^{\gamma x}$ and $u = e^{-\lambda x}$, weighted least squares of the means
    on $(1, u)$ leaves $Q$, and the log likelihood is $-\frac{m}{2}\log Q + \frac{\gamma}{2}\sum n
    x$ up to a constant, where two degrees of freedom are taken off $m$ for the coefficients.

    Returns
    -------
    tuple
        Log likelihood, coefficients, their covariances, and $s^2$; each with leading axes
        ``(n_lambdas, n_gammas)``.
    """
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
    m = n.sum()
    log_likelihood = -(m - 2) / 2 * np.log(q) + gammas / 2 * float(n @ x)
    s2 = q / max(m - 3, 1.0)
    by_slope = s2 / np.maximum(spread, 1e-300)
    cov = np.empty((*q.shape, 2, 2))
    cov[..., 0, 0] = s2 / total + middle_u**2 * by_slope
    cov[..., 0, 1] = cov[..., 1, 0] = -middle_u * by_slope
    cov[..., 1, 1] = by_slope
    return log_likelihood, np.stack([floor, slope], axis=-1), cov, s2
