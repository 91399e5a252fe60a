from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece import synthetic
from apiece.errors import ApieceWarning, FitError, UnknownNameError
from apiece.estimators import Bayes, Likelihood, fit
from apiece.estimators._decay import noise_decay
from apiece.estimators._noise_scale import (
    NoiseScale,
    effective_sample_fraction,
    spread_of_noise_scales,
)
from apiece.estimators._population import (
    PRIOR_POINTS,
    Population,
    Sums,
    _Goal,
    _improved,
    _Steps,
    information,
    learn,
)
from apiece.estimators._total import Pooled
from apiece.laws import FitStatus, Laws, Ridge, Series
from apiece.laws.student import normal_width_factor
from apiece.records import Contributions


@pytest.fixture(scope="module")
def truth():
    return synthetic.random_laws(300, family="series", random_state=1)


def test_the_posterior_is_that_of_a_normal_prior_and_normal_noise():
    rng = np.random.default_rng(0)
    k, y = rng.integers(100, 1000, 8).astype(float), rng.standard_normal(8)
    table = Contributions.from_arrays(point=np.zeros(8, int), k=k, delta=y)
    k_ref, beta, s = 300.0, 2.0, np.diag([0.5, 0.2, 0.1])
    basis = Series().prior_basis(k_ref)
    factors = basis.scale_factors
    sums = Sums.of(table.moments(), basis, k_ref, beta)
    population = Population(s, factors, np.ones(5) / 5, NoiseScale(3.0, 0.0))
    post = population.posterior(sums, np.zeros(1))
    # The same from the covariance of the contributions: E[u | y] = S B' V^-1 y.
    terms = basis.columns(k[None, :] / k_ref, 0)[0]
    for j, factor in enumerate(factors):
        big = factor * s
        v = terms @ big @ terms.T + np.diag((k / k_ref) ** -beta)
        assert_allclose(post.mean[0, j], big @ terms.T @ np.linalg.solve(v, y), rtol=1e-8)
        assert_allclose(post.q[0, j], y @ np.linalg.solve(v, y), rtol=1e-8)
        cov = big - big @ terms.T @ np.linalg.solve(v, terms @ big)
        assert_allclose(post.cov[0, j], cov, rtol=1e-6, atol=1e-12)


def test_the_spread_of_noise_scales_is_recovered():
    rng = np.random.default_rng(0)
    n, df, unit = 20_000, 4.0, 0.3
    s2 = unit**2 * df / rng.chisquare(df, n)
    total = np.full(n, 10.0)
    found, log_unit = spread_of_noise_scales(s2 * rng.chisquare(10, n), total, np.zeros(n))
    # Standard errors: the log variance of 20,000 units is known to 1 %, the degrees to 3 %.
    assert_allclose(found, df, rtol=0.1)
    assert_allclose(np.exp(log_unit / 2), unit, rtol=0.02)


def test_the_decay_of_the_noise_is_recovered_whatever_the_units():
    rng = np.random.default_rng(1)
    n, m, beta = 400, 12, 2.6
    k = rng.integers(100, 1000, (n, m))
    delta = 10.0 ** rng.uniform(-3, 0, (n, 1)) * (k / 300) ** (-beta / 2)
    delta *= rng.standard_normal((n, m))
    table = Contributions.from_arrays(
        point=np.repeat(np.arange(n), m), k=k.ravel(), delta=delta.ravel()
    )
    # The weights of few large points leave an error of 0.1.
    assert abs(noise_decay(table.moments(), 300.0, np.zeros(n, int)) - beta) < 0.3


def test_shared_noise_is_worth_less_than_independent_noise():
    rng = np.random.default_rng(2)
    task = np.repeat(np.arange(2000), 50)
    own = rng.standard_normal(task.size) ** 2
    common = np.repeat(rng.standard_normal(2000), 50) ** 2
    point = np.tile(np.arange(50), 2000)
    assert information(task, point, own) > 0.7
    # One factor common to 50 points: each contribution is worth a fiftieth.
    assert_allclose(information(task, point, common), 1 / 50, rtol=0.3)
    # Taken for tasks of their own, the 2,000 distinct squares have a variance of about 2 again.
    assert information(np.arange(task.size), point, common) > 0.5


