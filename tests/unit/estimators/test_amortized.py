"""The amortized network on laws that are functions of features and label."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import apiece
from apiece import synthetic
from apiece.errors import DataError, FitError, StoreError, UnknownNameError
from apiece.estimators import Amortized, AmortizedNetwork, _amortized_network, amortized, fit
from apiece.laws import FitStatus, Laws, Series

QUICK = {"epochs": 150, "patience": 50, "width": 16, "folds": 3, "weight_decay": (0.01,)}


def make_truth(n=240, seed=0, family="power"):
    """Laws that depend on features and class; classes follow the first feature, with errors."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=n) > 0, "yes", "no")
    sign = np.where(y == "yes", 1.0, -1.0)
    height = 1e-4 * (1.0 + sign * X[:, 0] + 0.5 * X[:, 1])
    k_ref = np.sqrt(1e5)
    if family == "power":
        alpha = 1.2 + 0.2 * np.tanh(X[:, 2])
        columns = {"c": height * k_ref**alpha, "alpha": alpha}
    else:
        terms = np.stack([height, -0.6 * height + 3e-5 * X[:, 2]], axis=1)
        columns = {"family": Series(terms=(2, 4)), "params": terms * [k_ref, k_ref**2]}
    sigma = 2e-4 * np.exp(0.3 * X[:, 1]) * k_ref
    return X, y, Laws.from_arrays(**columns, sigma=sigma, beta=2.0)


@pytest.fixture(scope="module")
def problem():
    X, y, truth = make_truth()
    return X, y, truth, synthetic.sample(truth, samples=10, random_state=1, shared=False)


@pytest.fixture(scope="module")
def network(problem):
    X, y, _, contributions = problem
    return Amortized(**QUICK).train(contributions, X, y)


def correlation(laws, truth, k=316):
    return np.corrcoef(laws.mean(k), truth.mean(k))[0, 1]


@pytest.mark.slow
def test_it_is_closer_to_the_truth_than_the_mean_of_the_same_contributions(problem):
    X, y, truth, contributions = problem
    laws = Amortized(**QUICK).fit(contributions, X, y)
    n = np.bincount(contributions.point)
    monte_carlo = np.bincount(contributions.point, contributions.delta * contributions.k) / n
    baseline = np.corrcoef(monte_carlo, truth.mean(316))[0, 1]
    # Measured over three seeds: 0.97 to 0.98 against 0.88.
    assert correlation(laws, truth) > 0.95
    assert 1 - correlation(laws, truth) < 0.5 * (1 - baseline)
    assert (laws.status == FitStatus.OK).all()
    assert_array_equal(laws.n_samples, 10)
    assert laws.attrs["estimator"] == "amortized"


@pytest.mark.slow
def test_points_never_sampled_have_laws_too(network):
    X, y, truth = make_truth(seed=5)
    laws = network.laws_for(X, y)
    assert correlation(laws, truth) > 0.93
    assert (laws.status == FitStatus.PREDICTED).all()
    assert_array_equal(laws.n_samples, 0)
    low, high = laws.interval(316)
    covered = ((low <= truth.mean(316)) & (truth.mean(316) <= high)).mean()
    assert 0.8 < covered <= 1.0  # 240 points: standard error 0.02, and a normal approximation


@pytest.mark.slow
def test_series_laws_and_their_sign_changes_are_recovered():
    X, y, truth = make_truth(n=400, family="series")
    contributions = synthetic.sample(truth, samples=20, random_state=2, shared=False)
    laws = Amortized(family=Series(terms=(2, 4)), **QUICK).fit(contributions, X, y)
    # Measured: 0.84, 0.97 and 0.95; the noise is largest at small sizes.
    for k, least in ((120, 0.75), (316, 0.93), (900, 0.9)):
        assert correlation(laws, truth, k) > least
    assert laws.family == Series(terms=(2, 4))


@pytest.mark.slow
def test_regression_targets_enter_through_their_error():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    error = rng.normal(size=300)
    y = X @ [1.0, -2.0, 0.5] + error
    # Least squares: c = (2 s^2 - e^2) x' Sigma^-1 x, alpha = 2.
    c = (2 - error**2) * (X**2).sum(axis=1)
    truth = Laws.from_arrays(c=c, alpha=2.0, sigma=2 * np.abs(error) * 3, beta=4.0)
    contributions = synthetic.sample(truth, samples=20, random_state=4, shared=False)
    network = Amortized(epochs=250, weight_decay=(0.01,)).train(contributions, X, y)
    assert network.reader.classes is None
    new = rng.normal(size=(200, 3))
    e = rng.normal(size=200)
    laws = network.laws_for(new, new @ [1.0, -2.0, 0.5] + e)
    expected = (2 - e**2) * (new**2).sum(axis=1) / 316**2
    assert np.corrcoef(laws.mean(316), expected)[0, 1] > 0.85
    assert np.isfinite(network.laws_for(new).mean(316)).all()


