"""Oracles in long double for `search.py`: Newton, elimination, an interior point method, Adam.

None of it is scikit-learn's or apiece's.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

LONG = np.longdouble


class Unsolved(Exception):
    """The oracle did not reach its own tolerance."""


def solve(matrix: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Solve a symmetric system in long double, by elimination with diagonal scaling and pivots."""
    scale = 1 / np.sqrt(np.maximum(np.diag(matrix), LONG(1e-4000)))
    A = np.column_stack([matrix * scale[:, None] * scale, sides * scale])
    n = len(A)
    for j in range(n):
        best = j + int(np.argmax(np.abs(A[j:, j])))
        if A[best, j] == 0:
            raise Unsolved
        A[[j, best]] = A[[best, j]]
        A[j + 1 :] -= (A[j + 1 :, j] / A[j, j])[:, None] * A[j]
    x = np.zeros(n, dtype=LONG)
    for j in range(n - 1, -1, -1):
        x[j] = (A[j, -1] - A[j, j + 1 : n] @ x[j + 1 :]) / A[j, j]
    return x * scale


def newton(
    derivatives: Callable[[np.ndarray], tuple[Any, np.ndarray, np.ndarray]], theta: np.ndarray
) -> np.ndarray:
    """Minimise a convex function from its derivatives, to a relative decrement of 1e-13."""
    value, gradient, hessian = derivatives(theta)
    for _ in range(400):
        step = -solve(hessian, gradient)
        decrement = -(gradient @ step)
        if not np.isfinite(decrement) or decrement < 0:
            raise Unsolved
        if decrement < 1e-26 * max(1, abs(value)):
            return theta + step
        size = LONG(1)
        for _ in range(80):
            new = derivatives(theta + size * step)
            # near the optimum values differ by rounding, and the slope decides
            if new[0] <= value - size * decrement / 4 or abs(new[1] @ step) <= decrement / 2:
                break
            size /= 2
        else:
            raise Unsolved
        theta, (value, gradient, hessian) = theta + size * step, new
    raise Unsolved


def logits(theta: np.ndarray, X: np.ndarray, n_classes: int) -> np.ndarray:
    """Margins against the last class, or the log odds of class 1; shape ``(n, K)``."""
    if n_classes == 2:
        return np.column_stack([np.zeros(len(X), dtype=LONG), X @ theta])
    free = X @ theta.reshape(n_classes - 1, -1).T
    return np.column_stack([free, np.zeros(len(X), dtype=LONG)])


def log_proba(margins: np.ndarray) -> np.ndarray:
    top = margins.max(axis=1, keepdims=True)
    return margins - top - np.log(np.exp(margins - top).sum(axis=1, keepdims=True))