def test_a_square_of_heavy_tailed_noise_tells_less_of_its_point():
    rng = np.random.default_rng(3)
    n, m = 4000, 10
    point, unit = np.repeat(np.arange(n), m), 10.0 ** rng.uniform(-3, 3, (n, 1))
    normal = (unit * rng.standard_normal((n, m))) ** 2
    # Scales learned from ten residuals pass for tails, a little.
    assert effective_sample_fraction(point, normal.ravel()) > 0.65
    # One contribution in twenty is five times as noisy: kurtosis 3 (0.95 + 0.05 * 625) /
    # (0.95 + 0.05 * 25)^2 = 20, so a square is worth a tenth of a normal one.
    scale = np.where(rng.random((n, m)) < 0.05, 5.0, 1.0)
    worth = effective_sample_fraction(point, (scale**2 * normal).ravel())
    assert_allclose(worth, 2 / 19, rtol=0.4)


def test_intervals_cover_where_noise_has_heavy_tails(truth):
    # Without allowing for tails, ten contributions per point cover 0.78 here.
    rng = np.random.default_rng(4)
    table = synthetic.sample(truth, samples=10, random_state=5, shared=False)
    scale = np.where(rng.random(len(table)) < 0.05, 5.0, 0.9)
    curve = truth.mean(np.arange(1, 1001))[table.point, table.k - 1]
    heavy = replace(table, delta=curve + scale * (table.delta - curve))
    low, high = Bayes().fit(heavy).interval([200, 500, 1000])
    psi = truth.mean([200, 500, 1000])
    # Three sizes of 300 points: a standard error of about 0.015.
    assert 0.85 < ((low <= psi) & (psi <= high)).mean() < 0.97


def test_a_creeping_iteration_is_brought_to_its_end():
    rng = np.random.default_rng(6)
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    rate, end = turn @ np.diag([0.3, 0.9, 0.99, 0.9999]) @ turn.T, rng.standard_normal(4)
    steps, at = _Steps(), np.zeros(4)
    for _ in range(40):  # plain steps would still be 0.996 of the way from the end
        at = steps.leap(at, end + rate @ (at - end))
    assert_allclose(at, end, atol=1e-3)


def test_plain_steps_from_where_learning_ended_lead_nowhere(truth):
    # Ten contributions say little of how the terms go together, and plain steps creep there: after
    # two hundred of them, a hundred more still change the covariance by 4 %.
    table = synthetic.sample(truth, samples=10, random_state=7)
    basis, log_scale = Series().prior_basis(316.0), np.zeros(300)
    sums = Sums.of(table.moments(), basis, 316.0, 2.5)
    learned = now = learn(sums, basis, log_scale, 1000)
    goal = _Goal(sums, basis, log_scale, 1000, None, False, basis.prior, PRIOR_POINTS)
    for _ in range(100):
        now = _improved(now, goal)
    assert_allclose(now.s, learned.s, atol=0.003 * learned.s.max())
    assert_allclose(now.masses, learned.masses, atol=0.003)


@pytest.mark.parametrize("seed", [2, 21, 46])
def test_rounding_does_not_decide_where_learning_from_few_points_ends(seed):
    # If their steps need not become shorter, intervals in twice the units are 2 to 16 % off here.
    few = synthetic.random_laws(4, family="series", random_state=seed, sizes=(1, 10_000))
    table = synthetic.sample(few, samples=17, sizes=(1, 10_000), random_state=seed)
    one, two = Bayes().fit(table), Bayes().fit(table.scaled(2.0))
    assert_allclose(two.stderr([1, 10_000]), 2 * one.stderr([1, 10_000]), rtol=1e-8)


