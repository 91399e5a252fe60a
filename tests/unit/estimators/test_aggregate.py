from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import apiece
from apiece.errors import CardinalityError, FitError, PlanError
from apiece.estimators import fit_aggregate
from apiece.records import Contributions


def table(k, loss, task=None):
    k = np.asarray(k)
    return Contributions.from_arrays(
        point=np.zeros(len(k)), k=k, delta=np.zeros(len(k)), loss=loss, task=task
    )


def test_losses_without_noise_give_back_the_law():
    k = np.array([50.0, 100.0, 200.0, 400.0, 800.0])
    law = fit_aggregate(table(k, 0.3 + 4.0 * k**-0.5))
    assert_allclose(law.mean(k), 0.3 + 4.0 * k**-0.5, rtol=1e-4)
    assert_allclose(law.lam, 0.5, rtol=1e-3)  # exponents are walked through in steps of 0.06 %
    assert_allclose(law.mean(5000), 0.3 + 4.0 * 5000**-0.5, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("b", "lam", "noise", "decay", "n"),
    [(3.0, 0.5, 0.005, 1.0, 60), (30.0, 1.0, 0.01, 1.0, 30), (300.0, 1.5, 0.02, 2.0, 200)],
)
def test_intervals_cover_the_truth_inside_and_beyond_the_sizes(b, lam, noise, decay, n):
    rng = np.random.default_rng(0)
    at = np.array([100.0, 316.0, 1000.0, 10_000.0])
    truth = 0.3 + b * at**-lam
    covered = []
    for _ in range(40):
        k = rng.integers(100, 1001, n).astype(float)
        loss = 0.3 + b * k**-lam + noise * (k / 316) ** (-decay / 2) * rng.normal(size=n)
        low, high = fit_aggregate(table(k, loss)).interval(at)
        covered.append((low <= truth) & (truth <= high))
    # Over 40 tables and four sizes, which go together, the coverage has a standard error of 0.03.
    assert abs(np.mean(covered) - 0.9) < 0.09


def test_each_task_counts_once_however_many_points_it_valued():
    rng = np.random.default_rng(1)
    k = rng.integers(50, 500, 40)
    loss = 0.2 + 3.0 / k + 0.01 * rng.normal(size=40)
    once = fit_aggregate(table(k, loss))
    often = fit_aggregate(table(np.repeat(k, 7), np.repeat(loss, 7), np.repeat(np.arange(40), 7)))
    assert often.n_tasks == 40
    assert_allclose(often.interval(1000), once.interval(1000))


def test_other_units_scale_the_law_and_leave_the_exponent():
    rng = np.random.default_rng(2)
    k = rng.integers(50, 500, 50)
    loss = 0.2 + 3.0 / k + 0.002 * rng.normal(size=50)
    one, two = fit_aggregate(table(k, loss)), fit_aggregate(table(k, 1e6 * loss))
    assert two.lam == one.lam
    assert_allclose(two.interval(2000), 1e6 * np.array(one.interval(2000)), rtol=1e-9)


def test_constant_losses_are_a_floor_without_slope():
    law = fit_aggregate(table([10, 20, 30, 40], np.full(4, 0.7)))
    assert_allclose(law.mean([10, 1000]), 0.7)
    assert_allclose(law.interval([10, 1000]), 0.7)


def test_a_loss_that_rises_with_size_is_written_with_one_sign():
    k = np.array([50.0, 100.0, 200.0, 400.0, 800.0])
    law = fit_aggregate(table(k, 0.5 - 2 * k**-0.5))
    assert law.b < 0
    assert " - " in law.headline()
    assert "+ -" not in law.headline()


@pytest.mark.parametrize(("k", "n"), [([10, 20, 30], 3), ([10, 10, 20, 20], 4)])
def test_too_few_sizes_or_tasks_are_refused(k, n):
    with pytest.raises(FitError, match=f"{n} losses at .* expected four tasks at three sizes"):
        fit_aggregate(table(k, np.linspace(1, 0.5, n)))


def test_unknown_losses_are_refused():
    with pytest.raises(FitError, match="losses of the models trained on D are unknown"):
        fit_aggregate(table([10, 20, 30, 40], np.full(4, np.nan)))


def test_bad_sizes_and_levels_are_refused():
    law = fit_aggregate(table([10, 20, 30, 40], [0.9, 0.7, 0.65, 0.6]))
    with pytest.raises(CardinalityError):
        law.mean(0)
    with pytest.raises(PlanError, match=r"level=1\.5"):
        law.interval(100, level=1.5)


def test_a_run_has_a_law_of_its_loss_with_a_table(blobs):
    run = apiece.collect(blobs, sizes=(8, 30), samples=10, random_state=0)
    law = apiece.aggregate(run)
    assert list(law.table().index) == ["eps", "b", "lambda"]
    assert law.k_range == run.contributions().k_range
    low, high = law.interval(30)
    assert low < law.mean(30) < high
    assert law.anchor == run.anchor
    assert f"at {run.anchor.k}" in law.headline()


def steep(n=80, noise=0.003, seed=0):
    """Losses that seem to fall below zero: a slow decay from small sizes."""
    rng = np.random.default_rng(seed)
    k = np.exp(rng.uniform(np.log(30), np.log(300), n)).astype(int)
    return k, 0.02 + 2.5 * k**-0.6 + noise * rng.normal(size=n)


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_never_falls_below_what_is_possible(seed):
    k, loss = steep(seed=seed)
    bounded = fit_aggregate(table(k, loss), lowest=0.0)
    far = np.geomspace(10, 1e7, 30)
    low, high = bounded.interval(far)
    assert bounded.eps >= 0
    assert (low >= 0).all()
    assert (bounded.mean(far) >= 0).all()
    assert (low <= bounded.mean(far)).all()
    assert (bounded.mean(far) <= high).all()


def test_the_metric_of_a_run_says_what_is_possible(blobs):
    law = apiece.aggregate(apiece.collect(blobs, sizes=(8, 30), samples=10, random_state=0))
    assert law.lowest == 0
    assert law.interval(1e6)[0] >= 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_parameters_lie_in_their_intervals(seed, level):
    rng = np.random.default_rng(seed)
    k = np.exp(rng.uniform(np.log(100), np.log(1000), 40)).astype(int)
    loss = 0.1 + 3 * k**-0.4 + 0.03 * rng.normal(size=40)  # too noisy to tell floor and decay apart
    found = fit_aggregate(table(k, loss)).table(level)
    assert (found["low"] <= found["value"]).all()
    assert (found["value"] <= found["high"]).all()


def test_an_anchor_pulls_the_law_to_the_loss_at_the_size_of_the_pool():
    rng = np.random.default_rng(0)
    k = np.exp(rng.uniform(np.log(30), np.log(300), 60)).astype(int)
    loss = 0.3 + 3 / k + 0.01 * rng.normal(size=60)
    plain = fit_aggregate(table(k, loss))

    class Anchored:
        attrs = plain.attrs
        anchor = apiece.records.Anchor(3000, (0.25,))

        def losses(self):
            return table(k, loss).losses()

    anchored = fit_aggregate(Anchored())
    assert abs(anchored.mean(3000) - 0.25) < abs(plain.mean(3000) - 0.25)
    assert anchored.k_known == 3000
    assert "at 3,000 points" in anchored.headline()
    bent = replace(anchored, bend=-0.1)  # so the formula does not hold there, and says so
    assert f"; up to {k.max()} points about 0." in bent.headline()
    assert "; about 0." in plain.headline()
