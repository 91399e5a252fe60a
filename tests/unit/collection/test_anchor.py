from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import apiece
from apiece.records import Anchor


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=160) > 0).astype(int)


def collected(data, **options):
    return apiece.collect(data, sizes=(10, 40), samples=5, random_state=0, **options)


def test_with_a_validation_set_it_is_the_loss_of_a_model_on_the_whole_pool(rows):
    X, y = rows
    data = apiece.Dataset.from_arrays(X[:120], y[:120], X_val=X[120:], y_val=y[120:])
    anchor = collected(data).anchor
    model = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(data.X, data.y)
    expected = log_loss(data.y_val, model.predict_proba(data.X_val))
    assert anchor.k == 120
    assert_allclose(anchor.losses, [expected], rtol=1e-6)


def test_with_rotating_rows_every_row_scores_once(rows):
    X, y = rows
    data = apiece.Dataset.from_arrays(X, y, validation=0)
    anchor = collected(data).anchor
    assert anchor.k == 140
    assert len(anchor.losses) == 8
    assert anchor.stderr > 0


def test_large_pools_are_represented_by_ten_times_the_largest_size(rows):
    X, y = rows
    data = apiece.Dataset.from_arrays(X, y, validation=0)
    run = apiece.collect(data, sizes=(5, 8), samples=3, random_state=0)
    assert run.anchor.k == 70


def test_a_stored_anchor_is_kept_and_repeats_to_the_digit(rows, tmp_path):
    data = apiece.Dataset.from_arrays(*rows, validation=0)
    first = collected(data, to=tmp_path / "run").anchor
    assert first == collected(data).anchor
    file = tmp_path / "run" / "anchor.json"
    assert Anchor.from_json(json.loads(file.read_text())) == first
    file.write_text("{")  # damaged: measured again when the run is collected again
    assert apiece.open(tmp_path / "run").anchor is None
    assert collected(data, to=tmp_path / "run").anchor == first


def test_it_can_be_left_out(rows):
    data = apiece.Dataset.from_arrays(*rows, validation=0)
    run = collected(data, anchor=False)
    assert run.anchor is None
    assert apiece.aggregate(run).anchor is None


class _Small(DummyRegressor):
    """A model that cannot be trained on many rows."""

    def fit(self, X, y, sample_weight=None):
        if len(X) > 50:
            raise ValueError("too many rows")
        return super().fit(X, y, sample_weight)


def test_a_model_that_fails_on_the_whole_pool_leaves_the_run_without(rows):
    X, _ = rows
    data = apiece.Dataset.from_arrays(X, X[:, 0], validation=0.25, random_state=0)
    run = collected(data, model=_Small())
    assert run.is_complete
    assert run.anchor is None
