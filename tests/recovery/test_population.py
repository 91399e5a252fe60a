"""Laws from rotating scoring rows against a population whose contributions are known.

Least squares on normal features: the expected contribution of a point with features x and error e
to a training set of k rows of the population is, at leading order, (2 s^2 - e^2)(1 + x'x) / k^2,
with the noise s, features of unit covariance and an intercept (the paper's theorem on least
squares).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import apiece
from apiece.estimators._rows import about_population

N, D, K = 900, 4, 200


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, D))
    error = rng.normal(size=N)
    y = X @ np.array([1.0, -1.0, 0.5, 0.0]) + error
    truth = (2 - error**2) * (1 + (X**2).sum(axis=1)) / K**2
    return X, y, truth


def collected(table, **settings):
    X, y, _ = table
    data = apiece.Dataset.from_arrays(X, y, kind="regression", random_state=0, **settings)
    return apiece.collect(
        data, model="linear", sizes=(60, 400), samples=60, random_state=2, progress=False
    )


@pytest.fixture(scope="module")
def rotating(table):
    return collected(table, validation=0)


def test_values_agree_with_the_population_where_fixed_scoring_rows_mislead(table, rotating):
    truth = table[2]
    laws = rotating.laws()
    assert laws.scope == "population"
    assert np.corrcoef(laws.mean(K), truth)[0, 1] > 0.9
    assert 0.9 < laws.mean(K).sum() / truth.sum() < 1.1
    fixed = collected(table, validation=0.2)
    assert fixed.laws().scope == "scoring rows"
    about = truth[fixed.ids.astype(int)]
    assert np.corrcoef(fixed.laws().mean(K), about)[0, 1] < 0.5


def test_intervals_cover_the_population(table, rotating):
    truth, laws = table[2], rotating.laws()
    low, high = laws.interval(K, level=0.9)
    # Points share the noise of rows, and theory is of leading order; intervals lean to caution.
    assert np.mean((low <= truth) & (truth <= high)) >= 0.85
    assert np.median(high - low) < 4 * np.std(truth)
    sure = (laws.interval(K, level=0.95)[0] > 0) | (laws.interval(K, level=0.95)[1] < 0)
    assert sure.mean() > 0.1
    assert np.mean(np.sign(laws.mean(K))[sure] != np.sign(truth)[sure]) < 0.1


def test_the_control_has_mean_zero_and_takes_most_of_the_noise_away(rotating):
    raw = rotating.contributions()
    adjusted = about_population(raw)
    scaled = raw.control * raw.k**1.5
    by_task = np.bincount(raw.task, scaled) / np.bincount(raw.task)
    error = by_task.std() / np.sqrt(len(by_task))
    assert abs(by_task.mean()) < 4 * error
    large = raw.k > 200
    assert adjusted.delta[large].std() < 0.5 * raw.delta[large].std()
    # Less noise, the same mean: within four standard errors over tasks.
    change = (adjusted.delta - raw.delta) * raw.k**1.5
    per_task = np.bincount(raw.task, change) / np.bincount(raw.task)
    assert abs(per_task.mean()) < 4 * per_task.std() / np.sqrt(len(per_task))


def test_streamed_contributions_are_adjusted_alike(rotating):
    whole = rotating.laws("bayes", refit=True)
    parts = rotating.laws("bayes", refit=True, memory="1MB")
    typical = np.abs(whole.mean(K)).mean(axis=0)
    np.testing.assert_allclose(
        parts.mean(K) / typical, whole.mean(K) / typical, rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(parts.stderr(K), whole.stderr(K), rtol=1e-5)


def test_contributions_count_for_less_the_larger_the_noise_of_rows(rotating):
    adjusted = about_population(rotating.contributions())
    assert adjusted.weight is not None
    assert (adjusted.weight > 0).all()
    assert (adjusted.weight <= 1).all()
    assert adjusted.moments().n.sum() == pytest.approx(adjusted.weight.sum())


def test_intervals_allow_for_the_rows_of_the_table(rotating):
    # The same contributions without the theory's noise of rows have narrower intervals.
    table = rotating.contributions()
    bare = replace(table, theory=replace(table.theory, row_noise=None))
    low, high = apiece.fit(table).interval(K)
    narrow = np.subtract(*apiece.fit(bare).interval(K)[::-1])
    assert np.all(high - low >= narrow * (1 - 1e-9))
    assert np.median((high - low) / narrow) > 1.05


def test_few_contributions_tell_quiet_points_from_loud_ones(table):
    # Weights for the noise of rows must not hide how noisy each point is.
    X, y, _ = table
    data = apiece.Dataset.from_arrays(X, y, kind="regression")
    run = apiece.collect(
        data, model="linear", sizes=(60, 400), samples=15, random_state=2, progress=False
    )
    low, high = run.laws().interval(K)
    width = high - low
    seen = run.contributions()
    spread = np.sqrt(np.bincount(seen.point, (seen.delta * seen.k**1.5) ** 2) / seen.counts())
    assert np.corrcoef(np.log(width), np.log(spread))[0, 1] > 0.7
    assert np.quantile(width, 0.9) > 3 * np.quantile(width, 0.1)
