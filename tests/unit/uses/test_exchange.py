from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece.errors import DataError, PlanError
from apiece.laws import Laws
from apiece.uses import exchange


def laws(c, se=0.05, **columns):
    """Power laws 1/k with an error of ``se`` relative to each c."""
    n = len(c)
    cov = np.zeros((n, 2, 2))
    cov[:, 0, 0] = (se * np.abs(c) / 100.0) ** 2  # in units of psi at k_ref = 100
    return Laws.from_arrays(
        c=c, alpha=np.ones(n), cov=cov, k_range=(100, 100), ids=list("abcdefgh")[:n], **columns
    )


def test_a_rate_is_the_ratio_of_values_a_row():
    table = exchange(laws([6.0, 2.0, 1.0]), at=100, rows={"a": 10, "b": 10, "c": 1})
    found = {(row.group, row.other): row.rate for row in table.itertuples()}
    assert_allclose(
        [found["c", "a"], found["c", "b"], found["a", "b"]], [1 / 0.6, 1 / 0.2, 3.0], rtol=1e-12
    )
    assert table["rate"].is_monotonic_decreasing
    assert (table["rate"] >= 1).all()


@pytest.mark.slow
def test_intervals_cover_the_true_rate_as_often_as_they_say():
    rng = np.random.default_rng(0)
    hits, n = 0, 400
    for seed in range(n):
        noisy = np.array([6.0, 2.0]) * (1 + 0.1 * rng.standard_normal(2))
        row = exchange(
            laws(noisy, se=0.1), at=100, pairs=[("a", "b")], level=0.9, random_state=seed
        ).iloc[0]
        hits += row["low"] <= 3.0 <= row["high"]
    # coverage over 400 simulated pairs has standard error 0.015; accept 0.90 +- 0.045
    assert abs(hits / n - 0.9) < 0.045


def test_a_rate_against_what_may_be_worth_nothing_has_no_upper_end():
    table = exchange(laws([6.0, 0.5], se=2.0), at=100)
    assert table["high"].iloc[0] == np.inf
    assert np.isfinite(table["low"]).all()


def test_groups_that_harm_have_no_rate_and_are_listed_when_asked_for():
    known = laws([6.0, -2.0])
    assert len(exchange(known, at=100)) == 0
    row = exchange(known, at=100, pairs=[("a", "b")]).iloc[0]
    assert np.isnan(row["rate"])
    assert row["p_more"] == 1.0
    assert row["other_per_row"] < 0


def test_rates_change_with_the_size():
    known = Laws.from_arrays(c=[1.0, 10.0], alpha=[0.5, 1.0], ids=["slow", "fast"])
    table = exchange(known, at=[10, 10_000])
    assert table["group"].tolist() == ["fast", "slow"]
    assert_allclose(table["rate"], [10 / 10**0.5, 10_000**0.5 / 10])
    assert table["low"].isna().all()


def test_the_numbers_of_rows_come_from_the_run():
    known = laws([6.0, 2.0], attrs={"groups": {"a": 30, "b": 10}})
    assert_allclose(exchange(known, at=100, pairs=[("a", "b")])["rate"], 1.0)


def test_only_the_largest_rates_are_listed():
    table = exchange(laws([8.0, 4.0, 2.0, 1.0]), at=100, most=2)
    assert_allclose(table["rate"], [8.0, 4.0])


def test_rows_that_are_missing_or_none_are_named():
    with pytest.raises(DataError, match=r"without a number of rows, 'b'"):
        exchange(laws([6.0, 2.0]), rows={"a": 10})
    with pytest.raises(DataError, match="rows holds 0"):
        exchange(laws([6.0, 2.0]), rows={"a": 10, "b": 0})
    with pytest.raises(PlanError, match="most=0"):
        exchange(laws([6.0, 2.0]), most=0)
