from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from apiece.errors import CardinalityError, DataError, FitError, PlanError, UnknownNameError
from apiece.laws import Blend, FitStatus, Laws, Power, Ridge, Series


@pytest.fixture
def laws():
    """Three power laws with uncertainty, the last of them without a law."""
    return Laws.from_arrays(
        c=[0.5, -0.2, np.nan],
        alpha=[1.0, 0.5, np.nan],
        cov=[[[1e-8, 0.0], [0.0, 0.04]], [[4e-8, 1e-5], [1e-5, 0.01]], np.full((2, 2), np.nan)],
        sigma=[1.0, 2.0, np.nan],
        beta=[2.0, 2.5, np.nan],
        n_samples=[100, 90, 2],
        status=[FitStatus.OK, FitStatus.AT_BOUND, FitStatus.TOO_FEW],
        ids=["a", "b", "c"],
        labels=[0, 1, 1],
        k_range=(100, 400),
        attrs={"estimator": "likelihood"},
        diagnostics={"overall_r2": 0.985},
    )


def test_means_follow_the_power_law_and_a_number_gives_one_value_a_point(laws):
    assert_allclose(laws.mean([1, 4])[:2], [[0.5, 0.125], [-0.2, -0.1]])
    assert_allclose(laws.mean(4)[:2], [0.125, -0.1])
    assert laws.mean([4]).shape == (3, 1)
    assert np.isnan(laws.mean(4)[2])


def test_standard_errors_at_the_middle_size_are_those_of_the_height(laws):
    assert laws.k_ref == 200.0
    assert_allclose(laws.stderr(200)[:2], [1e-4, 2e-4], rtol=1e-12)


def test_standard_errors_elsewhere_propagate_height_and_slope(laws):
    k = 350.0
    ratio = k / 200
    gradient = np.array([ratio**-0.5, 0.2 * k**-0.5 * np.log(ratio)])
    expected = np.sqrt(gradient @ np.array([[4e-8, 1e-5], [1e-5, 0.01]]) @ gradient)
    assert_allclose(laws.stderr(k)[1], expected, rtol=1e-12)


def test_intervals_of_sums_are_symmetric_and_as_wide_as_the_level_asks():
    cov = np.array([np.diag([1e-3, 0.1, 4.0]), np.full((3, 3), np.nan)])
    laws = Laws.from_arrays(family=Series(), params=np.ones((2, 3)), cov=cov, k_range=(100, 400))
    low, high = laws.interval([100, 200], level=0.95)
    assert low.shape == (2, 2)
    assert_allclose((low + high)[0] / 2, laws.mean([100, 200])[0])
    assert_allclose((high - low)[0] / 2, 1.959964 * laws.stderr([100, 200])[0], rtol=1e-6)
    assert np.isnan([low[1], high[1]]).all()


def test_intervals_of_power_laws_are_the_extremes_over_the_ellipse_of_their_coordinates(laws):
    sizes, turn = [20, 100, 350, 5000], np.linspace(0, 2 * np.pi, 100_000)
    low, high = laws.interval(sizes, level=0.95)
    assert low.shape == (3, 4)
    assert np.isnan([low[2], high[2]]).all()
    for point in range(2):
        root = 1.959964 * np.linalg.cholesky(laws.cov[point])
        off = root @ [np.cos(turn), np.sin(turn)]
        psi = laws.mean(laws.k_ref)[point] + off[0]
        alpha = laws.alpha[point] + off[1]
        for j, k in enumerate(sizes):
            curves = psi * (k / laws.k_ref) ** -alpha
            width = np.ptp(curves)
            assert_allclose(low[point, j], curves.min(), atol=2e-3 * width)
            assert_allclose(high[point, j], curves.max(), atol=2e-3 * width)


def test_the_interval_of_a_power_law_leans_away_from_zero_and_keeps_its_sign():
    cov = np.tile(np.diag([1e-10, 0.09]), (2, 1, 1))
    laws = Laws.from_arrays(c=[1.0, -1.0], alpha=1.0, cov=cov, k_range=(100, 1000))
    low, high = laws.interval([1000, 10_000, 1_000_000], level=0.9)
    mean = laws.mean([1000, 10_000, 1_000_000])
    assert (low[0] > 0).all()
    assert (high - mean > 1.5 * (mean - low))[0, 1:].all()
    assert_allclose(low[1], -high[0])
    assert_allclose(high[1], -low[0])


