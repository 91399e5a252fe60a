"""The face of a scikit-learn estimator, by scikit-learn's own checks and by use."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from apiece import DataValuer

QUICK = {"samples": 4, "sizes": (10, 20), "random_state": 0, "method": "likelihood"}
X, Y = make_classification(80, n_features=4, random_state=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([DataValuer(samples=2, random_state=0, method="likelihood")])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def test_values_stand_at_their_rows_and_nan_at_rows_set_aside():
    valuer = DataValuer(validation=0.2, **QUICK).fit(X, Y)
    assert valuer.values_.shape == (80,)
    assert np.isnan(valuer.values_).sum() == valuer.dataset_.n_validation == 16
    assert_array_equal(valuer.values_[valuer.table_.index], valuer.table_["value"])
    assert_array_equal(valuer.laws_.ids, valuer.table_.index)
    assert valuer.run_.progress().is_complete
    again = clone(valuer).fit(X, Y)
    assert_array_equal(again.values_, valuer.values_)


def test_a_validation_set_of_the_user_leaves_every_row_valued():
    valuer = DataValuer(**QUICK).fit(X[:60], Y[:60], X_val=X[60:], y_val=Y[60:])
    assert np.isfinite(valuer.values_).all()


def test_every_row_is_valued_where_rows_take_turns_in_scoring():
    valuer = DataValuer(**QUICK).fit(X, Y)
    assert np.isfinite(valuer.values_).all()
    assert valuer.laws_.scope == "population"


def test_trainings_may_serve_all_rows():
    several = {"engine": "reuse", "trainings": 32, "sizes": (10, 20), "random_state": 0}
    valuer = DataValuer("tree", metric="brier", **several).fit(X, Y)
    assert len(valuer.run_.trainings()) == 32
    assert np.isfinite(valuer.values_).all()


def test_it_is_the_last_step_of_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), DataValuer(LogisticRegression(), **QUICK))
    assert pipeline.fit(X, Y)[-1].values_.shape == (80,)
    assert pipeline[-1].run_.manifest.model.name == "LogisticRegression"


def test_the_model_decides_between_classes_and_quantities():
    assert DataValuer(Ridge(), **QUICK).fit(X, Y).dataset_.kind == "regression"
    assert DataValuer(**QUICK).fit(X, X[:, 0]).run_.manifest.model.name == "ridge"


def frame():
    names = [f"row{i}" for i in range(80)]
    return pd.DataFrame(
        {"age": X[:, 0], "city": np.where(X[:, 1] > 0, "Oslo", "Rome")}, index=names
    )


def test_a_frame_with_words_is_encoded_for_named_models_and_kept_for_pipelines():
    encode = ColumnTransformer([("city", OneHotEncoder(), ["city"])], remainder="passthrough")
    small = QUICK | {"samples": 2}
    for model in (None, make_pipeline(encode, LogisticRegression())):
        valuer = DataValuer(model, **small).fit(frame(), Y)
        assert valuer.feature_names_in_.tolist() == ["age", "city"]
        assert set(valuer.table_.index) <= set(frame().index)
        rows = frame().index.get_indexer(valuer.table_.index)
        assert_array_equal(valuer.values_[rows], valuer.table_["value"])


def test_weights_reach_the_model():
    weight = np.where(Y == 1, 5.0, 1.0)
    plain, heavy = (DataValuer(**QUICK).fit(X, Y, sample_weight=given) for given in (None, weight))
    assert heavy.run_.manifest.engine.name == "refit"
    assert not np.allclose(plain.values_, heavy.values_, equal_nan=True)
