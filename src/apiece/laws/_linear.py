"""Families whose curves are weighted sums of fixed terms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from apiece._base.typing import FloatArray
from apiece.laws._family import Family, ShapePrior
from apiece.laws.student import standard_error


class Linear(Family):
    r"""A family $\psi_k = \sum_j \theta_j B_j(k)$, whose local coordinates are its parameters.

    Examples
    --------
    >>> import numpy as np
    >>> class Inverse(Linear):
    ...     name = "inverse"
    ...     parameters = ("a",)
    ...
    ...     def basis(self, k):
    ...         return 1 / k[..., None]
    >>> Inverse().mean(np.array([[2.0]]), np.array([1.0, 4.0]))
    array([[2. , 0.5]])
    """

    shapes: ClassVar[Mapping[str, ShapePrior]] = {}  # there are none

    @abstractmethod
    def basis(self, k: FloatArray) -> FloatArray:
        """Evaluate the terms without their parameters: shape ``(...)`` gives ``(..., p)``."""

    def curve(self, params: FloatArray, k: FloatArray) -> FloatArray:
        """Evaluate sums, each at its sizes: ``(..., p)`` and ``(...)`` broadcast to ``(...)``."""
        return np.asarray((params * self.basis(k)).sum(axis=-1))

    def mean(self, params: FloatArray, k: FloatArray) -> FloatArray:
        """Evaluate the sum: ``(n, p)`` and ``(n_k,)`` give ``(n, n_k)``."""
        return np.asarray(params @ self.basis(k).T)

    def gradient(self, params: FloatArray, k: FloatArray, k_ref: float) -> FloatArray:
        """Differentiate by the parameters: the terms, for every point, shape ``(n, n_k, p)``."""
        basis = self.basis(k)
        return np.broadcast_to(basis, (len(params), *basis.shape))

    def interval(
        self, params: FloatArray, cov: FloatArray, reach: FloatArray, k: FloatArray, k_ref: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean less and plus ``reach`` standard errors, each ``(n, n_k)``."""
        mean, error = self.mean(params, k), standard_error(self.gradient(params, k, k_ref), cov)
        half = (reach * error.T).T
        return mean - half, mean + half

    def columns(self, x: FloatArray, shape: FloatArray, k_ref: float) -> FloatArray:
        """Evaluate the terms, each over its value at ``k_ref``: ``(n, m)`` gives ``(n, m, p)``."""
        return np.asarray(self.basis(k_ref * x) * self.scales(np.ones(1), k_ref)[0])

    def scales(self, unit: FloatArray, k_ref: float) -> FloatArray:
        """Return what takes coefficients of terms that are one at ``k_ref`` to parameters."""
        at_ref = self.basis(np.array([k_ref]))
        return np.asarray(unit[:, None] / np.where(at_ref == 0, 1.0, at_ref))

    def random(
        self, height: FloatArray, k_ref: float, rng: np.random.Generator, harmful: float
    ) -> FloatArray:
        """Draw parameters whose terms at ``k_ref`` are normal, each smaller than the one before."""
        p = len(self.parameters)
        share = rng.standard_normal((len(height), p)) * 0.5 ** np.arange(p)
        return share * self.scales(height, k_ref)