def logistic_fit(X: np.ndarray, y: np.ndarray, C: float, n_classes: int) -> np.ndarray:
    """Parameters at the optimum; rows of ``X`` end with a one, whose weight is not penalised."""
    p, m = X.shape[1], 1 if n_classes == 2 else n_classes - 1
    free = np.append(np.ones(p - 1, dtype=LONG), LONG(0))
    J = np.eye(m, dtype=LONG) - (LONG(0) if m == 1 else LONG(1) / n_classes)
    penalty = np.kron(J, np.diag(free))
    truth = np.eye(n_classes, dtype=LONG)[y]
    codes = slice(1, 2) if n_classes == 2 else slice(0, m)

    def derivatives(theta: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        logp = log_proba(logits(theta, X, n_classes))
        pi = np.exp(logp)
        value = -C * (logp * truth).sum() + theta @ penalty @ theta / 2
        # 1 - p from the other classes, which keeps its digits
        rest = np.stack([np.delete(pi, c, axis=1).sum(axis=1) for c in range(n_classes)], axis=1)
        pull, own = np.where(truth == 1, -rest, pi)[:, codes], pi[:, codes]
        gradient = C * (pull.T @ X).ravel() + penalty @ theta
        bent = -own[:, :, None] * own[:, None, :]
        index = np.arange(own.shape[1])
        bent[:, index, index] = own * rest[:, codes]
        hessian = C * np.einsum("iab,ip,iq->apbq", bent, X, X).reshape(len(theta), -1)
        return value, gradient, hessian + penalty

    return newton(derivatives, np.zeros(m * p, dtype=LONG))


def cholesky(matrix: np.ndarray) -> np.ndarray:
    L = matrix.copy()
    for j in range(len(L)):
        if not L[j, j] > 0:
            raise Unsolved
        L[j:, j] /= np.sqrt(L[j, j])
        L[j + 1 :, j + 1 :] -= np.outer(L[j + 1 :, j], L[j + 1 :, j])
    return np.tril(L)


def cholesky_solve(L: np.ndarray, sides: np.ndarray) -> np.ndarray:
    x = sides.copy()
    for j in range(len(L)):
        x[j] /= L[j, j]
        x[j + 1 :] -= np.multiply.outer(L[j + 1 :, j], x[j])
    for j in range(len(L) - 1, -1, -1):
        x[j] = (x[j] - L[j + 1 :, j] @ x[j + 1 :]) / L[j, j]
    return x


def eliminate(matrix: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Solve any system, by elimination with row pivots."""
    A, n = np.column_stack([matrix, side]), len(matrix)
    for j in range(n):
        best = j + int(np.argmax(np.abs(A[j:, j])))
        if A[best, j] == 0:
            raise Unsolved
        A[[j, best]] = A[[best, j]]
        A[j + 1 :] -= (A[j + 1 :, j] / A[j, j])[:, None] * A[j]
    x = np.zeros(n, dtype=LONG)
    for j in range(n - 1, -1, -1):
        x[j] = (A[j, -1] - A[j, j + 1 : n] @ x[j + 1 :]) / A[j, j]
    return x


class Iterate(NamedTuple):
    """Weights, intercept, and multipliers of the lower and upper bounds."""

    a: np.ndarray
    b: Any
    u: np.ndarray
    v: np.ndarray

    def moved(self, t: Any, by: Iterate) -> Iterate:
        return Iterate(*(now + t * change for now, change in zip(self, by, strict=True)))

    def mu(self, C: np.ndarray) -> Any:
        return (self.u @ self.a + self.v @ (C - self.a)) / (2 * len(C))


def interior_point(K: np.ndarray, y: np.ndarray, C: np.ndarray) -> Iterate:
    """Solve the dual of a support vector machine by Mehrotra's steps."""
    Q = K * y[:, None] * y
    size = np.full(len(y), max(LONG(1), np.abs(Q @ C / 2).max()))
    now = Iterate(C / 2, LONG(0), size, size)
    for _ in range(150):
        mu = now.mu(C)
        if mu < LONG(1e-22) * C.max():
            break
        try:
            L = cholesky(Q + np.diag(now.u / now.a + now.v / (C - now.a)))
        except Unsolved:
            break
        left = Q @ now.a - 1 + y * now.b - now.u + now.v
        t, step = direction(now, L, left, y, C, LONG(0), LONG(0))
        goal = now.moved(t, step).mu(C) ** 3 / mu**2
        t, step = direction(now, L, left, y, C, goal - step.a * step.u, goal + step.a * step.v)
        after = now.moved(min(LONG(1), LONG(0.995) * t), step)
        if not (np.isfinite(after.mu(C)) and (after.a < C).all() and (after.a > 0).all()):
            break
        now = after
    return now


def direction(
    now: Iterate,
    L: np.ndarray,
    left: np.ndarray,
    y: np.ndarray,
    C: np.ndarray,
    at_0: Any,
    at_C: Any,
) -> tuple[Any, Iterate]:
    """Newton's step towards products of weights and multipliers, and how far it can be taken."""
    a, _, u, v = now
    s = C - a
    both = cholesky_solve(L, np.column_stack([at_0 / a - at_C / s - u + v - left, y]))
    db = (y @ both[:, 0] + y @ a) / (y @ both[:, 1])
    da = both[:, 0] - db * both[:, 1]
    du, dv = (at_0 - u * da) / a - u, (at_C + v * da) / s - v
    room, change = np.concatenate([a, s, u, v]), np.concatenate([da, -da, du, dv])
    falls = change < 0
    return (room[falls] / -change[falls]).min(initial=LONG(1)), Iterate(da, db, du, dv)


def machine_fit(K: np.ndarray, y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, Any]:
    """Weights and intercept of a support vector machine whose optimality is checked.

    An interior point method says which weights are at their bounds, and the equations of the
    others are solved. Where those are singular the method's own answer counts, if its duality gap
    is small: decision values are off by at most the root of twice the gap.
    """
    near = interior_point(K, y, C)
    try:
        return at_vertex(K, y, C, near)
    except Unsolved:
        excess, share = y * (K @ (y * near.a) + near.b) - 1, near.a / C
        gap = near.a @ np.maximum(excess, 0) + (C - near.a) @ np.maximum(-excess, 0)
        is_between = (share > 1e-4) & (share < 1 - 1e-4)
        if gap > 1e-19 * min(LONG(1), C.max()) or abs(y @ near.a) > 1e-15 * C.max():
            raise
        if np.abs(excess[is_between]).min(initial=1.0) > 1e-12:  # the intercept is not unique
            raise
        return near.a, near.b


def at_vertex(K: np.ndarray, y: np.ndarray, C: np.ndarray, near: Iterate) -> tuple[np.ndarray, Any]:
    """Solve the equations of the weights between their bounds, and exchange the worst wrong one.

    Where every intercept of an interval is optimal it is the middle, as libsvm has it.
    """
    is_low = (near.u > near.a / C) & (2 * near.a <= C)
    is_high = (near.v > 1 - near.a / C) & (2 * near.a > C)
    limit = LONG(1e-15) * max(LONG(1), C.max())
    for _ in range(60):
        is_free = ~(is_low | is_high)
        alpha, b = np.where(is_high, C, LONG(0)), None
        if is_free.any():
            alpha, b = free_weights(K, y, alpha, is_free)
            excess = y * (K @ (y * alpha) + b) - 1
            outside = np.maximum(-alpha, alpha - C) / C
            wrong = np.where(is_free, outside, np.where(is_low, -excess, excess))
            if wrong.max() > limit:
                worst = int(wrong.argmax())
                is_low[worst] = is_free[worst] and 2 * alpha[worst] < C[worst]
                is_high[worst] = is_free[worst] and not is_low[worst]
                continue
            if np.abs(excess[is_free]).max() > limit:
                raise Unsolved
        elif abs(alpha @ y) > limit:
            raise Unsolved
        share = alpha / C
        if b is None or not ((share > 1e-13) & (share < 1 - 1e-13)).any():
            gap, is_below = y - K @ (y * alpha), (y > 0) != (share > 0.5)
            low, high = gap[is_below].max(initial=-np.inf), gap[~is_below].min(initial=np.inf)
            if low > high + limit or not np.isfinite(low + high):
                raise Unsolved
            b = (low + high) / 2
        return alpha, b
    raise Unsolved


def free_weights(
    K: np.ndarray, y: np.ndarray, alpha: np.ndarray, is_free: np.ndarray
) -> tuple[np.ndarray, Any]:
    n = int(is_free.sum())
    matrix = np.ones((n + 1, n + 1), dtype=LONG)
    matrix[0, 0], matrix[1:, 1:] = 0, K[np.ix_(is_free, is_free)]
    side = np.concatenate([[-(y @ alpha)], y[is_free] - K[is_free] @ (y * alpha)])
    x = eliminate(matrix, side)
    x = x + eliminate(matrix, side - matrix @ x)
    alpha = alpha.copy()
    alpha[is_free] = y[is_free] * x[1:]
    return alpha, x[0]


def kernel(A: np.ndarray, B: np.ndarray, gamma: Any) -> np.ndarray:
    return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))


