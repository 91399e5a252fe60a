r"""What estimators see of a point's features: a linear model of the target, and its gradient.

A linear model is first trained to predict the target ($\hat p$, class probabilities, or $\hat y$).
For a learner that minimises a smooth loss, theory says which of its quantities matter: with the
gradient of the point's own loss $\nabla\ell(z) = r \otimes x$, $r = \hat p(x) - e_y$ (or
$\hat y(x) - y$),

$$\Delta(z, D) \approx \frac{1}{k}\,\nabla L^\top V^{-1} \nabla\ell(z) + \ldots, \qquad
  \text{size of the effect} \propto |r|\sqrt{x^\top \Sigma^{-1} x},$$

so the network gets the direction $r/|r|$ and $x / \sqrt{h}$ with the leverage
$h = 1 + x^\top\Sigma^{-1}x$, and logarithms of $|r|$ and $h$, beside $x$ itself.

Reference: Covert et al. (ICML 2024), theorems of appendix A.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from apiece._typing import AnyArray, FloatArray, IntArray

_INVERSE_PENALTIES: Final = (0.01, 0.1, 1.0)  # C of the logistic regressions tried
_PENALTIES: Final = (1.0, 10.0, 100.0, 1000.0)  # alpha of the ridge regressions tried
_MOST: Final = 20_000  # points that the linear model is trained on
_RIDGE: Final = 0.01  # added to the second moments of standardised features
_SMALLEST: Final = 1e-6  # error of a prediction, in units of probability or of the spread
_ABSENT: Final = -15.0  # logit of a class that the model has not seen
_NODES: Final = 15  # errors of the prediction that stand for an unknown quantity


@dataclass(frozen=True)
class Inputs:
    """What the network sees of ``n`` points.

    Parameters
    ----------
    x
        Standardised features and a constant, shape ``(n, d + 1)``.
    direction
        Error of the prediction, of unit length, shape ``(n, c)``.
    size
        Length of the error times the root of the leverage, shape ``(n,)``; 1 is typical.
    root
        Root of the leverage, shape ``(n,)``.
    bend
        Variance of the label times the leverage, shape ``(n,)``; 1 is typical.
    summary
        Standardised logarithms of the error and the leverage, their sum, and what the model
        says of the point (the log odds of its label, or its quantity), shape ``(n, 4)``.
    label
        Class codes, zero for quantities, shape ``(n,)``.
    """

    x: FloatArray
    direction: FloatArray
    size: FloatArray
    root: FloatArray
    bend: FloatArray
    summary: FloatArray
    label: IntArray

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Reader:
    """The linear model of the target, and the units of everything derived from it.

    Parameters
    ----------
    middle, unit
        Means and standard deviations of the features, each of shape ``(d,)``.
    coef
        Coefficients of the model on standardised features and a constant, shape ``(d + 1, c)``:
        logits of the ``c`` classes, or the one standardised quantity.
    precision
        Inverse of the features' second moments, shape ``(d, d)``.
    classes
        The classes; None for quantities.
    target
        Mean and standard deviation of the quantities, shape ``(2,)``; ``(0, 1)`` for classes.
    errors
        Typical errors ``y - prediction`` of the model in units of the target's, evenly spaced in
        probability, shape ``(15,)``; empty for classes.
    summary_units
        Mean and standard deviation of the four summaries, and the typical size and bend, shape
        ``(2, 6)``.
    """

    middle: FloatArray
    unit: FloatArray
    coef: FloatArray
    precision: FloatArray
    classes: AnyArray | None
    target: FloatArray
    errors: FloatArray
    summary_units: FloatArray

    def predict(self, X: FloatArray) -> FloatArray:
        """Return class probabilities, shape ``(n, c)``, or quantities, shape ``(n,)``."""
        output = self.standard(X) @ self.coef
        if self.classes is None:
            return np.asarray(self.target[0] + self.target[1] * output[:, 0])
        return probabilities(output)

    def standard(self, X: FloatArray) -> FloatArray:
        """Return standardised features and a constant, shape ``(n, d + 1)``."""
        return np.column_stack([(X - self.middle) / self.unit, np.ones(len(X))])

    def inputs(self, X: FloatArray, y: AnyArray, output: FloatArray | None = None) -> Inputs:
        """Return what the network sees of points.

        Parameters
        ----------
        X, y
            Features, shape ``(n, d)``, and class codes or quantities, shape ``(n,)``.
        output
            What the model says of them, shape ``(n, c)``, if not what its coefficients say.
        """
        x = self.standard(X)
        output = x @ self.coef if output is None else output
        if self.classes is None:
            label = np.zeros(len(X), dtype=np.int64)
            told = (y - self.target[0]) / self.target[1]
            error = output - told[:, None]
            variance = np.ones(len(X))
        else:
            label = y.astype(np.int64)
            p = probabilities(output)
            own = np.clip(p[np.arange(len(p)), label], _SMALLEST, 1 - _SMALLEST)
            told = np.log(own / (1 - own))
            error = (p - np.eye(len(self.classes))[label])[:, 1:]  # the columns sum to zero
            variance = (p * (1 - p)).sum(axis=1)
        length = np.maximum(np.sqrt((error**2).sum(axis=1)), _SMALLEST)
        features = x[:, :-1]
        leverage = 1 + np.einsum("na,ab,nb->n", features, self.precision, features, optimize=True)
        root, size = np.sqrt(leverage), length * np.sqrt(leverage)
        summary = np.column_stack([told, np.log(length), np.log(leverage), np.log(size)])
        middle, unit = self.summary_units[:, :4]
        return Inputs(
            x=x,
            direction=error / length[:, None],
            size=size / self.summary_units[1, 4],
            root=root,
            bend=variance * leverage / self.summary_units[1, 5],
            summary=(summary - middle) / unit,
            label=label,
        )


def learn(
    X: FloatArray,
    y: AnyArray,
    classes: AnyArray | None,
    fold: IntArray,
    more: tuple[FloatArray, AnyArray] | None = None,
) -> tuple[Reader, Inputs]:
    """Train the linear model; return it with the inputs of its own points.

    Predictions for the points themselves are made without their fold, as they are for points to
    come; otherwise the errors of points that the model knows by heart would look small.

    Parameters
    ----------
    X, y
        Features, shape ``(n, d)``, and class codes or quantities, shape ``(n,)``.
    classes
        The classes, None for quantities.
    fold
        The fold of each point, shape ``(n,)``.
    more
        Features and targets of further points to learn from, used for every fold.
    """
    X, y = with_more(X, y, more)
    n_own, n = len(fold), len(X)
    fold = np.append(fold, np.full(n - n_own, -1))
    used = _used(n)
    reader = blank(X, y, classes)
    target = reader.target
    goal = (y[used] - target[0]) / target[1] if classes is None else y[used]
    coef, apart = _cross_fitted(reader.standard(X[used]), goal, fold[used], reader)
    reader = replace(reader, coef=coef)

    output = reader.standard(X[:n_own]) @ coef
    output[used[used < n_own]] = apart[used < n_own]
    own = X[:n_own], y[:n_own], output
    if classes is None:
        miss = (y[:n_own] - target[0]) / target[1] - output[:, 0]
        reader = replace(reader, errors=np.quantile(miss, (np.arange(_NODES) + 0.5) / _NODES))
    raw = reader.inputs(*own)
    spread = raw.summary.std(axis=0)
    units = np.stack([raw.summary.mean(axis=0), np.where(spread > 0, spread, 1.0)])
    sizes = np.sqrt((np.stack([raw.size, raw.bend]) ** 2).mean(axis=1))
    typical = np.stack([np.zeros(2), np.where(sizes > 0, sizes, 1.0)])
    reader = replace(reader, summary_units=np.column_stack([units, typical]))
    return reader, reader.inputs(*own)


def with_more(
    X: FloatArray, y: AnyArray, more: tuple[FloatArray, AnyArray] | None
) -> tuple[FloatArray, AnyArray]:
    """Put further points behind one's own."""
    if more is None:
        return X, y
    return np.concatenate([X, more[0]]), np.concatenate([y, more[1]])


