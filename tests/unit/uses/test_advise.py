from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import apiece
from apiece import Dataset, PlanError
from apiece.uses import ADVICE, Advice
from apiece.uses._wrong import rate_of_wrong, suspect_labels


def table(n=400, share=0.1, seed=0, gap=2.2):
    """Two classes that hardly overlap, with some labels flipped; which they are."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 4)) + gap * (2 * y[:, None] - 1) / 2
    is_wrong = np.zeros(n, dtype=bool)
    is_wrong[rng.choice(n, round(share * n), replace=False)] = True
    return X, np.where(is_wrong, 1 - y, y), is_wrong


def advise(X, y, **options):
    return apiece.advise(Dataset.from_arrays(X, y, validation=0), progress=False, **options)


def test_flipped_labels_are_relabelled_and_the_loss_falls():
    X, y, is_wrong = table()
    advice = advise(X, y)
    rows = advice.table()
    assert set(rows["advice"]) <= set(ADVICE)
    is_new = (rows["advice"] == "relabel").to_numpy()
    assert is_wrong[is_new].mean() > 0.9
    assert is_new[is_wrong].mean() > 0.3
    assert (rows["to"][is_new].astype(int) == 1 - y[is_new]).all()
    assert rows["to"][rows["advice"] == "keep"].isna().all()
    effect = advice.effect.loc["all"]
    assert effect["rows"] == (rows["advice"].isin(["relabel", "drop"])).sum()
    assert effect["loss_low"] < effect["loss"] < effect["loss_high"]
    assert effect["loss"] < 0
    assert advice.headline().startswith(f"Relabel {is_new.sum()} rows")
    assert "falls by" in advice.headline()


def test_following_the_advice_gains_on_rows_never_seen():
    X, y, _ = table(n=600, seed=1)
    X_test, y_test, _ = table(n=4_000, share=0.0, seed=2)
    rows = advise(X, y).table()
    cleaned = rows["to"].where(rows["advice"] == "relabel", y).astype(int).to_numpy()
    kept = (rows["advice"] != "drop").to_numpy()

    def loss(labels, rows):
        proba = LogisticRegression().fit(X[rows], labels[rows]).predict_proba(X_test)
        return -np.log(proba[np.arange(len(y_test)), y_test]).mean()

    assert loss(cleaned, kept) < loss(y, np.ones(len(y), dtype=bool)) - 0.01


@pytest.mark.parametrize("seed", [3, 13])
def test_what_only_relabels_has_the_effect_of_relabelling(seed):
    # Here some folds drop rows too, and the advice for all rows does not.
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(400, 6))
    y = (X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=400) > 0).astype(int)
    wrong = rng.choice(400, 40, replace=False)
    y[wrong] = 1 - y[wrong]
    effect = apiece.advise(Dataset.from_arrays(X, y, standardize=True)).effect
    assert list(effect.index) == ["relabel", "all"]
    assert effect.loc["relabel"].equals(effect.loc["all"])


def test_what_hardly_matters_on_rows_that_did_not_choose_is_not_advised(monkeypatch):
    X, y, _ = table()
    assert (advise(X, y)["advice"] == "relabel").any()
    monkeypatch.setattr(
        "apiece.uses._choices._MATTERS_LABELS", 0.9
    )  # a share of the loss out of reach
    assert not advise(X, y)["advice"].isin(["relabel", "drop"]).any()


@pytest.mark.parametrize("gap", [0.3, 2.2], ids=["overlapping", "apart"])
def test_of_clean_data_nothing_is_changed(gap):
    X, y, _ = table(share=0.0, gap=gap)
    advice = advise(X, y)
    assert not advice["advice"].isin(["relabel", "drop"]).any()
    assert advice.headline().startswith("Nothing to relabel or drop")
    assert (advice.effect.loc["all"] == 0).all()


def test_a_clean_rare_class_is_left_alone():
    rng = np.random.default_rng(0)
    y = (np.arange(1_000) < 12).astype(int)
    X = rng.normal(size=(1_000, 4)) + 1.0 * y[:, None]
    assert set(advise(X, y)["advice"]) == {"keep"}


def test_stray_targets_of_a_regression_are_dropped():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = X @ [2.0, -1.0, 1.0, 0.5, 0.0] + 0.2 * rng.normal(size=400)
    is_wrong = np.arange(400) < 40
    y[is_wrong] = y[is_wrong] + rng.choice([-6.0, 9.0], 40)
    advice = advise(X, y)
    rows = advice.table()
    is_out = (rows["advice"] == "drop").to_numpy()
    assert is_wrong[is_out].mean() > 0.95
    assert is_out[is_wrong].mean() > 0.5
    truth = X @ [2.0, -1.0, 1.0, 0.5, 0.0]
    assert np.abs(rows["to"][is_out] - truth[is_out]).median() < 1.5
    assert advice.effect.loc["all", "r2"] > 0
    clean = advise(X, truth + 0.2 * rng.standard_t(3, size=400))
    assert not clean["advice"].isin(["relabel", "drop"]).any()


def test_a_validation_set_without_ids_is_trusted_and_one_with_ids_is_judged():
    X, y, _ = table()
    names = [f"r{i}" for i in range(400)]
    given = Dataset.from_arrays(X[:300], y[:300], X_val=X[300:], y_val=y[300:], ids=names[:300])
    advice = apiece.advise(given, progress=False)
    assert advice.table().index.tolist() == names[:300]
    carved = Dataset.from_arrays(X, y, ids=names)
    assert sorted(apiece.advise(carved, progress=False).table().index) == sorted(names)


@pytest.mark.parametrize(("seed", "n"), [(0, 150), (1, 600), (2, 150)])
def test_where_the_model_knows_nothing_hardly_any_value_is_to_be_checked(seed, n):
    rng = np.random.default_rng(seed)
    advice = advise(rng.normal(size=(n, 4)), rng.normal(size=n))
    # All rows are right. The estimated share of wrong values alone would have most checked.
    assert (advice["advice"] == "check").mean() < 0.1


def test_a_run_is_advised_with_its_model_and_its_data():
    X, y, _ = table(n=200)
    dataset = Dataset.from_arrays(X, y, validation=0)
    run = apiece.collect(dataset, sizes=(10, 60), samples=4, random_state=0, progress=False)
    with pytest.raises(PlanError, match="dataset="):
        apiece.advise(run)
    found = apiece.advise(run, dataset=dataset, progress=False)
    pd.testing.assert_frame_equal(
        found.table(), apiece.advise(dataset, model="logistic", progress=False).table()
    )


def test_advice_is_the_same_each_time_and_shown_in_a_notebook():
    X, y, _ = table(n=200)
    first, second = advise(X, y), advise(X, y)
    pd.testing.assert_frame_equal(first.table(), second.table())
    pd.testing.assert_frame_equal(first.effect, second.effect)
    assert len(first) == 200
    assert "<table" in first._repr_html_()


@pytest.mark.parametrize(
    ("n", "options", "words"), [(20, {}, "at least 30"), (60, {"level": 1.5}, "level=1.5")]
)
def test_too_few_rows_and_impossible_levels_are_refused(n, options, words):
    X, y, _ = table(n=n)
    with pytest.raises(PlanError, match=words):
        advise(X, y, **options)


def test_laws_hold_no_rows_and_are_refused():
    with pytest.raises(PlanError, match="expected a run or a dataset"):
        apiece.advise(apiece.Laws.from_arrays(c=[1.0], alpha=[1.0]))


def test_a_change_of_unknown_direction_has_signs_and_others_say_theirs():
    effect = pd.DataFrame(
        {"loss": [-0.02, -0.02], "loss_low": [-0.03, -0.09], "loss_high": [-0.01, 0.13]},
        index=["all", "relabel"],
    ).assign(accuracy=0.01, accuracy_low=0.005, accuracy_high=0.015)
    advice = Advice(pd.DataFrame(), effect, metric="log_loss", level=0.9)
    accuracy = "accuracy rises by 1.0 (0.5 to 1.5) points"
    assert advice.changes("all") == f"log loss falls by 0.02 (0.01 to 0.03), {accuracy}"
    unknown = "log loss changes by -0.02 (-0.09 to +0.13)"
    assert advice.changes("relabel") == f"{unknown}, {accuracy}"


def test_the_scope_names_a_validation_set_that_scores_too():
    X, y, _ = table(n=120)
    data = Dataset.from_arrays(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    advice = apiece.advise(data, progress=False)
    assert advice.scope == advice.table().attrs["scope"] == "all rows"
    assert advise(X, y).scope == "population"
    assert (advice["label"].astype(int) == y[:80]).all()


def test_a_few_wrong_digits_are_relabelled():
    from sklearn.datasets import load_digits

    X, truth = load_digits(return_X_y=True)
    X, truth, rng = X[:900], truth[:900], np.random.default_rng(0)
    wrong = rng.choice(len(truth), 12, replace=False)
    y = truth.copy()
    y[wrong] = (y[wrong] + rng.integers(1, 10, 12)) % 10
    rows = advise(X, y).table()
    changed = np.flatnonzero(rows["advice"].isin(["relabel", "drop"]))
    assert len(changed) >= 6
    assert np.isin(changed, wrong).mean() > 0.9


def test_values_with_noise_added_are_doubted_and_a_long_tail_is_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    right = X @ [2.0, -1.0, 1.0, 0.5, 0.0]
    is_wrong = np.arange(500) < 50
    noise = np.where(is_wrong, 6.0 * rng.normal(size=500), 0.0)
    rows = advise(X, right + 0.5 * rng.normal(size=500) + noise).table()
    is_doubted = (rows["advice"] != "keep").to_numpy()
    assert 2 * (is_doubted & is_wrong).sum() / (is_doubted.sum() + is_wrong.sum()) > 0.5
    tail = advise(X, right + rng.lognormal(sigma=0.8, size=500))
    assert (tail["advice"] == "drop").mean() <= 0.01


@pytest.mark.parametrize("seed", [3, 4])
def test_with_a_fifth_of_the_labels_flipped_most_of_what_is_lost_comes_back(seed):
    X, y, is_wrong = table(n=600, share=0.2, seed=seed)
    X_test, y_test, _ = table(n=4_000, share=0.0, seed=9)
    rows = advise(X, y).table()
    followed = rows["to"].where(rows["advice"] == "relabel", y).astype(int).to_numpy()
    kept = (rows["advice"] != "drop").to_numpy()

    def loss(labels, rows=slice(None)):
        proba = LogisticRegression().fit(X[rows], labels[rows]).predict_proba(X_test)
        return -np.log(proba[np.arange(len(y_test)), y_test]).mean()

    gain = loss(y) - loss(np.where(is_wrong, 1 - y, y))
    assert loss(y) - loss(followed, kept) > 0.5 * gain


def labels_and_chances(n=4_000):
    """Labels, some of them flipped, and probabilities of two classes that suit the right ones."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    score = 2.5 * rng.normal(size=n) + 4.0 * (2 * y - 1)
    right = 1 / (1 + np.exp(-1.28 * score))  # of the class 1, as the score has it
    flipped = np.where(rng.random(n) < 0.15, 1 - y, y)
    return y, flipped, np.column_stack([1 - right, right])