def test_laws_without_covariance_have_nan_intervals():
    laws = Laws.from_arrays(c=[1.0], alpha=[1.0])
    low, high = laws.interval(10)
    assert np.isnan([low, high]).all()
    assert np.isnan(laws.draws(2)).all()


def test_a_functional_sums_gradients_before_it_propagates_errors(laws):
    k, weights = np.array([100.0, 200.0, 400.0]), np.array([0.5, -1.0, 2.0])
    estimate = laws.functional(k, weights, level=0.9)
    assert_allclose(estimate.value[:2], laws.mean(k)[:2] @ weights)
    gradient = weights @ laws.family.gradient(laws.params[1:2], k, laws.k_ref)[0]
    half = 1.6448536 * np.sqrt(gradient @ laws.cov[1] @ gradient)
    assert_allclose(estimate.high[1] - estimate.value[1], half, rtol=1e-6)
    assert np.isnan(estimate.value[2])


def test_a_functional_of_many_sizes_is_the_same_in_chunks(monkeypatch, laws):
    k, weights = np.arange(100.0, 400.0), np.linspace(0, 1, 300)
    whole = laws.functional(k, weights)
    monkeypatch.setattr("apiece.laws._laws._ENTRIES", 40)
    for one, other in zip(whole, laws.functional(k, weights), strict=True):
        assert_allclose(one, other, rtol=1e-12)


def test_draws_have_the_mean_and_spread_of_the_uncertainty(laws):
    draws = laws.draws(20_000, random_state=0)
    assert draws.shape == (20_000, 3, 2)
    local = Power().to_local(draws, laws.k_ref)
    # Means of 20,000 draws have a standard error of sd / 141; accept four of them.
    truth, sd = Power().to_local(laws.params, laws.k_ref), np.sqrt(laws.cov[:2, [0, 1], [0, 1]])
    assert (np.abs(local.mean(axis=0) - truth)[:2] < 4 * sd / 141).all()
    # Variances have a relative standard error of 1 %, the covariance one of 1.6 %.
    assert_allclose(np.cov(local[:, 1].T), laws.cov[1], rtol=0.06)
    assert_array_equal(draws, laws.draws(20_000, random_state=0))
    assert np.isnan(draws[:, 2]).all()


def test_series_laws_are_sums_of_terms_and_may_change_sign():
    laws = Laws.from_arrays(family=Series(terms=(2, 4)), params=[[1.0, -100.0]])
    assert_allclose(laws.mean([10, 100, 1000])[0], [-0.9, 0.0, 0.0009], atol=1e-15)
    assert laws.family.parameters == ("a2", "a4")


def test_the_word_series_means_all_three_terms():
    laws = Laws.from_arrays(family="series", params=[[1.0, 2.0, 3.0]], cov=[np.eye(3)])
    assert_allclose(laws.stderr(4), np.sqrt(4**-2.0 + 4**-3.0 + 4**-4.0))
    with pytest.raises(DataError, match=r"family=Series\(terms=\(2, 4\)\)"):
        Laws.from_arrays(family="series", params=[[1.0, 2.0]])


def test_series_laws_have_no_alpha_and_say_so():
    laws = Laws.from_arrays(family="series", params=[[1.0, 2.0, 3.0]])
    with pytest.raises(UnknownNameError, match="'alpha': expected one of a2, a3, a4"):
        _ = laws.alpha


def test_the_table_is_indexed_by_id_and_says_how_each_fit_went(laws):
    table = laws.table()
    assert isinstance(table, pd.DataFrame)
    assert table.index.name == "point"
    assert table.index.tolist() == ["a", "b", "c"]
    columns = ["label", "c", "alpha", "sigma", "beta", "r2", "n_samples", "status"]
    assert table.columns.tolist() == columns
    assert table.loc["c", "status"] == "fewer than three contributions: no law"
    assert table.loc["b", "alpha"] == 0.5


def test_the_summary_counts_points_without_a_law(laws):
    summary = laws.summary()
    assert "3, of which 2 have a law" in summary
    assert "1  fewer than three contributions: no law" in summary
    assert "50 % helpful, 50 % harmful" in summary
    assert "0.985" in summary
    assert "by likelihood" in summary
    places = [summary.index(word) for word in ("helpful", "  status", "  alpha")]
    assert places == sorted(places)  # what people ask first; parameters of the curve last


