from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import apiece
from apiece.engines import choose_engine
from apiece.errors import DataError, PlanError
from apiece.records import Task
from apiece.uses import Limits, make_rules, select

from oracles import refit_deltas


@pytest.fixture(scope="module")
def offer():
    """A regression where the best candidate is offered in six copies, among others that help."""
    rng = np.random.default_rng(0)
    slope = np.array([1.0, 2.0, 3.0, 4.0])
    X, V = rng.normal(size=(80, 4)), rng.normal(size=(200, 4))
    y = X @ slope + 2.0 * rng.normal(size=80)
    clean = 3.0 * np.eye(4)[[0, 1, 2, 3]] + 0.1 * rng.normal(size=(4, 4))
    C = np.vstack([np.tile(4.0 * np.eye(4)[0], (6, 1)), clean, rng.normal(size=(6, 4))])
    dataset = apiece.Dataset.from_arrays(
        X, y, X_val=V, y_val=V @ slope, candidates=(C, C @ slope), kind="regression"
    )
    run = apiece.collect(
        dataset,
        model="linear",
        points=[],
        sizes=(12, 60),
        samples=300,
        random_state=0,
        progress=False,
    )
    return dataset, apiece.fit(run)


def set_gains(dataset, ids, size, n_draws, seed):
    """What a set gains over random training sets of the pool, by plain refits."""
    from sklearn.linear_model import LinearRegression

    rng = np.random.default_rng(seed)
    picks = dataset.positions(np.asarray(ids))

    def loss(X, y):
        predicted = LinearRegression().fit(X, y).predict(dataset.X_val)
        return np.mean((predicted - dataset.y_val) ** 2)

    gains = []
    for _ in range(n_draws):
        rows = rng.choice(dataset.n_pool, size, replace=False)
        X, y = dataset.X[rows], dataset.y[rows]
        joined = np.vstack([X, dataset.features(picks)]), np.append(y, dataset.targets(picks))
        gains.append(loss(X, y) - loss(*joined))
    return np.array(gains)


@pytest.mark.slow
def test_copies_are_not_bought_together_and_the_set_gains_more(offer):
    dataset, laws = offer
    copies = set(dataset.ids[80:86].tolist())
    plain = select(laws, take=4, at=15)
    aware = select(laws, take=4, at=15, redundancy="aware", dataset=dataset)
    assert len(copies & set(plain.index)) >= 3
    assert len(copies & set(aware.index)) <= 1
    more = set_gains(dataset, aware.index, 15, 300, 2) - set_gains(dataset, plain.index, 15, 300, 2)
    assert more.mean() > 4 * more.std() / np.sqrt(300)


@pytest.mark.slow
def test_gains_sum_to_what_the_set_is_worth(offer):
    dataset, laws = offer
    table = select(laws, take=4, at=15, redundancy="aware", dataset=dataset, draws=200)
    gains = set_gains(dataset, table.index, 15, 600, 1)
    error = np.hypot(gains.std() / np.sqrt(600), gains.std() / np.sqrt(200))
    assert abs(table["value"].sum() - gains.mean()) < 3 * error


def together_of(dataset, laws, **settings):
    from apiece.uses import GreedySelector

    fixed = {"sizes": (15, 15), "seed": 3, "model": "linear", "metric": None, "engine": "auto"}
    return GreedySelector(dataset=dataset, ids=laws.ids, **fixed | settings)


def test_each_training_set_is_judged_by_rows_of_its_own(offer):
    dataset, laws = offer
    together = together_of(dataset, laws, draws=6, most=1)
    parts = [scorer.dataset for scorer in together._scorers]
    assert sorted(np.concatenate([part.y_val for part in parts])) == sorted(dataset.y_val)
    gains = together._gains(np.arange(len(laws)), [])
    for index, part in enumerate(parts):
        engine, _ = choose_engine(part, model="linear")
        assert_allclose(gains[index], engine.run(together._plan[index]).delta, rtol=1e-9)


def test_a_metric_that_is_no_mean_over_rows_is_judged_by_all_of_them(offer):
    dataset, laws = offer

    def worst(y_true, prediction):
        return float(np.abs(y_true - prediction).max())

    together = together_of(dataset, laws, draws=2, most=1, metric=worst)
    gains = together._gains(np.array([1, 10]), [])
    engine, _ = choose_engine(dataset, model="linear", metric=worst)
    expected = [engine.run(together._plan[index]).delta[[1, 10]] for index in range(2)]
    assert_allclose(gains, expected, rtol=1e-9)


