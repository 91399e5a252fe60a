"""Requests that ask for too much, or rest on too little."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import apiece
from apiece.errors import ApieceWarning, PlanError, StoreError

from conftest import make_blobs

SETTINGS = {"model": "logistic", "sizes": (6, 12), "samples": 2, "random_state": 0}


def arrays(n=60, n_val=40, rare=20):
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(n, 2)), rng.normal(size=(n_val, 2))
    y = (np.arange(n) >= rare).astype(int)
    return X, y, V, np.arange(n_val) % 2


@pytest.mark.parametrize(
    "asked",
    [
        {"samples": 100_000_000},
        {"samples": 100_000_000, "scoring": "rotating"},
        {"trainings": 100_000_000, "engine": "reuse", "model": "tree"},
    ],
)
def test_more_samples_or_trainings_than_can_be_planned_are_refused_at_once(blobs, asked):
    began, unit = time.process_time(), next(iter(asked))
    settings = {**SETTINGS, "samples": None, **asked}
    with pytest.raises(PlanError, match=rf"{unit}=100,000,000 is more .* \(--{unit} \d+\)"):
        apiece.collect(blobs, **settings)
    assert time.process_time() - began < 5.0


def test_few_scoring_rows_are_warned_of():
    dataset = make_blobs(n=40, n_val=6)
    with pytest.warns(ApieceWarning, match="only 6 rows to score on"):
        apiece.collect(dataset, **SETTINGS)


def test_a_class_of_few_points_is_warned_of():
    X, y, V, w = arrays(rare=8)
    dataset = apiece.Dataset.from_arrays(X, y, X_val=V, y_val=w)
    with pytest.warns(ApieceWarning, match="class 0 has 8 rows in the pool"):
        apiece.collect(dataset, **SETTINGS)


def test_a_validation_set_that_is_the_pool_is_warned_of():
    X, y, _, _ = arrays()
    dataset = apiece.Dataset.from_arrays(X, y, X_val=X, y_val=y)
    with pytest.warns(ApieceWarning, match="100% of the validation rows are also in the pool"):
        apiece.collect(dataset, **SETTINGS)
    relabelled = apiece.Dataset.from_arrays(X, y, X_val=X, y_val=1 - y)
    apiece.collect(relabelled, **SETTINGS)  # no warning: the same features with other labels


def test_embeddings_of_a_table_that_is_kept_are_compared_with_the_pool_too():
    X, y, _, _ = arrays()
    table = pd.DataFrame({"size": X[:, 0], "embedding": list(X), "label": y})
    dataset = apiece.Dataset.from_pandas(table, target="label", validation=table, preprocess=None)
    model = make_pipeline(ColumnTransformer([("keep", "passthrough", ["size"])]), GaussianNB())
    with pytest.warns(ApieceWarning, match="100% of the validation rows are also in the pool"):
        apiece.collect(dataset, **{**SETTINGS, "model": model})


def test_a_complete_run_that_cannot_be_written_is_returned_and_another_explained(
    blobs, tmp_path, monkeypatch
):
    apiece.collect(blobs, to=tmp_path / "run", **SETTINGS)

    def read_only(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("apiece._base.files._write_whole", read_only)
    assert apiece.collect(blobs, to=tmp_path / "run", **SETTINGS).is_complete
    with pytest.raises(StoreError, match="the disk is read-only"):
        apiece.collect(blobs, to=tmp_path / "run", **{**SETTINGS, "samples": 5})
    for file in (tmp_path / "run" / "shards").iterdir():
        file.unlink()
    with pytest.raises(StoreError, match="the disk is read-only"):
        apiece.collect(blobs, to=tmp_path / "run", **SETTINGS)
