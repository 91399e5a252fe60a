from __future__ import annotations

import numpy as np
import pytest

import apiece
from apiece.estimators import Likelihood
from apiece.estimators._cross_fit import cross_fitted_widening, widened
from apiece.records import Contributions


def contributions(noise, n_points=80, samples=40, seed=0):
    rng = np.random.default_rng(seed)
    k = rng.integers(100, 1001, n_points * samples)
    point = np.repeat(np.arange(n_points), samples)
    delta = rng.normal(size=n_points)[point] * 10 / k + noise(rng, k)
    return Contributions.from_arrays(point=point, k=k, delta=delta, task=np.arange(len(k)))


def normal(rng, k):
    return 5 / k * rng.normal(size=len(k))


def test_errors_that_are_right_stay_about_as_they_are():
    found = cross_fitted_widening(Likelihood("series24"), contributions(normal))
    assert 1 <= found < 1.35


def test_curves_that_are_no_power_laws_widen_the_errors_of_power_laws():
    rng = np.random.default_rng(1)
    table = contributions(lambda rng, k: 0.2 / k * rng.normal(size=len(k)))
    turn = rng.normal(size=80)[table.point]  # with a change of sign within the sizes
    bent = Contributions.from_arrays(
        point=table.point,
        k=table.k,
        delta=table.delta + turn * (40 / table.k - 10_000 / table.k**2),
        task=table.task,
    )
    assert cross_fitted_widening(Likelihood("power"), bent) > 2


def test_fit_widens_and_says_so():
    table = contributions(lambda rng, k: 5 / k * rng.standard_t(2, len(k)))
    plain, checked = Likelihood().fit(table), apiece.fit(table, "likelihood")
    factor = checked.diagnostics.get("cross_fitted_widening", 1.0)
    assert factor >= 1
    np.testing.assert_allclose(checked.stderr(300), factor * plain.stderr(300))
    np.testing.assert_array_equal(checked.params, plain.params)


def test_too_few_tasks_say_nothing():
    few = contributions(normal, n_points=12, samples=1)
    assert cross_fitted_widening(Likelihood(), few.where(few.task < 5)) == 1


def test_laws_without_errors_stay_as_they_are():
    laws = apiece.Laws.from_arrays(c=[1.0], alpha=[1.0])
    assert widened(laws, 2.0) is laws


@pytest.mark.slow
def test_a_network_is_as_uncertain_as_its_held_out_points_ask_for():
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 3)), rng.integers(0, 2, 150)
    psi = rng.normal(size=150)  # which no feature knows
    k = rng.integers(100, 1001, 150 * 20)
    point = np.repeat(np.arange(150), 20)
    delta = psi[point] * 10 / k + 2 / k * rng.normal(size=len(k))
    table = Contributions.from_arrays(point=point, k=k, delta=delta, task=np.arange(len(k)))
    laws = apiece.fit(table, apiece.estimators.Amortized(epochs=60), X=X, y=y)
    low, high = laws.interval(316)
    covered = np.mean((low <= psi * 10 / 316) & (psi * 10 / 316 <= high))
    assert covered > 0.8  # 0.9 is promised; over 150 points it has a standard error of 0.025
