from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from apiece import synthetic
from apiece.errors import DataError, PlanError
from apiece.estimators import Likelihood
from apiece.laws import Laws, Series
from apiece.uses import boundary, boundary_relation, compare_laws, means, movers

from conftest import make_blobs, make_line


@pytest.fixture(scope="module")
def fitted():
    truth = synthetic.random_laws(60, random_state=1)
    return Likelihood().fit(synthetic.sample(truth, samples=400, random_state=2))


def test_movers_are_those_whose_rank_changes_most_for_certain(fitted):
    table = movers(fitted, sizes=(100, 1000), most=10)
    ends = pd.DataFrame(fitted.mean([100, 1000]), index=fitted.ids).rank(ascending=False)
    change = (ends[0] - ends[1])[table.index]
    assert_allclose(table["change"], change)
    everyone = movers(fitted, sizes=(100, 1000), most=len(fitted.ids))
    least = np.maximum(np.maximum(everyone["low"], -everyone["high"]), 0)
    assert (least.diff().dropna() <= 0).all()  # what is certain comes first
    unsure = everyone["change"][least == 0].abs()
    assert (unsure.diff().dropna() <= 0).all()
    assert (table["low"] <= table["high"]).all()


def test_intervals_of_the_change_of_rank_cover_the_truth():
    truth = synthetic.random_laws(150, random_state=3)
    laws = Likelihood().fit(synthetic.sample(truth, samples=300, random_state=4))
    table = movers(laws, most=150, level=0.9).sort_index()
    exact = movers(truth, most=150).sort_index()["change"]
    covered = ((table["low"] <= exact) & (exact <= table["high"])).mean()
    # Ranks of 150 points depend on each other: a wide margin.
    assert 0.8 < covered <= 1.0


def test_movers_leave_out_points_without_a_law_and_work_for_series():
    laws = Laws.from_arrays(
        family=Series((2, 4)),
        params=[[1.0, 0.0], [0.5, 100.0], [np.nan, np.nan]],
        k_range=(100, 1000),
    )
    table = movers(laws)
    assert table["change"].to_dict() == {0: 1.0, 1: -1.0}
    assert table["low"].isna().all()
    with pytest.raises(PlanError, match="most=0"):
        movers(laws, most=0)


def test_means_by_class_are_plain_means_with_the_error_of_their_laws(fitted):
    by = np.where(np.arange(60) % 3 == 0, "a", "b")
    table = means(fitted, at=[100, 1000], by=by)
    assert table[["group", "k"]].values.tolist() == [
        ["a", 100], ["a", 1000], ["b", 100], ["b", 1000],
    ]  # fmt: skip
    members = by == "b"
    psi, error = fitted.mean(1000)[members], fitted.stderr(1000)[members]
    row = table.iloc[3]
    assert_allclose(row["value"], psi.mean())
    assert_allclose(row["high"] - row["value"], 1.6449 * np.sqrt((error**2).sum()) / 40, rtol=1e-4)
    assert_allclose(row["harmful"], (psi < 0).mean())
    assert_allclose(row["alpha"], np.median(fitted.alpha[members]))
    assert table["n"].tolist() == [20, 20, 40, 40]
    named = pd.Series(by, index=fitted.ids)[::-1]
    assert means(fitted, at=[100, 1000], by=named).equals(table)


def test_means_without_groups_are_refused(fitted):
    with pytest.raises(DataError, match="no labels"):
        means(fitted)
    with pytest.raises(DataError, match=r"\(60,\)"):
        means(fitted, by=["a"])
    with pytest.raises(DataError, match="one group for every point"):
        means(fitted, by=pd.Series(["a"], index=[0]))


def test_laws_of_two_models_are_compared_parameter_by_parameter(fitted):
    rng = np.random.default_rng(5)
    noisy = fitted.params * (1 + 0.05 * rng.normal(size=fitted.params.shape))
    other = Laws.from_arrays(c=noisy[:, 0], alpha=noisy[:, 1], ids=fitted.ids)
    table = compare_laws(fitted, other).set_index(["quantity", "measure"])["agreement"]
    expected = np.corrcoef(fitted.alpha, other.alpha)[0, 1]
    assert_allclose(table["alpha", "pearson"], expected)
    same = compare_laws(fitted, fitted)
    assert_allclose(same["agreement"], 1.0)
    assert same["quantity"].unique().tolist() == ["c", "alpha", "log_abs_c", "psi"]
    series = Laws.from_arrays(family="series", params=rng.normal(size=(9, 3)))
    assert compare_laws(fitted, series)["quantity"].unique().tolist() == ["psi"]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_step_of_the_distance_reaches_the_boundary(n_classes):
    """Moving a point by its distance, along the normal, makes two classes equally likely."""
    dataset = make_blobs(n=90, n_classes=n_classes)
    table = boundary(dataset)
    from apiece.engines import resolve_model

    model = resolve_model(
        "logistic", kind="classification", n_features=3, n_classes=n_classes
    ).estimator.fit(dataset.X, dataset.y)
    predicted = model.predict(dataset.X)
    assert ((table["distance"] > 0) == (predicted == dataset.y)).all()
    assert ((table["margin"] > 0) == (predicted == dataset.y)).all()
    if n_classes == 2:
        normal = model.coef_[0] / np.linalg.norm(model.coef_[0])
        sign = np.where(dataset.y == 1, 1, -1)
        moved = dataset.X - (sign * table["distance"].to_numpy())[:, None] * normal
        assert_allclose(model.predict_proba(moved)[:, 1], 0.5, atol=1e-9)


def test_models_that_are_not_linear_have_a_margin_alone():
    table = boundary(make_blobs(), model="knn")
    assert table["distance"].isna().all()
    assert table["margin"].notna().all()
    with pytest.raises(DataError, match="no decision boundary"):
        boundary(make_line())


def test_the_relation_to_alpha_is_the_correlation_with_the_distance():
    dataset = make_blobs(n=90)
    far = boundary(dataset)["distance"].abs().to_numpy()
    laws = Laws.from_arrays(c=np.ones(90), alpha=1 + far, ids=dataset.ids, labels=dataset.labels())
    table = boundary_relation(laws, dataset).set_index(["quantity", "label", "measure"])
    assert_allclose(table.loc[("alpha", "all", "pearson"), "agreement"], 1.0)
    assert_allclose(table.loc[("psi", "0", "spearman"), "agreement"], -1.0)
    assert table.loc[("alpha", "1", "spearman"), "n"] == 45
    assert np.isnan(table.loc[("log_abs_c", "all", "pearson"), "agreement"])
    foreign = replace(laws, attrs={"dataset": make_blobs(n=90, seed=1).fingerprint})
    with pytest.raises(DataError, match="another dataset"):
        boundary_relation(foreign, dataset)


def test_means_of_quantities_are_by_quarters_in_their_order():
    price = np.arange(40.0) ** 2
    laws = Laws.from_arrays(c=price, alpha=[1.0] * 40, labels=price)
    table = means(laws, at=1)
    assert table["n"].tolist() == [10] * 4
    assert table["value"].is_monotonic_increasing
    assert table["group"].tolist()[0] == "0 to 95.25"
    few = Laws.from_arrays(c=price, alpha=[1.0] * 40, labels=np.repeat([1.0, 2.0], 20))
    assert means(few, at=1)["group"].tolist() == [1.0, 2.0]
