r"""Training many networks side by side, as scikit-learn trains one.

A network with one hidden layer computes $o(x) = V a(W x + u) + b$. scikit-learn starts from weights
drawn by the seed and takes a fixed number of full-batch Adam steps on

$$J = \frac1n \sum_i \ell(o(x_i), y_i) + \frac{\alpha}{2n}\left(\|W\|^2 + \|V\|^2\right).$$

Networks whose training sets share all points but one share the features $X$ of these points. So
the two large products of a step, $W X^\top$ and $G X$ with $G = \partial \ell / \partial (W x)$,
are one matrix product each for all of them, stacked; the added point of each network is one more
column. Shapes below: ``c`` networks, ``h`` hidden units, ``d`` features, ``q`` outputs, ``k``
shared points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from apiece._base.typing import AnyArray, BoolArray, FloatArray


class NetworkSettings(NamedTuple):
    """How a network is trained: the settings of an estimator that matter here."""

    width: int
    activation: str
    alpha: float
    rate: float
    beta_1: float
    beta_2: float
    epsilon: float
    n_steps: int
    seed: int

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Read the settings of an ``MLPClassifier`` or ``MLPRegressor`` with an integer seed."""
        return cls(
            width=int(np.ravel(estimator.hidden_layer_sizes)[0]),
            activation=str(estimator.activation),
            alpha=float(estimator.alpha),
            rate=float(estimator.learning_rate_init),
            beta_1=float(estimator.beta_1),
            beta_2=float(estimator.beta_2),
            epsilon=float(estimator.epsilon),
            n_steps=int(estimator.max_iter),
            seed=int(estimator.random_state),
        )


class Networks(NamedTuple):
    """Weights of ``c`` networks.

    Parameters
    ----------
    first
        $W$ and, in the last column, $u$: shape ``(c, h, d + 1)``.
    second
        $V$, shape ``(c, q, h)``.
    offset
        $b$, shape ``(c, q, 1)``.
    """

    first: AnyArray
    second: AnyArray
    offset: AnyArray

    def copies(self, n: int, dtype: Any) -> Networks:
        """Return ``n`` copies of a single network."""
        return Networks(*(np.repeat(part, n, axis=0).astype(dtype) for part in self))

    def nudged(self, share: float, draw: int = 0) -> Networks:
        """Return networks whose weights differ from these by a share of themselves, up or down."""
        rng = np.random.default_rng(draw)
        return Networks(*(part * (1 + share * rng.choice([-1, 1], part.shape)) for part in self))

    def are_finite(self) -> BoolArray:
        """Return which networks have finite weights, shape ``(c,)``."""
        is_finite = [np.isfinite(part).all(axis=(1, 2)) for part in self]
        return np.asarray(np.logical_and.reduce(is_finite))

    def outputs(self, X: FloatArray, activation: str) -> Iterator[FloatArray]:
        """Yield $o(x)$ of each network in double precision, shape ``(q, len(X))``."""
        columns, activate = _columns(X), _ACTIVATIONS[activation][0]
        slope = np.empty((self.first.shape[1], len(X)))
        for parts in zip(*self, strict=True):
            first, second, offset = (np.asarray(part, dtype=np.float64) for part in parts)
            hidden = first @ columns
            activate(hidden, slope)
            yield offset - second @ hidden


def initial_network(recipe: NetworkSettings, n_features: int, n_outputs: int) -> Networks:
    r"""Draw the weights from which scikit-learn starts, in its order.

    Each layer's weights, then its intercepts, are uniform within
    $\pm\sqrt{6 / (n_{in} + n_{out})}$ (Glorot), with 2 in place of 6 for logistic units.
    """
    from sklearn.utils import check_random_state

    rng = check_random_state(recipe.seed)
    layers = []
    for n_in, n_out in ((n_features, recipe.width), (recipe.width, n_outputs)):
        bound = np.sqrt((2.0 if recipe.activation == "logistic" else 6.0) / (n_in + n_out))
        weights = rng.uniform(-bound, bound, (n_in, n_out))
        layers.append(np.vstack([weights, rng.uniform(-bound, bound, n_out)]).T)
    first, last = layers
    return Networks(first[None], last[None, :, :-1], last[None, :, -1:])


