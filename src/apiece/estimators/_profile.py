r"""The profiled likelihood of the Gaussian model, with its derivatives, for many points at once.

With $x = \log(k / k_\mathrm{ref})$, weights $w = n e^{\beta x}$ and the curve $u = e^{-\alpha x}$,
the best height and noise for given $(\alpha, \beta)$ are

$$\psi = \frac{\sum w\,\bar\Delta\,u}{\sum w\,u^2}, \qquad
  Q = \sum e^{\beta x}\left(M + n(\bar\Delta - \psi u)^2\right), \qquad \sigma^2 = Q / m,$$

which leaves, up to a constant, the negative log likelihood

$$f(\alpha, \beta) = \frac{m}{2}\log\left(Q + \delta T\right) - \frac{\beta}{2}\sum n x,
  \qquad T = \sum e^{\beta x}\left(M + n\bar\Delta^2\right), \quad \delta = 10^{-24},$$

to which a normal prior of precision $\lambda$ adds $\frac{\lambda}{2}\left((\alpha - 1)^2 +
(\beta/2 - 1)^2\right)$: the decays of signal and noise, before data.

$Q$ is summed from residuals, so that nothing cancels. The term $\delta T$ accounts for rounding
errors of relative size $10^{-12}$ in the contributions: it keeps $f$ finite when they follow a law
exactly, and is far below any real noise.

Reference: Covert et al. (ICML 2024), appendix "Likelihood-based scaling law estimator".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from apiece._base.typing import BoolArray, FloatArray, IntArray
from apiece.estimators._common import centred_log
from apiece.records import Moments

FLOOR: Final = 1e-24
_SHARE: Final = np.array([1.0, 0.5])  # the noise itself decays by half of beta


@dataclass(frozen=True)
class Samples:
    """Moments ready for the likelihood, in units of the order of one.

    Parameters
    ----------
    x, n, mean, m2
        Centred log cardinality and the moments there, each of shape ``(n_rows, n_sizes)``.
    total
        Number of contributions, shape ``(n_rows,)``.
    tilt
        Sum of ``n x``, shape ``(n_rows,)``.
    precision
        Precision of the prior; 0 for none.
    """

    x: FloatArray
    n: FloatArray
    mean: FloatArray
    m2: FloatArray
    total: FloatArray
    tilt: FloatArray
    precision: float

    @classmethod
    def of(cls, moments: Moments, k_ref: float, precision: float = 0.0) -> Samples:
        """Centre the log cardinalities of some moments at ``k_ref``."""
        x = centred_log(moments.k, moments.n, k_ref)
        total, tilt = moments.n.sum(axis=1), (moments.n * x).sum(axis=1)
        return cls(x, moments.n, moments.mean, moments.m2, total, tilt, precision)

    def __getitem__(self, rows: IntArray | BoolArray | slice) -> Samples:
        """Return some of the rows, in that order."""
        return Samples(
            self.x[rows],
            self.n[rows],
            self.mean[rows],
            self.m2[rows],
            self.total[rows],
            self.tilt[rows],
            self.precision,
        )


class Profile(NamedTuple):
    """The objective at one (alpha, beta) for each row; ``gradient`` and ``hessian`` are by both."""

    f: FloatArray  # (n_rows,)
    gradient: FloatArray  # (n_rows, 2)
    hessian: FloatArray  # (n_rows, 2, 2)
    psi: FloatArray  # height at k_ref, (n_rows,)
    q: FloatArray  # weighted residual sum of squares, (n_rows,)
    q_total: FloatArray  # the same around zero, (n_rows,)


def profile(samples: Samples, theta: FloatArray) -> Profile:
    r"""Evaluate $f$, its gradient and its Hessian at ``theta`` = (alpha, beta).

    With residuals $r = \bar\Delta - \psi u$, the weighted middle $\bar x = \sum w u^2 x / C$,
    $C = \sum w u^2$, $V = \sum w u^2 (x - \bar x)^2$ and
    $S_j = \sum w u r (x - \bar x)^j$ (where $S_0 = 0$ at the best $\psi$), the derivatives of the
    profiled $Q$ are

    $$Q_\alpha = 2\psi S_1, \quad Q_\beta = \sum x q, \quad
      Q_{\alpha\alpha} = 2\psi^2 V - 2\psi S_2 - 2S_1^2/C,$$
    $$Q_{\alpha\beta} = 2\psi (S_2 + \bar x S_1) + 2S_1^2/C, \quad
      Q_{\beta\beta} = \sum x^2 q - 2S_1^2/C$$

    for $Q = \sum q$. Centred at $\bar x$ they stay accurate when one size outweighs the others.

    Parameters
    ----------
    samples
        Contributions of ``n_rows`` points.
    theta
        Shape ``(n_rows, 2)``.
    """
    x = samples.x
    alpha, beta = theta[:, :1], theta[:, 1:]
    e, u = np.exp(beta * x), np.exp(-alpha * x)
    w = samples.n * e
    wu = w * u
    c = _dot(wu, u)
    psi = _dot(wu, samples.mean) / c
    residual = samples.mean - psi[:, None] * u
    middle = _dot(wu * x, u) / c
    d = x - middle[:, None]
    dwu = d * wu
    ddwu = d * dwu
    v, s1, s2 = _dot(ddwu, u), _dot(dwu, residual), _dot(ddwu, residual)

    spread = e * samples.m2
    q = _powers(spread + w * residual**2, x)
    t = _powers(spread + w * samples.mean**2, x)
    big = [q[j] + FLOOR * t[j] for j in range(3)]

    first = np.stack([2 * psi * s1, big[1]], axis=1)
    shared = 2 * s1**2 / c
    second = np.empty((len(x), 2, 2))
    second[:, 0, 0] = 2 * psi**2 * v - 2 * psi * s2 - shared
    second[:, 0, 1] = second[:, 1, 0] = 2 * psi * (s2 + middle * s1) + shared
    second[:, 1, 1] = big[2] - shared

    half = samples.total / 2
    slope = first / big[0][:, None]
    gradient = half[:, None] * slope + samples.precision * _SHARE * (_SHARE * theta - 1)
    gradient[:, 1] -= samples.tilt / 2
    hessian = half[:, None, None] * (
        second / big[0][:, None, None] - slope[:, :, None] * slope[:, None, :]
    ) + np.diag(samples.precision * _SHARE**2)
    f = half * np.log(big[0]) - theta[:, 1] / 2 * samples.tilt
    f += prior(theta[:, 0], theta[:, 1], samples.precision)
    return Profile(f, gradient, hessian, psi, q[0], t[0])


def prior(alpha: FloatArray, beta: FloatArray, precision: float) -> FloatArray:
    """Evaluate what the prior adds to the objective."""
    return precision / 2 * ((alpha - 1) ** 2 + (beta / 2 - 1) ** 2)


def information(samples: Samples, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Return the sums that make up the information about $(\psi_\mathrm{ref}, \alpha)$.

    $C = \sum w u^2$, $\bar x = \sum w u^2 x / C$ and $V = \sum w u^2 (x - \bar x)^2$. The
    information matrix is

    $$\frac{1}{\sigma^2}\begin{pmatrix} C & -\psi C \bar x \\
      -\psi C \bar x & \psi^2 (V + C\bar x^2)\end{pmatrix}.$$
    """
    weight = samples.n * np.exp((theta[:, 1:] - 2 * theta[:, :1]) * samples.x)
    c = weight.sum(axis=1)
    middle = _dot(weight, samples.x) / c
    return c, middle, _dot(weight, (samples.x - middle[:, None]) ** 2)


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """Sum of products along each row."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def _powers(values: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum ``values``, ``values x`` and ``values x²`` along each row."""
    weighted = values * x
    return values.sum(axis=1), weighted.sum(axis=1), _dot(weighted, x)
