r"""Inputs of estimators from a point's features: linear models of the target, and their gradient.

Linear models are first trained to predict the target ($\hat p$, class probabilities, or $\hat y$),
each on as few points as the training sets of the contributions (`apiece.estimators._small_models`);
their mean is used. For a learner that minimises a smooth loss, theory says which quantities matter:
with the gradient of the loss at the point $\nabla\ell(z) = r \otimes x$,
$r = \hat p(x) - e_y$ (or $\hat y(x) - y$),

$$\Delta(z, D) \approx \frac{1}{k}\,\nabla L^\top V^{-1} \nabla\ell(z) + \ldots, \qquad
  \text{size of the effect} \propto |r|\sqrt{x^\top \Sigma^{-1} x},$$

so the network gets the direction $r/|r|$ and $x / \sqrt{h}$ with the leverage
$h = 1 + x^\top\Sigma^{-1}x$, and logarithms of $|r|$ and $h$, with $x$ itself.

Reference: Covert et al. (ICML 2024), theorems of appendix A.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray

_INVERSE_PENALTIES: Final = (0.01, 0.1, 1.0)  # C of the logistic regressions tried
_PENALTIES: Final = (1.0, 10.0, 100.0, 1000.0)  # alpha of the ridge regressions tried
_MOST: Final = 20_000  # points that units are measured from
_RIDGE: Final = 0.01  # added to the second moments of standardised features
_SMALLEST: Final = 1e-6  # error of a prediction, in units of probability or of the spread
_ABSENT: Final = -15.0  # logit of a class that the model has not seen


@dataclass(frozen=True)
class Inputs:
    """What the network sees of ``n`` points.

    Parameters
    ----------
    x
        Features in the reader's units and a constant, shape ``(n, d + 1)``.
    direction
        Error of the prediction, of unit length, shape ``(n, c)``.
    size
        Length of the error times the root of the leverage, shape ``(n,)``; 1 is typical.
    root
        Root of the leverage, shape ``(n,)``.
    bend
        Variance of the label times the leverage, shape ``(n,)``; 1 is typical.
    summary
        Standardised logarithms of the error and the leverage, their sum, and the model's
        prediction (the log odds of the label, or the quantity), shape ``(n, 4)``.
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
class FeatureProbe:
    """The linear models of the target, and the units of everything derived from them.

    Parameters
    ----------
    middle, unit
        Means of the features, and what they are measured in: the standard deviation of each, or
        one that is typical of all; each of shape ``(d,)``.
    coef
        Coefficients of ``b`` models on features in these units and a constant, shape
        ``(b, d + 1, c)``: logits of the ``c`` classes, or the one standardised quantity.
    precision
        Inverse of the features' second moments in these units, shape ``(d, d)``.
    classes
        The classes; None for quantities.
    target
        Mean and standard deviation of the quantities, shape ``(2,)``; ``(0, 1)`` for classes.
    errors
        Typical errors ``y - prediction`` of the models in units of the target's, evenly spaced in
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
        output = self.output(X)
        if self.classes is None:
            return np.asarray(self.target[0] + self.target[1] * output[:, 0])
        return probabilities(output)

    def output(self, X: FloatArray) -> FloatArray:
        """Return mean predictions of the models: log probabilities, or standardised quantities."""
        x = self.standard(X)
        total = np.zeros((len(x), self.coef.shape[-1]))
        for coef in self.coef:
            total += self.said(x @ coef)
        return self.averaged(total / len(self.coef))

    def said(self, output: FloatArray) -> FloatArray:
        """Return what a model says in units that can be averaged: probabilities, or quantities."""
        return output if self.classes is None else probabilities(output)

    def averaged(self, said: FloatArray) -> FloatArray:
        """Return the mean prediction of several models in the form of one."""
        return said if self.classes is None else np.log(np.maximum(said, _SMALLEST))

    def standard(self, X: FloatArray) -> FloatArray:
        """Return features in the reader's units and a constant, shape ``(n, d + 1)``."""
        return np.column_stack([(X - self.middle) / self.unit, np.ones(len(X))])

    def inputs(self, X: FloatArray, y: AnyArray, output: FloatArray | None = None) -> Inputs:
        """Return what the network sees of points.

        Parameters
        ----------
        X, y
            Features, shape ``(n, d)``, and class codes or quantities, shape ``(n,)``.
        output
            Predictions of other models than those of the reader, shape ``(n, c)``.
        """
        x = self.standard(X)
        output = self.output(X) if output is None else output
        if self.classes is None:
            label = np.zeros(len(X), dtype=np.int64)
            summary_y = (y - self.target[0]) / self.target[1]
            error = output - summary_y[:, None]
            variance = np.ones(len(X))
        else:
            label = y.astype(np.int64)
            p = probabilities(output)
            true_class = np.clip(p[np.arange(len(p)), label], _SMALLEST, 1 - _SMALLEST)
            summary_y = np.log(true_class / (1 - true_class))
            error = (p - np.eye(len(self.classes))[label])[:, 1:]  # the columns sum to zero
            variance = (p * (1 - p)).sum(axis=1)
        length = np.maximum(np.sqrt((error**2).sum(axis=1)), _SMALLEST)
        features = x[:, :-1]
        leverage = 1 + np.einsum("na,ab,nb->n", features, self.precision, features, optimize=True)
        root, size = np.sqrt(leverage), length * np.sqrt(leverage)
        summary = np.column_stack([summary_y, np.log(length), np.log(leverage), np.log(size)])
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