def share_of_wrong(probas, labels):
    return rate_of_wrong(probas, labels, np.zeros(len(labels), dtype=bool))


def test_the_share_of_wrong_labels_is_that_of_the_model_unless_the_steadier_one_needs_fewer():
    y, flipped, proba = labels_and_chances()
    found = share_of_wrong((proba, proba), flipped)
    assert found.likeliest == pytest.approx(0.15, abs=0.02)
    assert 0.8 * found.likeliest < found.careful < found.likeliest
    assert found.sure > 5
    assert share_of_wrong((proba, proba), y) == (0.0, 0.0, 0.0)
    # A model that has learned the wrong labels by heart needs none.
    learned = np.where(np.eye(2)[flipped] > 0, 0.9, 0.1)
    assert share_of_wrong((proba, learned), flipped).likeliest < 0.03
    assert share_of_wrong((learned, proba), flipped).likeliest < 0.03


def test_a_model_that_knows_nothing_of_the_labels_does_not_deny_wrong_ones():
    _, flipped, proba = labels_and_chances()
    nothing = np.full_like(proba, 0.5)
    found = share_of_wrong((proba, nothing), flipped)
    assert found.likeliest == pytest.approx(0.15, abs=0.02)
    assert found.sure > 5


def overlapping(n, seed):
    """Two classes that overlap: no label is more probable than 0.88, most are much less."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, 2)), -1.0, 1.0)
    return X, (rng.random(n) < 1 / (1 + np.exp(-X @ [1.0, 1.0]))).astype(int)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_rows_with_right_labels_tell_wrong_labels_from_classes_that_overlap(share):
    # One table, in which the labels of a fifth are wrong, or as hard to know as trusted ones are.
    X, y = overlapping(7_500, 0)
    rng = np.random.default_rng(2)
    is_trusted = np.arange(7_500) >= 6_000
    is_flipped = (rng.random(7_500) < 0.2) & ~(is_trusted & (share > 0))
    labels = np.where(is_flipped, 1 - y, y)
    one = LogisticRegression().fit(X[:6_000], labels[:6_000]).predict_proba(X)[:, 1]
    proba = np.column_stack([1 - one, one])
    found = rate_of_wrong((proba, proba), labels, is_trusted)
    assert found.likeliest == pytest.approx(share, abs=0.05)
    assert not suspect_labels(proba, labels, is_trusted, found).wrong[is_trusted].any()


def test_classes_that_are_more_frequent_in_trusted_rows_are_no_evidence_of_wrong_labels():
    y, _, proba = labels_and_chances()
    is_trusted = np.arange(len(y)) < 400
    is_kept = ~is_trusted | (y == 1) | (np.arange(len(y)) % 10 == 0)
    each = proba[is_kept]
    assert rate_of_wrong((each, each), y[is_kept], is_trusted[is_kept]).likeliest < 0.02