def test_points_borrow_strength_from_each_other(truth):
    table = synthetic.sample(truth, samples=10, random_state=3)
    psi = truth.mean(500)
    alone, together = Likelihood(family="series").fit(table), Bayes().fit(table)
    unit = truth.sigma * 500 ** (-truth.beta / 2)
    error = [np.sqrt((((laws.mean(500) - psi) / unit) ** 2).mean()) for laws in (alone, together)]
    # Measured over five seeds: 0.45 to 0.52 alone, 0.27 to 0.31 together.
    assert error[1] < 0.75 * error[0]


def test_one_point_alone_gets_a_law():
    table = Contributions.from_arrays(point=[0] * 5, k=[10, 20, 30, 40, 50], delta=[5, 3, 2, 1, 1])
    laws = Bayes().fit(table)
    assert laws.status[0] == FitStatus.OK
    low, high = laws.interval(20)
    assert low[0] < high[0]
    assert low[0] < 2.5 < high[0]


def test_the_population_is_in_the_diagnostics(truth):
    population = Bayes().fit(synthetic.sample(truth, samples=30)).diagnostics["population"]
    assert np.shape(population["covariance"]) == (3, 3)
    assert 2.0 < population["beta"] < 3.0
    assert 0 < population["information"] <= 1


@pytest.mark.slow
def test_the_size_of_a_block_sets_memory_not_results(truth):
    table = synthetic.sample(truth, samples=12)
    for family in ("series", "power", "blend"):  # ridge laws are part of a blend
        one, two = Bayes(family=family).fit(table), Bayes(family=family, block=100).fit(table)
        assert_allclose(one.params, two.params, rtol=1e-12)


@pytest.mark.parametrize("family", ["series", "power"])
def test_a_good_prior_is_trusted_and_brings_the_laws_closer(truth, family):
    table = synthetic.sample(truth, samples=10, random_state=4)
    rng = np.random.default_rng(5)
    near = Laws.from_arrays(
        family="series", params=truth.params * (1 + 0.1 * rng.standard_normal((300, 1)))
    )
    unit = truth.sigma * 500 ** (-truth.beta / 2)

    def error(laws):
        return np.sqrt((((laws.mean(500) - truth.mean(500)) / unit) ** 2).mean())

    without, with_ = Bayes(family=family).fit(table), Bayes(family=family, prior=near).fit(table)
    assert with_.diagnostics["population"]["trust"] > 0.8
    assert error(with_) < 0.6 * error(without)


def test_a_useless_prior_is_not_trusted_and_does_no_harm(truth):
    table = synthetic.sample(truth, samples=10, random_state=4)
    wrong = truth.select(np.random.default_rng(6).permutation(300))
    unit = truth.sigma * 500 ** (-truth.beta / 2)

    def error(laws):
        return np.sqrt((((laws.mean(500) - truth.mean(500)) / unit) ** 2).mean())

    without, with_ = Bayes().fit(table), Bayes(prior=wrong).fit(table)
    assert with_.diagnostics["population"]["trust"] < 0.3
    assert error(with_) < 1.1 * error(without)


def test_a_prior_of_other_points_is_refused(truth):
    with pytest.raises(FitError, match="prior has laws of 5 points: expected 300"):
        Bayes(prior=truth.select(slice(5))).fit(synthetic.sample(truth, samples=5))


def test_an_unknown_family_is_refused(truth):
    with pytest.raises(UnknownNameError, match="unknown family 'cubic'"):
        Bayes(family="cubic").fit(synthetic.sample(truth, samples=5))


@pytest.fixture(scope="module")
def penalised():
    """Laws some of whose terms come to life far beyond the sampled sizes."""
    rng = np.random.default_rng(3)
    return Laws.from_arrays(
        family=Ridge((0, 500, 5000)),
        params=rng.standard_normal((300, 3)) * [0.5, 0.5, 2.0],
        sigma=0.5,
        beta=2.0,
    )


