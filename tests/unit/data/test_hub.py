from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from apiece.data import Dataset


class Split:
    """The part of ``datasets.Dataset`` that is used."""

    def __init__(self, frame, names=None):
        self._frame = frame
        self.column_names = list(frame.columns)
        self.features = {name: SimpleNamespace(dtype="x") for name in frame.columns}
        if names is not None:
            self.features["label"] = SimpleNamespace(dtype="int64", names=names)

    def to_pandas(self):
        return self._frame.copy()


@pytest.fixture
def coded(table):
    return table.assign(label=(table["label"] == "yes").astype(int))[["age", "count", "label"]]


def test_a_dataset_is_read_through_its_interface(coded):
    dataset = Dataset.from_hf(Split(coded), target="label", validation=12)
    expected = Dataset.from_pandas(coded, target="label", validation=12)
    assert dataset.fingerprint == expected.fingerprint


def test_the_names_of_a_class_label_are_the_labels(coded):
    dataset = Dataset.from_hf(Split(coded, ["zero", "one"]), target="label")
    assert dataset.classes.tolist() == ["one", "zero"]
    codes = coded["label"].to_numpy()[dataset.ids]
    assert dataset.labels().tolist() == [("zero", "one")[code] for code in codes]


@pytest.mark.parametrize(
    ("splits", "n_validation"),
    [(("train", "test"), 10), (("train", "validation", "test"), 20), (("train",), 0)],
)
def test_a_held_out_split_is_the_validation_set(coded, splits, n_validation):
    frames = {"train": coded, "validation": coded.head(20), "test": coded.head(10)}
    mapping = {name: Split(frames[name], ["a", "b"]) for name in splits}
    dataset = Dataset.from_hf(mapping, target="label")
    assert dataset.n_validation == n_validation


def test_validation_takes_precedence_over_the_splits(coded):
    mapping = {"train": Split(coded), "test": Split(coded)}
    assert Dataset.from_hf(mapping, target="label", validation=7).n_validation == 7


def test_an_unlabelled_split_is_refused(complaint, coded):
    mapping = {"train": Split(coded, ["a", "b"]), "test": Split(coded.assign(label=-1), ["a", "b"])}
    assert "missing on 60 of 60" in complaint(Dataset.from_hf, mapping, target="label")


def test_a_mapping_without_train_is_refused(complaint, coded):
    assert "'eval'" in complaint(Dataset.from_hf, {"eval": Split(coded)}, target="label")


def test_something_without_to_pandas_is_refused(complaint):
    assert "list has no to_pandas()" in complaint(Dataset.from_hf, [1, 2], target="label")


def test_a_misspelt_target_offers_the_nearest(complaint, coded):
    assert "'label'" in complaint(Dataset.from_hf, Split(coded, ["a", "b"]), target="lable")


def test_plain_frames_serve_as_splits(coded):
    assert isinstance(coded, pd.DataFrame)
    assert Dataset.from_hf({"train": coded, "test": coded}, target="label").n_validation == 60


def test_columns_of_embeddings_become_features(coded):
    vectors = [[float(i), i / 2] for i in range(60)]
    splits = {
        "train": Split(coded.assign(vector=vectors)),
        "test": Split(coded.assign(vector=vectors)),
    }
    dataset = Dataset.from_hf(splits, target="label")
    assert dataset.feature_names[-2:] == ("vector[0]", "vector[1]")
    assert dataset.X[:, -2:].tolist() == dataset.X_val[:, -2:].tolist() == vectors
