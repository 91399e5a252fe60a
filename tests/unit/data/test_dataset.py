from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from apiece.data import Dataset
from apiece.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.array(["no", "yes"])[np.arange(40) % 2]


@pytest.fixture
def dataset():
    return Dataset.from_arrays(X, Y, validation=10, candidates=(X[:4], Y[:4]))


def test_counts_and_views(dataset):
    assert (dataset.n_pool, dataset.n_candidates, dataset.n_points) == (30, 4, 34)
    assert (dataset.n_validation, dataset.n_features, dataset.n_classes) == (10, 3, 2)
    assert dataset.is_classification
    assert np.shares_memory(dataset.X, dataset.points_X)
    assert np.shares_memory(dataset.y, dataset.points_y)
    assert dataset.X.shape == (30, 3)
    assert dataset.ids.shape == dataset.labels().shape == (34,)


def test_features_and_targets_are_found_by_position(dataset):
    positions = np.array([33, 0, 5])
    assert_array_equal(dataset.features(positions)[0], X[3])
    assert_array_equal(dataset.features(positions)[1:], dataset.X[[0, 5]])
    assert (
        dataset.classes[dataset.targets(positions)].tolist() == dataset.labels()[positions].tolist()
    )


def test_positions_are_found_by_id(dataset):
    assert_array_equal(dataset.positions(dataset.ids[::-1]), np.arange(34)[::-1])
    assert dataset.positions(str(dataset.ids[7])).tolist() == [7]


def test_an_unknown_id_is_a_data_error_that_says_where_it_went(complaint, dataset):
    held = int(dataset.ids_val[0])
    assert f"({held} in the validation set)" in complaint(dataset.positions, [0, held])
    assert "999" in complaint(dataset.positions, 999)


@pytest.mark.parametrize(
    "name", ["points_X", "points_y", "X", "y", "X_val", "y_val", "ids", "classes"]
)
def test_arrays_are_read_only_also_after_a_journey_to_a_worker(dataset, name):
    arrived = pickle.loads(pickle.dumps(dataset))
    for one in (dataset, arrived):
        with pytest.raises(ValueError, match="read-only"):
            getattr(one, name)[0] = getattr(one, name)[1]
    assert arrived.fingerprint == dataset.fingerprint


def test_a_dense_copy_does_not_travel(dataset):
    before = len(pickle.dumps(dataset))
    assert dataset.X.shape == (30, 3)
    assert len(pickle.dumps(dataset)) == before


def test_fields_are_frozen(dataset):
    with pytest.raises(FrozenInstanceError):
        dataset.kind = "regression"


def test_a_dataset_is_equal_to_itself_alone(dataset):
    assert dataset != replace(dataset)
    assert hash(dataset) != hash(replace(dataset))


def test_the_description_is_json_and_complete(dataset):
    described = json.loads(json.dumps(dataset.describe()))
    assert described == {
        "fingerprint": dataset.fingerprint,
        "kind": "classification",
        "target": "target",
        "classes": ["no", "yes"],
        "n_pool": 30,
        "n_candidates": 4,
        "n_validation": 10,
        "n_features": 3,
        "feature_names": ["x0", "x1", "x2"],
        "preprocessing": {
            "from": "arrays",
            "standardize": False,
            "impute": False,
            "validation": {"carved": 10, "seed": 0},
        },
        "source": None,
    }


@pytest.mark.parametrize("labels", [np.arange(40) % 3, np.arange(40) % 2 == 0, X[:, 0]])
def test_the_description_of_any_target_is_json(labels):
    json.dumps(Dataset.from_arrays(X, labels).describe())


def test_long_lists_of_features_are_cut_short():
    described = Dataset.from_arrays(RNG.normal(size=(10, 150)), [0, 1] * 5).describe()
    assert len(described["feature_names"]) == 101
    assert described["feature_names"][-1] == "… and 50 more"


def test_the_representation_is_one_line(dataset):
    assert repr(dataset) == (
        "Dataset(30 points x 3 features + 4 candidates, 2 classes, 10 validation rows, "
        "target 'target')"
    )
    assert "regression" in repr(Dataset.from_arrays(X, X[:, 0]))


CHANGES = {
    "a value of the pool": lambda d: {"rows": _touched(d.points_X, (3, 1))},
    "a value of a candidate": lambda d: {"rows": _touched(d.points_X, (33, 1))},
    "a label": lambda d: {"points_y": _flipped(d.points_y, 3)},
    "a validation value": lambda d: {"rows_val": _touched(d.X_val, (0, 0))},
    "a validation label": lambda d: {"y_val": _flipped(d.y_val, 0)},
    "an id": lambda d: {"ids": np.where(d.ids == d.ids[2], 777, d.ids)},
    "the classes' names": lambda d: {"classes": np.array(["no", "yep"])},
    "the preprocessing": lambda d: {"preprocessing": {**d.preprocessing, "impute": True}},
    "the kind": lambda d: {"kind": "regression"},
    "where the pool ends": lambda d: {"n_pool": 31},
    "the order": lambda d: {
        "rows": _swapped(d.points_X),
        "points_y": _swapped(d.points_y),
        "ids": _swapped(d.ids),
    },
}


def _touched(array, where):
    changed = array.copy()
    changed[where] = np.nextafter(changed[where], np.inf)
    return changed


def _flipped(codes, where):
    changed = codes.copy()
    changed[where] = 1 - changed[where]
    return changed


def _swapped(array):
    changed = array.copy()
    changed[[0, 1]] = changed[[1, 0]]
    return changed


@pytest.mark.parametrize("what", CHANGES)
def test_the_fingerprint_notices(dataset, what):
    assert replace(dataset, **CHANGES[what](dataset)).fingerprint != dataset.fingerprint


def test_the_fingerprint_ignores_what_decides_nothing(dataset):
    renamed = replace(dataset, feature_names=("a", "b", "c"), target_name="z", transformer=None)
    assert renamed.fingerprint == dataset.fingerprint


def test_the_fingerprint_without_candidates_differs(dataset):
    assert Dataset.from_arrays(X, Y, validation=10).fingerprint != dataset.fingerprint


def test_the_fingerprint_is_the_same_on_every_machine():
    # Written down once: a run is resumed by it on other machines and with later releases.
    dataset = Dataset.from_arrays(
        [[0.0, 1.5], [1.0, -2.0], [2.0, 0.25]],
        ["b", "a", "b"],
        X_val=[[3.0, 3.0]],
        y_val=["a"],
        ids=["p", "q", "r"],
    )
    assert dataset.fingerprint == "fdb52283dbb9cf670a6b4751f9385dd6"


def test_shapes_that_do_not_fit_are_refused(complaint, dataset):
    assert "do not fit together" in complaint(replace, dataset, ids=dataset.ids[:-1])
    assert "do not fit together" in complaint(replace, dataset, rows_val=dataset.X_val[:, :2])


def test_importing_the_room_loads_neither_pandas_nor_scikit_learn():
    program = (
        "import sys, apiece.data; "
        "print([name for name in ('pandas', 'sklearn', 'scipy', 'pyarrow') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("names", "what"), [({"ids": ["a", "b\ud800", "c", "d"]}, "ids"), ({}, "y")]
)
def test_half_a_character_is_refused_before_any_file_is_written(names, what):
    y = ["no", "yes\udfff"] * 2 if what == "y" else ["no", "yes"] * 2
    with pytest.raises(DataError, match=f"^{what} hold .* broken off"):
        Dataset.from_arrays(np.eye(4), y, **names)
