r"""What a family of laws is: curves $\psi_k$ with parameters, and coordinates for uncertainty.

Parameters are what people read, such as $(c, \alpha)$. Their errors are often so correlated and
skewed that a normal approximation fails ($c$ is an extrapolation down to one training point).
Each family therefore also has *local coordinates*, in which errors are nearly normal and nearly
uncorrelated; covariances live there, and the delta method and draws start from there.
"""

from __future__ import annotations

from typing import Protocol

from apiece._base.typing import FloatArray


class Family(Protocol):
    """A family of curves over cardinalities; ``p`` is its number of parameters."""

    @property
    def name(self) -> str:
        """The word for the family, such as ``"power"``."""
        ...

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the ``p`` parameters."""
        ...

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the ``p`` local coordinates."""
        ...

    def mean(self, params: FloatArray, k: FloatArray) -> FloatArray:
        """Evaluate the curves: ``(n, p)`` and ``(n_k,)`` give ``(n, n_k)``."""
        ...

    def gradient(self, params: FloatArray, k: FloatArray, k_ref: float) -> FloatArray:
        """Differentiate the curves by the local coordinates: shape ``(n, n_k, p)``."""
        ...

    def to_local(self, params: FloatArray, k_ref: float) -> FloatArray:
        """Map parameters, shape ``(..., p)``, to local coordinates."""
        ...

    def from_local(self, local: FloatArray, k_ref: float) -> FloatArray:
        """Map local coordinates, shape ``(..., p)``, back to parameters."""
        ...