def test_gains_after_picks_are_those_of_a_refit(offer):
    from sklearn.linear_model import LinearRegression

    dataset, laws = offer
    together = together_of(dataset, laws, draws=2, most=3)
    expected = []
    for index, scorer in enumerate(together._scorers):
        part = scorer.dataset

        def loss(model, part=part):
            return np.mean((model.predict(part.X_val) - part.y_val) ** 2)

        subset = np.append(together._plan[index].subset, [82, 88])
        task = Task(0, subset, np.array([81, 90]), 0)
        expected.append(refit_deltas(part, task, LinearRegression(), loss)[1])
    assert_allclose(together._gains(np.array([1, 10]), [2, 8]), expected, rtol=1e-7)


def one_point(laws):
    """Rules that take one point, whichever."""
    return make_rules(Limits(take=1), ids=laws.ids, labels=None, is_known=laws.has_law)


def test_a_row_that_few_training_sets_tell_of_is_not_taken_for_a_sure_one(offer, monkeypatch):
    dataset, laws = offer
    together = together_of(dataset, laws, draws=6, most=1)
    seen = np.array([1.0, 3.0, 1.0, 3.0, 1.0, 3.0])
    once = np.array([2.5, *[np.nan] * 5])  # more, but who knows
    twice = np.array([1.0, 3.0, *[np.nan] * 4])
    never = np.full(6, np.nan)
    gains = np.stack([never, once, twice, seen] + [np.zeros(6)] * (len(laws) - 4), axis=1)
    first = together.position[0]
    tasks = [Task(j, first + np.flatnonzero(np.isnan(gains[j])), first[None], 0) for j in range(6)]
    monkeypatch.setattr(together, "_draw", lambda n, picked: tasks)
    monkeypatch.setattr(together, "_run", lambda j, task, picked, rows: gains[j, rows - first])
    assert together.pick(one_point(laws)).rows.tolist() == [3]


def test_picks_are_not_fitted_to_the_rows_that_judge_them():
    """Noise alone tells the candidates apart; the bound prefers those that move little."""
    rng = np.random.default_rng(1)
    X, V, C = (rng.normal(size=(n, 8)) for n in (400, 400, 100))
    C[:50] *= 3.0  # these move the model far, along with what the rows happen to ask for

    def noisy(features):
        return features.sum(axis=1) + 3.0 * rng.normal(size=len(features))

    dataset = apiece.Dataset.from_arrays(
        X, noisy(X), X_val=V, y_val=noisy(V), candidates=(C, noisy(C)), kind="regression"
    )
    laws = apiece.laws.Laws.from_arrays(c=np.ones(100), alpha=np.ones(100), ids=dataset.ids[400:])
    together = together_of(dataset, laws, sizes=(300, 300), draws=8, most=1)
    gains = together._gains(np.arange(100), [])
    by_mean, by_bound = gains.mean(axis=0), gains.mean(axis=0) - gains.std(axis=0, ddof=1) / 8**0.5
    again = together_of(dataset, laws, sizes=(300, 300), draws=8, most=1)
    picked = again.pick(one_point(laws)).rows
    assert picked.tolist() == [np.argmax(by_bound)]
    assert (np.argsort(-by_bound)[:10] < 50).sum() < (np.argsort(-by_mean)[:10] < 50).sum()


@pytest.mark.parametrize(("n_val", "n_parts"), [(30, 1), (99, 1), (120, 2), (900, 6)])
def test_every_part_of_the_validation_rows_has_enough_of_them(n_val, n_parts):
    X = np.random.default_rng(0).normal(size=(60 + n_val, 2))
    dataset = apiece.Dataset.from_arrays(X[:60], X[:60, 0], X_val=X[60:], y_val=X[60:, 0])
    laws = apiece.laws.Laws.from_arrays(c=np.ones(60), alpha=np.ones(60), ids=dataset.ids)
    scorers = together_of(dataset, laws, sizes=(20, 20), draws=6, most=1)._scorers
    assert len(scorers) == n_parts
    assert sum(scorer.dataset.n_validation for scorer in scorers) == n_val


@pytest.mark.slow
def test_points_of_the_pool_can_be_picked_and_never_join_twice():
    from conftest import make_blobs

    dataset = make_blobs(n=60, n_val=60)
    run = apiece.collect(dataset, sizes=(8, 30), samples=20, random_state=0, progress=False)
    table = apiece.select(
        run, take=5, at=25, redundancy="aware", dataset=dataset, quotas={0: 2, 1: 3}, draws=4
    )
    assert len(set(table.index)) == 5
    assert sorted(table["label"]) == [0, 0, 1, 1, 1]
    assert np.isfinite(table["value"]).all()
    again = apiece.select(
        run, take=5, at=25, redundancy="aware", dataset=dataset, quotas={0: 2, 1: 3}, draws=4
    )
    assert again.equals(table)


