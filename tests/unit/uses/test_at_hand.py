from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

import apiece
from apiece import Dataset, PlanError
from apiece.cli import cli
from apiece.uses._at_hand import AtHand
from apiece.uses._rules import Limits, make_rules


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 4)) + 0.8 * y[:, None], y


def loss(X, y, X_test, y_test):
    proba = LogisticRegression(tol=1e-10, max_iter=5_000).fit(X, y).predict_proba(X_test)
    return -np.log(proba[np.arange(len(y_test)), y_test]).mean()


def all_of(dataset, n_have, take):
    n = dataset.n_points - n_have
    is_known = np.ones(n, dtype=bool)
    rules = make_rules(Limits(take), ids=dataset.ids[n_have:], labels=None, is_known=is_known)
    places = np.arange(n_have), np.arange(n_have, dataset.n_points)
    return AtHand(dataset, *places, "logistic", None, "auto", 0), rules


def test_the_first_pick_is_what_refitting_with_each_candidate_finds():
    X, y = rows(90)
    X_val, y_val = rows(120, seed=1)
    dataset = Dataset.from_arrays(X, y, X_val=X_val, y_val=y_val)
    picks = apiece.select(dataset, take=3, have=np.arange(40), progress=False)
    before = loss(X[:40], y[:40], X_val, y_val)
    gains = [
        before - loss(X[[*range(40), i]], y[[*range(40), i]], X_val, y_val) for i in range(40, 90)
    ]
    assert picks.index[0] == 40 + int(np.argmax(gains))
    joined = [*range(40), *picks.index]
    at_hand, rules = all_of(dataset, 40, 3)
    joint = at_hand.pick(rules)
    assert (40 + joint.rows).tolist() == picks.index.tolist()
    exact = before - loss(X[joined], y[joined], X_val, y_val)
    assert joint.gain.sum() == pytest.approx(exact, abs=1e-6)
    assert picks["value"].sum() == pytest.approx(picks["gain"].iloc[-1])


def test_picks_are_not_copies_of_each_other():
    X, y = rows(100)
    X_val, y_val = rows(300, seed=1)
    alone = apiece.select(
        Dataset.from_arrays(X, y, X_val=X_val, y_val=y_val),
        take=1,
        have=np.arange(60),
        progress=False,
    ).index[0]
    copied = np.concatenate([X, np.repeat(X[[alone]], 30, axis=0)])
    labels = np.concatenate([y, np.repeat(y[alone], 30)])
    dataset = Dataset.from_arrays(copied, labels, X_val=X_val, y_val=y_val)
    picks = apiece.select(dataset, take=8, have=np.arange(60), progress=False)
    assert ((picks.index >= 100) | (picks.index == alone)).sum() < 8


def test_without_a_validation_set_a_candidate_is_never_scored_by_its_part_or_by_picks():
    X, y = rows(160)
    dataset = Dataset.from_arrays(X, y, validation=0)
    at_hand, _ = all_of(dataset, 40, 4)
    gains = at_hand.gains(np.arange(120), [], at_hand.parts)
    assert (np.isnan(gains).sum(axis=0) == 1).all()
    part = int(np.flatnonzero(np.isnan(gains[:, 0]))[0])  # of the first candidate
    mine = at_hand.scoring[np.isnan(gains[part])]
    other = int(np.flatnonzero(np.isfinite(gains[part]))[0])
    after = at_hand.gains(np.array([other]), [0], np.array([part]))
    rest = np.setdiff1d(mine, [40])  # the pick does not score
    joined = [*range(41), 40 + other]
    with_it = loss(X[joined], y[joined], X[rest], y[rest])
    exact = loss(X[:41], y[:41], X[rest], y[rest]) - with_it
    assert after[0, 0] == pytest.approx(exact, abs=1e-6)
    picks = apiece.select(dataset, take=4, have=np.arange(40), progress=False)
    assert not picks.index.isin(np.arange(40)).any()
    assert (picks["gain_low"] < picks["gain"]).all()


