from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece.errors import CardinalityError, PlanError
from apiece.laws import Laws
from apiece.selection import select


@pytest.fixture
def laws():
    """Steep but high, flat but low, harmful, equal to the first, and unknown."""
    return Laws.from_arrays(
        c=[100.0, 1.0, -1.0, 100.0, np.nan],
        alpha=[2.0, 1.0, 1.0, 2.0, np.nan],
        cov=np.broadcast_to(np.diag([1e-6, 0.01]), (5, 2, 2)),
        ids=["steep", "flat", "bad", "twin", "none"],
    )


def test_the_best_points_depend_on_the_size(laws):
    assert select(laws, take=2, at=10).index.tolist() == ["steep", "twin"]
    assert select(laws, take=1, at=1000).index.tolist() == ["flat"]


def test_picks_are_ranked_best_first_and_ties_keep_their_order(laws):
    table = select(laws, take=4, at=1000)
    assert table.index.tolist() == ["flat", "steep", "twin", "bad"]
    assert table["rank"].tolist() == [1, 2, 3, 4]
    assert table.index.name == "point"
    assert_allclose(table["value"], laws.mean(1000)[[1, 0, 3, 2]])
    low, high = laws.interval(1000, level=0.9)
    assert_allclose(table["low"], low[[1, 0, 3, 2]])
    assert_allclose(table["high"], high[[1, 0, 3, 2]])


@pytest.mark.parametrize("take", [0, -1, 5, 6, 1.5])
def test_more_picks_than_points_with_a_law_are_refused(laws, take):
    with pytest.raises(PlanError, match=r"1 <= take <= 4.*1 more have none"):
        select(laws, take=take, at=10)


def test_sizes_below_one_are_refused(laws):
    with pytest.raises(CardinalityError, match="at least 1"):
        select(laws, take=1, at=0)
