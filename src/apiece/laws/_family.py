r"""Base class of families: curves $\psi_k$ with parameters, and all that depends on their form.

Parameters are for people, such as $(c, \alpha)$. Their errors are often so correlated and skewed
that a normal approximation fails ($c$ is an extrapolation down to one training point). Each family
therefore also has *local coordinates*, in which errors are nearly normal and nearly uncorrelated.
Covariances, the delta method and draws use local coordinates.

There are two kinds of coordinates. Curves are linear in the first ones: if contributions double,
these double. The last ones, the *shape coordinates* such as $\alpha$, are not linear. Once they are
given, fitting a law is linear algebra. Estimators rely on nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import product
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias

import numpy as np

from apiece._base.typing import FloatArray
from apiece.errors import ApieceError, FitError
from apiece.laws import _words
from apiece.laws._basis import FamilyBasis, power_law_moments
from apiece.laws._ellipsoid import extremes

FamilyLike: TypeAlias = "str | Family"
Term: TypeAlias = tuple[str, float | str]

_NODES: Final = {0: 1, 1: 25, 2: 9}  # values of each shape coordinate on the grid; otherwise 5
_WIDER: Final = 3.0  # how much wider than typical the grid's masses are
_STEP: Final = 1e-5  # of a shape coordinate, for derivatives


class ShapePrior(NamedTuple):
    """Prior of a shape coordinate.

    Parameters
    ----------
    low, high
        The range that is searched.
    typical, spread
        Mean and standard deviation over points.

    Examples
    --------
    >>> ShapePrior(low=0.0, high=3.0, typical=1.0, spread=0.3).typical
    1.0
    """

    low: float
    high: float
    typical: float
    spread: float


class Family(ABC):
    """A family of curves over cardinalities, with ``p`` parameters.

    A subclass states ``name``, ``parameters``, ``shapes`` and ``curve``, and ``to_local`` and
    ``from_local`` unless its coordinates are its parameters. Everything else has a default. A
    family whose curves are sums of fixed terms derives from `Linear` and states ``basis`` instead.
    Settings are the fields of a frozen dataclass, so that files can keep them.

    Examples
    --------
    A family of two parameters, of which the second is a shape coordinate:

    >>> from apiece.laws import Laws
    >>> class Exponential(Family):
    ...     name = "exponential"
    ...     parameters = ("height", "rate")
    ...     shapes = {"rate": ShapePrior(0.0, 0.1, 0.01, 0.005)}
    ...
    ...     def curve(self, params, k):
    ...         return params[..., 0] * np.exp(-params[..., 1] * k)
    >>> Laws.from_arrays(family=Exponential(), params=[[2.0, 0.01]]).mean(100).round(3)
    array([0.736])
    """

    name: ClassVar[str]
    """The word for the family, such as ``"power"``."""
    scale: ClassVar[str | None] = None
    """The parameter that gives the sign and the size of a curve at every ``k``, if there is one."""
    decay: ClassVar[str | None] = None
    """The parameter that is the exponent of ``k`` at every ``k``, if there is one."""
    needs_population: ClassVar[bool] = False
    """Whether there are too many parameters for the contributions of one point.

    Then `Bayes`, which learns from all points, fits the family; without features or a prior.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "name"):
            _words.KNOWN[_words.key(cls)] = cls

    @property
    @abstractmethod
    def parameters(self) -> tuple[str, ...]:
        """Names of the ``p`` parameters."""

    @property
    @abstractmethod
    def shapes(self) -> Mapping[str, ShapePrior]:
        """The shape coordinates by name: the last of the ``p`` local coordinates."""

    @abstractmethod
    def curve(self, params: FloatArray, k: FloatArray) -> FloatArray:
        """Evaluate curves, each at its sizes: ``(..., p)`` and ``(...)`` broadcast to ``(...)``."""

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the ``p`` local coordinates."""
        return self.parameters

    def to_local(self, params: FloatArray, k_ref: float) -> FloatArray:
        """Map parameters, shape ``(..., p)``, to local coordinates."""
        return params

    def from_local(self, local: FloatArray, k_ref: float) -> FloatArray:
        """Map local coordinates, shape ``(..., p)``, back to parameters."""
        return local

    @property
    def word(self) -> str:
        """Name of the family with its settings, such as ``"series24"``."""
        return self.name

    @property
    def is_linear(self) -> bool:
        """Whether curves are linear in all coordinates."""
        return not self.shapes

    @property
    def is_power_law(self) -> bool:
        """Whether curves are ``scale * k**-decay``, and there are no other parameters."""
        return self.parameters == (self.scale, self.decay)

    @property
    def n_linear(self) -> int:
        """How many coordinates curves are linear in."""
        return len(self.parameters) - len(self.shapes)

    @property
    def members(self) -> tuple[Family, ...]:
        """The families whose laws are fitted and averaged; none for a family fitted as it is."""
        return ()

    def places(self, member: Family) -> list[int]:
        """Return where the parameters of a member are among those of the family."""
        return [self.parameters.index(name) for name in member.parameters]

    def describe(self) -> str:
        """Describe the family in one line."""
        return f"{self.name} ({', '.join(self.parameters)})"

    # Curves and their uncertainty.

    def mean(self, params: FloatArray, k: FloatArray) -> FloatArray:
        """Evaluate all curves at all sizes: ``(n, p)`` and ``(n_k,)`` give ``(n, n_k)``."""
        return self.curve(params[:, None, :], k)

    def gradient(self, params: FloatArray, k: FloatArray, k_ref: float) -> FloatArray:
        """Differentiate the curves by the local coordinates: shape ``(n, n_k, p)``."""
        x = np.broadcast_to(k / k_ref, (len(params), len(k)))
        return self.slopes(self.to_local(params, k_ref), x, k_ref)

    def slopes(self, local: FloatArray, x: FloatArray, k_ref: float) -> FloatArray:
        """Differentiate by the local coordinates, ``(n, p)``, at sizes ``k_ref x``, ``(n, m)``.

        Curves are linear in the first coordinates; central differences are used for the others.

        Returns
        -------
        FloatArray
            Shape ``(n, m, p)``.
        """
        parts = [self.columns(x, local[:, self.n_linear :], k_ref)]
        for j in range(self.n_linear, local.shape[1]):
            step = _STEP * (1 + np.abs(local[:, j]))
            off = np.zeros_like(local)
            off[:, j] = step
            above, below = (
                self.curve(self.from_local(at, k_ref)[:, None, :], k_ref * x)
                for at in (local + off, local - off)
            )
            parts.append(((above - below) / (2 * step[:, None]))[..., None])
        return np.concatenate(parts, axis=-1)

    def interval(
        self, params: FloatArray, cov: FloatArray, reach: FloatArray, k: FloatArray, k_ref: float
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return the least and the largest curve within ``reach`` standard errors.

        That is over all coordinates with $(\theta - \hat\theta)^\top C^{-1}(\theta - \hat\theta)
        \le r^2$.

        Parameters
        ----------
        params, cov
            Parameters, ``(n, p)``, and covariances of the local coordinates, ``(n, p, p)``.
        reach
            Standard errors $r$, shape ``()`` or ``(n,)``.
        k, k_ref
            Sizes, shape ``(n_k,)``, and the size of the local coordinates.

        Returns
        -------
        tuple of FloatArray
            Ends of the intervals, each of shape ``(n, n_k)``; nan where ``cov`` is nan.
        """
        return extremes(self, params, cov, reach, k, k_ref)

    # For estimators.

    def columns(self, x: FloatArray, shape: FloatArray, k_ref: float) -> FloatArray:
        """Evaluate the curves whose linear coordinates are one in turn.

        Parameters
        ----------
        x
            Sizes over ``k_ref``, shape ``(n, m)``.
        shape
            Shape coordinates, ``(n, n_shapes)``.
        k_ref
            Size of the local coordinates.

        Returns
        -------
        FloatArray
            Shape ``(n, m, n_linear)``.
        """
        parts = []
        for unit in np.eye(self.n_linear):
            height = np.broadcast_to(unit, (len(x), self.n_linear))
            params = self.from_local(np.concatenate([height, shape], axis=1), k_ref)
            parts.append(self.curve(params[:, None, :], k_ref * x))
        return np.stack(parts, axis=-1)

    def scales(self, unit: FloatArray, k_ref: float) -> FloatArray:
        """Return the factors on coordinates when contributions are ``unit`` times as large.

        Parameters
        ----------
        unit
            Shape ``(n,)``.
        k_ref
            Size of the local coordinates.

        Returns
        -------
        FloatArray
            Shape ``(n, p)``; one for shape coordinates. For sums of terms also from coefficients
            of terms that are one at ``k_ref`` to coordinates.
        """
        heights = np.repeat(unit[:, None], self.n_linear, axis=1)
        return np.concatenate([heights, np.ones((len(unit), len(self.shapes)))], axis=1)

    def priors(self, k_ref: float) -> tuple[FloatArray, FloatArray]:
        """Return covariances of the linear coordinates before data, up to their scale.

        The first is for estimates. The second is for intervals and allows for other curves. By
        default curves are assumed to be like power laws with typical shape coordinates.
        """
        typical = np.array([[prior.typical for prior in self.shapes.values()]])
        return power_law_moments(lambda x: self.columns(x, typical, k_ref))

    def prior_basis(self, k_ref: float) -> FamilyBasis:
        """Return the family as lists of linear curves, with its prior."""
        n_nodes = _NODES.get(len(self.shapes), 5)
        axes = [np.linspace(prior.low, prior.high, n_nodes) for prior in self.shapes.values()]
        nodes = np.array(list(product(*axes)), dtype=np.float64)
        typical = np.array([prior.typical for prior in self.shapes.values()])
        spread = np.array([prior.spread for prior in self.shapes.values()])
        if self.coordinates[self.n_linear :] != tuple(self.shapes):
            raise FitError(
                f"the last coordinates of {self!r} are not its shapes: expected coordinates that "
                f"end with {', '.join(self.shapes)}. Reorder coordinates, to_local and from_local."
            )
        mass = np.exp(-0.5 * (((nodes - typical) / (_WIDER * spread)) ** 2).sum(axis=1))
        return FamilyBasis.of(self, k_ref, nodes, typical, mass / mass.sum())

    def project(
        self, curves: FloatArray, x: FloatArray, k_ref: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the curves of the family that are nearest to others, by least squares.

        Parameters
        ----------
        curves
            Values at sizes ``k_ref x``, shape ``(n, m)``.
        x, k_ref
            Sizes over ``k_ref``, shape ``(m,)``.

        Returns
        -------
        tuple of FloatArray
            Coefficients of `columns`, ``(n, n_linear)``, and shape coordinates, ``(n, n_shapes)``.
        """
        return self.prior_basis(k_ref).nearest(curves, x)

    def random(
        self, height: FloatArray, k_ref: float, rng: np.random.Generator, harmful: float
    ) -> FloatArray:
        """Draw parameters of curves with typical shapes.

        Parameters
        ----------
        height
            Size of each curve at ``k_ref``, shape ``(n,)``.
        k_ref, rng
            The size, and the random generator.
        harmful
            Share of curves with a negative sign.

        Returns
        -------
        FloatArray
            Shape ``(n, p)``.
        """
        n = len(height)
        shape = np.stack(
            [
                np.clip(rng.normal(prior.typical, prior.spread, n), prior.low, prior.high)
                for prior in self.shapes.values()
            ],
            axis=1,
        )
        sign = np.where(rng.random(n) < harmful, -1.0, 1.0)
        unit = self.columns(np.ones((n, 1)), shape, k_ref)[:, 0, :]
        linear = (sign * height)[:, None] / unit / self.n_linear
        return self.from_local(np.concatenate([linear, shape], axis=1), k_ref)

    def tensor_curve(self, coordinates: Any, log_x: Any) -> Any:
        """Evaluate curves with tensors of torch: ``(..., n, p)`` and ``(n, m)``.

        ``coordinates`` are those of contributions of size one, see `scales`, and ``log_x`` is the
        logarithm of ``k / k_ref``. Only `Amortized` needs it.
        """
        raise FitError(
            f"{self.name} laws cannot be predicted by a network: expected a family with "
            "tensor_curve, such as power or series. Fit them with bayes, or write that method."
        )

    # For uses, plots and reports.

    def crossing(self, first: FloatArray, second: FloatArray) -> float | None:
        """Return the size at which two curves cross, nan if they do not; None to search for it."""
        return None

    @property
    def page_terms(self) -> list[Term] | None:
        r"""The terms of a sum that the page of a report evaluates; None sends sampled curves.

        Term $j$ is a kind and a number $e$, and gives the factor on linear coordinate $j$:
        ``("power", e)`` for $k^{-e}$, ``("relative", e)`` for $(k/k_\mathrm{ref})^{-e}$, and
        ``("shift", e)`` for $1/(k + e)$. Instead of a number, $e$ may name a shape coordinate.
        """
        return None

    # Words and files.

    @classmethod
    def from_word(cls, word: str, k_range: tuple[int, int] | None) -> Self | None:
        """Return the family of that name, over sampled sizes; None for another name."""
        return cls() if word == cls.name else None

    def to_json(self) -> dict[str, Any]:
        """Return the family as plain values: its key under ``family``, and its settings."""
        this: Any = self
        names = [field.name for field in fields(this)] if is_dataclass(this) else []
        return {"family": _words.key(type(self))} | {
            name: value.to_json() if isinstance(value, Family) else value
            for name, value in ((name, getattr(self, name)) for name in names)
        }

    def to_setting(self) -> Any:
        """Return the name of the family if that says everything, otherwise its JSON.

        `resolve_family` accepts both.
        """
        try:
            is_said = (
                _words.key(type(self)) == self.name and _words.resolve_family(self.word) == self
            )
        except ApieceError:  # a word that depends on the sampled sizes
            is_said = False
        return self.word if is_said else self.to_json()
