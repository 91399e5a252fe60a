from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from apiece.data import load_demo


def test_the_demo_has_flipped_labels_in_the_pool_and_a_clean_validation_set():
    clean, none = load_demo(flipped=0)
    dataset, flipped = load_demo()
    assert len(none) == 0
    assert (dataset.n_pool, dataset.n_validation, dataset.n_features) == (369, 200, 30)
    assert len(flipped) == 37
    assert_array_equal(np.flatnonzero(dataset.y != clean.y), flipped)
    assert_array_equal(dataset.y_val, clean.y_val)
    assert_array_equal(dataset.X, clean.X)
    assert_allclose(dataset.X.std(axis=0), 1)
    assert dataset.classes.tolist() == ["benign", "malignant"]
    assert "mean radius" in dataset.feature_names
    assert dataset.fingerprint != clean.fingerprint


def test_clean_labels_are_the_bundled_ones():
    from sklearn.datasets import load_breast_cancer

    bundled = load_breast_cancer()
    dataset, _ = load_demo(flipped=0)
    labels = bundled.target_names[bundled.target]
    assert dataset.labels().tolist() == labels[dataset.ids].tolist()


def test_the_seed_decides_the_flips():
    assert_array_equal(load_demo(random_state=5)[1], load_demo(random_state=5)[1])
    assert not np.array_equal(load_demo(random_state=5)[1], load_demo(random_state=6)[1])


@pytest.mark.parametrize("share", [0.05, 0.3, 1])
def test_the_share_is_of_the_pool(share):
    assert len(load_demo(flipped=share)[1]) == round(share * 369)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_outside_its_range_is_refused(complaint, share):
    assert "flipped=" in complaint(load_demo, flipped=share)