def svm_decision(
    X: np.ndarray, y: np.ndarray, V: np.ndarray, C: float, gamma: str | float
) -> np.ndarray:
    """Decision values at ``V`` of the machine of ``X``, whose classes are 0 and 1."""
    X, V, sign = X.astype(LONG), V.astype(LONG), np.where(y == 1, LONG(1), LONG(-1))
    if len(np.unique(sign)) < 2:
        raise Unsolved
    if isinstance(gamma, str):
        gamma = 1 / (X.shape[1] * (X.var() if gamma == "scale" else 1))
    both = np.column_stack([X, sign])
    _, first, member = np.unique(both, axis=0, return_index=True, return_inverse=True)
    bound = np.bincount(member.ravel()).astype(LONG) * LONG(C)  # of equal points together
    X, sign = X[first], sign[first]
    alpha, b = machine_fit(kernel(X, X, gamma), sign, bound)
    return np.asarray(kernel(V, X, gamma) @ (alpha * sign) + b)


def svm_scores(
    X: np.ndarray, y: np.ndarray, V: np.ndarray, C: float, gamma: str | float
) -> np.ndarray:
    """Decision values at ``V``, shape ``(n, 1)``, or ``(n, K)`` by the votes of all pairs."""
    n_classes = int(y.max()) + 1
    if n_classes == 2:
        return svm_decision(X, y, V, C, gamma)[:, None]
    if isinstance(gamma, str):  # the width is that of all classes
        gamma = 1 / (X.shape[1] * (X.astype(LONG).var() if gamma == "scale" else 1))
    votes, total = np.zeros((2, len(V), n_classes), dtype=LONG)
    for i, j in combinations(range(n_classes), 2):
        of = (y == i) | (y == j)
        f = svm_decision(X[of], (y[of] == j).astype(int), V, C, gamma)
        if np.abs(f).min(initial=1.0) < 1e-14:
            raise Unsolved  # a vote that rounding decides
        votes[:, j] += f > 0
        votes[:, i] += f < 0
        total[:, j] += f
        total[:, i] -= f
    return votes + total / (3 * (1 + np.abs(total)))


