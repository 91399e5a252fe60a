r"""The base fit of multinomial logistic regression, and the inverse of its Hessian.

scikit-learn minimises
$C \sum_i -\log \pi_{i, y_i} + \tfrac12 \sum_c \theta_c^\top \Lambda \theta_c$. In parameters taken
against the last class (`_softmax.py`) the penalty has the matrix $J \otimes \Lambda$ with
$J = I - \mathbf{1}\mathbf{1}^\top / K$. With $B = J^{-1/2}$ and parameters $B\phi$ the Hessian on
$D$ is

$$H = I \otimes \Lambda + C \sum_{i \in D} B S_i B \otimes x_i x_i^\top, \qquad
  S = \mathrm{diag}(\pi) - \pi\pi^\top .$$

Features enter in coordinates in which $M = \Lambda + C \sum_i w_i x_i x_i^\top$ is the identity,
$w$ the mean eigenvalue of $S$. There the condition of $H$ depends on the classes and not on the
scales of features, and the inverse, rounded to single precision, is accurate to about six digits.
With fewer points than features only the span of $D$ is parametrised, with one more coordinate for
the part of a joining point outside the span.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cholesky, lapack, solve_triangular

from apiece._base import batched
from apiece._base.batched import conjugate_gradients
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.engines._newton import Step, newton
from apiece.losses._softmax import all_probabilities, answer, errors, spread

_NEWTON_STEPS = 80
_POLISH_STEPS = 6
_CG_STEPS = 500
# By precision: the relative decrement at which the inverse is taken, and its largest error.
_NEAR = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 1e-10}
_ERROR = {np.dtype(np.float32): 5e-6, np.dtype(np.float64): 1e-8}


def dot(a: AnyArray, b: AnyArray) -> FloatArray:
    """Inner product of the parameters in each row, shape ``(n,)``, summed in double precision."""
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    return batched.dot(a, b).astype(np.float64)


def times(v: AnyArray, matrix: AnyArray) -> AnyArray:
    """``v @ matrix`` as one product of matrices, for ``v`` of shape ``(n, K - 1, p)``."""
    flat = v.reshape(-1, v.shape[-1]) @ matrix
    return np.asarray(flat.reshape(*v.shape[:-1], matrix.shape[1]))


def solve_rows(
    product: Callable[[AnyArray], AnyArray],
    precondition: Callable[[AnyArray], AnyArray],
    b: AnyArray,
    forcing: FloatArray,
    max_steps: int = _CG_STEPS,
) -> AnyArray:
    """Solve ``product(d) = b`` for parameters of shape ``(n, K - 1, p)``; see `batched`."""
    (d,) = conjugate_gradients(
        lambda v: (product(v[0]),),
        lambda r: (precondition(r[0]),),
        lambda a, b: dot(a[0], b[0]),
        (b,),
        forcing=forcing,
        max_steps=max_steps,
    )
    return d


@dataclass(frozen=True, eq=False)
class SoftmaxFit:
    """The optimum on D, in the coordinates of the module's head.

    Parameters
    ----------
    theta
        Parameters, shape ``(K - 1, p)``; those against the last class are `spread` of them.
    rows
        Rows of D, shape ``(k, p)``.
    penalty
        The penalty's matrix, shape ``(p, p)``.
    inverse
        Of the Hessian, shape ``(K - 1, p, K - 1, p)``, in single precision where that suffices.
    margins, pi
        Margins against the last class, shape ``(K - 1, k)``, and probabilities, ``(K, k)``, on D.
    C
        Weight of the data against the penalty.
    factor, basis
        ``L`` with ``M = LL'``, and an orthonormal basis of the span of D, shape ``(d, k)``, or None
        if all features are parametrised: features x have coordinates ``L^-1 (x basis, 1)``.
    decrement
        Newton decrement at the last step.
    """

    theta: FloatArray
    rows: FloatArray
    penalty: FloatArray
    inverse: AnyArray
    margins: FloatArray
    pi: FloatArray
    C: float
    factor: FloatArray
    basis: FloatArray | None
    decrement: float

    def place(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return features in these coordinates, shape ``(n, p)``, and their part outside the span.

        Parameters
        ----------
        X
            Rows with their last column of ones, if any.

        Returns
        -------
        tuple
            Coordinates; and unit vectors along the part outside the span, shape ``(n, d)``, whose
            length is the last coordinate, or shape ``(n, 0)`` if all features are parametrised.
        """
        if self.basis is None:
            return _solve(self.factor, X), np.empty((len(X), 0))
        d = len(self.basis)
        inside = X[:, :d] @ self.basis
        outside = X[:, :d] - inside @ self.basis.T
        length = np.sqrt(batched.dot(outside, outside))
        x = _solve(self.factor, np.column_stack([inside, X[:, d:]]))
        unit = outside / np.where(length > 0, length, 1.0)[:, None]
        return np.column_stack([x, length]), unit

    def product(self, v: FloatArray, pi: FloatArray) -> FloatArray:
        """Multiply by the Hessian on D at probabilities ``pi``, shapes ``(n, K - 1, p)``."""
        image = times(v, self.penalty)
        bent = spread(answer(pi, spread(times(v, self.rows.T))))
        image += self.C * times(bent, self.rows)
        return np.asarray(image)

    def precondition(self, v: AnyArray) -> AnyArray:
        """Multiply by the inverse of the Hessian, to its precision; shapes ``(n, K - 1, p)``."""
        n_parameters = self.theta.size
        flat = v.reshape(-1, n_parameters).astype(self.inverse.dtype, copy=False)
        return (flat @ self.inverse.reshape(n_parameters, n_parameters)).reshape(v.shape)

    def solve(self, b: FloatArray) -> FloatArray:
        """Multiply one vector by the inverse of the Hessian in double precision, ``(K - 1, p)``."""
        return np.asarray(
            solve_rows(
                lambda v: self.product(v, self.pi), self.precondition, b[None], np.array([1e-13])
            )[0]
        )


