from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from apiece.data import Dataset

OPTIONS = {"ids": "code", "drop": ["review"]}


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet"])
def test_every_table_format_gives_the_same_dataset(table, tmp_path, name):
    if name.endswith("parquet"):
        table.to_parquet(tmp_path / name)
    else:
        table.to_csv(tmp_path / name, index=False, sep="\t" if "tsv" in name else ",")
    expected = Dataset.from_pandas(table, target="label", **OPTIONS)
    dataset = Dataset.from_file(tmp_path / name, target="label", **OPTIONS)
    assert dataset.fingerprint == expected.fingerprint


def test_the_named_constructors_agree_with_from_file(table, tmp_path):
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    one = Dataset.from_csv(tmp_path / "t.csv", target="label", **OPTIONS)
    other = Dataset.from_parquet(str(tmp_path / "t.parquet"), target="label", **OPTIONS)
    assert one.fingerprint == other.fingerprint


@pytest.fixture
def arrays(tmp_path):
    rng = np.random.default_rng(0)
    held = {"X": rng.normal(size=(40, 2)).astype(np.float16), "y": np.arange(40) % 2}
    path = tmp_path / "t.npz"

    def save(**more):
        np.savez(path, **(held | more))
        return path

    return save


def test_arrays_are_raw_and_tables_standardised_by_default(arrays, table, tmp_path):
    path = arrays()
    X = np.load(path)["X"].astype(np.float64)
    raw = Dataset.from_file(path)
    assert_array_equal(raw.X, X[raw.ids])
    scaled = Dataset.from_file(path, standardize=True)
    assert_allclose(scaled.X.std(axis=0), 1)
    table.to_csv(tmp_path / "t.csv", index=False)
    assert_allclose(
        Dataset.from_file(tmp_path / "t.csv", target="label", **OPTIONS).X[:, 0].std(), 1
    )
    as_is = Dataset.from_file(tmp_path / "t.csv", target="label", standardize=False, **OPTIONS)
    assert_array_equal(np.isin(as_is.X[:, 0], table["age"]), True)


def test_everything_an_npz_can_hold_is_used(arrays):
    rng = np.random.default_rng(1)
    dataset = Dataset.from_npz(
        arrays(
            X_val=rng.normal(size=(6, 2)),
            y_val=np.arange(6) % 2,
            ids=np.array([f"r{i}" for i in range(40)]),
            feature_names=np.array(["u", "v"]),
            class_names=np.array(["off", "on"]),
        )
    )
    assert (dataset.n_pool, dataset.n_validation) == (40, 6)
    assert dataset.ids[3] == "r3"
    assert dataset.feature_names == ("u", "v")
    assert dataset.classes.tolist() == ["off", "on"]
    assert dataset.labels()[:2].tolist() == ["off", "on"]


def test_class_names_that_do_not_fit_are_left_aside(arrays):
    assert Dataset.from_npz(arrays(class_names=np.array(["one"]))).classes.tolist() == [0, 1]
    quantities = Dataset.from_npz(arrays(y=np.linspace(0, 1, 40), class_names=np.array(["a", "b"])))
    assert quantities.kind == "regression"


def test_a_validation_npz_is_read(arrays, tmp_path):
    np.savez(tmp_path / "held.npz", X=np.zeros((4, 2)), y=np.array([0, 1, 0, 1]))
    path = arrays(class_names=np.array(["off", "on"]))
    dataset = Dataset.from_file(path, validation=tmp_path / "held.npz")
    assert (dataset.n_pool, dataset.n_validation) == (40, 4)
    assert dataset.y_val.tolist() == [0, 1, 0, 1]


def test_an_npz_with_half_a_validation_set_is_refused(complaint, arrays):
    assert "without y_val" in complaint(Dataset.from_npz, arrays(X_val=np.ones((2, 2))))


def test_a_table_needs_a_target(complaint, table, tmp_path):
    table.to_csv(tmp_path / "t.csv", index=False)
    assert "target='label' (--target label)" in complaint(Dataset.from_file, tmp_path / "t.csv")


@pytest.mark.parametrize(
    "options", [{"target": "y"}, {"text": ["a"]}, {"ids": "a"}, {"drop": ["a"]}]
)
def test_options_for_columns_say_nothing_about_arrays(complaint, arrays, options):
    (name,) = options
    said = complaint(Dataset.from_file, arrays(), **options)
    assert f"Leave {name}= (--{name}) out" in said


def test_empty_options_for_columns_are_fine_with_arrays(arrays):
    Dataset.from_file(arrays(), target=None, text=None, ids=None, drop=(), categorical=[])


def test_an_unknown_suffix_is_refused(complaint, tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"x")
    assert ".parquet" in complaint(Dataset.from_file, tmp_path / "t.xlsx", target="label")
    assert "there is no file" in complaint(Dataset.from_file, tmp_path / "t.csv", target="label")