def svm_log_odds(
    X: np.ndarray, y: np.ndarray, V: np.ndarray, C: float, gamma: str | float, n_folds: int = 5
) -> np.ndarray:
    """Log odds at ``V`` after Platt's sigmoid, on folds that follow the order of each class.

    Of class 1, shape ``(n,)``; of each class against all others if there are more than two.
    """
    fold = np.empty(len(y), dtype=int)
    for label in np.unique(y):
        fold[y == label] = np.arange((y == label).sum()) % n_folds
    at_rows = svm_scores(X, y, V, C, gamma)
    f = np.empty((len(y), at_rows.shape[1]), dtype=LONG)
    for j in range(int(fold.max()) + 1):
        is_out = fold == j
        if len(np.unique(y[~is_out])) < len(np.unique(y)):
            raise Unsolved
        f[is_out] = svm_scores(X[~is_out], y[~is_out], X[is_out], C, gamma)
    if f.shape[1] == 1:
        return platt(f[:, 0], y == 1, at_rows[:, 0])
    columns = [platt(f[:, c], y == c, at_rows[:, c]) for c in range(f.shape[1])]
    return np.stack(columns, axis=1)


def platt(f: np.ndarray, is_positive: np.ndarray, at_rows: np.ndarray) -> np.ndarray:
    """Log odds of rows by the sigmoid that fits held-out decision values."""
    zero, unit, n_1 = f.mean(), f.std(), int(is_positive.sum())
    if not unit > 1e-15:
        raise Unsolved
    target = np.where(is_positive, LONG(n_1 + 1) / (n_1 + 2), LONG(1) / (len(f) - n_1 + 2))
    F = np.column_stack([(f - zero) / unit, np.ones(len(f), dtype=LONG)])

    def derivatives(w: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        m = F @ w
        value = (np.logaddexp(LONG(0), m) - target * m).sum()
        p, q = 1 / (1 + np.exp(-m)), 1 / (1 + np.exp(m))
        return value, F.T @ (p - target), (F * (p * q)[:, None]).T @ F

    w = newton(derivatives, np.array([LONG(0), np.log(LONG(n_1 + 1) / (len(f) - n_1 + 1))]))
    return np.asarray(w[0] * (at_rows - zero) / unit + w[1])


ACTIVATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "relu": (lambda s: np.where(s > 0, s, LONG(0)), lambda s: (s > 0).astype(LONG)),
    "tanh": (np.tanh, lambda s: 1 / np.cosh(s) ** 2),
    "logistic": (
        lambda s: 1 / (1 + np.exp(-s)),
        lambda s: 1 / ((1 + np.exp(-s)) * (1 + np.exp(s))),
    ),
    "identity": (lambda s: s, np.ones_like),
}


