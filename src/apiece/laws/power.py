r"""The power law of the paper, $\psi_k = c / k^\alpha$.

Reference: Covert, Ji, Hashimoto and Zou, "Scaling Laws for the Value of Individual Data Points in
Machine Learning" (ICML 2024), equation 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from apiece._base.typing import FloatArray
from apiece.laws._basis import DECAY, SPREAD
from apiece.laws._family import Family, ShapePrior, Term


@dataclass(frozen=True)
class Power(Family):
    r"""The power law, with signed scale ``c`` and decay ``alpha``.

    $$\psi_k = c\,k^{-\alpha} = \psi_\mathrm{ref}\,(k / k_\mathrm{ref})^{-\alpha}$$

    Local coordinates are $(\psi_\mathrm{ref}, \alpha)$, with $k_\mathrm{ref}$ the geometric mean
    of the ends of the sampled sizes. There the height and the slope of a curve are nearly
    uncorrelated, while $c$ is an extrapolation to $k = 1$.

    Examples
    --------
    >>> Power().mean(np.array([[0.5, 1.0]]), np.array([1.0, 4.0]))
    array([[0.5  , 0.125]])
    """

    name: ClassVar[str] = "power"
    scale: ClassVar[str | None] = "c"
    decay: ClassVar[str | None] = "alpha"
    parameters: ClassVar[tuple[str, ...]] = ("c", "alpha")
    coordinates: ClassVar[tuple[str, ...]] = ("psi_ref", "alpha")
    shapes: ClassVar[Mapping[str, ShapePrior]] = {"alpha": ShapePrior(0.0, 3.0, DECAY, SPREAD)}
    page_terms: ClassVar[list[Term] | None] = [("relative", "alpha")]

    def curve(self, params: FloatArray, k: FloatArray) -> FloatArray:
        r"""Evaluate $c\,k^{-\alpha}$: ``(..., 2)`` and ``(...)`` broadcast to ``(...)``."""
        return np.asarray(params[..., 0] * np.power(k, -params[..., 1]))

    def gradient(self, params: FloatArray, k: FloatArray, k_ref: float) -> FloatArray:
        r"""Differentiate by $(\psi_\mathrm{ref}, \alpha)$, shape ``(n, n_k, 2)``.

        $$\frac{\partial\psi_k}{\partial\psi_\mathrm{ref}} = (k/k_\mathrm{ref})^{-\alpha}, \qquad
          \frac{\partial\psi_k}{\partial\alpha} = -\psi_k \log(k/k_\mathrm{ref})$$
        """
        alpha = params[:, 1:]
        by_height = np.power(k / k_ref, -alpha)
        by_slope = -self.mean(params, k) * np.log(k / k_ref)
        return np.stack([by_height, by_slope], axis=-1)

    def to_local(self, params: FloatArray, k_ref: float) -> FloatArray:
        r"""Map $(c, \alpha)$ to $(c\,k_\mathrm{ref}^{-\alpha}, \alpha)$."""
        c, alpha = params[..., 0], params[..., 1]
        return np.stack([c * np.power(k_ref, -alpha), alpha], axis=-1)

    def from_local(self, local: FloatArray, k_ref: float) -> FloatArray:
        r"""Map back: $c = \psi_\mathrm{ref}\,k_\mathrm{ref}^\alpha$.

        To avoid overflow, $|\alpha|$ is limited to 20, or to the value at which
        $k_\mathrm{ref}^{|\alpha|}$ is $10^{100}$; only draws from very uncertain fits reach it.
        """
        steepest = min(20.0, 100.0 / max(np.log10(k_ref), 1.0))
        psi, alpha = local[..., 0], np.clip(local[..., 1], -steepest, steepest)
        return np.stack([psi * np.power(k_ref, alpha), alpha], axis=-1)

    def columns(self, x: FloatArray, shape: FloatArray, k_ref: float) -> FloatArray:
        r"""Evaluate $x^{-\alpha}$: shapes ``(n, m)`` and ``(n, 1)`` give ``(n, m, 1)``."""
        return np.asarray((x**-shape)[..., None])

    def priors(self, k_ref: float) -> tuple[FloatArray, FloatArray]:
        """Return 1 for both: the only linear coordinate is the height."""
        return np.ones((1, 1)), np.ones((1, 1))

    def project(
        self, curves: FloatArray, x: FloatArray, k_ref: float
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return the power laws nearest to some curves, with $\alpha$ from their ends."""
        ends = np.abs(curves[:, [0, -1]])
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.log(ends[:, :1] / ends[:, 1:]) / np.log(x[-1] / x[0])
        low, high, typical, _ = self.shapes["alpha"]
        alpha = np.clip(np.where(np.isfinite(slope), slope, typical), low, high)
        lift = x**-alpha
        height = (curves * lift).sum(axis=1) / (lift**2).sum(axis=1)
        return height[:, None], alpha

    def random(
        self, height: FloatArray, k_ref: float, rng: np.random.Generator, harmful: float
    ) -> FloatArray:
        r"""Draw power laws as in the paper, $\alpha \sim \mathcal{N}(1.2, 0.3)$ from 0.1 on."""
        alpha = np.maximum(rng.normal(1.2, 0.3, len(height)), 0.1)
        sign = np.where(rng.random(len(height)) < harmful, -1.0, 1.0)
        return self.from_local(np.stack([sign * height, alpha], axis=1), k_ref)

    def tensor_curve(self, coordinates: Any, log_x: Any) -> Any:
        r"""Evaluate $\psi_\mathrm{ref}\,e^{-\alpha\log x}$ with tensors."""
        return coordinates[..., 0, None] * (-coordinates[..., 1, None] * log_x).exp()

    def crossing(self, first: FloatArray, second: FloatArray) -> float | None:
        r"""Return $k^* = (c_1/c_2)^{1/(\alpha_1 - \alpha_2)}$, nan for curves that do not cross.

        Curves do not cross if they have opposite signs or the same decay, or if they would cross
        below one training point or beyond $10^{300}$.
        """
        (c1, alpha1), (c2, alpha2) = first.tolist(), second.tolist()
        if not c1 * c2 > 0 or alpha1 == alpha2:
            return float("nan")
        log_k = (np.log(abs(c1)) - np.log(abs(c2))) / (alpha1 - alpha2)
        return float(np.exp(log_k)) if 0 <= log_k <= 300 * np.log(10) else float("nan")
