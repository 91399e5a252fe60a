from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from apiece.errors import ModelError, PlanError
from apiece.experiments import detection
from apiece.uses import plausibility

from conftest import make_blobs, make_line


def with_flips(seed=0, n_classes=2):
    from dataclasses import replace

    dataset = make_blobs(120, 60, d=3, n_classes=n_classes, seed=seed, shift=6.0)
    is_wrong = np.zeros(120, dtype=bool)
    is_wrong[np.random.default_rng(seed).choice(120, 12, replace=False)] = True
    y = np.where(is_wrong, (dataset.y + 1) % n_classes, dataset.y)
    return replace(dataset, points_y=y), dataset, is_wrong


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_flipped_labels_are_the_least_plausible_and_the_right_one_the_likeliest(n_classes):
    noisy, clean, is_wrong = with_flips(n_classes=n_classes)
    table = plausibility(noisy, draws=2)
    assert detection(table["plausibility"].to_numpy(), is_wrong)["auc"] > 0.95
    right = (table["likeliest"].to_numpy() == clean.labels())[is_wrong]
    assert right.mean() > 0.8
    assert (table["p_likeliest"] >= table["plausibility"]).all()
    assert table["p_likeliest"].between(0, 1).all()


def test_no_model_has_seen_the_point_it_judges():
    """A model that remembers its training points would find every label plausible."""

    class Memory(LogisticRegression):
        def fit(self, X, y):
            self.seen_ = {tuple(row) for row in X}
            return super().fit(X, y)

        def predict_proba(self, X):
            assert not any(tuple(row) in self.seen_ for row in X)
            return super().predict_proba(X)

    plausibility(with_flips()[0], models=(Memory(),), draws=3)


def test_kinds_of_models_are_mixed_so_that_the_labels_are_likeliest():
    noisy = with_flips()[0]
    both, one, two = (
        plausibility(noisy, models=models, draws=3)["plausibility"].to_numpy()
        for models in (("logistic", "knn"), ("logistic",), ("knn",))
    )
    share = float(np.linalg.lstsq((one - two)[:, None], both - two, rcond=None)[0][0])
    assert_allclose(both, share * one + (1 - share) * two, atol=1e-12)
    grid = np.linspace(0, 1, 101)
    likelihood = [np.log(np.maximum(w * one + (1 - w) * two, 1e-6)).mean() for w in grid]
    assert abs(share - grid[np.argmax(likelihood)]) < 0.03


def test_a_model_that_knows_nothing_has_no_say():
    noisy = with_flips()[0]
    alone, together = (
        plausibility(noisy, models=models, draws=3)["plausibility"]
        for models in (("logistic",), ("logistic", DummyClassifier(strategy="uniform")))
    )
    assert np.corrcoef(alone, together)[0, 1] > 0.99


def test_candidates_are_judged_too_and_the_same_seed_says_the_same():
    noisy, _, _ = with_flips()
    more = noisy.with_candidates((noisy.X[:3] + 0.1, [0, 1, 1]))
    one, two = (plausibility(more, models=("logistic",), draws=2, random_state=4) for _ in range(2))
    assert len(one) == 123
    assert one.equals(two)


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(PlanError, match=r"apiece\.advise"):
        plausibility(make_line())
    with pytest.raises(PlanError, match="draws=0"):
        plausibility(make_blobs(), draws=0)
    with pytest.raises(PlanError, match="models is empty"):
        plausibility(make_blobs(), models=())
    with pytest.raises(ModelError, match="has no predict_proba"):
        plausibility(make_blobs(), models=(LinearSVC(),))