def test_ridge_laws_go_on_where_directions_come_to_life_beyond_the_sampled_sizes(penalised):
    table = synthetic.sample(penalised, samples=200, random_state=4)
    far = penalised.mean(5000)
    error, covered = {}, {}
    for word in ("ridge", "series", "series24"):
        laws = Bayes(word).fit(table)
        low, high = laws.interval(5000)
        error[word] = ((laws.mean(5000) - far) ** 2).sum()
        covered[word] = ((low <= far) & (far <= high)).mean()
    assert error["ridge"] < 0.8 * error["series"] < 0.8 * error["series24"]
    assert covered["ridge"] > 1.5 * covered["series"] > 1.5 * covered["series24"]


@pytest.mark.slow
def test_a_blend_is_the_mixture_of_its_members(truth):
    table = synthetic.sample(truth, samples=20)
    blend = Bayes("blend").fit(table)
    each = [Bayes(word).fit(table) for word in ("series24", "series", "ridge")]
    for k in (100, 1000, 10_000):
        curves = np.array([laws.mean(k) for laws in each])
        assert_allclose(blend.mean(k), curves.mean(axis=0), rtol=1e-9)
        within = np.mean([laws.stderr(k) ** 2 for laws in each], axis=0)
        apart = normal_width_factor(blend.df) * curves.var(axis=0)  # members do not differ by noise
        assert_allclose(blend.stderr(k), np.sqrt(within + apart), rtol=1e-6)
    assert_allclose(blend.df, np.min([laws.df for laws in each], axis=0))
    assert blend.attrs["settings"]["family"] == "blend"


@pytest.mark.slow
def test_a_blend_is_not_sure_of_what_only_one_of_its_members_foretells(penalised):
    table = synthetic.sample(penalised, samples=200, random_state=4)
    far = penalised.mean(10_000)

    def covered(family):
        low, high = Bayes(family).fit(table).interval(10_000)
        return ((low <= far) & (far <= high)).mean()

    assert covered("blend") > 2 * covered("series24")


@pytest.mark.parametrize("given", [{"X": np.ones((300, 1)), "y": np.arange(300) % 2}, {}])
@pytest.mark.parametrize("family", ["ridge", "blend"])
def test_ridge_laws_given_features_or_a_prior_are_refused(truth, family, given):
    estimator = Bayes(family, prior=None if given else truth)
    with pytest.raises(FitError, match=f"{family} laws cannot be learned around"):
        estimator.fit(synthetic.sample(truth, samples=5), **given)


def test_features_bring_laws_closer_where_points_have_training_sets_of_their_own():
    rng = np.random.default_rng(8)
    n = 200
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    height = (2 * y - 1) * np.exp(0.7 * X[:, 0])
    truth = Laws.from_arrays(c=300 * height, alpha=1.0, sigma=2000.0, beta=2.0)
    own = synthetic.sample(truth, samples=6, random_state=9, shared=False)
    alone, informed = Bayes().fit(own), fit(own, method="bayes", X=X, y=y)

    def error(laws):
        return np.sqrt(((laws.mean(500) - truth.mean(500)) ** 2).mean())

    assert informed.diagnostics["population"]["trust"] > 0.5
    assert error(informed) < 0.9 * error(alone)


def test_features_are_left_out_where_points_share_their_training_sets(truth):
    table = synthetic.sample(truth, samples=10, random_state=4)
    with pytest.warns(ApieceWarning, match="300 points share each training set"):
        laws = Bayes().fit(table, X=np.zeros((300, 1)), y=np.arange(300) % 2)
    assert_allclose(laws.params, Bayes().fit(table).params)


