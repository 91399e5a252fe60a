"""Laws of values and picks that hold for any laws and any contributions."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from apiece import synthetic
from apiece.errors import ApieceWarning, FitError
from apiece.uses import KINDS, agreement, as_semivalue, select, value, value_samples

import strategies

GAMES = st.sampled_from([kind for kind in KINDS if kind != "weights"])


@pytest.fixture(autouse=True)
def _extrapolate_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApieceWarning)
        yield


@given(kind=GAMES, n=st.integers(2, 5000), a=st.floats(0.1, 30), b=st.floats(0.1, 30))
def test_weights_of_every_kind_are_a_distribution_over_sizes(kind, n, a, b):
    weights = as_semivalue(kind, a=a, b=b).over((1, 9), n=n)
    assert (weights.w >= 0).all()
    assert_allclose(weights.w.sum(), 1.0, rtol=1e-12)
    assert (np.diff(weights.k) > 0).all()
    if kind in ("data-shapley", "beta-shapley", "banzhaf", "loo"):
        assert weights.k[-1] == n - 1


@settings(max_examples=30)
@given(table=strategies.contributions(), scale=st.floats(1e-3, 1e3), kind=GAMES)
def test_scaling_the_utility_scales_values_and_errors(table, scale, kind):
    try:
        plain = value_samples(table, kind=kind, n=int(table.k.max()) + 1)
    except FitError:
        return  # no weight where anything was sampled
    scaled = value_samples(table.scaled(scale), kind=kind, n=int(table.k.max()) + 1)
    assert_allclose(scaled["value"], scale * plain["value"], rtol=1e-9, atol=1e-12 * scale)
    assert_allclose(scaled["stderr"], scale * plain["stderr"], rtol=1e-6, atol=1e-9 * scale)


@settings(max_examples=50)
@given(table=strategies.nasty_contributions(scales=(1.0,)), kind=GAMES)
def test_values_from_any_samples_lie_within_the_samples(table, kind):
    try:
        values = value_samples(table, kind=kind, n=int(table.k.max()) + 1)
    except FitError:
        return  # no weight where anything was sampled
    for point, row in enumerate(values.itertuples()):
        own = table.delta[table.point == point]
        slack = 1e-9 * np.abs(own).max()
        if np.isfinite(row.value):
            assert own.min() - slack <= row.value <= own.max() + slack


@settings(max_examples=40)
@given(laws=strategies.laws(), seed=st.integers(0, 99))
def test_picks_are_the_same_whatever_the_order_of_the_points(laws, seed):
    n_known = int(np.isfinite(laws.mean(100)).sum())
    if not n_known:
        return
    with np.errstate(all="ignore"):
        order = np.random.default_rng(seed).permutation(laws.n_points)
        take = 1 + seed % n_known
        picks = select(replace(laws, cov=None), take=take, at=100)
        shuffled = select(replace(laws.select(order), cov=None), take=take, at=100)
    assert_allclose(picks["value"], shuffled["value"])
    if len(np.unique(picks["value"])) == len(picks):
        assert picks.index.tolist() == shuffled.index.tolist()


@settings(max_examples=20)
@given(n=st.integers(3, 40), take=st.integers(1, 3), seed=st.integers(0, 99))
def test_fewer_picks_are_the_first_of_more_and_chances_are_probabilities(n, take, seed):
    laws = synthetic.random_laws(n, random_state=seed)
    laws = replace(laws, cov=np.broadcast_to(np.diag([1e-9, 0.01]), (n, 2, 2)))
    few, many = select(laws, take=take, at=300), select(laws, take=n, at=300)
    assert few.index.tolist() == many.index[:take].tolist()
    assert few["p_best"].between(0, 1).all()
    assert (many["p_best"] == 1).all()
    ranked = value(laws, sizes=(300, 300), top=take)
    assert_allclose(ranked["p_top"].sum(), take)


@settings(max_examples=20)
@given(n=st.integers(4, 40), budget=st.floats(0.5, 20), seed=st.integers(0, 99))
def test_a_budget_is_never_exceeded_and_leaves_nothing_affordable(n, budget, seed):
    laws = synthetic.random_laws(n, random_state=seed)
    cost = np.random.default_rng(seed).uniform(0.3, 3.0, n)
    picks = select(laws, at=300, costs=cost, budget=budget)
    assert picks["cost"].sum() <= budget * (1 + 1e-9)
    assert (picks["value"] > 0).all()
    left = ~np.isin(laws.ids, picks.index) & (laws.mean(300) > 0)
    assert (cost[left] > budget - picks["cost"].sum() - 1e-9).all()


@settings(max_examples=20)
@given(n=st.integers(3, 60), seed=st.integers(0, 99))
def test_agreement_is_symmetric_and_full_with_itself(n, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.normal(size=n)
    there, back = (agreement(*pair, resamples=5)["agreement"] for pair in ((a, b), (b, a)))
    assert_allclose(there, back, atol=1e-12)
    assert_allclose(agreement(a, 3 * a + 1, resamples=5)["agreement"], 1.0)
