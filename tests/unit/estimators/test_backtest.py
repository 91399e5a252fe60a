from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from apiece import synthetic
from apiece.errors import FitError
from apiece.estimators import Auto, Bayes, Likelihood, backtest, fit
from apiece.estimators.backtest import _Curves, _pick
from apiece.laws import FitStatus, Laws, Power, Series
from apiece.records import Contributions


@pytest.fixture(scope="module")
def turning():
    """Points that help small training sets and hurt large ones, with little noise."""
    rng = np.random.default_rng(0)
    n = 100
    params = np.stack([-0.1 * rng.uniform(0.5, 2, n), rng.uniform(20, 40, n)], axis=1)
    truth = Laws.from_arrays(family=Series((2, 4)), params=params, sigma=0.02, beta=2.0)
    return synthetic.sample(truth, samples=80, random_state=1)


def test_a_power_law_foretells_turning_points_worse_than_a_series(turning):
    outcome = backtest(
        turning, candidates=(Likelihood("power"), Likelihood("series24"), Bayes("series"))
    )
    table = outcome.table().groupby(["method", "family"])["r2"].min()
    assert table["likelihood", "series24"] > 0.9
    assert table["likelihood", "power"] < 0.8
    assert outcome.best in (1, 2)


def test_auto_fits_the_family_that_foretells_best(turning):
    laws = Auto(candidates=(Likelihood("power"), Likelihood("series24"))).fit(turning)
    assert laws.family == Series((2, 4))
    assert laws.attrs["chosen_by"] == "auto"
    assert laws.attrs["estimator"] == "likelihood"


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "height"), [(0.4, 1.0), (2.0, 500.0)])
def test_power_laws_are_chosen_where_they_are_clearly_better(alpha, height):
    rng = np.random.default_rng(9)
    params = np.stack([height * rng.normal(0, 1, 100), np.full(100, alpha)], axis=1)
    truth = Laws.from_arrays(family="power", params=params, sigma=1.0, beta=2.0)
    table = synthetic.sample(truth, samples=80, random_state=10)
    laws = Auto().fit(table)
    assert laws.attrs["settings"]["family"] == "power"
    far, predicted = truth.mean(2500), laws.mean(2500)
    assert 1 - ((predicted - far) ** 2).mean() / far.var() > 0.9


@dataclass(frozen=True)
class Known:
    """An estimator that knows its laws already."""

    height: tuple[float, ...]

    def fit(self, contributions: Contributions) -> Laws:
        params = np.array(self.height)[:, None]
        laws = Laws.from_arrays(family=Series((2,)), params=params, sigma=1.0, beta=2.0)
        laws.attrs["estimator"] = "known"
        return laws


@pytest.mark.parametrize(("n_better", "best"), [(1, 0), (40, 1)])
def test_another_is_chosen_if_it_is_better_for_many_points_not_for_one(n_better, best):
    rng = np.random.default_rng(8)
    task, point = np.divmod(np.arange(60 * 50), 50)
    k = np.repeat(rng.integers(100, 1000, 60), 50)
    table = Contributions.from_arrays(
        task=task, k=k, point=point, delta=(1 + rng.normal(0, 0.1, len(k))) / k
    )
    far = np.where(np.arange(50) < n_better, 2.0, 1.0)  # at every one of sixty tasks
    outcome = backtest(table, candidates=(Known(tuple(far)), Known((1.0,) * 50)))
    assert outcome.best == best
    assert {score.method for score in outcome.scores} == {"known"}


def test_intervals_cover_what_is_held_out_as_often_as_they_say():
    truth = synthetic.random_laws(400, family="series", random_state=2)
    found = [
        backtest(
            synthetic.sample(truth, samples=60, random_state=seed),
            candidates=(Bayes(), Likelihood("series")),
        ).table()["coverage"]
        for seed in (3, 4, 5)
    ]
    # 1,200 draws at each size: a standard error of 0.009, and the noise law's own error, which
    # all points of a draw share: one draw alone has 0.835 to 0.943.
    coverage = np.mean(found, axis=0)
    assert coverage.min() > 0.86
    assert coverage.max() < 0.94


