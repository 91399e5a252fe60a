from __future__ import annotations

from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece.errors import CardinalityError, PlanError, UnknownNameError
from apiece.uses import KINDS, SizeWeights, as_semivalue
from apiece.uses._weights import beta_binomial, binomial, nodes, uniform


def exact_beta(n, a, b):
    """Beta-binomial weights for whole a and b, in fractions."""

    def beta(x, y):
        return Fraction(factorial(x - 1) * factorial(y - 1), factorial(x + y - 1))

    return [float(comb(n - 1, k) * beta(k + b, n - 1 - k + a) / beta(a, b)) for k in range(n)]


@pytest.mark.parametrize(("a", "b"), [(1, 1), (16, 1), (4, 1), (1, 4), (3, 5)])
@pytest.mark.parametrize("n", [2, 3, 50, 400])
def test_beta_weights_equal_exact_fractions(n, a, b):
    assert_allclose(beta_binomial(n, a, b).w, exact_beta(n, a, b), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 50, 400])
def test_banzhaf_weights_equal_exact_fractions(n):
    exact = [float(Fraction(comb(n - 1, k), 2 ** (n - 1))) for k in range(n)]
    assert_allclose(binomial(n).w, exact, rtol=1e-12)


@pytest.mark.parametrize("weights", [beta_binomial(10**6, 16, 1), binomial(10**6)])
def test_weights_of_a_million_points_are_finite_and_have_the_right_moments(weights):
    assert np.isfinite(weights.w).all()
    assert_allclose(weights.w.sum(), 1.0, rtol=1e-12)
    # The mean size is (n - 1) b / (a + b), or half of n - 1.
    mean = weights.w @ weights.k / (10**6 - 1)
    assert_allclose(mean, 1 / 17 if mean < 0.3 else 0.5, rtol=1e-11)


def test_a_larger_first_shape_favours_small_sizes():
    small, large = beta_binomial(100, 16, 1), beta_binomial(100, 1, 16)
    assert small.w[0] > small.w[50] > small.w[99]
    assert_allclose(small.w, large.w[::-1], rtol=1e-12)


@pytest.mark.parametrize("bounds", [(50, 300_000), (100, 10_000), (1, 1_000_000)])
def test_nodes_give_the_sums_of_power_laws_to_the_stated_error(bounds):
    weights = uniform(*bounds)
    few = nodes(weights)
    assert len(few.k) < 1_100
    assert_allclose(few.w.sum(), 1.0, rtol=1e-12)
    for alpha in (0.0, 0.5, 1.2, 3.0, -2.0):
        stated = abs(alpha * (alpha + 1) * (alpha + 2) * (alpha + 3)) * 0.02**4 / 4320
        exact = weights.w @ weights.k**-alpha
        assert_allclose(few.w @ few.k**-alpha, exact, rtol=max(1.5 * stated, 1e-12))


def test_nodes_of_skewed_weights_sum_cubics_exactly():
    weights = beta_binomial(50_000, 5, 2)
    few = nodes(weights)
    assert len(few.k) < 1_000
    for power in (0, 1, 2, 3):
        assert_allclose(few.w @ few.k**power, weights.w @ weights.k**power, rtol=1e-10)


def test_few_sizes_and_weights_of_both_signs_are_left_as_they_are():
    weights = uniform(1, 1000)
    assert nodes(weights).k.tolist() == weights.k.tolist()
    mixed = SizeWeights(np.arange(5000.0), np.where(np.arange(5000) % 2, 1.0, -1.0))
    assert len(nodes(mixed).k) == 5000


def test_kinds_of_a_game_can_be_kept_to_some_sizes():
    whole = as_semivalue("banzhaf").over((1, 9), n=20)
    some = as_semivalue("banzhaf").over((1, 9), n=20, sizes=(5, 8))
    assert some.k.tolist() == [5, 6, 7, 8]
    assert_allclose(some.w.sum(), 1.0)
    assert_allclose(some.w / some.w[0], whole.w[5:9] / whole.w[5])


def test_own_weights_come_as_a_mapping_or_a_function_and_are_not_normalised():
    given = as_semivalue("weights", weights={5: 2.0, 3: 1.0}).over((1, 9))
    assert (given.k.tolist(), given.w.tolist()) == ([3.0, 5.0], [1.0, 2.0])
    given = as_semivalue("shapley", weights=lambda k: k**2).over((2, 4))
    assert (given.k.tolist(), given.w.tolist()) == ([2.0, 3.0, 4.0], [4.0, 9.0, 16.0])


@pytest.mark.parametrize(
    ("kind", "options", "error", "words"),
    [
        ("shaply", {}, UnknownNameError, "Did you mean 'shapley'"),
        ("banzhaf", {}, PlanError, "needs the size of the game"),
        ("loo", {"n": 1}, CardinalityError, "at least 2"),
        ("data-shapley", {"n": 10**9}, CardinalityError, "at most 10,000,000"),
        ("beta-shapley", {"n": 10, "a": 0}, PlanError, "two positive numbers"),
        ("loo", {"n": 10, "sizes": (20, 30)}, CardinalityError, "none of the weight"),
        ("weights", {}, PlanError, "needs weights"),
        ("weights", {"weights": {}}, PlanError, "one number for each size"),
        ("weights", {"weights": {3: np.nan}}, PlanError, "not finite"),
        ("weights", {"weights": {-1: 1.0}}, PlanError, "at least 0"),
        ("weights", {"weights": lambda k: k[:1]}, PlanError, "one number for each size"),
    ],
)
def test_wrong_requests_are_refused(kind, options, error, words):
    game = {name: item for name, item in options.items() if name in ("n", "sizes")}
    how = {name: item for name, item in options.items() if name not in game}
    with pytest.raises(error, match=words):
        as_semivalue(kind, **how).over((1, 9), **game)


def test_every_kind_is_listed():
    assert set(KINDS) >= {"shapley", "data-shapley", "beta-shapley", "banzhaf", "loo", "weights"}