def test_the_headline_is_one_line(laws):
    assert laws.headline() == (
        "3 power laws by likelihood: 2 fitted, median alpha 0.75, "
        "50 % helpful at 200 training points"
    )
    assert laws.headline() in repr(laws)


def test_summaries_of_laws_without_any_fit_do_not_fail():
    laws = Laws.from_arrays(c=[np.nan], alpha=[np.nan])
    assert "0 have a law" in laws.summary()
    assert laws.status.tolist() == [FitStatus.TOO_FEW]
    assert "0 fitted" in laws.headline()


def test_provides_lists_what_is_known(laws):
    assert laws.provides == ("c", "alpha", "sigma", "beta", "cov")


def test_select_keeps_the_columns_of_some_points_together(laws):
    for rows in ([1, 0], np.array([True, True, False]), slice(0, 2)):
        some = laws.select(rows)
        order = [laws.place(name) for name in some.ids]
        assert_array_equal(some.params, laws.params[order])
        assert_array_equal(some.cov, laws.cov[order])
        assert_array_equal(some.labels, laws.labels[order])
        assert some.k_range == laws.k_range
        assert some.diagnostics == {}


def test_an_unknown_point_gets_a_suggestion():
    laws = Laws.from_arrays(c=[1.0, 2.0], alpha=[1.0, 1.0], ids=["apple", "pear"])
    with pytest.raises(UnknownNameError, match="Did you mean 'apple'"):
        laws.place("aple")


def test_integer_ids_are_found_by_their_text_as_a_command_line_gives_it():
    laws = Laws.from_arrays(c=[1.0, 2.0], alpha=[1.0, 1.0], ids=[17, 18])
    assert laws.place("18") == laws.place(18) == 1


@pytest.mark.parametrize("k", [0, -5, [10, 0.5], np.nan, np.inf, [[1, 2]]])
def test_sizes_below_one_are_refused(laws, k):
    with pytest.raises(CardinalityError, match="expected"):
        laws.mean(k)


@pytest.mark.parametrize("level", [0, 1, 90, -0.1])
def test_a_level_that_is_no_coverage_is_refused(laws, level):
    with pytest.raises(PlanError, match=r"level=0\.9"):
        laws.interval(10, level=level)


def test_columns_that_do_not_agree_are_refused(laws):
    with pytest.raises(DataError, match=r"cov has shape \(2, 2, 2\): expected \(3, 2, 2\)"):
        Laws.from_arrays(c=[1, 2, 3], alpha=[1, 1, 1], cov=laws.cov[:2])
    with pytest.raises(CardinalityError, match="k_range"):
        Laws.from_arrays(c=[1], alpha=[1], k_range=(0, 5))
    with pytest.raises(UnknownNameError, match="Did you mean 'sigma'"):
        Laws.from_arrays(c=[1], alpha=[1], sigm=[1])
    with pytest.raises(DataError, match="Pass one or the other"):
        Laws.from_arrays(c=[1])
    with pytest.raises(UnknownNameError, match="family"):
        Laws.from_arrays(c=[1], alpha=[1], family="powr")


@pytest.mark.parametrize("terms", [(), (1,), (4, 2), (2, 2), (2, 5)])
def test_terms_outside_the_series_are_refused(terms):
    with pytest.raises(FitError, match="rising"):
        Series(terms=terms)


def test_ridge_laws_are_constant_below_their_shift_and_fall_beyond_it():
    laws = Laws.from_arrays(family=Ridge(shifts=(0, 1000)), params=[[0.0, 1000.0], [5.0, 0.0]])
    assert_allclose(laws.mean([1, 10**6])[0], [1000 / 1001, 1000 / 1_001_000])
    assert_allclose(laws.mean([1, 10])[1], [5.0, 0.5])
    assert laws.family.parameters == ("b0", "b1000")


@pytest.mark.parametrize("k_range", [(1, 2), (100, 1000), (10, 1_000_000)])
def test_shifts_reach_from_below_the_sampled_sizes_to_ten_times_beyond(k_range):
    shifts = Ridge.over(k_range).shifts
    assert shifts[0] == 0
    assert shifts[1] <= k_range[0]
    assert 5 * k_range[1] <= shifts[-1] <= 20 * k_range[1]