@pytest.mark.slow
def test_a_point_that_no_family_describes_is_flagged_and_keeps_its_law():
    truth = synthetic.random_laws(50, random_state=4)
    table = synthetic.sample(truth, samples=100, random_state=5)
    # Beyond the sizes fitted on; a jump among those would pass for noise of the point.
    odd = (table.point == 7) & (table.k > 750)
    jump = 100 * truth.sigma[7] * 750.0 ** (-truth.beta[7] / 2)
    broken = Contributions.from_arrays(
        task=table.task, k=table.k, point=table.point, delta=table.delta + jump * odd
    )
    laws = fit(broken, method="auto")
    flagged = np.flatnonzero(laws.status == FitStatus.UNDESCRIBED)
    assert flagged.tolist() == [7]
    assert np.isfinite(laws.mean(500)[7])
    assert laws.attrs["estimator"] == "bayes"  # the odd point has no say in what is best


@pytest.mark.slow
def test_no_point_is_flagged_when_all_follow_the_law():
    truth = synthetic.random_laws(300, random_state=6)
    outcome = backtest(synthetic.sample(truth, samples=50, random_state=7))
    assert not outcome.undescribed.any()


@pytest.mark.slow
def test_laws_remember_their_backtest_through_a_file(turning, tmp_path):
    laws = fit(turning, method="bayes", backtest=True)
    laws.save(tmp_path / "laws.parquet")
    table = Laws.load(tmp_path / "laws.parquet").backtest()
    assert {"method", "family", "k", "r2", "correlation", "coverage"} <= set(table.columns)
    assert (table["k"] > 400).all()  # the largest size over 2.5


def test_laws_without_a_backtest_say_how_to_get_one(turning):
    with pytest.raises(FitError, match="fitted with backtest=True"):
        fit(turning, method="bayes").backtest()


def test_too_few_sizes_are_refused_and_auto_fits_anyway():
    table = Contributions.from_arrays(
        point=[0] * 6, k=[10, 10, 10, 20, 20, 20], delta=[1.0, 2.0, 1.5, 0.5, 1.0, 0.7]
    )
    with pytest.raises(FitError, match="at 2 sizes cannot be backtested"):
        backtest(table)
    laws = Auto().fit(table)
    assert laws.has_law.all()
    assert laws.attrs["chosen_by"].startswith("auto: contributions at 2 sizes")


def test_a_share_beyond_one_is_refused(turning):
    with pytest.raises(FitError, match=r"hold_out=1\.5 is not a share"):
        backtest(turning, hold_out=1.5)


def test_sizes_that_range_less_far_leave_enough_to_fit_on(turning):
    narrow = turning.where(turning.k > 500)  # the largest over 2.5 is below all of them
    cut = backtest(narrow, candidates=(Likelihood("series24"),)).cut
    assert 0.25 < (narrow.k <= cut).mean() < 0.35


def test_points_that_were_valued_rarely_have_their_say_in_the_choice():
    rng = np.random.default_rng(0)
    task, point = (part.ravel() for part in np.indices((400, 40)))
    is_settled = point < 20
    # Zero predicts the points of the focus better, one half the settled ones, by more.
    delta = np.where(is_settled, 0.5, 0.2) + 0.1 * rng.normal(size=len(point))
    whole = Contributions.from_arrays(point=point, k=np.full(len(point), 9), delta=delta, task=task)
    chance = np.where(is_settled, 1 / 8, 1.0)
    part = replace(whole, chance=chance).where(rng.random(len(point)) < chance)
    curves = [_Curves(Power(), np.tile([c, 0.0], (40, 1))) for c in (0.0, 0.5)]
    all_points = np.ones(40, dtype=bool)
    assert _pick(curves, whole, all_points) == _pick(curves, part, all_points) == 1
    assert _pick(curves, replace(part, chance=None), all_points) == 0
