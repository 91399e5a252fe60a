"""A validation set as a sample: laws are about the population that it comes from.

The population and its truth are those of `test_population`: least squares on normal features, with
the expected contribution (2 s^2 - e^2)(1 + x'x) / k^2.
"""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import apiece
from apiece.cli import cli
from apiece.engines import Surrogate, sample_of
from apiece.engines._sample import ScoringSample
from apiece.records import Task

N, M, D, K = 700, 300, 4, 200
SLOPES = np.array([1.0, -1.0, 0.5, 0.0])


def drawn(rng, n, slopes=SLOPES):
    X = rng.normal(size=(n, D))
    error = rng.normal(size=n)
    return X, X @ slopes + error, error


def dataset_of(rng, slopes=SLOPES):
    X, y, error = drawn(rng, N)
    X_val, y_val, _ = drawn(rng, M, slopes)
    data = apiece.Dataset.from_arrays(X, y, X_val=X_val, y_val=y_val, kind="regression")
    return data, (2 - error**2) * (1 + (X**2).sum(axis=1)) / K**2


def collected(data, scoring, **settings):
    settings = {"model": "linear", "sizes": (60, 400), "samples": 40} | settings
    return apiece.collect(data, scoring=scoring, random_state=2, progress=False, **settings)


@pytest.fixture(scope="module")
def one_population():
    data, truth = dataset_of(np.random.default_rng(5))
    return data, truth, collected(data, "sample")


def test_values_are_about_the_population_where_fixed_ones_mislead(one_population):
    data, truth, run = one_population
    laws, fixed = run.laws(), collected(data, "fixed").laws()
    assert (laws.scope, fixed.scope) == ("population", "scoring rows")
    assert np.corrcoef(laws.mean(K), truth)[0, 1] > 0.85
    assert np.corrcoef(fixed.mean(K), truth)[0, 1] < 0.6
    assert 0.8 < laws.mean(K).sum() / truth.sum() < 1.2


def test_intervals_cover_the_population_where_fixed_ones_do_not(one_population):
    data, truth, run = one_population

    def coverage(laws):
        low, high = laws.interval(K, level=0.9)
        return np.mean((low <= truth) & (truth <= high))

    assert coverage(run.laws()) > 0.82
    assert coverage(collected(data, "fixed").laws()) < 0.6


def test_what_is_subtracted_has_no_mean_over_validation_sets_and_training_sets():
    rng, total = np.random.default_rng(0), []
    for _ in range(40):
        data, _ = dataset_of(rng)
        sample = ScoringSample(Surrogate(data, 1e-6))
        sample.__dict__["_distances"] = (0.0, np.ones(99))  # as for one population
        chosen = rng.permutation(N)
        total.append(sample.control(Task(0, chosen[:K], chosen[K:], seed=0)))
    means = np.array([control.mean() for control in total])
    assert abs(means.mean()) < 3.5 * means.std() / np.sqrt(len(means))
    # The expectation that is taken off, E[w x' C_n H H_k^-1 x], is large enough to show there.
    assert 3.5 * means.std() / np.sqrt(len(means)) < (D + 1) / (K * N)


def test_another_population_is_noticed_and_its_laws_stay():
    data, _ = dataset_of(np.random.default_rng(1), slopes=SLOPES + 0.4)
    run = collected(data, "sample")
    sample = sample_of(data, apiece.engines.choose_engine(data, model="linear")[0].model)
    assert not sample.is_of_the_pool
    assert sample.real_part > 0.8
    fixed = collected(data, "fixed").laws()
    assert np.corrcoef(run.laws().mean(K), fixed.mean(K))[0, 1] > 0.95
    # What the validation rows do not say of their population is in the intervals.
    assert np.median(run.laws().stderr(K) / fixed.stderr(K)) > 1.2


def test_rows_of_one_population_are_rarely_taken_for_two():
    rng, found = np.random.default_rng(2), []
    for _ in range(30):
        data, _ = dataset_of(rng)
        found.append(ScoringSample(Surrogate(data, 1e-6)).is_of_the_pool)
    assert np.mean(found) > 0.8


def test_rows_far_from_all_others_are_not_taken_for_another_population():
    # A model of the pool alone knows its rare columns, and not those of the validation rows.
    rng, found = np.random.default_rng(4), []
    for _ in range(30):
        X = (rng.uniform(size=(400, 15)) < 0.01).astype(np.float64)
        X[:, 0] = rng.standard_t(2, size=400)
        y = X.sum(axis=1) + rng.standard_t(3, size=400)
        data = apiece.Dataset.from_arrays(
            X[:300], y[:300], X_val=X[300:], y_val=y[300:], kind="regression"
        )
        found.append(ScoringSample(Surrogate(data, 1e-6)).is_of_the_pool)
    assert np.mean(found) > 0.8


def test_runs_on_disk_and_streamed_ones_give_the_same_laws(one_population, tmp_path):
    data, _, run = one_population
    stored = collected(data, "sample", to=tmp_path / "run")
    np.testing.assert_array_equal(stored.laws().params, run.laws().params)
    parts = apiece.open_run(tmp_path / "run").laws(refit=True, memory="1MB")
    np.testing.assert_allclose(parts.mean(K), run.laws().mean(K), rtol=1e-5, atol=1e-10)


def test_classes_and_candidates_can_be_valued():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    data = apiece.Dataset.from_arrays(
        X[:250], y[:250], X_val=X[250:350], y_val=y[250:350], candidates=(X[350:], y[350:])
    )
    run = apiece.collect(
        data, sizes=(40, 120), samples=10, scoring="sample", random_state=0, progress=False
    )
    assert run.scope == "population"
    assert np.isfinite(run.laws().mean(100)).all()
    assert run.laws().n_points == 300


@pytest.mark.parametrize(
    "settings",
    [{"model": "knn"}, {"model": "linear", "metric": "mae"}, {"model": "linear", "groups": "half"}],
)
def test_what_theory_does_not_describe_is_refused(settings, one_population):
    data = one_population[0]
    if "groups" in settings:
        settings = settings | {"groups": np.arange(N) % 2}
    with pytest.raises(apiece.PlanError, match="scoring='sample' is asked for"):
        collected(data, "sample", **settings)


def test_without_validation_rows_there_is_no_sample(one_population):
    X, y, _ = drawn(np.random.default_rng(0), 200)
    data = apiece.Dataset.from_arrays(X, y, kind="regression")
    with pytest.raises(apiece.PlanError, match="no validation rows"):
        collected(data, "sample")


def test_the_command_line_says_what_results_are_for(tmp_path):
    import pandas as pd

    X, y, _ = drawn(np.random.default_rng(4), 300)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    frame[:200].to_csv(tmp_path / "table.csv", index=False)
    frame[200:].to_csv(tmp_path / "validation.csv", index=False)
    words = ["collect", str(tmp_path / "table.csv"), "--target", "y", "--scoring", "sample"]
    words += ["--validation", str(tmp_path / "validation.csv"), "--to", str(tmp_path / "run")]
    result = CliRunner().invoke(cli, [*words, "--samples", "10", "--sizes", "30:100"])
    assert result.exit_code == 0, result.output
    shown = CliRunner().invoke(cli, ["show", str(tmp_path / "run")])
    assert "population" in shown.output