def train(
    start: Networks,
    X: AnyArray,
    y: AnyArray,
    added_X: AnyArray,
    added_y: AnyArray,
    *,
    n_classes: int,
    recipe: NetworkSettings,
    dtype: Any = np.float64,
) -> Networks:
    r"""Train one network for each added point, on that point and the shared ones.

    With $g$ the gradient of $n J$, which is $n$ times that of $J$, Adam's step $t$ is

    $$m \leftarrow \beta_1 m + g, \quad v \leftarrow \beta_2 v + g^2, \quad
    w \leftarrow w - \eta_t \frac{m}{\sqrt v + \epsilon'}, \quad
    \eta_t = \eta \frac{1 - \beta_1}{1 - \beta_1^t} \sqrt{\frac{1 - \beta_2^t}{1 - \beta_2}}$$

    with $\epsilon' = n \epsilon / \sqrt{1 - \beta_2}$: scikit-learn's step, constants moved.

    Parameters
    ----------
    start
        The network from which all start.
    X, y
        The shared points, shapes ``(k, d)`` and ``(k,)``: class codes or quantities.
    own_X, own_y
        One added point per network, shapes ``(c, d)`` and ``(c,)``.
    n_classes
        How many classes there are; 0 for regression.
    recipe
        How to train.
    dtype
        ``float64`` or ``float32``.

    Returns
    -------
    Networks
        The ``c`` trained networks; their weights are not finite where training diverged.
    """
    nets = start.copies(len(added_X), dtype)
    gradient = _Gradient(X.astype(dtype), added_X.astype(dtype), nets, recipe)
    targets = np.empty_like(gradient.out)
    targets[:, :, :-1] = _encode(y, n_classes)
    targets[:, :, -1] = _encode(added_y, n_classes).T
    residual = _RESIDUALS.get(n_classes, _of_many)
    adam = _Adam(nets, recipe, len(X) + 1)
    with np.errstate(all="ignore"):
        for _ in range(recipe.n_steps):
            residual(gradient.forward(nets), targets)
            adam.step(nets, gradient.backward(nets))
    adam.mark_overflow(nets)
    return nets


class _Gradient:
    """The gradient of $n J$ for all networks, in buffers that every step reuses.

    The last column of ``hidden``, ``back`` and ``out`` belongs to the added points.
    """

    def __init__(
        self, X: AnyArray, added_X: AnyArray, nets: Networks, recipe: NetworkSettings
    ) -> None:
        self._activate, self._apply = _ACTIVATIONS[recipe.activation]
        self._alpha = X.dtype.type(recipe.alpha)
        self._rows, self._columns, self._added = _with_ones(X), _columns(X), _with_ones(added_X)
        c, q, h = nets.second.shape
        self._hidden = np.empty((c, h, len(X) + 1), X.dtype)
        self._slope, self._back = np.empty_like(self._hidden), np.empty_like(self._hidden)
        self._parts = Networks(*(np.empty_like(part) for part in nets))
        self._scratch = np.empty_like(nets.first)
        self.out = np.empty((c, q, len(X) + 1), X.dtype)

    def forward(self, nets: Networks) -> AnyArray:
        """Return the outputs, shape ``(c, q, k + 1)``; `backward` expects residuals instead."""
        np.matmul(_stack(nets.first), self._columns, out=_stack(self._hidden)[:, :-1])
        added = np.matmul(nets.first, self._added[:, :, None])
        np.negative(added[:, :, 0], out=self._hidden[:, :, -1])
        self._activate(self._hidden, self._slope)
        np.matmul(nets.second, self._hidden, out=self.out)
        return np.subtract(nets.offset, self.out, out=self.out)

    def backward(self, nets: Networks) -> Networks:
        """Return the gradient; its arrays may be overwritten."""
        first, second, offset = self._parts
        np.matmul(self.out, self._hidden.transpose(0, 2, 1), out=second)
        np.subtract(self._alpha * nets.second, second, out=second)
        np.sum(self.out, axis=2, keepdims=True, out=offset)

        V = nets.second.transpose(0, 2, 1)
        is_single = V.shape[2] == 1  # then multiplying by V after the product is cheaper
        inflow = self.out if is_single else np.matmul(V, self.out, out=self._back)
        self._apply(self._slope, inflow, self._back)
        np.matmul(_stack(self._back)[:, :-1], self._rows, out=_stack(first))
        np.multiply(self._back[:, :, -1:], self._added[:, None], out=self._scratch)
        np.add(first, self._scratch, out=first)
        if is_single:
            np.multiply(first, V, out=first)
        np.multiply(nets.first, self._alpha, out=self._scratch)
        self._scratch[:, :, -1] = 0  # intercepts are not penalised
        np.add(first, self._scratch, out=first)
        return self._parts