def with_more(
    X: FloatArray, y: AnyArray, more: tuple[FloatArray, AnyArray] | None
) -> tuple[FloatArray, AnyArray]:
    """Append further points to the points."""
    if more is None:
        return X, y
    return np.concatenate([X, more[0]]), np.concatenate([y, more[1]])


def blank(
    X: FloatArray, y: AnyArray, classes: AnyArray | None, *, one_unit: bool = False
) -> FeatureProbe:
    """Return a reader that knows the units of features and targets, and has no model yet.

    Parameters
    ----------
    X, y
        Features, shape ``(n, d)``, and class codes or quantities, shape ``(n,)``.
    classes
        The classes, None for quantities.
    one_unit
        Whether all features are measured in one unit, so that their spread decides how much each
        counts, as for embeddings; else each is measured in its own.
    """
    used = _used(len(X))
    unit = X[used].std(axis=0)
    if one_unit:
        largest = unit.max() or 1.0  # squares of huge features would overflow
        unit = np.full(len(unit), largest * np.sqrt(((unit / largest) ** 2).mean()))
    target = np.array([0.0, 1.0])
    if classes is None:
        target = np.array([y[used].mean(), y[used].std() or 1.0])
    reader = FeatureProbe(
        middle=X[used].mean(axis=0),
        unit=np.where(unit > 0, unit, 1.0),
        coef=np.zeros((1, X.shape[1] + 1, 1 if classes is None else len(classes))),
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
    """Return points from which units are measured, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, _MOST)).astype(np.int64))


def penalties(reader: FeatureProbe) -> tuple[float, ...]:
    """Return the penalties to try: alpha of ridge, or C of logistic regression."""
    return _PENALTIES if reader.classes is None else _INVERSE_PENALTIES


def trained(x: FloatArray, goal: AnyArray, penalty: float, reader: FeatureProbe) -> FloatArray:
    """Fit a ridge or logistic regression, shape ``(d + 1, c)``; absent classes get no chance."""
    from sklearn.linear_model import LogisticRegression, Ridge

    coef = np.zeros((x.shape[1], reader.coef.shape[-1]))
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
        fitted_coef = np.column_stack([model.coef_, model.intercept_]).T
        coef[:, present[-fitted_coef.shape[1] :]] = (
            fitted_coef  # two classes: the logit of the second
        )
    return coef


def loss(output: FloatArray, goal: AnyArray, reader: FeatureProbe) -> float:
    """Return the mean squared error, or the mean log loss."""
    if reader.classes is None:
        return float(((output[:, 0] - goal) ** 2).mean())
    p = probabilities(output)[np.arange(len(goal)), goal]
    return float(-np.log(np.maximum(p, _SMALLEST)).mean())


def probabilities(output: FloatArray) -> FloatArray:
    """Return the probabilities of logits, shape ``(n, c)``."""
    odds = np.exp(output - output.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