def _solve(factor: FloatArray, X: FloatArray) -> FloatArray:
    """Rows times the inverse transpose of a lower factor."""
    return np.asarray(solve_triangular(factor, X.T, lower=True, check_finite=False).T)


def fit_base(
    X: FloatArray, y: IntArray, n_classes: int, penalty: FloatArray, C: float, *, dtype: type
) -> SoftmaxFit | None:
    """Minimise the objective on D by Newton's method; None if it does not converge.

    Parameters
    ----------
    X
        Rows with their last column of ones, if any, shape ``(k, p)``.
    y
        Class codes, shape ``(k,)``.
    n_classes
        ``K``.
    penalty
        Diagonal of the penalty, shape ``(p,)``.
    C
        Weight of the data.
    dtype
        Precision of the inverse; double precision is taken where single is not enough.
    """
    d, basis = int(penalty.sum()), None
    if len(X) < d:
        basis, triangle = np.linalg.qr(X[:, :d].T)
        X = np.column_stack([triangle.T, X[:, d:]])
        penalty = np.append(np.ones(len(X)), penalty[d:])
    truth = (y == np.arange(n_classes - 1)[:, None]).astype(np.float64)
    try:
        optimum = _newton(X, truth, penalty, C, _NEAR[np.dtype(dtype)])
        if optimum is None:
            return None
        theta, factor = optimum
        rows = _solve(factor, X)
        matrix = _solve(factor, _solve(factor, np.diag(penalty)).T)
        theta = spread(theta @ factor, inverse=True)
        if basis is not None:
            rows, theta = (np.pad(a, ((0, 0), (0, 1))) for a in (rows, theta))
            matrix = np.pad(matrix, ((0, 1), (0, 1)))
            matrix[-1, -1] = 1.0
        for _ in range(2):
            margins = spread(theta @ rows.T)
            pi = all_probabilities(margins)
            inverse = _inverse(rows, pi, matrix, C)
            base = SoftmaxFit(theta, rows, matrix, inverse, margins, pi, C, factor, basis, np.inf)
            polished = _polish(base, truth)
            if polished is None:
                return None
            for precision in dict.fromkeys((dtype, np.float64)):
                base = replace(polished, inverse=inverse.astype(precision, copy=False))
                if _error(base) < _ERROR[base.inverse.dtype]:
                    return base
            theta = polished.theta  # it has moved too far from where the inverse was taken
    except LinAlgError:
        pass
    return None