@pytest.mark.parametrize("word", ["ridge", "blend"])
def test_words_that_do_not_say_their_shifts_are_refused(word):
    with pytest.raises(DataError, match=r"family=Ridge\(shifts=\(0, 100, 1000\)\)"):
        Laws.from_arrays(family=word, params=[[1.0, 2.0]])


def test_a_blend_has_the_terms_of_its_members_and_their_common_one_once():
    laws = Laws.from_arrays(family=Blend(Ridge((0, 100))), params=np.diag([1.0, 2.0, 4.0, 6.0]))
    assert_allclose(laws.mean(20), [1 / 20, 2 / 20**1.5, 4 / 400, 6 / 120])


@pytest.mark.parametrize("shifts", [(), (10,), (0, 20, 10), (0, 0)])
def test_shifts_that_make_no_ridge_law_are_refused(shifts):
    with pytest.raises(FitError, match="first of them 0"):
        Ridge(shifts=shifts)


def test_attributes_that_no_file_can_hold_are_refused_by_name():
    with pytest.raises(DataError, match=r"attrs\.model"):
        Laws.from_arrays(c=[1], alpha=[1], attrs={"model": object()})


def test_every_status_is_a_sentence_that_loads_from_its_text():
    for member in FitStatus:
        assert FitStatus(str(member)) is member
        assert len(str(member)) > 5
    assert not FitStatus.TOO_FEW.has_law
    assert FitStatus.ONE_SIZE.is_failure


@pytest.mark.parametrize(
    ("rooms", "heavy"),
    [
        ("apiece.laws, apiece.estimators, apiece.synthetic", "pandas pyarrow sklearn scipy torch"),
        ("apiece.uses, apiece.uses, apiece.uses", "pandas pyarrow sklearn torch"),
    ],
)
def test_importing_the_rooms_of_laws_loads_no_heavy_library(rooms, heavy):
    code = f"import sys, {rooms}; print(sorted({set(heavy.split())} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_few_degrees_of_freedom_widen_intervals_to_those_of_students_t():
    cov = np.broadcast_to(np.diag([1.0, 0.0]), (3, 2, 2))
    laws = Laws.from_arrays(c=[1.0] * 3, alpha=[1.0] * 3, cov=cov, df=[3.0, 30.0, np.inf])
    low, high = laws.interval(laws.k_ref, level=0.9)
    # Tables of Student's t: 2.353 for 3 degrees of freedom, 1.697 for 30, 1.645 for the normal.
    assert_allclose((high - low) / 2, [2.353, 1.697, 1.645], atol=5e-4)
    functional = laws.functional([laws.k_ref], [1.0], level=0.9)
    assert_allclose(functional.high - functional.low, high - low)


def test_draws_have_the_tails_of_their_degrees_of_freedom():
    cov = np.broadcast_to(np.diag([1.0, 0.0]), (2, 2, 2))
    laws = Laws.from_arrays(c=[0.0] * 2, alpha=[1.0] * 2, cov=cov, df=[5.0, np.inf])
    psi = laws.draws(40_000, random_state=0)[:, :, 0] / laws.k_ref
    beyond = (np.abs(psi) > 2.571).mean(axis=0)
    # P(|t_5| > 2.571) = 0.05 and P(|z| > 2.571) = 0.0101, with standard errors of 0.001.
    assert_allclose(beyond, [0.05, 0.0101], atol=0.004)


def test_provenance_is_a_typed_view_of_the_attributes():
    attrs = {
        "estimator": "bayes",
        "engine": {"name": "first-order", "is_exact": False, "correlation": 0.9},
        "design": {"name": "grid", "sizes": [10, 20], "share": 3},
        "fitted_to": {"n_contributions": 7, "digest": "ab", "is_complete": True},
        "seed": "seven",
        "weather": "fine",
    }
    found = Laws.from_arrays(c=[1], alpha=[1], attrs=attrs).provenance
    assert (found.estimator, found.engine.name, found.engine.correlation) == (
        "bayes",
        "first-order",
        0.9,
    )
    assert (found.design.name, found.design.sizes, found.design.more) == (
        "grid",
        [10, 20],
        {"share": 3},
    )
    assert found.fitted_to.n_contributions == 7
    assert found.dataset is None
    assert found.more == {"seed": "seven", "weather": "fine"}
