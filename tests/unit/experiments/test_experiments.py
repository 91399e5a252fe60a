from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import apiece
from apiece.errors import PlanError, UnknownNameError
from apiece.experiments import Experiment, acquire, addition, mislabel, removal
from apiece.experiments._addition import CandidatePool
from apiece.experiments._mislabel import detection, with_flips
from apiece.experiments._trial import Trial, moved_outside

from conftest import make_blobs, make_line

QUICK = {"progress": False, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_blobs(n=300, n_val=200, d=4, shift=1.5)


@pytest.fixture(scope="module")
def added(data):
    return addition(data, take=4, at=(20, 60), n_candidates=50, samples=30, repeats=5, **QUICK)


def test_every_method_meets_every_training_set(added):
    cells = added.samples.groupby(["at", "method"])["repeat"].nunique()
    assert (cells == 5).all()
    methods = {"scaling 20", "scaling 60", "shapley", "aware", "random"}
    assert set(added.samples["method"]) == methods
    assert set(added.measures) == {"gain", "accuracy"}


def test_selections_can_hold_equally_many_points_of_each_class(data, monkeypatch):
    seen = {}
    kept = CandidatePool.gains

    def gains(self, subset, chosen):
        labels = self.trial.dataset.points_y[self.trial.dataset.n_pool :]
        seen.update({name: labels[rows] for name, rows in chosen.items()})
        return kept(self, subset, chosen)

    monkeypatch.setattr(CandidatePool, "gains", gains)
    settings = {"take": 6, "at": (20, 60), "n_candidates": 50, "samples": 20, "repeats": 2}
    addition(data, quotas="balanced", **settings, **QUICK)
    assert set(seen) == {"scaling 20", "scaling 60", "shapley", "aware", "random"}
    assert all(np.bincount(labels).tolist() == [3, 3] for labels in seen.values())


def test_an_addition_can_use_a_run_and_test_rows_of_its_own(data):
    moved = moved_outside(data, 50, seed=0)
    test = (data.X[:40], data.y[:40])
    run = apiece.collect(moved, points=[], sizes=(20, 60), samples=20, random_state=0)
    settings = {"take": 4, "at": (20, 60), "repeats": 3, "redundancy": False, **QUICK}
    found = addition(moved, run=run, test=test, also=["likelihood"], **settings)
    assert {"likelihood 20", "likelihood 60"} < set(found.samples["method"])
    trial = Trial.of(moved, model="logistic", metric=None, seed=0, test=test)
    assert trial.dataset.n_validation == data.n_validation
    before = found.samples.groupby(["at", "repeat"])["before"]
    assert (before.nunique() == 1).all()  # all methods join the same training set
    for repeat in range(3):
        right = trial.score(trial.draws(60, 3)[repeat].subset)[-1]
        assert before.first()[60, repeat] == right
    assert run.progress().n_contributions == 50 * 20


def test_differences_are_paired_by_repeat(added):
    table = added.table(against=("random",))
    wide = added.samples[added.samples["at"] == 20].pivot(
        index="repeat", columns="method", values="gain"
    )
    gap = wide["aware"] - wide["random"]
    assert table.loc[(20, "aware"), "gain_over_random"] == pytest.approx(gap.mean())
    assert table.loc[(20, "aware"), "gain_over_random_se"] == pytest.approx(gap.std() / np.sqrt(5))
    assert np.isnan(table.loc[(20, "random"), "gain_over_random"])


def test_the_same_seed_repeats_an_experiment(data, added):
    again = addition(data, take=4, at=(20, 60), n_candidates=50, samples=30, repeats=5, **QUICK)
    pd.testing.assert_frame_equal(again.samples, added.samples)


def test_a_budget_is_spent_step_by_step(data):
    found = acquire(data, at=20, budget=8, steps=2, n_candidates=40, samples=20, repeats=3, **QUICK)
    assert sorted(set(found.samples["spent"])) == [4.0, 8.0]
    assert set(found.samples["method"]) == {"scaling", "aware", "shapley", "random"}


@pytest.mark.slow
def test_removing_flipped_points_by_value_beats_chance(data):
    rng = np.random.default_rng(0)
    noisy, _ = with_flips(data, 0.2, rng)
    found = removal(
        noisy,
        n=200,
        shares=(0.2,),
        samples=40,
        repeats=3,
        methods=("law", "shapley", "random"),
        **QUICK,
    )
    table = found.table()
    assert table.loc[(0.2, "law"), "gain_over_random"] > 0
    assert table.loc[(0.2, "shapley"), "gain_over_random"] > 0


def test_removing_the_best_points_hurts_more_than_chance(data):
    found = removal(
        data,
        remove="highest",
        n=120,
        shares=(0.3,),
        samples=40,
        repeats=3,
        methods=("law", "random"),
        **QUICK,
    )
    # Gains are turned around here: a fall of the model counts for the valuation.
    assert found.table().loc[(0.3, "law"), "gain_over_random"] > 0


@pytest.mark.slow
def test_low_values_point_at_flipped_labels(data):
    found = mislabel(data, n=150, flipped=(0.1,), samples=30, repeats=2, **QUICK)
    table = found.table()
    assert table.loc[(0.1, "law"), "auc"] > 0.75
    assert table.loc[(0.1, "law"), "auc"] > table.loc[(0.1, "random"), "auc"]
    assert 0 < table.loc[(0.1, "relabel"), "precision"] <= 1
    assert table.loc[(0.1, "relabel"), "precision"] >= 0.1  # the share of flips


def test_detection_is_the_area_under_the_curve():
    rng = np.random.default_rng(0)
    value, is_wrong = rng.normal(size=50).round(1), rng.random(50) < 0.3
    found = detection(value, is_wrong)
    assert found["auc"] == pytest.approx(roc_auc_score(is_wrong, -value))
    assert detection(np.where(is_wrong, -1.0, 1.0), is_wrong) == {"auc": 1.0, "f1": 1.0}


def test_flips_change_as_many_labels_as_said_and_each_to_another_class():
    data = make_blobs(n=60, n_classes=3)
    noisy, is_wrong = with_flips(data, 0.1, np.random.default_rng(0))
    assert is_wrong.sum() == 6
    assert ((noisy.y != data.y) == is_wrong).all()


def test_test_rows_take_no_part_in_valuing(data):
    trial = Trial.of(data, model="logistic", metric=None, seed=0)
    assert trial.dataset.n_validation + len(trial.y_test) == data.n_validation
    together = np.concatenate([trial.dataset.X_val, trial.X_test])
    assert_allclose(np.sort(together, axis=0), np.sort(data.X_val, axis=0))
    assert abs(trial.y_test.mean() - data.y_val.mean()) < 0.02


def test_a_score_is_that_of_the_model_trained_on_the_rows(data):
    trial = Trial.of(data, model=LogisticRegression(), metric="log_loss", seed=0)
    rows = np.arange(40)
    fitted = LogisticRegression().fit(data.X[rows], data.y[rows])
    loss, accuracy = trial.score(rows)
    assert accuracy == pytest.approx(fitted.score(trial.X_test, trial.y_test))
    proba = fitted.predict_proba(trial.X_test)[np.arange(len(trial.y_test)), trial.y_test]
    assert loss == pytest.approx(np.log(proba).mean())


def test_a_table_too_small_for_an_experiment_says_what_to_lower_and_what_fits():
    rng = np.random.default_rng(0)
    table = apiece.Dataset.from_arrays(rng.normal(size=(200, 2)), np.arange(200) % 2)
    words = r"expected 1 to 150\. Pass n_candidates=75 \(--n-candidates\)"
    with pytest.raises(apiece.PlanError, match=words):
        addition(table, n_candidates=1000, progress=False)
    options = {"take": 3, "n_candidates": 66, "samples": 10, "repeats": 1, "redundancy": False}
    with pytest.raises(apiece.PlanError, match=r"at=1000 \(--at\) does not fit") as error:
        addition(table, at=(20, 1000), progress=False, **options)
    most = int(str(error.value).partition("Expected 1 to ")[2].partition(".")[0])
    assert addition(table, at=(20, most), progress=False, **options).table() is not None
    with pytest.raises(apiece.PlanError):
        addition(table, at=(20, most + 1), progress=False, **options)


def test_what_is_not_said_fits_a_small_table():
    rng = np.random.default_rng(0)
    table = apiece.Dataset.from_arrays(rng.normal(size=(200, 2)), np.arange(200) % 2)
    quick = {"samples": 10, "repeats": 1, "redundancy": False, "progress": False}
    low, high = sorted(set(addition(table, take=3, **quick).samples["at"]))
    assert 1 <= low < high < 100
    bought = acquire(table, budget=5, steps=1, **quick)
    assert 1 <= bought.attrs["at"] < 100
    assert moved_outside(table, None, seed=0).n_candidates == 75


def test_candidates_leave_the_pool_and_no_point_is_lost(data):
    moved = moved_outside(data, 50, seed=0)
    assert (moved.n_pool, moved.n_candidates) == (250, 50)
    assert sorted(moved.ids.tolist()) == sorted(data.ids.tolist())
    order = data.positions(moved.ids)
    assert_allclose(moved.points_X, data.points_X[order])


def test_regression_has_a_gain_and_no_accuracy():
    found = addition(
        make_line(n=200, n_val=100),
        model="ridge",
        take=3,
        at=(20, 40),
        n_candidates=30,
        samples=10,
        repeats=2,
        redundancy=False,
        **QUICK,
    )
    assert set(found.measures) == {"gain"}


def test_what_cannot_be_done_is_refused(data):
    with pytest.raises(PlanError, match="classification"):
        mislabel(make_line(), **QUICK)
    with pytest.raises(PlanError, match=r"flipped=\[0\.6\]"):
        mislabel(data, flipped=(0.6,), **QUICK)
    with pytest.raises(PlanError, match="shares"):
        removal(data, shares=(1.5,), **QUICK)
    with pytest.raises(UnknownNameError, match="lowest"):
        removal(data, remove="lowst", **QUICK)
    with pytest.raises(PlanError, match="take=99"):
        addition(data, take=99, at=(20, 60), n_candidates=40, samples=5, **QUICK)
    with pytest.raises(PlanError, match="candidates"):
        addition(data, n_candidates=10_000, **QUICK)
    few = replace(data, rows_val=data.X_val[:10], y_val=data.y_val[:10], ids_val=None)
    with pytest.raises(PlanError, match="at least 20"):
        removal(few, **QUICK)


def test_a_table_of_one_repeat_has_no_standard_errors():
    samples = pd.DataFrame(
        {"repeat": [0, 0], "at": [1, 1], "method": ["a", "random"], "gain": [2.0, 1.0]}
    )
    table = Experiment("addition", samples, "at", {"gain": "loss"}).table()
    assert table.loc[(1, "a"), "gain_over_random"] == 1.0
    assert np.isnan(table.loc[(1, "a"), "gain_over_random_se"])