def test_a_horizon_and_a_budget_go_together_with_redundancy(offer):
    dataset, laws = offer
    table = select(
        laws,
        at=12,
        until=30,
        costs=np.ones(len(laws)),
        budget=3.2,
        redundancy="aware",
        dataset=dataset,
        draws=5,
    )
    assert 1 <= len(table) <= 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"draws": 1}, "at least 2"),
        ({"shortlist": 1}, "smaller than the 2 picks"),
    ],
)
def test_wrong_settings_are_refused(offer, options, words):
    dataset, laws = offer
    with pytest.raises(PlanError, match=words):
        select(laws, take=2, at=15, redundancy="aware", dataset=dataset, **options)


def test_another_dataset_is_refused(offer):
    dataset, laws = offer
    other = apiece.Dataset.from_arrays(
        dataset.points_X, dataset.points_y, X_val=dataset.X_val, y_val=dataset.y_val
    )
    with pytest.raises(DataError, match="another dataset"):
        select(laws, take=2, at=15, redundancy="aware", dataset=other)


def test_a_model_that_is_not_known_by_name_must_be_given(offer):
    from dataclasses import replace

    dataset, laws = offer
    unknown = replace(laws, attrs={**laws.attrs, "model": "LinearRegression"})
    with pytest.raises(PlanError, match="Pass model="):
        select(unknown, take=2, at=15, redundancy="aware", dataset=dataset)
    from sklearn.linear_model import LinearRegression

    table = select(
        unknown, take=2, at=15, redundancy="aware", dataset=dataset, model=LinearRegression()
    )
    assert len(table) == 2


def test_a_loss_that_is_not_known_by_name_must_be_given(offer):
    from dataclasses import replace

    from apiece.losses import SquaredError

    class Doubled(SquaredError):
        name = "doubled"

        def rows(self, y, prediction):
            return 2 * super().rows(y, prediction)

    dataset, laws = offer
    unknown = replace(laws, attrs={**laws.attrs, "metric": "doubled"})
    assert "alone" not in select(unknown, take=2, at=15, dataset=dataset)
    with pytest.raises(PlanError, match=r"the run used the metric 'doubled'.* Pass metric="):
        select(unknown, take=2, at=15, redundancy="aware", dataset=dataset)
    assert "alone" in select(unknown, take=2, at=15, dataset=dataset, metric=Doubled())


def test_picks_are_valued_together_unasked_where_that_is_quick(offer):
    dataset, laws = offer
    asked = select(laws, take=4, at=15, redundancy="aware", dataset=dataset)
    found = select(laws, take=4, at=15, dataset=dataset)
    assert found.equals(asked)
    assert "alone" not in select(laws, take=4, at=15)
    assert "alone" not in select(laws, take=4, at=15, dataset=dataset, redundancy="none")


@pytest.mark.parametrize(
    "settings",
    [
        {"at": 81},  # no training set of the pool is so large
        {"at": 15, "until": 1000},
        {"at": 15, "engine": "refit"},
        {"at": 15, "draws": 10**6},
    ],
)
def test_picks_are_ranked_one_by_one_where_valuing_them_together_is_slow_or_impossible(
    offer, settings
):
    dataset, laws = offer
    found = select(laws, take=4, dataset=dataset, **settings)
    sizes = {name: size for name, size in settings.items() if name in ("at", "until")}
    assert found.equals(select(laws, take=4, **sizes))


def test_candidates_can_join_the_whole_pool_together(offer):
    dataset, laws = offer
    table = select(laws, take=2, at=80, dataset=dataset)
    assert "alone" in table
    assert np.isfinite(table["value"]).all()


@pytest.mark.slow
def test_a_run_finds_its_own_data_to_value_picks_together(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    frame = pd.DataFrame(rng.normal(size=(120, 2)) + y[:, None], columns=["a", "b"])
    frame.assign(label=y).to_csv(tmp_path / "data.csv", index=False)
    dataset = apiece.Dataset.from_csv(tmp_path / "data.csv", target="label")
    run = apiece.collect(dataset, sizes=(8, 40), samples=10, random_state=0, progress=False)
    settings = {"take": 3, "at": 20, "shortlist": 20}
    assert apiece.select(run, **settings).equals(apiece.select(run, **settings, dataset=dataset))
    assert "alone" in apiece.select(run, **settings)
    frame.assign(label=1 - y).to_csv(tmp_path / "data.csv", index=False)
    with pytest.warns(apiece.ApieceWarning, match="ranked one by one: this is another dataset"):
        assert "alone" not in apiece.select(run, **settings)
    (tmp_path / "data.csv").unlink()
    with pytest.warns(apiece.ApieceWarning, match="ranked one by one: there is no file"):
        assert "alone" not in apiece.select(run, **settings)
