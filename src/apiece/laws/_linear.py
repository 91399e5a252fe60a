"""Families whose curves are weighted sums of fixed terms."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from apiece._base.typing import FloatArray


class Linear(ABC):
    r"""A family $\psi_k = \sum_j \theta_j B_j(k)$, whose local coordinates are its parameters."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""

    @abstractmethod
    def basis(self, k: FloatArray) -> FloatArray:
        """Evaluate the terms without their parameters, shape ``(n_k, p)``."""

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the local coordinates: the parameters."""
        return self.parameters

    def mean(self, params: FloatArray, k: FloatArray) -> FloatArray:
        """Evaluate the sum: ``(n, p)`` and ``(n_k,)`` give ``(n, n_k)``."""
        return np.asarray(params @ self.basis(k).T)

    def gradient(self, params: FloatArray, k: FloatArray, k_ref: float) -> FloatArray:
        """Differentiate by the parameters: the terms, for every point, shape ``(n, n_k, p)``."""
        basis = self.basis(k)
        return np.broadcast_to(basis, (len(params), *basis.shape))

    def to_local(self, params: FloatArray, k_ref: float) -> FloatArray:
        """Return the parameters as they are."""
        return params

    def from_local(self, local: FloatArray, k_ref: float) -> FloatArray:
        """Return the coordinates as they are."""
        return local
