"""Laws from trainings that each serve all points."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from apiece.errors import FitError
from apiece.estimators import Bayes, Reuse, fit, plain_contributions
from apiece.estimators._process import TERMS, Process, _Likelihood
from apiece.estimators._responses import Responses
from apiece.records import Contributions, Lists, Trainings

N, M, SIZES = 60, 350, np.array([10, 14, 20, 28])


def lists(parts):
    return Lists(np.array([len(part) for part in parts]), np.concatenate(parts))


def trainings(
    *, seed=0, n_trainings=M, sizes=SIZES, noise=0.01, rotates=False, hardness=None, effect=None
):
    """Losses that are the sum of known effects of points, with rows that score."""
    rng = np.random.default_rng(seed)
    effect = rng.normal(size=N) if effect is None else effect
    hardness = np.zeros(N) if hardness is None else hardness
    k = sizes[np.arange(n_trainings) % len(sizes)]
    inside = [np.sort(rng.choice(N, size, replace=False)) for size in k]
    outside = [np.setdiff1d(np.arange(N), part) for part in inside]
    mean = 0.2 + 2 / k
    raw = (
        mean
        - np.array([effect[part].sum() / (size - 1) for part, size in zip(inside, k, strict=True)])
        * 0.1
    )
    loss = raw + noise * rng.normal(size=n_trainings)
    rows = [level + hardness[part] for level, part in zip(loss, outside, strict=True)]
    if rotates:
        loss = np.array([part.mean() for part in rows])
    return Trainings(
        task=np.arange(n_trainings),
        k=k,
        loss=loss,
        trained=lists(inside),
        scored=lists(outside),
        row_loss=np.concatenate(rows).astype(np.float32),
        ids=np.arange(N),
        labels=np.arange(N) % 2,
        is_pool=np.ones(N, dtype=bool),
        is_valued=np.ones(N, dtype=bool),
        rotates=rotates,
        features=np.empty((N, 0)),
    ), effect


@pytest.fixture
def process():
    rng = np.random.default_rng(0)
    n, k = 15, rng.choice([4, 6, 9], 60)
    members = np.zeros((60, n), dtype=np.float32)
    for row, size in zip(members, k, strict=True):
        row[rng.choice(n, size, replace=False)] = 1
    y = rng.normal(size=60) + 5 / k - members @ rng.normal(size=n)
    features = rng.normal(size=(n, 3))
    return Process(y, k.astype(float), csr_array(members), features, np.array([0, 0, 1]))


def test_the_gradient_of_the_likelihood_is_that_of_finite_differences(process):
    problem = _Likelihood(process, np.arange(60))
    theta = problem.start + 0.3 * np.random.default_rng(1).normal(size=len(problem.start))
    step = 1e-5 * np.eye(len(theta))
    expected = [(problem(theta + e)[0] - problem(theta - e)[0]) / 2e-5 for e in step]
    assert_allclose(problem(theta)[1], expected, rtol=1e-5, atol=1e-5)


def test_the_posterior_is_that_of_all_coefficients_written_out(process):
    known, n, p = process.settings, 15, len(TERMS)
    S, T = known.root @ known.root.T, known.trust[:, process.group]
    g, B = process.features - process.features.mean(axis=0), process._terms
    prior = np.kron(np.eye(n), S) + np.einsum("zf,jf,yf,jl->zjyl", g, T, g, np.eye(p)).reshape(
        n * p, n * p
    )
    share = process.members.toarray() - process.k[:, None] / n
    H = -np.einsum("tz,tj->tzj", share, B).reshape(60, n * p)
    K = H @ prior @ H.T + np.diag(known.noise * process._x**-known.decay)
    X, inverse = process._mean_terms, np.linalg.inv(K)
    P = inverse - inverse @ X @ np.linalg.inv(X.T @ inverse @ X) @ X.T @ inverse
    mean = (prior @ H.T @ P @ process.y).reshape(n, p)
    cov = (prior - prior @ H.T @ P @ H @ prior).reshape(n, p, n, p) * process._scale**2
    found = process.posterior()
    assert_allclose(found.mean, mean, rtol=1e-5, atol=1e-8)
    assert_allclose(found.cov, [cov[z, :, z] for z in range(n)], rtol=1e-5, atol=1e-8)


def test_known_effects_are_found_with_honest_intervals():
    # Coverage over 5 x 60 points has a standard error of 0.017, and points of a run share noise.
    inside = []
    for seed in range(5):
        data, effect = trainings(seed=seed)
        laws = Reuse().fit_trainings(data)
        truth = 0.1 * (effect - effect.mean()) / 20 + (2 / 20 - 2 / 21)
        assert np.corrcoef(laws.mean(20), truth)[0, 1] > 0.85
        low, high = laws.interval(20, level=0.9)
        inside.append((low < truth) & (truth < high))
    assert 0.8 < np.mean(inside) < 0.98


def test_a_row_does_not_score_itself_into_its_value():
    hardness = np.random.default_rng(1).normal(size=N)
    data, _ = trainings(rotates=True, hardness=hardness, effect=np.zeros(N), n_trainings=300)
    raw = -np.array(
        [
            data.loss[
                np.bincount(data.trained.owner[data.trained.position == z], minlength=300) > 0
            ].mean()
            for z in range(N)
        ]
    )
    assert np.corrcoef(raw, hardness)[0, 1] > 0.8  # without care, hard rows seem to help
    found = Responses.of(data)
    assert_allclose(found.hardness - found.hardness.mean(), hardness - hardness.mean(), atol=1e-3)
    assert abs(np.corrcoef(found.loss, data.loss - found.loss)[0, 1]) < 0.3
    plain, _ = trainings(effect=np.zeros(N), n_trainings=300)
    away = found.loss - plain.loss
    assert_allclose(away, away.mean(), atol=2e-3)


def test_features_that_say_nothing_change_little():
    data, _ = trainings(seed=3)
    noise = np.random.default_rng(5).normal(size=(N, 6))
    with_noise = Trainings(**{**vars(data), "features": noise})
    one, two = (Reuse().fit_trainings(part).mean(20) for part in (data, with_noise))
    assert np.corrcoef(one, two)[0, 1] > 0.97


@pytest.mark.parametrize("n_trainings", [2_000, 3_000])
def test_settings_are_learned_from_every_size_of_a_grid(n_trainings):
    k = np.array([100.0, 141, 200, 283, 400])[np.arange(n_trainings) % 5]
    none = csr_array((n_trainings, N))
    process = Process(np.zeros(n_trainings), k, none, np.empty((N, 0)), np.arange(0))
    _, count = np.unique(k[process._learners], return_counts=True)
    assert len(count) == 5
    assert count.min() > 0.8 * count.max()


def test_larger_models_count_more_in_the_unseen_loss_of_a_point():
    hardness = np.random.default_rng(3).normal(size=N)
    data, _ = trainings(hardness=hardness, rotates=True)
    found = data.unseen_loss()
    assert np.corrcoef(found, hardness)[0, 1] > 0.999
    start = 0
    rows, weights = [], []
    for size, k in zip(data.scored.length, data.k, strict=True):
        entries = slice(start, start + size)
        of_seven = data.row_loss[entries][data.scored.position[entries] == 7]
        rows += of_seven.tolist()
        weights += [float(k) ** 3] * len(of_seven)
        start += size
    assert_allclose(found[7], np.average(rows, weights=weights))


def test_plain_contributions_are_right_on_average():
    data, effect = trainings(n_trainings=4000)
    table = plain_contributions(data)
    assert len(table) == len(data.trained.position)
    mean = np.bincount(table.point, table.delta * table.k) / table.counts()
    assert np.corrcoef(mean, effect)[0, 1] > 0.85


def test_few_trainings_and_tables_of_contributions_are_refused():
    data, _ = trainings(n_trainings=10)
    with pytest.raises(FitError, match="10 trainings: expected at least 20"):
        Reuse().fit_trainings(data)
    table = Contributions.from_arrays(point=[0], k=[3], delta=[0.1])
    with pytest.raises(FitError, match="engine='reuse'"):
        fit(table, "reuse")


def test_one_size_is_enough():
    data, effect = trainings(sizes=np.array([20]))
    assert np.corrcoef(Reuse().fit_trainings(data).mean(20), effect)[0, 1] > 0.85


def test_any_other_method_fits_the_plain_contributions():
    data, _ = trainings()
    assert Bayes().fit(plain_contributions(data)).has_law.all()
