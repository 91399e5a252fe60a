from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from apiece import Laws, plots, synthetic
from apiece.errors import UnknownNameError

TRUTH = synthetic.random_laws(8, random_state=0)
SAMPLES = synthetic.sample(TRUTH, samples=60, random_state=0)


@pytest.fixture(scope="module")
def laws():
    from apiece import fit

    return fit(SAMPLES)


def axes():
    return Figure().subplots()


def test_the_numbers_are_those_of_the_laws(laws):
    numbers = plots.curves(laws, [3, 1], until=5000)
    assert numbers.ids.tolist() == [3, 1]
    assert numbers.k[0] == laws.k_range[0]
    assert numbers.k[-1] == pytest.approx(5000)
    assert_allclose(numbers.mean, laws.mean(numbers.k)[[3, 1]])
    assert numbers.is_sampled.sum() == (numbers.k <= laws.k_range[1]).sum()
    assert (numbers.low <= numbers.mean).all()


def test_means_in_bins_average_to_the_mean_of_all():
    size, mean, error = plots.binned_means(SAMPLES, 2, n_bins=1)
    mine = SAMPLES.delta[SAMPLES.point == 2]
    assert mean == pytest.approx(mine.mean())
    assert error == pytest.approx(mine.std(ddof=1) / np.sqrt(len(mine)))
    assert SAMPLES.k.min() < size < SAMPLES.k.max()


def test_a_curve_is_solid_where_sampled_and_dashed_beyond(laws):
    ax = plots.plot_curves(laws, [0, 1], contributions=SAMPLES, until=3000, ax=axes())
    styles = {line.get_linestyle() for line in ax.lines}
    assert {"-", "--"} <= styles
    assert ax.get_xlabel() == "cardinality k"
    assert "90%" in ax.get_legend().get_title().get_text()


def test_the_legend_names_the_sign_at_the_sampled_sizes():
    laws = Laws.from_arrays(
        family="series",
        params=[[-4.0, 60.0, 0.0], [4.0, 0.0, 0.0]],
        k_range=(20, 60),
    )
    assert laws.mean(60)[0] > 0 > laws.mean(400)[0]
    ax = plots.plot_curves(laws, [0, 1], until=400, ax=axes())
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["0 (helps)", "1 (helps)"]


def test_an_unknown_point_gets_a_suggestion(laws):
    with pytest.raises(UnknownNameError, match="unknown point"):
        plots.plot_curves(laws, ["nobody"], ax=axes())


def test_the_count_of_what_is_found_rises_from_none_to_all():
    values = np.array([0.2, -0.3, 0.1, -0.1])
    is_target = np.array([False, True, False, True])
    assert plots.detection_curve(values, is_target).tolist() == [0, 1, 2, 2, 2]
    ax = plots.plot_detection(values, is_target, name="errors", ax=axes())
    assert ax.get_ylabel() == "errors found"


def test_the_callers_settings_stay_as_they_were(laws):
    import matplotlib

    before = matplotlib.rcParams["axes.grid"]
    plots.plot_curves(laws, [0], ax=axes())
    assert matplotlib.rcParams["axes.grid"] == before
