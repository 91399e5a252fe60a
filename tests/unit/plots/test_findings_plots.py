"""Crossings, the aggregate law, calibration, backtests and experiments, as numbers and as ink."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import apiece
from apiece import plots, synthetic
from apiece.errors import DataError, FitError, UnknownNameError
from apiece.experiments import Experiment
from apiece.laws import Laws, Series
from apiece.uses import crossings

TRUTH = synthetic.random_laws(300, random_state=0)
SAMPLES = synthetic.sample(TRUTH, samples=60, random_state=0)


@pytest.fixture(scope="module")
def laws():
    return apiece.fit(SAMPLES, method="likelihood", family="power")


def axes():
    return Figure().subplots()


def test_every_pair_is_named_on_both_sides_and_marked_where_it_crosses(laws):
    table = crossings(laws, most=6)
    ax = plots.plot_crossings(laws, most=6, ax=axes())
    assert_allclose(ax.lines[0].get_xdata(), table["at"])
    left = [label.get_text() for label in ax.get_yticklabels()]
    (side,) = ax.child_axes
    right = [label.get_text() for label in side.get_yticklabels()]
    assert left == table["first"].astype(str).tolist()
    assert right == table["second"].astype(str).tolist()


def test_pairs_that_do_not_cross_are_left_out():
    laws = Laws.from_arrays(c=[1.0, 100.0, -1.0], alpha=[1.0, 2.0, 1.0])
    ax = plots.plot_crossings(laws, pairs=[(0, 1), (0, 2)], ax=axes())
    assert_allclose(ax.lines[0].get_xdata(), [100.0])
    empty = plots.plot_crossings(laws.select([0, 2]), ax=axes())
    assert empty.get_legend().get_title().get_text() == "no pair changes places"


def test_the_aggregate_law_is_drawn_beyond_the_samples_with_its_floor():
    k = np.repeat([50, 100, 200, 400], 10)
    losses = 0.2 + 3 / k + 1e-3 * np.random.default_rng(0).normal(size=40)
    table = apiece.Contributions.from_arrays(
        point=np.zeros(40), k=k, delta=np.zeros(40), loss=losses
    )
    law = apiece.aggregate(table)
    size, mean, error = plots.binned_losses(table)
    assert_allclose(size, [50, 100, 200, 400])
    assert_allclose(mean, losses.reshape(4, 10).mean(axis=1))
    assert_allclose(error, losses.reshape(4, 10).std(axis=1, ddof=1) / np.sqrt(10))
    ax = plots.plot_aggregate(law, contributions=table, until=4000, ax=axes())
    solid, dashed = ax.lines[:2]
    assert (solid.get_linestyle(), dashed.get_linestyle()) == ("-", "--")
    assert dashed.get_xdata()[-1] == pytest.approx(4000)
    assert_allclose(dashed.get_ydata(), law.mean(dashed.get_xdata()))
    assert law.eps in [line.get_ydata()[0] for line in ax.lines]


def test_honest_intervals_cover_what_they_promise():
    truth = synthetic.random_laws(2000, family="series", random_state=3)
    rng = np.random.default_rng(0)
    root = 0.3 * rng.normal(size=(2000, 3, 3)) * np.abs(truth.params)[:, :, None]
    off = np.einsum("nab,nb->na", root, rng.normal(size=(2000, 3)))
    cov = root @ root.transpose(0, 2, 1)
    laws = Laws(**{**vars(truth), "params": truth.params + off, "cov": cov})
    for held_out in (truth, synthetic.sample(truth, samples=30, random_state=9)):
        table = plots.coverage(laws, held_out)
        assert (table["n_points"] == 2000).all()
        # The standard error of a share of 2,000 is 0.011 at most; accept four for 57 of them.
        assert (table["coverage"] - table["level"]).abs().max() < 0.045
        assert (table.groupby("k")["coverage"].diff().dropna() >= 0).all()


def test_intervals_of_half_the_width_cover_less(laws):
    narrow = Laws(**{**vars(laws), "cov": laws.cov / 4})
    wide, half = (plots.coverage(given, TRUTH, levels=(0.9,)) for given in (laws, narrow))
    assert (half["coverage"] < wide["coverage"] - 0.1).all()


def test_points_are_matched_by_id_in_any_order(laws):
    order = np.random.default_rng(0).permutation(len(laws))[:100]
    table = plots.coverage(laws.select(order), SAMPLES)
    again = plots.coverage(laws.select(np.sort(order)), SAMPLES)
    pd.testing.assert_frame_equal(table, again)
    with pytest.raises(DataError, match="same points"):
        plots.coverage(Laws(**{**vars(laws), "ids": np.arange(300) + 1000}), SAMPLES)


def test_calibration_has_a_line_for_each_size_and_the_diagonal(laws):
    ax = plots.plot_calibration(laws, TRUTH, ax=axes())
    assert len(ax.lines) == 4
    assert ax.get_xlim() == ax.get_ylim() == (0, 1)


SCORES = pd.DataFrame(
    {
        "method": ["bayes", "bayes", "log_ols", "log_ols"],
        "family": ["series", "series", "power", "power"],
        "k": [500.0, 900.0, 500.0, 900.0],
        "r2": [0.9, 0.8, -35.0, np.nan],
        "correlation": [0.95, 0.9, 0.2, np.nan],
        "coverage": [0.91, 0.89, 0.4, 0.3],
        "n_points": 100,
    }
)


def test_a_backtest_has_a_line_for_each_candidate_and_no_score_off_the_page():
    ax = plots.plot_backtest(SCORES, ax=axes())
    good, bad = (line.get_ydata() for line in ax.lines)
    assert_allclose(good, [0.9, 0.8])
    assert_allclose(bad, [-0.25, np.nan])
    assert [text.get_text() for text in ax.texts] == ["-35.0"]
    assert ax.get_ylim()[0] < -0.25
    covered = plots.plot_backtest(SCORES, "coverage", ax=axes())
    assert "promised 90%" in [text.get_text() for text in covered.get_legend().get_texts()]


def test_laws_know_their_backtest_or_say_how_to_get_one(laws):
    backtested = apiece.fit(SAMPLES.where(SAMPLES.point < 20), backtest=True)
    ax = plots.plot_backtest(backtested, ax=axes())
    assert len(ax.lines) == len(backtested.backtest().groupby(["method", "family"]))
    with pytest.raises(FitError, match="backtest=True"):
        plots.plot_backtest(laws, ax=axes())
    with pytest.raises(UnknownNameError, match="r2"):
        plots.plot_backtest(SCORES, "r3", ax=axes())


def experiment():
    rows = [
        {"repeat": repeat, "at": at, "method": method, "gain": gain + repeat, "accuracy": 0.1}
        for repeat in range(3)
        for at in (100, 1000)
        for method, gain in (("scaling 100", 2.0), ("shapley", 1.5), ("random", 1.0))
    ]
    return Experiment("addition", pd.DataFrame(rows), "at", {"gain": "gain", "accuracy": "rise"})


def test_an_experiment_shows_means_or_paired_differences():
    alone = plots.differences(experiment(), "gain", None)
    assert alone.loc[(100, "scaling 100"), "mean"] == pytest.approx(3.0)
    assert alone.loc[(100, "scaling 100"), "error"] == pytest.approx(1 / np.sqrt(3))
    paired = plots.differences(experiment(), "gain", "random")
    assert paired.loc[(1000, "shapley")].tolist() == pytest.approx([0.5, 0.0])
    ax = plots.plot_experiment(experiment(), over="random", ax=axes())
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == ["scaling 100", "shapley"]
    assert "over random" in ax.get_ylabel()
    with pytest.raises(UnknownNameError, match="gain"):
        plots.plot_experiment(experiment(), "gian", ax=axes())


def test_how_fast_a_value_fades_is_known_for_any_family():
    power = Laws.from_arrays(c=[1.0, -3.0], alpha=[0.5, 2.0])
    assert_allclose(plots.exponent(power, 700.0), [0.5, 2.0], rtol=1e-6)
    series = Laws.from_arrays(family=Series(terms=(2, 4)), params=[[1.0, 0.0], [1.0, -100.0]])
    # psi = 1/k - 100/k^2: minus its log slope is (1/k - 200/k^2) / psi, 0 at 200.
    assert_allclose(plots.exponent(series, 200.0), [1.0, 0.0], atol=1e-6)
    ax = plots.plot_histogram(series, ax=axes())
    assert ax.get_xlabel().startswith("exponent at k")


def test_all_of_them_hold_on_a_dark_slide(laws):
    with plots.theme("dark", "slide"):
        for ax in (
            plots.plot_crossings(laws, most=3, ax=axes()),
            plots.plot_calibration(laws, TRUTH, ax=axes()),
            plots.plot_backtest(SCORES, ax=axes()),
            plots.plot_experiment(experiment(), ax=axes()),
        ):
            ax.figure.canvas.draw()
            assert ax.title.get_color() != "black"
