from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from apiece import plots
from apiece.errors import DataError, UnknownNameError
from apiece.laws import Laws, Series

POWER = Laws.from_arrays(
    c=[1.0, 100.0, -2.0, np.nan], alpha=[1.0, 2.0, 0.5, np.nan], ids=["a", "b", "c", "d"]
)
SERIES = Laws.from_arrays(family=Series(terms=(2, 4)), params=[[1.0, -200.0], [-1.0, 50.0]])


def axes():
    return Figure().subplots()


def test_the_spread_leaves_out_points_without_a_law_and_tells_signs():
    values, sign = plots.distribution(POWER, "log|c|")
    assert_allclose(values, np.log10([1.0, 100.0, 2.0]))
    assert sign.tolist() == [1, 1, -1]


def test_an_unknown_quantity_is_answered_with_what_there_is():
    with pytest.raises(UnknownNameError, match="alpha"):
        plots.distribution(POWER, "alhpa")
    with pytest.raises(UnknownNameError):
        plots.distribution(SERIES, "log|c|")


def test_a_histogram_counts_every_point_once():
    ax = plots.plot_histogram(POWER, "alpha", bins=4, ax=axes())
    heights = [patch.get_height() for patch in ax.patches]
    assert sum(heights) == 3
    assert ax.get_ylabel() == "points"


def test_a_histogram_of_nothing_is_drawn_empty():
    ax = plots.plot_histogram(POWER, "r2", ax=axes())
    assert sum(patch.get_height() for patch in ax.patches) == 0


def test_power_laws_are_placed_by_alpha_and_c():
    numbers = plots.plane(POWER)
    assert numbers.ids.tolist() == ["a", "b", "c"]
    assert_allclose(numbers.x, [1.0, 2.0, 0.5])
    assert_allclose(numbers.y, [1.0, 100.0, 2.0])
    assert numbers.helps.tolist() == [True, True, False]
    assert plots.plot_plane(POWER, ax=axes()).get_yscale() == "log"


def test_series_laws_are_placed_by_what_they_are_worth_early_and_late():
    numbers = plots.plane(SERIES)
    assert_allclose(np.stack([numbers.x, numbers.y], axis=1), SERIES.mean(np.array([100, 1000])))
    assert plots.plot_plane(SERIES, ax=axes()).get_yscale() == "linear"


def test_ranks_swap_where_curves_cross_and_points_without_a_law_come_last():
    ranks = plots.ranks(POWER, np.array([50.0, 200.0]))
    assert ranks.tolist() == [[2, 1], [1, 2], [3, 3], [4, 4]]


def test_the_points_that_move_most_are_named():
    ax = plots.plot_ranks(
        Laws.from_arrays(c=[1.0, 500.0, -1.0], alpha=[1.0, 2.0, 1.0], ids=["up", "down", "rest"]),
        most=1,
        until=5000,
        ax=axes(),
    )
    names = {text.get_text().split()[0] for text in ax.texts}
    assert names == {"up", "down"}
    assert {"-", "--"} <= {line.get_linestyle() for line in ax.lines}


def test_chosen_points_are_shown_whether_they_move_or_not():
    ax = plots.plot_ranks(POWER, ["c"], ax=axes())
    assert len(ax.texts) == 1


def test_agreement_matches_points_by_id():
    first = pd.DataFrame({"value": [1.0, 2.0, 3.0]}, index=["a", "b", "c"])
    second = pd.DataFrame({"value": [30.0, 10.0, np.nan]}, index=["c", "a", "b"])
    both = plots.paired_values(first, second)
    assert both.loc["a"].tolist() == [1.0, 10.0]
    assert both.loc["c"].tolist() == [3.0, 30.0]
    assert len(both) == 2
    ax = plots.plot_agreement(first, second, names=("one", "other"), ax=axes())
    assert "Pearson 1.000" in ax.get_legend().get_title().get_text()
    assert ax.get_xlabel() == "value, one"


def test_valuations_without_common_points_are_refused():
    first = pd.DataFrame({"value": [1.0]}, index=["a"])
    with pytest.raises(DataError, match="same ids"):
        plots.plot_agreement(first, first.rename({"a": "b"}), ax=axes())


def test_a_look_holds_inside_and_not_beyond():
    before = to_hex(mpl.rcParams["axes.facecolor"])
    with plots.theme("dark", "slide"):
        ax = plots.plot_plane(POWER)
        assert to_hex(ax.get_facecolor()) == "#14181d"
        assert mpl.rcParams["font.size"] == 16
    assert to_hex(mpl.rcParams["axes.facecolor"]) == before
    with pytest.raises(UnknownNameError, match="dark"), plots.theme("drak"):
        pass
