from __future__ import annotations

import numpy as np
import pytest

import apiece
from apiece.estimators import Bayes, Likelihood
from apiece.estimators._beyond import measure
from apiece.records import Contributions


def contributions(curve, n_points=60, samples=40, noise=0.02, seed=0):
    rng = np.random.default_rng(seed)
    k = np.exp(rng.uniform(np.log(100), np.log(1000), n_points * samples)).round()
    point = np.repeat(np.arange(n_points), samples)
    height = rng.normal(size=n_points)[point]
    delta = height * curve(k) + noise * (k / 316) ** -1.0 * rng.normal(size=len(k))
    return Contributions.from_arrays(
        point=point, k=k.astype(int), delta=delta, task=np.arange(len(k))
    )


def test_laws_of_the_right_family_reach_beyond_the_sizes():
    found = measure(Bayes(), contributions(lambda k: 10 / k))
    assert found.ratio == pytest.approx(2.5, rel=0.05)
    assert found.widening < 1.6


def test_curves_that_turn_beyond_the_fitted_sizes_are_not_confirmed():
    # Straight in 1/k up to 400, and then of the other sign: no law of smaller sizes knows.
    found = measure(Bayes(), contributions(lambda k: np.where(k < 400, 10 / k, -30 / k)))
    assert found.ratio == 1
    assert found.widening > 2


def test_too_few_points_or_sizes_say_nothing():
    assert measure(Bayes(), contributions(lambda k: 10 / k, n_points=5)) is None
    table = contributions(lambda k: 10 / k)
    assert measure(Bayes(), table.between(100, 101)) is None


@pytest.mark.parametrize("method", ["bayes", "likelihood"])
def test_fit_measures_the_reach(method):
    laws = apiece.fit(contributions(lambda k: 10 / k), method)
    assert laws.beyond is not None
    assert laws.reach > laws.k_range[1]


def test_fit_table_alone_measures_nothing():
    assert Likelihood().fit(contributions(lambda k: 10 / k)).beyond is None
