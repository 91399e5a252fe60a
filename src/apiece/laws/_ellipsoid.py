r"""The extremes of curves over ellipsoids of their coordinates, in any dimension.

The surface of $(\theta - \hat\theta)^\top C^{-1}(\theta - \hat\theta) = r^2$ is sampled in many
directions. With three coordinates or more, the best directions are refined to the extremes, where
$\theta = \hat\theta \pm r\,C g / \sqrt{g^\top C g}$ for the gradient $g$ at $\theta$.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from apiece._base.typing import FloatArray
from apiece.laws.student import standard_error

if TYPE_CHECKING:
    from apiece.laws._family import Family

_STEPS: Final = 12  # towards the extremes
_ENTRIES: Final = 2_000_000  # of coordinates held at once: 16 MB


def extremes(
    family: Family,
    params: FloatArray,
    cov: FloatArray,
    reach: FloatArray,
    k: FloatArray,
    k_ref: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest curve over each point's ellipsoid; see `Family.interval`."""
    n, p = params.shape
    reach = np.broadcast_to(reach, n)
    low, high = np.empty((2, n, len(k)))
    step = max(1, _ENTRIES // max(1, len(k) * p))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        local = family.to_local(params[rows], k_ref)
        low[rows], high[rows] = _extremes(family, local, cov[rows], reach[rows], k, k_ref)
    return low, high


def _extremes(
    family: Family,
    local: FloatArray,
    cov: FloatArray,
    reach: FloatArray,
    k: FloatArray,
    k_ref: float,
) -> FloatArray:
    """Return the ends of the intervals of some points, shape ``(2, n, n_k)``."""
    n, p = local.shape
    ends = np.full((2, n, len(k)), [[[np.inf]], [[-np.inf]]])
    best = np.zeros((2, n, len(k), p)) if p > 2 else None
    for off in around(cov, reach):
        psi = family.mean(family.from_local(local + off, k_ref), k)
        if best is not None:
            for place, is_better in zip(best, (psi < ends[0], psi > ends[1]), strict=True):
                np.copyto(place, off[:, None, :], where=is_better[..., None])
        ends = np.stack([np.minimum(ends[0], psi), np.maximum(ends[1], psi)])
    if best is None:
        return ends
    for j, size in enumerate(k):
        x, at = np.full((n, 1), size / k_ref), k[j : j + 1]
        for sign, end, off in zip((-1.0, 1.0), ends[:, :, j], best[:, :, j], strict=True):
            towards = np.zeros((n, 1, p))
            for _ in range(_STEPS):  # half way towards where the gradient points: no overshooting
                slope = family.slopes(local + off, x, k_ref)
                towards = _unit(towards + _unit(slope, cov), cov)
                off = sign * np.einsum("n,npq,nmq->np", reach, cov, towards)
                psi = family.mean(family.from_local(local + off, k_ref), at)[:, 0]
                np.copyto(end, psi, where=sign * psi > sign * end)
    return ends


def _unit(gradient: FloatArray, cov: FloatArray) -> FloatArray:
    """Return gradients, ``(n, 1, p)``, over their standard errors; zero where these are."""
    error = standard_error(gradient, cov)
    return np.asarray(gradient / np.where(error > 0, error, np.inf)[..., None])


def around(cov: FloatArray, reach: FloatArray) -> Iterator[FloatArray]:
    r"""Yield points of the surfaces $x^\top C^{-1} x = r^2$ of ellipsoids, 64 or more.

    Parameters
    ----------
    cov
        Shape ``(n, p, p)``; nan gives nan.
    reach
        The radii $r$, shape ``()`` or ``(n,)``.

    Yields
    ------
    FloatArray
        A point of each ellipsoid, shape ``(n, p)``.
    """
    sd = np.sqrt(np.einsum("naa->na", cov))
    scale = (reach * sd.T).T
    unit = np.where(sd > 0, sd, 1.0)
    root = _lower(cov / unit[:, :, None] / unit[:, None, :])
    for direction in _directions(cov.shape[1]):
        yield scale * (root @ direction)


def _directions(p: int) -> FloatArray:
    """Return unit vectors in all directions, ``(n, p)``: a circle, or a fixed random sphere."""
    if p == 2:
        angle = np.arange(64) * (np.pi / 32)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    normal = np.random.default_rng(0).standard_normal((32 * p, p))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return np.concatenate([normal, -normal])


def _lower(correlation: FloatArray) -> FloatArray:
    """Return Cholesky factors of correlations that may be singular, shape ``(n, p, p)``."""
    root = np.zeros_like(correlation)
    for j in range(correlation.shape[1]):
        left = 1 - (root[:, j, :j] ** 2).sum(axis=1)
        root[:, j, j] = np.sqrt(np.maximum(left, 0.0))
        size = np.where(root[:, j, j] > 1e-8, root[:, j, j], np.inf)
        for i in range(j + 1, correlation.shape[1]):
            shared = (root[:, i, :j] * root[:, j, :j]).sum(axis=1)
            root[:, i, j] = np.clip((correlation[:, i, j] - shared) / size, -1.0, 1.0)
    return root