def _newton(
    X: FloatArray, truth: FloatArray, penalty: FloatArray, C: float, near: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return parameters close to the optimum, and the factor of ``M`` there.

    A relative Newton decrement below ``near`` counts as close. If rounding keeps the decrement
    above it, the iteration stops once the decrement no longer decreases.
    """
    n_classes = len(truth) + 1

    def centred(v: FloatArray) -> FloatArray:
        return np.asarray(v - v.sum(axis=-2, keepdims=True) / n_classes)

    def pull(v: FloatArray) -> FloatArray:
        return centred(v * penalty)

    def direction(theta: FloatArray, margins: FloatArray) -> Step:
        pi = all_probabilities(margins)
        w = (1.0 - (pi**2).sum(axis=0)) / (n_classes - 1)
        weighted = X * np.sqrt(C * np.maximum(w, 0.0))[:, None]
        matrix = weighted.T @ weighted
        matrix[np.diag_indices(len(matrix))] += penalty
        factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)

        def product(v: FloatArray) -> FloatArray:
            return pull(v) + C * (answer(pi, v @ X.T) @ X)

        def precondition(v: FloatArray) -> FloatArray:
            raised = (v + v.sum(axis=1, keepdims=True))[0]
            half = solve_triangular(factor, raised.T, lower=True, check_finite=False)
            return solve_triangular(factor, half, lower=True, trans=1, check_finite=False).T[None]

        gradient = C * (errors(margins, truth) @ X) + pull(theta)
        left = float(np.sqrt(dot(gradient[None], precondition(gradient[None]))[0]))
        size = float(np.sqrt(dot((theta @ factor)[None], centred(theta @ factor)[None])[0]))
        relative = left / max(size, 1e-3)
        forcing = 0.1 if relative < near else min(0.1, relative)  # the last step may be rough
        step = solve_rows(product, precondition, -gradient[None], np.array([forcing]))[0]
        return Step(step, step @ X.T, float(np.vdot(gradient, step)), relative, factor)

    start = np.zeros((len(truth), X.shape[1])), np.zeros_like(truth)
    error = partial(errors, truth=truth)
    optimum = newton(direction, error, pull, start, C=C, tolerance=near, max_steps=_NEWTON_STEPS)
    return None if optimum is None else (optimum[0], optimum[1].factor)


def _inverse(rows: FloatArray, pi: FloatArray, penalty: FloatArray, C: float) -> FloatArray:
    """Inverse of the Hessian at probabilities ``pi``, shape ``(K - 1, p, K - 1, p)``."""
    n, p = len(pi) - 1, rows.shape[1]
    hessian = np.empty((n, p, n, p))
    for a in range(n):
        unit = np.zeros_like(pi[:-1])
        unit[a] = 1.0
        weights = C * spread(answer(pi, spread(unit)))
        for b in range(a + 1):
            block = (rows * weights[b][:, None]).T @ rows
            hessian[a, :, b] = block + penalty if a == b else block
    # the transpose is a view in Fortran order, whose lower half is the upper one
    upper = cholesky(hessian.reshape(n * p, -1).T, overwrite_a=True, check_finite=False)
    upper, code = lapack.dpotri(upper, lower=0, overwrite_c=1)
    if code != 0:
        raise LinAlgError("the Hessian is singular")
    inverse = upper.T.reshape(n, p, n, p)
    for a in range(n):
        below = np.tril(inverse[a, :, a])
        inverse[a, :, a] = below + np.tril(below, -1).T
        for b in range(a):
            inverse[b, :, a] = inverse[a, :, b].T
    return np.asarray(inverse)


def _error(base: SoftmaxFit) -> float:
    """Relative error of the inverse, on one vector."""
    v = np.random.default_rng(0).normal(size=(1, *base.theta.shape))
    once = base.precondition(base.product(v, base.pi)) - v
    return float(np.sqrt(dot(once, once) / dot(v, v))[0])


def _polish(base: SoftmaxFit, truth: FloatArray) -> SoftmaxFit | None:
    """Take the last Newton steps, preconditioned by the inverse."""

    def direction(theta: FloatArray, margins: FloatArray) -> Step:
        pi = all_probabilities(margins)
        gradient = theta @ base.penalty + base.C * (spread(errors(margins, truth)) @ base.rows)
        step = solve_rows(
            lambda v: base.product(v, pi), base.precondition, -gradient[None], np.array([1e-8])
        )[0]
        slope = float(np.vdot(gradient, step))
        relative = float(np.sqrt(max(-slope, 0.0) / max(1.0, float((theta**2).sum()))))
        return Step(step, spread(step @ base.rows.T), slope, relative)

    optimum = newton(
        direction,
        partial(errors, truth=truth),
        lambda v: v @ base.penalty,
        (base.theta, base.margins),
        C=base.C,
        tolerance=1e-8,
        max_steps=_POLISH_STEPS,
        is_rounded_fine=False,
    )
    if optimum is None:
        return None
    theta, last = optimum
    margins = spread(theta @ base.rows.T)
    pi, decrement = all_probabilities(margins), max(-last.slope, 0.0)
    return replace(base, theta=theta, margins=margins, pi=pi, decrement=decrement)