def test_unlabelled_points_get_the_mean_over_their_labels(network):
    X, _, _ = make_truth(n=30, seed=6)
    p = network.reader.predict(X)
    laws = [network.laws_for(X, np.full(30, label)) for label in network.reader.classes]
    expected = sum(p[:, j] * law.mean(network_k(network)) for j, law in enumerate(laws))
    unlabelled = network.laws_for(X)
    assert_allclose(unlabelled.mean(network_k(network)), expected, rtol=1e-9)
    # Not to know the label is a further uncertainty.
    assert (unlabelled.stderr(316) > np.minimum(laws[0].stderr(316), laws[1].stderr(316))).all()


def network_k(network):
    return float(np.sqrt(np.prod(network.k_range)))


def test_a_seed_repeats_the_result_and_another_does_not(problem):
    X, y, _, contributions = problem
    settings = {**QUICK, "epochs": 20}
    one, two, three = (
        Amortized(**settings, random_state=seed).fit(contributions, X, y) for seed in (0, 0, 1)
    )
    assert_array_equal(one.params, two.params)
    assert not np.allclose(one.params, three.params)


def test_a_saved_network_predicts_the_same_and_holds_no_pickle(network, tmp_path):
    network.save(tmp_path / "network.npz")
    loaded = AmortizedNetwork.load(tmp_path / "network.npz")
    X, y, _ = make_truth(n=20, seed=7)
    assert_array_equal(loaded.laws_for(X, y).params, network.laws_for(X, y).params)
    assert_array_equal(loaded.laws_for(X).cov, network.laws_for(X).cov)
    with np.load(tmp_path / "network.npz", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)
    assert loaded.attrs == network.attrs


@pytest.mark.parametrize(
    ("version", "remedy"), [(1, "Train the network again"), (99, "Upgrade apiece")]
)
def test_a_network_of_another_version_is_refused(network, tmp_path, monkeypatch, version, remedy):
    with monkeypatch.context() as patch:
        patch.setattr(_amortized_network, "SCHEMA_VERSION", version)
        network.save(tmp_path / "other.npz")
    with pytest.raises(StoreError, match=f"schema version {version}.*{remedy}"):
        AmortizedNetwork.load(tmp_path / "other.npz")


def test_a_missing_damaged_or_foreign_file_is_refused(network, tmp_path):
    with pytest.raises(StoreError, match="there is no network"):
        AmortizedNetwork.load(tmp_path / "nothing.npz")
    network.save(tmp_path / "cut.npz")
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    np.savez(tmp_path / "foreign.npz", X=np.zeros(3))
    for name in ("cut.npz", "foreign.npz"):
        with pytest.raises(StoreError, match="holds no network"):
            AmortizedNetwork.load(tmp_path / name)


def test_every_training_begins_with_the_same_first_weights(problem):
    X, y, _, contributions = problem
    settings = QUICK | {"epochs": 40}
    once = Amortized(**settings).fit(contributions, X, y)
    again = Amortized(**settings | {"weight_decay": (0.01, 0.01)}).fit(contributions, X, y)
    assert_array_equal(again.params, once.params)


def test_decays_are_those_for_a_thousand_points_and_fall_with_the_root_of_more(monkeypatch):
    decays = {}

    def noted(shape, start, inputs, split, k_ref, recipe, *others):
        decays[len(inputs)] = recipe.decays
        return fit_laws(shape, start, inputs, split, k_ref, recipe, *others)

    fit_laws = amortized.fit_laws
    monkeypatch.setattr(amortized, "fit_laws", noted)
    for n in (250, 1000):
        X, y, truth = make_truth(n=n)
        contributions = synthetic.sample(truth, samples=3, random_state=1, shared=False)
        Amortized(**QUICK | {"epochs": 1, "weight_decay": (0.01, 10.0)}).fit(contributions, X, y)
    assert_allclose(decays[1000], (0.01, 10.0))
    assert_allclose(decays[250], (0.02, 20.0))


@pytest.mark.slow
def test_noise_has_heads_of_its_own_where_features_tell_of_it_and_only_there():
    X, y, truth = make_truth(n=400, seed=3)
    rng = np.random.default_rng(4)
    many = np.column_stack([X, rng.normal(size=(400, 120))])
    known, drawn = np.exp(0.6 * X[:, 1]), np.exp(0.6 * rng.normal(size=400))
    networks = {}
    for word, features, spread in (("known", X, known), ("drawn", many, drawn)):
        laws = replace(truth, sigma=np.median(truth.sigma) * spread)
        contributions = synthetic.sample(laws, samples=20, random_state=5, shared=False)
        networks[word] = Amortized(**QUICK).train(contributions, features, y)
    has_heads = {word: n.weights["noise"].any(axis=(1, 2)) for word, n in networks.items()}
    assert has_heads["known"].all()
    assert not has_heads["drawn"].all()
    found = networks["known"].laws_for(X, y).sigma
    assert np.corrcoef(np.log(found), np.log(known))[0, 1] > 0.8