@pytest.mark.parametrize(("n", "is_used"), [(400, False), (800, True)])
def test_training_sets_may_serve_a_fiftieth_of_the_points(n, is_used):
    rng = np.random.default_rng(10)
    X, y = rng.standard_normal((n, 3)), rng.integers(0, 2, n)
    truth = Laws.from_arrays(c=300 * (2 * y - 1) * X[:, 0], alpha=1.0, sigma=900.0, beta=2.0)
    table = synthetic.sample(truth, samples=4, random_state=11, shared=False)
    table = replace(table, task=table.point // 12 * 4 + np.arange(len(table.task)) % 4)
    left_out = pytest.warns(ApieceWarning, match="12 points share .* share=10 or less")
    with nullcontext() if is_used else left_out:
        laws = Bayes().fit(table, X=X, y=y)
    assert (laws.attrs["settings"]["prior"] == "features") == is_used


def test_laws_add_up_to_what_points_contribute_together():
    # Most points help a little; shrinking each of them alone would lose half of the total.
    rng = np.random.default_rng(4)
    truth = Laws.from_arrays(
        c=rng.normal(0.3, 0.5, 3000),
        alpha=1.0,
        sigma=3 * np.exp(rng.normal(0, 0.5, 3000)),
        beta=2.0,
    )
    laws = Bayes().fit(synthetic.sample(truth, samples=20, random_state=5))
    k = np.array([150, 300, 800])
    assert_allclose(laws.mean(k).sum(axis=0), truth.mean(k).sum(axis=0), rtol=0.25)
    alone = Bayes().fit(synthetic.sample(truth, samples=20, random_state=5).of(np.arange(2)))
    spread = np.abs(alone.mean(300)) / alone.stderr(300)
    assert spread.max() < 3


def test_laws_keep_more_of_their_total_and_are_as_near_to_the_truth(monkeypatch):
    # A few loud points make the pooled contributions noisy: they must not spoil the others.
    errors, totals = [], []
    for seed in range(6):
        truth = synthetic.random_laws(400, random_state=seed)
        table = synthetic.sample(truth, samples=20, random_state=100 + seed)
        moved = Bayes("series").fit(table).mean(700)
        with monkeypatch.context() as patch:
            patch.setattr(Pooled, "with_total", lambda _, params, cov, *rest: (params, cov))
            alone = Bayes("series").fit(table).mean(700)
        true = truth.mean(700)
        errors.append([np.mean((each - true) ** 2) for each in (moved, alone)])
        totals.append([each.sum() / true.sum() for each in (moved, alone)])
    moved, alone = np.mean(errors, axis=0)
    assert moved < 1.05 * alone
    away = np.abs(np.array(totals) - 1).mean(axis=0)
    assert away[0] < 0.8 * away[1]


def test_noise_that_points_share_through_their_training_sets_is_no_total(monkeypatch):
    # Each task shifts all of its points, so that their mean looks as if it were known well.
    rng = np.random.default_rng(0)
    n, n_tasks = 200, 30
    ways = {
        "alone": ("apiece.estimators._total.Pooled.with_total", lambda _, *laws: laws[:2]),
        "whole": ("apiece.estimators._total._signal_share", lambda *_: 1.0),
    }
    totals = []
    for _ in range(10):
        psi = rng.normal(size=n)
        psi -= psi.mean()
        k = rng.integers(100, 1000, n_tasks)
        noise = 1.5 * rng.standard_normal((n_tasks, 1)) + 0.5 * rng.standard_normal((n_tasks, n))
        delta = 300 / k[:, None] * (psi + noise)
        task, point = np.indices(delta.shape)
        table = Contributions.from_arrays(
            task=task.ravel(), point=point.ravel(), k=k[task].ravel(), delta=delta.ravel()
        )
        totals.append([Bayes().fit(table).mean(300).sum()])
        for name, instead in ways.values():
            with monkeypatch.context() as patch:
                patch.setattr(name, instead)
                totals[-1].append(Bayes().fit(table).mean(300).sum())
    moved, alone, whole = np.transpose(totals)
    assert np.abs(moved - alone).mean() < 0.5 * np.abs(whole - alone).mean()


def test_contributions_at_one_size_do_not_move_laws_to_a_total_that_they_do_not_show():
    rng = np.random.default_rng(7)
    psi = rng.normal(1.0, 0.3, 100)
    point = np.tile(np.arange(100), 20)
    table = Contributions.from_arrays(
        point=point, k=np.full(2000, 300), delta=psi[point] + 0.3 * rng.standard_normal(2000)
    )
    laws = Bayes().fit(table)
    assert_allclose(laws.mean(300).mean(), table.delta.mean(), rtol=0.1)