def residuals(out: np.ndarray, Y: np.ndarray, n_classes: int) -> np.ndarray:
    """Slopes of the loss by the outputs: the error, or probabilities less the truth."""
    if n_classes == 0:
        return np.asarray(out - Y)
    if n_classes == 2:
        return np.where(Y == 1, -1 / (1 + np.exp(out)), 1 / (1 + np.exp(-out)))
    p = np.exp(log_proba(out))
    others = np.where(Y == 1, LONG(0), p).sum(axis=1, keepdims=True)
    return np.where(Y == 1, -others, p)


def mlp_outputs(
    X: np.ndarray, y: np.ndarray, V: np.ndarray, n_classes: int, settings: dict[str, Any]
) -> np.ndarray:
    """Outputs at ``V``, before the last activation, of a network trained as scikit-learn says.

    One hidden layer, weights drawn by the seed (Glorot), full batches, Adam, the squared error or
    the cross-entropy, and a penalty of ``alpha / 2n`` times the squared weights.
    """
    X, V, n = X.astype(LONG), V.astype(LONG), len(X)
    n_out, width = (n_classes if n_classes > 2 else 1), settings["hidden_layer_sizes"][0]
    act, slope = ACTIVATIONS[settings["activation"]]
    Y = np.eye(n_classes, dtype=LONG)[y] if n_classes > 2 else y[:, None].astype(LONG)
    rng, weights = np.random.RandomState(settings["random_state"]), []
    for a, b in ((X.shape[1], width), (width, n_out)):
        bound = np.sqrt((2.0 if settings["activation"] == "logistic" else 6.0) / (a + b))
        weights += [rng.uniform(-bound, bound, (a, b)).astype(LONG)]
        weights += [rng.uniform(-bound, bound, b).astype(LONG)]
    m, v = [0 * w for w in weights], [0 * w for w in weights]
    beta_1, beta_2 = LONG(settings["beta_1"]), LONG(settings["beta_2"])
    for t in range(1, settings["max_iter"] + 1):
        W, u, U, c = weights
        s = X @ W + u
        hidden = act(s)
        out = hidden @ U + c
        d_out = residuals(out, Y, n_classes) / n
        d_hidden = (d_out @ U.T) * slope(s)
        decay = LONG(settings["alpha"]) / n
        gradient = [X.T @ d_hidden + decay * W, d_hidden.sum(axis=0)]
        gradient += [hidden.T @ d_out + decay * U, d_out.sum(axis=0)]
        rate = settings["learning_rate_init"] * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        m = [beta_1 * a + (1 - beta_1) * g for a, g in zip(m, gradient, strict=True)]
        v = [beta_2 * a + (1 - beta_2) * g**2 for a, g in zip(v, gradient, strict=True)]
        weights = [
            w - rate * a / (np.sqrt(b) + settings["epsilon"])
            for w, a, b in zip(weights, m, v, strict=True)
        ]
    W, u, U, c = weights
    found = act(V @ W + u) @ U + c
    if not np.isfinite(found).all():
        raise Unsolved
    return np.asarray(found)


def network_loss(
    training: tuple[np.ndarray, np.ndarray],
    scoring: tuple[np.ndarray, np.ndarray],
    n_classes: int,
    settings: dict[str, Any],
) -> Any:
    """Loss of a trained network: squared error, or log loss clipped at machine epsilon."""
    V, truth = scoring
    with np.errstate(over="ignore", under="ignore"):  # 1 / (1 + inf) is right
        out = mlp_outputs(*training, V, n_classes, settings)
    if n_classes == 0:
        return ((truth.astype(LONG) - out[:, 0]) ** 2).mean()
    if n_classes == 2:
        out = np.column_stack([np.zeros(len(out), dtype=LONG), out])
    true = log_proba(out)[np.arange(len(out)), truth]
    return -np.maximum(true, np.log(LONG(np.finfo(float).eps))).mean()
