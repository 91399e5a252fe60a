from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from apiece.laws import Laws, Power, Series

import strategies


@given(laws=strategies.laws())
@settings(deadline=None, max_examples=60)
def test_saved_laws_load_exactly_as_they_were(laws, tmp_path_factory):
    path = tmp_path_factory.mktemp("laws") / "laws.parquet"
    laws.save(path)
    again = Laws.load(path)
    assert again.family == laws.family
    for name in ("params", "sigma", "beta", "r2", "r2_variance", "n_samples", "status", "ids"):
        before, after = getattr(laws, name), getattr(again, name)
        assert_array_equal(before, after)
        assert before.dtype == after.dtype
    for before, after in (
        (laws.cov, again.cov),
        (laws.df, again.df),
        (laws.labels, again.labels),
    ):
        assert (before is None) == (after is None)
        if before is not None and after is not None:
            assert_array_equal(before, after)
            assert before.dtype == after.dtype
    assert (again.k_range, again.attrs, again.diagnostics) == (
        laws.k_range,
        laws.attrs,
        laws.diagnostics,
    )
    assert [path.name for path in path.parent.iterdir()] == ["laws.parquet"]


@given(
    c=st.floats(-1e3, -1e-3) | st.floats(1e-3, 1e3),
    alpha=st.floats(-2, 8),
    k_ref=st.floats(1, 1e6),
)
def test_local_coordinates_of_a_power_law_lead_back_to_its_parameters(c, alpha, k_ref):
    params = np.array([[c, alpha]])
    again = Power().from_local(Power().to_local(params, k_ref), k_ref)
    assert_allclose(again, params, rtol=1e-12)


@given(seed=st.integers(0, 10_000), k=st.floats(1, 1e5))
def test_gradients_by_local_coordinates_match_finite_differences(seed, k):
    rng = np.random.default_rng(seed)
    size, k_ref = np.array([k]), 300.0
    for family in (Power(), Series(), Series((2, 4))):
        p = len(family.parameters)
        local = rng.uniform(0.5, 2.0, (1, p))
        params = family.from_local(local, k_ref)
        gradient = family.gradient(params, size, k_ref)[0, 0]
        for j in range(p):
            step = np.zeros((1, p))
            step[0, j] = 1e-6
            up = family.mean(family.from_local(local + step, k_ref), size)[0, 0]
            down = family.mean(family.from_local(local - step, k_ref), size)[0, 0]
            # Central differences: relative error of about 1e-6 squared times the third derivative.
            expected = (up - down) / 2e-6
            assert_allclose(gradient[j], expected, rtol=1e-5, atol=1e-8 * abs(up))


@given(laws=strategies.laws())
@settings(deadline=None, max_examples=40)
def test_a_functional_of_one_size_is_the_mean_and_interval_at_that_size(laws):
    mean, (low, high) = laws.mean(250), laws.interval(250, level=0.8)
    estimate = laws.functional([250], [1.0], level=0.8)
    assert_allclose(estimate.value, mean, rtol=1e-12)
    widest = np.nanmax(np.abs(high - low), initial=0.0)
    assert_allclose(estimate.low, low, rtol=1e-9, atol=1e-9 * widest)
    assert_allclose(estimate.high, high, rtol=1e-9, atol=1e-9 * widest)
