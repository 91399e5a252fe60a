r"""The softmax of changing margins, to relative precision.

With $K$ classes, margins are taken against the last class, $m_c = \log \pi_c / \pi_K$, so that
arrays have shape ``(..., K - 1, n)``: every direction changes the model, and the last class has
margin zero. When margins change by $\eta$, with means
$\bar\eta = \sum_c \pi_c \eta_c$ under the probabilities before,

$$\varphi(\eta) = e^\eta - 1 - \eta, \qquad s = \bar\eta + \bar\varphi, \qquad
  \pi_c(m + \eta) - \pi_c = \pi_c(\eta_c - \bar\eta) + r_c, \qquad
  r_c = \pi_c\,\frac{\varphi_c - \bar\varphi - s\,(\eta_c - \bar\eta)}{1 + s} .$$

The remainder $r$ is of second order. Every term of it is computed to relative precision, so single
precision is as accurate for small changes as for large ones.
"""

from __future__ import annotations

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray

RADIUS = 20.0  # largest change for which `curve` has a relative error of at most 2e-6
SERIES_RADIUS = 2.0  # largest change for series of losses; beyond it their terms cancel
_CORE = 0.25  # largest change for which the series of `curve` needs no doubling


def all_probabilities(margins: FloatArray) -> FloatArray:
    """Probabilities of all classes, shape ``(..., K, n)``, each to relative precision."""
    with_last = np.concatenate([margins, np.zeros_like(margins[..., :1, :])], axis=-2)
    with_last -= with_last.max(axis=-2, keepdims=True)
    np.exp(with_last, out=with_last)
    with_last /= with_last.sum(axis=-2, keepdims=True)
    return np.asarray(with_last)


def errors(margins: FloatArray, truth: FloatArray) -> FloatArray:
    """Probabilities less the one-hot truth, shape ``(..., K - 1, n)``, to relative precision.

    If the true class is almost certain, its error is the sum of the other probabilities.

    Parameters
    ----------
    margins
        Against the last class, shape ``(..., K - 1, n)``.
    truth
        1 at the true class, 0 elsewhere, without the last class, of the same shape.
    """
    others = all_probabilities(margins)
    others[..., :-1, :] *= 1.0 - truth
    others[..., -1, :] *= truth.sum(axis=-2)
    return np.asarray(others[..., :-1, :] - truth * others.sum(axis=-2, keepdims=True))


def moves(before: FloatArray, after: FloatArray) -> FloatArray:
    """Changes of probabilities, without the last class, shape ``(..., K - 1, n)``.

    The change of a class that is almost certain is that of all others, which loses no digits.

    Parameters
    ----------
    before, after
        Probabilities of all classes, shapes ``(K, n)`` and ``(..., K, n)``.
    """
    change = after - before
    is_top = before == before.max(axis=-2, keepdims=True)
    change -= is_top * change.sum(axis=-2, keepdims=True)
    return np.asarray(change[..., :-1, :])


def spread(v: AnyArray, axis: int = -2, *, inverse: bool = False) -> AnyArray:
    r"""Multiply by $B = J^{-1/2}$, or by its inverse, along the classes.

    $J = I - \mathbf{1}\mathbf{1}^\top / K$ is the penalty of parameters against the last class; in
    coordinates $\phi$ with $\theta = B\phi$ it is the identity, and no class is special.
    """
    n_classes = v.shape[axis] + 1
    root = np.sqrt(n_classes)
    beta = ((1 / root if inverse else root) - 1) / (n_classes - 1)
    return np.asarray(v + np.asarray(beta, dtype=v.dtype) * v.sum(axis=axis, keepdims=True))


def bend(pi: AnyArray, v: AnyArray) -> AnyArray:
    r"""Apply $\mathrm{diag}(\pi) - \pi\pi^\top$ along the classes of ``v``, ``(..., K, n)``.

    This is to relative precision if ``v`` is zero at the class of the highest probability.
    """
    product = pi * v
    product -= pi * product.sum(axis=-2, keepdims=True)
    return product


def answer(pi: AnyArray, eta: AnyArray) -> AnyArray:
    """Changes of probabilities to first order, to relative precision, ``(..., K - 1, n)``.

    Parameters
    ----------
    pi
        Probabilities of all classes, shape ``(..., K, n)``.
    eta
        Changes of margins against the last class, shape ``(..., K - 1, n)``.
    """
    return bend(pi, against(pi.argmax(axis=-2), eta))[..., :-1, :]


def curve(x: AnyArray, reach: float = RADIUS) -> AnyArray:
    r"""Return $\varphi(x) = e^x - 1 - x$ to relative precision, for ``|x| <= reach <= RADIUS``.

    A short series at $x/2^n$, doubled n times by
    $\varphi(2a) = 2\varphi(a) + (a + \varphi(a))^2$, whose terms have one sign.
    """
    n_doublings = max(0, int(np.ceil(np.log2(max(reach, _CORE) / _CORE))))
    a = x * np.asarray(0.5**n_doublings, dtype=x.dtype)
    f = a * np.asarray(1 / 720, dtype=x.dtype)
    for coefficient in (1 / 120, 1 / 24, 1 / 6):
        f += np.asarray(coefficient, dtype=x.dtype)
        f *= a
    f += np.asarray(0.5, dtype=x.dtype)
    f *= a
    f *= a
    square = np.empty_like(f)
    for _ in range(n_doublings):
        np.add(a, f, out=square)
        square *= square
        f += f
        f += square
        a += a
    return np.asarray(f)


def against(top: IntArray, eta: AnyArray) -> AnyArray:
    """Changes of the margins of all classes against those of class ``top`` of each column.

    Relative to the class with the highest probability, means are as small as the remaining
    probability, and differences from them lose no digits.

    Parameters
    ----------
    top
        Class codes, shape ``(n,)``, or ``(n_models, n)`` if each model has its own.
    eta
        Changes against the last class, shape ``(n_models, K - 1, n)`` or ``(K - 1, n)``.

    Returns
    -------
    AnyArray
        Shape ``(n_models, K, n)`` or ``(K, n)``.
    """
    *models, n_free, n = eta.shape
    full = np.empty((*models, n_free + 1, n), dtype=eta.dtype)
    full[..., :-1, :], full[..., -1, :] = eta, 0.0
    if top.ndim == 1:
        full -= full[..., top, np.arange(n)][..., None, :]
    else:
        full -= np.take_along_axis(full, top[..., None, :], axis=-2)
    return full


def remainder(pi: AnyArray, eta: AnyArray, reach: float = RADIUS) -> AnyArray:
    r"""Return $r$, the change of the probabilities beyond first order; shape of ``eta``.

    Double precision takes the exponential, single precision the series (see `curve`).

    Parameters
    ----------
    pi
        Probabilities of all classes, shape ``(K, n)``.
    eta
        Changes of all margins as `against` gives them, shape ``(n_models, K, n)``.
    reach
        Bound of them.
    """
    r = np.expm1(eta) - eta if eta.dtype == np.float64 else curve(eta, reach)
    mean, bent = (np.einsum("nck,ck->nk", v, pi)[:, None, :] for v in (eta, r))
    s = mean + bent
    r -= bent
    first = eta - mean
    first *= s
    r -= first
    r *= pi
    s += 1
    r /= s
    return np.asarray(r)
