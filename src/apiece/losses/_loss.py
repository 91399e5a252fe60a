"""Base class of losses, with optional derivatives and series for fast engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.losses._series import sigmoid

Needs = Literal["proba", "label", "decision", "value"]


class SoftmaxSeries(Protocol):
    """A loss around the probabilities of a fitted model, for many changed models at once.

    Attributes
    ----------
    gradient
        Derivative of each row's loss by the margins of all classes, shape ``(K, n)``.
    """

    gradient: FloatArray

    def beyond(self, eta: AnyArray, reach: float) -> FloatArray:
        """Return the change of the loss beyond first order, summed over rows, ``(n_models,)``.

        Parameters
        ----------
        eta
            Changes of the margins against those of the likeliest class, shape
            ``(n_models, K, n)``.
        reach
            Bound of their size.
        """
        ...


class Loss:
    """A loss on the validation set; lower is better.

    A subclass sets ``name`` and ``needs``, and defines `rows`, or `value` if the loss is not a mean
    over rows. Every engine can then compute contributions. The other methods are optional; they
    make engines faster, which otherwise compare losses of predictions.

    Attributes
    ----------
    name
        Its name in manifests and on axes; by default the name of the class.
    needs
        The required prediction: ``proba`` (class probabilities, shape ``(n, n_classes)``),
        ``label`` (class codes), ``decision`` (decision values) or ``value`` (a regression).
    is_mean_of_rows
        Whether `value` is the mean of `rows`.
    is_of_residual
        Whether a row's loss depends on ``y - prediction`` alone.
    curvature
        Second derivative of a row's loss by the predicted value, if it is a constant.
    lowest
        The smallest loss that is possible, if there is one.
    unit
        The unit of the loss in words; empty if it has none.
    is_squared
        Whether the loss is in squared units of the target, so that R2 and RMSE are easier to read.

    Examples
    --------
    >>> class Cubic(Loss):
    ...     name, needs = "cubic", "value"
    ...
    ...     def rows(self, y, prediction):
    ...         return np.abs(y - prediction) ** 3
    >>> Cubic().value(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    4.0
    """

    name: str
    needs: Needs = "proba"
    is_mean_of_rows: ClassVar[bool] = False
    is_of_residual: ClassVar[bool] = False
    curvature: ClassVar[float | None] = None
    lowest: ClassVar[float | None] = None
    unit: ClassVar[str] = ""
    is_squared: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        has_rows = cls.rows is not Loss.rows
        if not has_rows and cls.value is Loss.value:
            raise TypeError(
                f"{cls.__name__} defines neither rows nor value: expected one of them, "
                "(y, prediction) -> a loss for every row, or for all of them."
            )
        if "is_mean_of_rows" not in cls.__dict__:
            cls.is_mean_of_rows = has_rows
        if "name" not in cls.__dict__:
            cls.name = f"{cls.__module__}.{cls.__qualname__}"

    @property
    def kind(self) -> str:
        """The kind of data the loss is for: ``classification`` or ``regression``."""
        return "regression" if self.needs == "value" else "classification"

    def rows(self, y: AnyArray, prediction: AnyArray) -> FloatArray:
        """Return the loss of every row, shape ``(n,)``."""
        raise NotImplementedError(f"{self.name} has no loss by row")

    def value(self, y: AnyArray, prediction: AnyArray) -> float:
        """Return the loss of a model: the mean of `rows`.

        Parameters
        ----------
        y
            Class codes (positions in ``dataset.classes``) or targets, shape ``(n,)``.
        prediction
            What ``needs`` says, with ``n`` rows.
        """
        return float(np.mean(self.rows(y, prediction)))

    def values(self, y: AnyArray, predictions: AnyArray) -> FloatArray:
        """Return the loss of many models, one in each row of ``predictions``."""
        return np.array([self.value(y, prediction) for prediction in predictions])

    def of_margins(self, y: AnyArray, margins: FloatArray) -> FloatArray:
        """Return the loss of models with one margin, one in each row.

        Parameters
        ----------
        y
            Class codes 0 or 1, or targets, shape ``(n,)``.
        margins
            Log odds of class 1, decision values, or the logarithm of the predicted mean, shape
            ``(n_models, n)``.

        Returns
        -------
        FloatArray
            Shape ``(n_models,)``.
        """
        if self.needs == "decision":
            return self.values(y, margins)
        if self.needs == "value":
            return self.values(y, np.exp(margins))
        if self.needs == "label":
            return self.values(y, (margins > 0).astype(np.int64))
        return self.values(y, np.stack([sigmoid(-margins), sigmoid(margins)], axis=-1))

    def margin_series(self, y: AnyArray, margins: FloatArray, degree: int) -> FloatArray | None:
        r"""Return coefficients of each row's loss as a power series in the change of its margin.

        Parameters
        ----------
        y
            Class codes 0 or 1, or targets, shape ``(n,)``.
        margins
            Log odds of class 1, or the logarithm of the predicted mean, shape ``(n,)``.
        degree
            Degree of the series.

        Returns
        -------
        FloatArray or None
            Shape ``(degree + 1, n)``, the constant left at zero; None where there is no series.
        """
        return None

    def softmax_series(self, y: IntArray, pi: FloatArray) -> SoftmaxSeries | None:
        """Return the loss around probabilities ``pi``, shape ``(K, n)``; None without a series."""
        return None

    def slope(self, y: AnyArray, prediction: FloatArray) -> FloatArray:
        """Return the derivative of each row's loss by the linear predictors of a model.

        These are the log odds of the second of two classes, the margins of more classes, or the
        predicted value.

        Parameters
        ----------
        y
            Class codes or targets, shape ``(n,)``.
        prediction
            Probabilities, shape ``(n, K)``, or values, shape ``(n,)``.

        Returns
        -------
        FloatArray
            Shape ``(n, K)``, or ``(n, 1)`` for two classes and for values.
        """
        raise NotImplementedError(f"{self.name} has no derivative")

    @property
    def has_slope(self) -> bool:
        """Whether `slope` is defined."""
        return type(self).slope is not Loss.slope

    @property
    def has_softmax_series(self) -> bool:
        """Whether `softmax_series` is defined."""
        return type(self).softmax_series is not Loss.softmax_series

    def fall(self, y: AnyArray, prediction: AnyArray, change: FloatArray) -> FloatArray:
        """Return by how much the loss falls when predictions change.

        Parameters
        ----------
        y, prediction
            Targets and predicted values, shape ``(n,)``.
        change
            Changes of the predicted values, shape ``(n_models, n)``.

        Returns
        -------
        FloatArray
            Shape ``(n_models,)``.
        """
        return self.value(y, prediction) - self.values(y, prediction + change)


class FunctionLoss(Loss):
    """A function ``(y, prediction) -> loss`` as a loss.

    Parameters
    ----------
    name
        Its name in manifests and on axes.
    needs
        The required prediction; see `Loss`.
    function
        Returns the loss of a model as a number.

    Examples
    --------
    >>> loss = FunctionLoss("largest error", "value", lambda y, p: np.abs(y - p).max())
    >>> loss.value(np.array([1.0, 2.0]), np.array([1.5, 4.0]))
    2.0
    """

    def __init__(
        self, name: str, needs: Needs, function: Callable[[AnyArray, AnyArray], float]
    ) -> None:
        self.name, self.needs, self.function = name, needs, function

    def value(self, y: AnyArray, prediction: AnyArray) -> float:
        """Return the loss of a model."""
        return float(self.function(y, prediction))
