"""Semivalues: which weights over sizes a value means, as objects and by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from apiece._base.check import one_of
from apiece._base.typing import FloatArray
from apiece.errors import CardinalityError, PlanError
from apiece.laws.sizes import check_range
from apiece.uses._weights import SizeWeights, beta_binomial, binomial, check_count, uniform

Weighting = Mapping[int, float] | Callable[[FloatArray], FloatArray]
Kind = Literal[
    "shapley", "distributional", "data-shapley", "beta-shapley", "banzhaf", "loo", "weights"
]


class Semivalue(ABC):
    """A kind of value: how much each size of the training sets that a point joins counts.

    A new one is a class with `weights`, given as ``kind=`` of `value`.

    Examples
    --------
    >>> class SmallSets(Semivalue):
    ...     "Sets of at most two others count, all sizes alike."
    ...
    ...     def weights(self, n):
    ...         return np.where(np.arange(n) <= 2, 1 / 3, 0.0)
    >>> SmallSets().over((10, 50), n=100).w[:4].round(3)
    array([0.333, 0.333, 0.333, 0.   ])
    """

    name: ClassVar[str] = ""
    """The word for this semivalue, such as ``"banzhaf"``; the name of the class if empty."""

    @abstractmethod
    def weights(self, n: int) -> FloatArray:
        """Return the weights of the sizes 0, 1, ..., n - 1 in a game of n points, shape ``(n,)``.

        They sum to 1. The point that is valued is one of the n.
        """

    @property
    def needs_n(self) -> bool:
        """Whether the weights depend on the number of points in the game."""
        return True

    def over(
        self,
        k_range: tuple[int, int],
        *,
        sizes: tuple[int, int] | None = None,
        n: int | None = None,
    ) -> SizeWeights:
        """Return the sizes that count and their weights.

        Parameters
        ----------
        k_range
            The sampled sizes: what counts if weights do not depend on n and ``sizes`` is None.
        sizes
            ``(k_min, k_max)``: sizes outside do not count, and the weights of the others sum to 1.
        n
            Points of the game, the one that is valued included.

        Raises
        ------
        PlanError
            If n is missing, or the weights are not n finite numbers.
        CardinalityError
            If n is not the size of a game, or no size has weight.
        """
        word = self.name or type(self).__name__
        players = check_count(_players(word, n))
        w = np.asarray(self.weights(players), dtype=np.float64)
        if w.shape != (players,) or not np.isfinite(w).all() or not w.any():
            raise PlanError(
                f"{word} gives weights of shape {w.shape} for n={players}, or some that are not "
                f"finite, or only zeros: expected {players} numbers, one for each of the sizes 0 "
                f"to {players - 1}. Check its method weights."
            )
        first = int(np.argmax(w != 0))
        game = SizeWeights(np.arange(first, players, dtype=np.float64), w[first:])
        if sizes is None:
            return game
        span = check_range(sizes)
        inside = game.within(*span)
        if not inside.w.any():
            raise CardinalityError(
                f"sizes={span} hold none of the weight of {word!r} with n={n}: expected sizes that "
                f"reach into 0 to {players - 1}. Leave sizes out, or pass others."
            )
        return inside


@dataclass(frozen=True)
class Distributional(Semivalue):
    """Distributional Shapley: all sizes in a range count alike.

    Examples
    --------
    >>> Distributional().over((10, 11)).w
    array([0.5, 0.5])
    """

    name: ClassVar[str] = "shapley"

    @property
    def needs_n(self) -> bool:
        """Weights depend on the range of sizes alone."""
        return False

    def weights(self, n: int) -> FloatArray:
        """Return equal weights."""
        return np.full(n, 1 / n)

    def over(
        self,
        k_range: tuple[int, int],
        *,
        sizes: tuple[int, int] | None = None,
        n: int | None = None,
    ) -> SizeWeights:
        """Return equal weights of ``sizes``, or of the sampled sizes."""
        return uniform(*(k_range if sizes is None else check_range(sizes)))


@dataclass(frozen=True)
class DataShapley(Semivalue):
    """Data Shapley: all sizes of a game of n points count alike.

    Examples
    --------
    >>> DataShapley().weights(4)
    array([0.25, 0.25, 0.25, 0.25])
    """

    name: ClassVar[str] = "data-shapley"

    def weights(self, n: int) -> FloatArray:
        """Return equal weights."""
        return np.full(n, 1 / n)


@dataclass(frozen=True)
class BetaShapley(Semivalue):
    """Beta(a, b) Shapley (Kwon and Zou, AISTATS 2022).

    Parameters
    ----------
    a, b
        Shape: $a > b$ favours small sizes, $a = b = 1$ is Data Shapley.

    Examples
    --------
    >>> BetaShapley(16, 1).weights(3).round(3)
    array([0.889, 0.105, 0.007])
    """

    a: float = 16.0
    b: float = 1.0
    name: ClassVar[str] = "beta-shapley"

    def __post_init__(self) -> None:
        if not (0 < self.a < np.inf and 0 < self.b < np.inf):
            raise PlanError(
                f"a={self.a}, b={self.b} shape no Beta distribution: expected two positive "
                "numbers. Pass for example a=16, b=1 (--beta 16,1)."
            )

    def weights(self, n: int) -> FloatArray:
        """Return the probabilities of a beta-binomial distribution."""
        return beta_binomial(n, self.a, self.b).w


@dataclass(frozen=True)
class Banzhaf(Semivalue):
    """Data Banzhaf: all sets of others count alike, so sizes near n / 2 count most.

    Examples
    --------
    >>> Banzhaf().weights(3)
    array([0.25, 0.5 , 0.25])
    """

    name: ClassVar[str] = "banzhaf"

    def weights(self, n: int) -> FloatArray:
        """Return the probabilities of a binomial distribution."""
        return binomial(n).w


@dataclass(frozen=True)
class LeaveOneOut(Semivalue):
    """Leave-one-out: the set of all others alone counts.

    Examples
    --------
    >>> LeaveOneOut().weights(3)
    array([0., 0., 1.])
    """

    name: ClassVar[str] = "loo"

    def weights(self, n: int) -> FloatArray:
        """Return 1 for the largest size and 0 for the others."""
        return np.append(np.zeros(n - 1), 1.0)


@dataclass(frozen=True)
class GivenWeights(Semivalue):
    """Weights as they are given, without normalisation.

    Parameters
    ----------
    given
        ``{k: weight}``, or a function from an array of sizes to their weights.

    Examples
    --------
    >>> GivenWeights({10: 0.5, 20: 0.5}).over((1, 100)).k
    array([10., 20.])
    """

    given: Weighting
    name: ClassVar[str] = "weights"

    @property
    def needs_n(self) -> bool:
        """Weights are given for sizes and do not depend on the game."""
        return False

    def weights(self, n: int) -> FloatArray:
        """Return the weights of the sizes of a game; those that are not given are zero."""
        k, w = self.over((0, n - 1))
        row = np.zeros(n)
        row[k[k < n].astype(np.int64)] = w[k < n]
        return row

    def over(
        self,
        k_range: tuple[int, int],
        *,
        sizes: tuple[int, int] | None = None,
        n: int | None = None,
    ) -> SizeWeights:
        """Return the given weights; a function is evaluated at ``sizes`` or the sampled sizes."""
        if isinstance(self.given, Mapping):
            k = np.array(sorted(self.given), dtype=np.float64)
            w = np.array([self.given[size] for size in sorted(self.given)], dtype=np.float64)
        else:
            k = uniform(*(k_range if sizes is None else check_range(sizes))).k
            w = np.asarray(self.given(k), dtype=np.float64)
        if w.shape != k.shape or not len(k) or not np.isfinite(w).all() or not (k >= 0).all():
            raise PlanError(
                f"weights give {w.shape} weights for {len(k)} sizes, or some that are not finite: "
                "expected one number for each size of at least 0. Pass for example "
                "weights={100: 0.5, 1000: 0.5}."
            )
        return SizeWeights(k, w)


KINDS: Final[dict[str, type[Semivalue]]] = {
    "shapley": Distributional,
    "distributional": Distributional,
    "data-shapley": DataShapley,
    "beta-shapley": BetaShapley,
    "banzhaf": Banzhaf,
    "loo": LeaveOneOut,
    "weights": GivenWeights,
}


def as_semivalue(
    kind: Kind | str | Semivalue = "shapley",
    *,
    a: float = 16.0,
    b: float = 1.0,
    weights: Weighting | None = None,
) -> Semivalue:
    """Return the semivalue that a setting means.

    Parameters
    ----------
    kind
        A name in `KINDS`, or a semivalue.
    a, b
        Shape of ``beta-shapley``.
    weights
        Weights for ``kind="weights"``, which they imply.

    Examples
    --------
    >>> as_semivalue("beta-shapley", a=4)
    BetaShapley(a=4, b=1.0)
    """
    if weights is not None:
        return GivenWeights(weights)
    if isinstance(kind, Semivalue):
        return kind
    chosen = KINDS[one_of("kind", kind, KINDS)]
    if chosen is BetaShapley:
        return BetaShapley(a, b)
    if chosen is GivenWeights:
        raise PlanError(
            "kind='weights' needs weights: expected {size: weight}, or a function of an array of "
            "sizes. Pass for example weights={100: 0.5, 1000: 0.5}."
        )
    return chosen()


def _players(word: str, n: int | None) -> int:
    if n is None:
        raise PlanError(
            f"kind={word!r} needs the size of the game: expected n, the number of points in the "
            "dataset, the one that is valued included. Pass for example n=1000 (--n 1000)."
        )
    if n != int(n) or n < 2:
        raise CardinalityError(
            f"n={n} is not the size of a game: expected a whole number of at least 2, the point "
            "that is valued and another. Pass for example n=1000 (--n 1000)."
        )
    return int(n)
