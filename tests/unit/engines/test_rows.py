"""Models get the rows that the user gave: frames by column name, float32, sparse, weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import apiece
from apiece import Dataset, ModelError
from apiece.engines import choose_engine

RNG = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {"age": RNG.normal(size=N), "city": RNG.choice(["Oslo", "Rome"], N), "y": np.arange(N) % 2}
)
SMALL = {"sizes": (12, 14), "samples": 2, "random_state": 0, "progress": False}


class Picky(ClassifierMixin, BaseEstimator):
    """Predicts a half, and insists on a type of row."""

    def __init__(self, accepts=None):
        self.accepts = accepts

    def fit(self, X, y):
        assert self.accepts(X), type(X)
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        assert self.accepts(X), type(X)
        return np.full((X.shape[0], 2), 0.5)

    def predict(self, X):
        return np.zeros(X.shape[0])


def is_float32(X):
    return X.dtype == np.float32


def test_a_pipeline_finds_columns_by_name_in_the_frame_that_was_given():
    encode = ColumnTransformer(
        [
            ("age", StandardScaler(), ["age"]),
            ("city", OneHotEncoder(handle_unknown="ignore"), ["city"]),
        ]
    )
    model = make_pipeline(encode, LogisticRegression())
    dataset = Dataset.from_pandas(FRAME, target="y", preprocess=None)
    run = apiece.collect(dataset, model=model, **SMALL)
    assert run.progress().is_complete
    assert run.manifest.engine.name == "refit"
    encoded = Dataset.from_pandas(FRAME, target="y")
    with pytest.raises(apiece.EngineError, match="read the table with preprocess=None"):
        apiece.collect(encoded, model=model, **SMALL)


@pytest.mark.parametrize(
    ("X", "accepts"),
    [
        (RNG.normal(size=(N, 3)).astype(np.float32), is_float32),
        (scipy.sparse.random_array((N, 5), density=0.3, rng=0), scipy.sparse.issparse),
    ],
)
def test_models_get_float32_and_sparse_rows_as_they_were_given(X, accepts):
    dataset = Dataset.from_arrays(X, np.arange(N) % 2)
    assert apiece.collect(dataset, model=Picky(accepts), **SMALL).progress().is_complete


def test_fast_engines_compute_with_float32_and_sparse_rows_too():
    X = scipy.sparse.random_array((N, 5), density=0.3, rng=0)
    y = np.arange(N) % 2
    sparse, dense = (Dataset.from_arrays(given, y) for given in (X, X.toarray()))
    assert sparse.fingerprint == dense.fingerprint
    runs = [apiece.collect(data, **SMALL).contributions().delta for data in (sparse, dense)]
    np.testing.assert_array_equal(*runs)


def test_weights_reach_the_model_also_in_a_pipeline():
    X, y = RNG.normal(size=(N, 2)), np.arange(N) % 2
    weight = RNG.integers(1, 4, N)
    dataset = Dataset.from_arrays(X, y, X_val=X, y_val=y, sample_weight=weight)
    for model in (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())):
        engine, reason = choose_engine(dataset, model=model)
        assert engine.name == "refit"
        assert "sample weights" in reason
        task = apiece.records.Task(0, np.arange(20), np.array([30]), 0)
        outcome = engine.run(task)
        losses = []
        for rows in (np.arange(20), np.append(np.arange(20), 30)):
            is_pipeline = hasattr(model, "steps")
            name = "logisticregression__sample_weight" if is_pipeline else "sample_weight"
            fitted = model.fit(X[rows], y[rows], **{name: weight[rows]})
            losses.append(-np.log(fitted.predict_proba(X)[np.arange(N), y]).mean())
        assert_allclose(outcome.delta, [losses[0] - losses[1]], rtol=1e-6)


def test_a_model_without_weights_and_an_engine_without_them_are_refused():
    dataset = Dataset.from_arrays(FRAME[["age"]], FRAME["y"], sample_weight=np.ones(N))
    with pytest.raises(ModelError, match="takes no sample_weight"):
        choose_engine(dataset, model=KNeighborsClassifier())
    with pytest.raises(ModelError, match="sample weights"):
        choose_engine(dataset, model="logistic", engine="logistic")
    assert choose_engine(dataset, model="logistic")[0].name == "refit"