def blank(X: FloatArray, y: AnyArray, classes: AnyArray | None) -> Reader:
    """Return a reader that knows the units of features and targets, and has no model yet."""
    used = _used(len(X))
    unit = X[used].std(axis=0)
    target = np.array([0.0, 1.0])
    if classes is None:
        target = np.array([y[used].mean(), y[used].std() or 1.0])
    reader = Reader(
        middle=X[used].mean(axis=0),
        unit=np.where(unit > 0, unit, 1.0),
        coef=np.zeros((X.shape[1] + 1, 1 if classes is None else len(classes))),
        precision=np.eye(X.shape[1]),
        classes=classes,
        target=target,
        errors=np.empty(0),
        summary_units=np.tile([[0.0], [1.0]], 6),
    )
    x = reader.standard(X[used])[:, :-1]
    second = x.T @ x / len(x) + _RIDGE * np.eye(X.shape[1])
    return replace(reader, precision=np.asarray(np.linalg.inv(second), np.float64))


def _used(n: int) -> IntArray:
    """Return the points that models are trained on, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, _MOST)).astype(np.int64))


def _cross_fitted(
    x: FloatArray, goal: AnyArray, fold: IntArray, reader: Reader
) -> tuple[FloatArray, FloatArray]:
    """Choose the penalty by its loss on folds left out; return coefficients and those outputs."""
    n_outputs = reader.coef.shape[1]
    is_own = fold >= 0
    best, lowest, apart = penalties(reader)[0], np.inf, np.zeros((len(x), n_outputs))
    for penalty in penalties(reader):
        output = np.zeros((len(x), n_outputs))
        for part in range(fold.max() + 1):
            inside = fold == part
            output[inside] = x[inside] @ trained(x[~inside], goal[~inside], penalty, reader)
        lost = loss(output[is_own], goal[is_own], reader)
        if lost < lowest:
            best, lowest, apart = penalty, lost, output
    return trained(x, goal, best, reader), apart


def penalties(reader: Reader) -> tuple[float, ...]:
    """Return the penalties to try: alpha of ridge, or C of logistic regression."""
    return _PENALTIES if reader.classes is None else _INVERSE_PENALTIES


def trained(x: FloatArray, goal: AnyArray, penalty: float, reader: Reader) -> FloatArray:
    """Fit a ridge or logistic regression, shape ``(d + 1, c)``; absent classes get no chance."""
    from sklearn.linear_model import LogisticRegression, Ridge

    coef = np.zeros((x.shape[1], reader.coef.shape[1]))
    if reader.classes is None:
        ridge = Ridge(alpha=penalty).fit(x[:, :-1], goal)
        coef[:, 0] = np.append(ridge.coef_, ridge.intercept_)
        return coef
    present = np.unique(goal)
    coef[-1] = _ABSENT
    coef[-1, present] = 0.0
    if len(present) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a rough optimum serves as well
            model = LogisticRegression(C=penalty, max_iter=300, tol=1e-3)
            model.fit(x[:, :-1], goal)
        found = np.column_stack([model.coef_, model.intercept_]).T
        coef[:, present[-found.shape[1] :]] = found  # two classes: the logit of the second
    return coef


def loss(output: FloatArray, goal: AnyArray, reader: Reader) -> float:
    """Return the mean squared error, or the mean log loss."""
    if reader.classes is None:
        return float(((output[:, 0] - goal) ** 2).mean())
    p = probabilities(output)[np.arange(len(goal)), goal]
    return float(-np.log(np.maximum(p, _SMALLEST)).mean())


def probabilities(output: FloatArray) -> FloatArray:
    """Return the probabilities of logits, shape ``(n, c)``."""
    odds = np.exp(output - output.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