def test_what_is_promised_is_less_than_what_the_choosing_rows_flatter():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6)), rng.integers(0, 2, 300)  # nothing to learn
    dataset = Dataset.from_arrays(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    at_hand, rules = all_of(dataset, 60, 10)
    found = at_hand.pick(rules)
    flattered, promise = found.gain.sum(), at_hand.promise(rules, found)
    assert promise.gain[-1] < 0.7 * flattered
    picks = apiece.select(dataset, take=10, have=np.arange(60), progress=False)
    assert picks["gain"].iloc[-1] == pytest.approx(promise.gain[-1])


def test_what_is_promised_is_kept_on_rows_never_seen():
    inside = []
    for seed in range(6):
        X, y = rows(400, seed=10 + seed)
        X_test, y_test = rows(20_000, seed=99)
        dataset = Dataset.from_arrays(X[:250], y[:250], X_val=X[250:], y_val=y[250:])
        last = apiece.select(dataset, take=10, have=np.arange(50), progress=False).iloc[-1]
        picks = apiece.select(dataset, take=10, have=np.arange(50), progress=False).index
        joined = [*range(50), *picks]
        real = loss(X[:50], y[:50], X_test, y_test) - loss(X[joined], y[joined], X_test, y_test)
        inside.append(last["gain_low"] <= real <= last["gain_high"])
    assert sum(inside) >= 4


def test_quotas_costs_and_laws_take_part():
    X, y = rows(150)
    dataset = Dataset.from_arrays(X, y)
    run = apiece.collect(dataset, sizes=(10, 50), samples=8, random_state=0, progress=False)
    have = dataset.ids[:30]
    picks = apiece.select(
        run, quotas={0: 2, 1: 3}, have=have, dataset=dataset, progress=False, level=0.8
    )
    assert picks["label"].value_counts().to_dict() == {1: 3, 0: 2}
    assert "alone" in picks
    assert not picks.index.isin(have).any()
    costs = pd.Series(1.0, index=run.laws().ids)
    bought = apiece.select(run, costs=costs, budget=4.0, have=have, dataset=dataset, progress=False)
    assert bought["cost"].sum() <= 4.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"have": [0]}, "have holds rows of 1 class"),
        ({"have": range(80)}, "cannot be picked"),
        ({"have": range(40), "at": 10}, "Leave at"),
        ({}, "--have ids.csv"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    X, y = rows(80)
    X_val, y_val = rows(40, seed=1)
    dataset = Dataset.from_arrays(X, y, X_val=X_val, y_val=y_val)
    with pytest.raises(PlanError, match=words):
        apiece.select(dataset, take=2, progress=False, **options)


def test_the_command_line_reads_what_is_held(tmp_path):
    X, y = rows(150)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y)
    frame.insert(0, "name", [f"r{i}" for i in range(150)])
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = ["--target", "label", "--ids", "name", "--sizes", "10:40", "--samples", "5"]
    done = CliRunner().invoke(
        cli, ["collect", str(tmp_path / "data.csv"), *words, "--to", str(tmp_path / "run"), "-q"]
    )
    assert done.exit_code == 0, done.output
    ids = apiece.open(tmp_path / "run").laws().ids
    pd.DataFrame({"point": ids[:40]}).to_csv(tmp_path / "mine.csv", index=False)
    done = CliRunner().invoke(
        cli,
        ["select", str(tmp_path / "run"), "--have", str(tmp_path / "mine.csv"), "--take", "4"],
    )
    assert done.exit_code == 0, done.output
    assert "gain_low" in done.stdout
    assert "on rows not seen" in done.stderr
    frame.to_csv(tmp_path / "other.csv", index=False)
    done = CliRunner().invoke(
        cli, ["select", str(tmp_path / "run"), "--have", str(tmp_path / "other.csv")]
    )
    assert done.exit_code != 0
    assert "one named point" in done.output


def test_the_error_of_a_promise_has_noise_of_rows_and_of_the_choice():
    from apiece.uses._at_hand import _error

    rng = np.random.default_rng(0)
    group = np.arange(6) % 3
    rows_only = rng.normal(size=(6, 4_000))
    # The final picks' gain is another draw of the choice, without noise of rows.
    choice = 2 * rng.normal(size=(3, 4_000))
    both = rows_only + choice[group]
    missed = both.mean(axis=0) - 2 * rng.normal(size=4_000)
    assert 0.8 < np.sqrt((_error(both, group) ** 2).mean() / (missed**2).mean()) < 1.2
    assert 1.0 < np.sqrt((_error(rows_only, group) ** 2).mean() * 6) < 2.0  # on the safe side


def test_a_promise_is_measured_row_by_row_or_on_parts_and_lies_below_what_flatters():
    X, y = rows(240)
    dataset = Dataset.from_arrays(X[:120], y[:120], X_val=X[120:], y_val=y[120:])
    at_hand, rules = all_of(dataset, 60, 5)
    found = at_hand.pick(rules)
    promise = at_hand.promise(rules, found)
    assert promise.n_free == 120 - 3
    assert (promise.gain <= np.cumsum(found.gain)).all()
    # Losses row by row are those of the engine on all rows of the parts.
    joined = at_hand.position[found.rows]
    each = np.concatenate([at_hand._losses(group, joined, 5) for group in range(3)])
    held = [*range(60), *joined]
    assert each.mean() == pytest.approx(loss(X[held], y[held], X[120:], y[120:]), abs=1e-5)
    by_parts = AtHand(dataset, at_hand.have, at_hand.position, "logistic", "hinge", "auto", 0)
    assert by_parts._losses(0, joined, 5).shape == (2,)
