from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import apiece
from apiece import Dataset, PlanError, experiments
from apiece.uses import baselines


def noisy(n=300, share=0.1):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n + 100)
    X = rng.normal(size=(n + 100, 4)) + 1.2 * y[:, None]
    is_wrong = np.arange(n) < share * n
    y[:n] = np.where(is_wrong, 1 - y[:n], y[:n])
    return Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:]), is_wrong


@pytest.mark.parametrize("find", [baselines.self_confidence, baselines.data_oob])
def test_wrong_labels_have_low_values(find):
    dataset, is_wrong = noisy()
    table = find(dataset, random_state=0)
    assert table.index.tolist() == dataset.ids.tolist()
    assert experiments.detection(table["value"].to_numpy(), is_wrong)["auc"] > 0.85
    assert table.equals(find(dataset, random_state=0))
    assert not table.equals(find(dataset, random_state=1))


def test_validation_rows_train_but_are_not_predicted():
    dataset, is_wrong = noisy()
    other = Dataset.from_arrays(
        dataset.points_X, dataset.points_y, X_val=dataset.X_val, y_val=1 - dataset.y_val
    )
    right, lied_to = (
        experiments.detection(baselines.self_confidence(each)["value"].to_numpy(), is_wrong)["auc"]
        for each in (dataset, other)
    )
    assert lied_to < right - 0.05


def test_influence_is_the_contribution_to_first_order():
    dataset, _ = noisy()
    have = np.arange(150)
    found = baselines.influence(dataset, have=have, model="logistic")["value"].to_numpy()[150:]

    def loss(rows):
        fitted = LogisticRegression(tol=1e-10, max_iter=5_000).fit(
            dataset.points_X[rows], dataset.points_y[rows]
        )
        proba = fitted.predict_proba(dataset.X_val)
        return -np.log(proba[np.arange(100), dataset.y_val]).mean()

    before = loss(have)
    exact = [before - loss(np.append(have, i)) for i in range(150, 200)]
    assert np.corrcoef(found[:50], exact)[0, 1] > 0.98
    assert found[:50].std() == pytest.approx(np.std(exact), rel=0.3)


def test_without_a_validation_set_influence_is_scored_by_rows_that_are_not_held():
    dataset, _ = noisy()
    own = Dataset.from_arrays(dataset.points_X, dataset.points_y, validation=0)
    scored = baselines.influence(dataset, have=np.arange(100), model="logistic")["value"]
    turns = baselines.influence(own, have=np.arange(100), model="logistic")["value"]
    assert np.corrcoef(scored, turns)[0, 1] > 0.3
    all_held = baselines.influence(own, model="logistic")["value"]
    assert all_held.notna().all()


def test_margin_and_k_center_look_at_no_labels():
    dataset, _ = noisy()
    y = dataset.points_y.copy()
    y[150:] = 1 - y[150:]
    other = Dataset.from_arrays(dataset.points_X, y, validation=0)
    have = np.arange(150)
    for value in (baselines.margin, baselines.k_center):
        assert value(dataset, have=have).equals(value(other, have=have))
    picks = baselines.k_center(dataset, have=have, take=7)["value"]
    assert (picks > 0).sum() == 7
    gaps = picks.sort_values(ascending=False)[:7]
    X = dataset.points_X
    chosen = [*range(150)]
    for row, gap in gaps.items():
        nearest = np.linalg.norm(X - X[chosen][:, None], axis=2).min(axis=0)
        assert gap == pytest.approx(nearest.max())
        assert nearest[row] == pytest.approx(gap)
        chosen.append(row)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: baselines.data_oob(d, n_models=3), "at least 10"),
        (lambda d: baselines.k_center(d, have=[0], take=0), "take=0"),
        (lambda d: baselines.self_confidence(quantities()), "expected classes"),
        (lambda d: baselines.margin(quantities()), "expected classes"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(PlanError, match=words):
        call(noisy()[0])


def quantities():
    rng = np.random.default_rng(0)
    return Dataset.from_arrays(rng.normal(size=(80, 2)), rng.normal(size=80), validation=0)


def test_experiments_set_them_against_laws():
    dataset, _ = noisy(share=0.0)
    found = experiments.addition(
        dataset,
        take=5,
        at=(40,),
        repeats=2,
        n_candidates=80,
        samples=10,
        redundancy=False,
        rivals=("have", "influence", "margin", "k-center", "largest-size-mean"),
        progress=False,
    ).table()
    assert {"have", "influence", "margin", "k-center"} <= set(found.loc[40].index)
    assert found.loc[(40, "have"), "gain"] > found.loc[(40, "random"), "gain"]
    with pytest.raises(ValueError, match="k-center"):
        experiments.addition(dataset, rivals=("k-centre",), n_candidates=80, samples=5, at=(40,))
    result = experiments.mislabel(
        dataset,
        flipped=(0.2,),
        n=200,
        samples=5,
        repeats=1,
        methods=("self-confidence", "data-oob", "influence", "largest-size-mean"),
        suggest=False,
        progress=False,
    ).table()
    assert result.loc[(0.2, "self-confidence"), "auc"] > 0.8
    assert result["auc"].notna().all()


def test_the_mean_at_the_largest_sizes_needs_no_law():
    dataset, _ = noisy()
    run = apiece.collect(dataset, sizes=(10, 100), samples=6, random_state=0, progress=False)
    table = run.contributions()
    large = table.k >= 0.8 * table.k.max()
    found = baselines.largest_size_mean(run)["value"].to_numpy()
    mine = table.delta[large & (table.point == 3)]
    assert found[3] == pytest.approx(mine.mean()) if len(mine) else np.isnan(found[3])
    assert np.isfinite(found).mean() > 0.5
