"""Kinds of values by name: which weights over sizes each of them means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from apiece._base.check import one_of
from apiece._base.typing import FloatArray
from apiece.errors import CardinalityError, PlanError
from apiece.laws.sizes import check_range
from apiece.uses._weights import SizeWeights, beta_binomial, binomial, uniform

Weighting = Mapping[int, float] | Callable[[FloatArray], FloatArray]

KINDS: Final = (
    "shapley",
    "distributional",
    "data-shapley",
    "beta-shapley",
    "banzhaf",
    "loo",
    "weights",
)
OF_A_GAME: Final = ("data-shapley", "beta-shapley", "banzhaf", "loo")  # those that need n


def size_weights(
    kind: str,
    *,
    k_range: tuple[int, int],
    sizes: tuple[int, int] | None = None,
    n: int | None = None,
    a: float = 16.0,
    b: float = 1.0,
    weights: Weighting | None = None,
) -> SizeWeights:
    r"""Return the sizes and weights of a kind of value.

    Parameters
    ----------
    kind
        ``shapley`` or ``distributional`` (alike over ``sizes``), ``data-shapley``,
        ``beta-shapley``, ``banzhaf`` and ``loo`` (of a game of ``n`` points), or ``weights``.
    k_range
        The sampled sizes: the default of ``sizes`` for ``shapley`` and ``weights``.
    sizes
        ``(k_min, k_max)``. The kinds of a game are restricted to them, with weights that sum to 1.
    n
        Points of the game, the one that is valued included.
    a, b
        Shape of Beta Shapley: $a > b$ favours small sizes.
    weights
        ``{k: weight}``, or a function from an array of sizes to their weights; taken as they are.
    """
    if weights is not None:
        kind = "weights"
    one_of("kind", kind, KINDS)
    span = None if sizes is None else check_range(sizes)
    if kind == "weights":
        return _given(weights, k_range if span is None else span)
    if kind not in OF_A_GAME:
        return uniform(*(k_range if span is None else span))
    game = _of_a_game(kind, _players(kind, n), a, b)
    if span is None:
        return game
    inside = game.within(*span)
    if not inside.w.sum() > 0:
        raise CardinalityError(
            f"sizes={span} hold none of the weight of {kind!r} with n={n}: expected sizes that "
            f"reach into 0 to {int(n or 0) - 1}. Leave sizes out, or pass others."
        )
    return inside


def _players(kind: str, n: int | None) -> int:
    if n is None:
        raise PlanError(
            f"kind={kind!r} needs the size of the game: expected n, the number of points in the "
            "dataset, the one that is valued included. Pass for example n=1000 (--n 1000)."
        )
    if n != int(n) or n < 2:
        raise CardinalityError(
            f"n={n} is not the size of a game: expected a whole number of at least 2, the point "
            "that is valued and another. Pass for example n=1000 (--n 1000)."
        )
    return int(n)


def _of_a_game(kind: str, n: int, a: float, b: float) -> SizeWeights:
    if kind == "data-shapley":
        return uniform(0, n - 1)
    if kind == "banzhaf":
        return binomial(n)
    if kind == "loo":
        return SizeWeights(np.array([n - 1.0]), np.ones(1))
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise PlanError(
            f"a={a}, b={b} shape no Beta distribution: expected two positive numbers. "
            "Pass for example a=16, b=1 (--beta 16,1)."
        )
    return beta_binomial(n, a, b)


def _given(weights: Weighting | None, span: tuple[int, int]) -> SizeWeights:
    """Return weights of one's own, checked."""
    if weights is None:
        raise PlanError(
            "kind='weights' needs weights: expected {size: weight}, or a function of an array of "
            "sizes. Pass for example weights={100: 0.5, 1000: 0.5}."
        )
    if isinstance(weights, Mapping):
        k = np.array(sorted(weights), dtype=np.float64)
        w = np.array([weights[size] for size in sorted(weights)], dtype=np.float64)
    else:
        k = uniform(*span).k
        w = np.asarray(weights(k), dtype=np.float64)
    if w.shape != k.shape or not len(k) or not np.isfinite(w).all() or not (k >= 0).all():
        raise PlanError(
            f"weights give {w.shape} weights for {len(k)} sizes, or some that are not finite: "
            "expected one number for each size of at least 0. Pass for example "
            "weights={100: 0.5, 1000: 0.5}."
        )
    return SizeWeights(k, w)
