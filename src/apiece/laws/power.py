r"""The power law of the paper, $\psi_k = c / k^\alpha$.

Reference: Covert, Ji, Hashimoto and Zou, "Scaling Laws for the Value of Individual Data Points in
Machine Learning" (ICML 2024), equation 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apiece._base.typing import FloatArray


@dataclass(frozen=True)
class Power:
    r"""The power law, with signed scale ``c`` and decay ``alpha``.

    $$\psi_k = c\,k^{-\alpha} = \psi_\mathrm{ref}\,(k / k_\mathrm{ref})^{-\alpha}$$

    Local coordinates are $(\psi_\mathrm{ref}, \alpha)$ with $k_\mathrm{ref}$ in the middle of the
    sampled sizes on a log scale: there the height and the slope of a curve are nearly uncorrelated,
    while $c$ itself is an extrapolation to $k = 1$.

    Examples
    --------
    >>> Power().mean(np.array([[0.5, 1.0]]), np.array([1.0, 4.0]))
    array([[0.5  , 0.125]])
    """

    @property
    def name(self) -> str:
        """The word for the family."""
        return "power"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("c", "alpha")

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the local coordinates."""
        return ("psi_ref", "alpha")

    def mean(self, params: FloatArray, k: FloatArray) -> FloatArray:
        r"""Evaluate $c\,k^{-\alpha}$: ``(n, 2)`` and ``(n_k,)`` give ``(n, n_k)``."""
        c, alpha = params[:, :1], params[:, 1:]
        return np.asarray(c * np.power(k, -alpha))

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

        Slopes so steep that curves would leave the range of numbers are brought back to 20, or to
        where $k_\mathrm{ref}^{|\alpha|}$ is $10^{100}$; only draws from a hopeless fit get there.
        """
        steepest = min(20.0, 100.0 / max(np.log10(k_ref), 1.0))
        psi, alpha = local[..., 0], np.clip(local[..., 1], -steepest, steepest)
        return np.stack([psi * np.power(k_ref, alpha), alpha], axis=-1)