def test_out_of_fold_laws_do_not_know_the_points_own_contributions(problem):
    X, y, _, contributions = problem
    estimator = Amortized(**{**QUICK, "epochs": 20})
    apart = estimator.out_of_fold(contributions, X, y)
    spoiled = contributions.delta.copy()
    spoiled[contributions.point == 17] *= -30.0
    changed = apiece.Contributions.from_arrays(
        point=contributions.point, k=contributions.k, delta=spoiled, ids=contributions.ids
    )
    # The scale of the whole, and with it the units, moves a little; the law of point 17 must not
    # follow its own contributions, as that of the mean of all members does.
    moved = np.abs(estimator.out_of_fold(changed, X, y).mean(316) - apart.mean(316))
    inside = np.abs(
        estimator.fit(changed, X, y).mean(316) - estimator.fit(contributions, X, y).mean(316)
    )
    assert moved[17] < 0.5 * inside[17]


def test_members_are_judged_on_points_and_tasks_that_they_did_not_see():
    from apiece.estimators._held_out import Split

    truth = synthetic.random_laws(20)
    shared = synthetic.sample(truth, samples=15, shared=True)
    split = Split.of(shared, 5, np.random.default_rng(0))
    everyone = np.arange(20)
    learned, judged = split.learned(everyone), split.judged(everyone)
    for member in range(5):
        columns_in = learned[member].any(axis=0)
        columns_out = judged[member].any(axis=0)
        assert not (columns_in & columns_out).any()
        assert not (learned[member].any(axis=1) & judged[member].any(axis=1)).any()
    assert split.moments.n.sum() == len(shared)
    alone = Split.of(synthetic.sample(truth, samples=15, shared=False), 5, np.random.default_rng(0))
    assert (alone.column_fold == -1).all()


def test_a_point_without_contributions_is_predicted_and_says_so(problem):
    X, y, _, contributions = problem
    laws = Amortized(**QUICK).fit(contributions.where(contributions.point != 3), X, y)
    assert laws.status[3] == FitStatus.PREDICTED
    assert laws.n_samples[3] == 0
    assert np.isfinite(laws.mean(316)).all()


def test_the_papers_network_learns_the_target_first_and_then_the_laws(problem):
    X, y, truth, contributions = problem
    laws = Amortized(network="paper", **QUICK).fit(contributions, X, y, more=(X, y))
    assert correlation(laws, truth) > 0.85
    assert laws.beta.max() <= np.exp(2.0)


def test_missing_or_wrong_features_are_explained(problem):
    X, y, _, contributions = problem
    with pytest.raises(DataError, match=r"X is missing.*dataset="):
        fit(contributions, method="amortized")
    with pytest.raises(DataError, match="y is missing"):
        fit(contributions, method="amortized", X=X)
    with pytest.raises(DataError, match=r"X has shape \(10, 3\): expected 240 rows"):
        fit(contributions, method="amortized", X=X[:10], y=y)
    with pytest.raises(DataError, match="row 4 that is not finite"):
        fit(contributions, method="amortized", X=np.where(np.arange(240)[:, None] == 4, np.nan, X))
    with pytest.raises(DataError, match="expected numbers"):
        fit(contributions, method="amortized", X=np.full((240, 1), "red"), y=y)


def test_labels_that_the_network_has_not_seen_are_refused(network):
    with pytest.raises(DataError, match="'maybe', a class that the network has not seen"):
        network.laws_for([[0.0, 0.0, 0.0]], ["maybe"])
    with pytest.raises(DataError, match="X has 2 features: expected 3"):
        network.laws_for([[0.0, 0.0]], ["yes"])


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(FitError, match="folds of at least 2"):
        Amortized(folds=1)
    with pytest.raises(UnknownNameError, match="Did you mean 'series'"):
        Amortized(family="serie")
    with pytest.raises(UnknownNameError, match="Did you mean 'paper'"):
        Amortized(network="papr")


def test_without_torch_the_message_says_what_to_install(problem):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import apiece\n"
        "table = apiece.Contributions.from_arrays(point=[0, 1], k=[5, 9], delta=[1.0, 2.0])\n"
        "apiece.fit(table, method='amortized', X=[[1.0], [2.0]], y=[0, 1])\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.returncode == 1
    assert "pip install 'apiece[torch]'" in said.stderr


def test_other_methods_do_not_load_torch():
    code = (
        "import sys, apiece\n"
        "truth = apiece.synthetic.random_laws(3)\n"
        "apiece.fit(apiece.synthetic.sample(truth, samples=9))\n"
        "print('torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_fit_takes_the_dataset_of_the_run_and_no_other(blobs):
    run = apiece.collect(blobs, sizes=(8, 30), samples=8, points=range(40), random_state=0)
    laws = apiece.fit(run, method=Amortized(epochs=10), dataset=blobs)
    assert_array_equal(laws.ids, run.ids)
    assert_array_equal(laws.labels, run.labels)
    other = apiece.Dataset.from_arrays(
        blobs.X + 1, blobs.y, X_val=blobs.X_val, y_val=blobs.y_val, kind="classification"
    )
    with pytest.raises(DataError, match="another dataset"):
        apiece.fit(run, method="amortized", dataset=other)