class _Adam:
    """Adam's moments and steps, in place."""

    def __init__(self, nets: Networks, recipe: NetworkSettings, n: int) -> None:
        self._recipe, self._t = recipe, 0
        self._number = nets.first.dtype.type
        self._epsilon = self._number(n * recipe.epsilon / np.sqrt(1 - recipe.beta_2))
        self._moments = [(np.zeros_like(part), np.zeros_like(part)) for part in nets]
        self._scratch = [np.empty_like(part) for part in nets]

    def step(self, nets: Networks, gradient: Networks) -> None:
        """Update the weights; the gradient's arrays are overwritten."""
        self._t += 1
        beta_1, beta_2 = self._recipe.beta_1, self._recipe.beta_2
        debias = (1 - beta_1) / (1 - beta_1**self._t)
        debias *= np.sqrt((1 - beta_2**self._t) / (1 - beta_2))
        rate = self._number(self._recipe.rate * debias)
        for w, g, (m, v), s in zip(nets, gradient, self._moments, self._scratch, strict=True):
            m *= self._number(beta_1)
            m += g
            g *= g
            v *= self._number(beta_2)
            v += g
            np.sqrt(v, out=s)
            s += self._epsilon
            np.divide(m, s, out=s)
            s *= rate
            w -= s

    def mark_overflow(self, nets: Networks) -> None:
        """Set weights to nan if their squared gradients overflowed, which stops Adam silently."""
        for w, (_, v) in zip(nets, self._moments, strict=True):
            w[np.isinf(v)] = np.nan


def _stack(parts: AnyArray) -> AnyArray:
    """All networks below each other, shape ``(c * h, ...)``, as a view."""
    return parts.reshape(-1, parts.shape[-1])


def _with_ones(X: AnyArray) -> AnyArray:
    return np.hstack([X, np.ones((len(X), 1), dtype=X.dtype)])


def _columns(X: AnyArray) -> AnyArray:
    """Minus the transposed features, since activations start from $-s$."""
    return np.ascontiguousarray(-_with_ones(X).T)


def _encode(y: AnyArray, n_classes: int) -> AnyArray:
    """Encode targets for the residuals, shape ``(q, n)``: values, signs or one-hot columns."""
    if n_classes == 0:
        return y[None]
    return 2 * y[None] - 1 if n_classes == 2 else np.arange(n_classes)[:, None] == y


# Residuals: `out` holds the outputs o on entry, the derivative of the loss by them on return.


def _of_value(out: AnyArray, value: AnyArray) -> None:
    np.subtract(out, value, out=out)


def _of_two(out: AnyArray, sign: AnyArray) -> None:
    r"""Logistic: $-s / (1 + e^{s o})$ for class $s = \pm 1$, which keeps its digits near 0."""
    np.multiply(out, sign, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.divide(sign, out, out=out)
    np.negative(out, out=out)


def _of_many(out: AnyArray, is_true: AnyArray) -> None:
    """Softmax: probabilities less the one-hot truth."""
    np.subtract(out, out.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(axis=1, keepdims=True), out=out)
    others = np.where(is_true > 0, 0, out).sum(axis=1, keepdims=True)
    np.copyto(out, -others, where=is_true > 0)  # p - 1 would lose its digits


_RESIDUALS: dict[int, Callable[[AnyArray, AnyArray], None]] = {0: _of_value, 2: _of_two}


# Activations: `hidden` holds -s on entry and -a(s) on return, since a ReLU can be read off the sign
# bit of -s. `slope` receives a'(s); for a ReLU that is a mask, all bits or none.


def _relu(hidden: AnyArray, slope: AnyArray) -> None:
    bits, mask = _bits(hidden), _bits(slope)
    np.right_shift(bits, 8 * hidden.itemsize - 1, out=mask)
    np.bitwise_and(bits, mask, out=bits)


def _tanh(hidden: AnyArray, slope: AnyArray) -> None:
    e = np.exp(-2 * np.abs(hidden))
    np.divide(4 * e, (1 + e) ** 2, out=slope)  # 1 - tanh^2 would lose its digits
    np.tanh(hidden, out=hidden)


def _logistic(hidden: AnyArray, slope: AnyArray) -> None:
    np.exp(np.minimum(hidden, 80 if hidden.itemsize == 4 else 700), out=slope)
    np.add(slope, 1, out=hidden)
    np.divide(-1, hidden, out=hidden)
    np.multiply(slope, hidden, out=slope)
    np.multiply(slope, hidden, out=slope)


def _identity(hidden: AnyArray, slope: AnyArray) -> None:
    slope.fill(1)


def _mask(slope: AnyArray, back: AnyArray, out: AnyArray) -> None:
    np.bitwise_and(_bits(slope), _bits(back), out=_bits(out))


def _scale(slope: AnyArray, back: AnyArray, out: AnyArray) -> None:
    np.multiply(slope, back, out=out)


def _bits(array: AnyArray) -> AnyArray:
    return array.view(np.int32 if array.itemsize == 4 else np.int64)


_Activate = Callable[[AnyArray, AnyArray], None]
_Apply = Callable[[AnyArray, AnyArray, AnyArray], None]
_ACTIVATIONS: dict[str, tuple[_Activate, _Apply]] = {
    "relu": (_relu, _mask),
    "tanh": (_tanh, _scale),
    "logistic": (_logistic, _scale),
    "identity": (_identity, _scale),
}
