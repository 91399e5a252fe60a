"""A dataset knows where it came from, and is read again from there."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from apiece import Dataset
from apiece.data import read_again
from apiece.errors import ApieceError, DataError


def table(n=40):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "name": [f"r{i}" for i in range(n)],
            "size": rng.normal(size=n),
            "review": [f"word{i % 7} and word{i % 5}" for i in range(n)],
            "label": np.arange(n) % 2,
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    table().to_csv(tmp_path / "a.csv", index=False)
    table().to_parquet(tmp_path / "a.parquet")
    table(9).assign(name=[f"c{i}" for i in range(9)]).to_csv(tmp_path / "more.csv", index=False)
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    np.savez(tmp_path / "a.npz", X=X, y=y)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("a.csv", {"target": "label", "ids": "name", "drop": ("review",)}),
        ("a.csv", {"target": "label", "text": "review", "drop": ["name"], "random_state": 3}),
        ("a.csv", {"target": "label", "drop": ["name", "review"], "validation": "a.parquet"}),
        ("a.csv", {"target": "label", "ids": "name", "text": "review", "candidates": "more.csv"}),
        ("a.parquet", {"target": "label", "ids": "name", "drop": "review", "standardize": False}),
        ("a.npz", {"validation": 0.25, "standardize": True}),
    ],
)
def test_a_file_is_read_again_as_it_was_read_from_anywhere(folder, file, options, monkeypatch):
    dataset = Dataset.from_file(file, **options)
    source = json.loads(json.dumps(dataset.describe()["source"]))
    monkeypatch.chdir("/")
    again = read_again(source, dataset.fingerprint)
    assert again.fingerprint == dataset.fingerprint
    assert again.ids.tolist() == dataset.ids.tolist()


def test_candidates_from_a_file_belong_to_the_source(folder):
    dataset = Dataset.from_csv("a.csv", target="label", ids="name", drop="review")
    joined = dataset.with_candidates("more.csv")
    assert read_again(joined.source, joined.fingerprint).n_candidates == 9


def test_what_came_from_memory_has_no_source(folder):
    frame = table()
    dataset = Dataset.from_csv("a.csv", target="label", ids="name", drop="review")
    assert Dataset.from_pandas(frame, target="label", ids="name", drop="review").source is None
    assert dataset.with_candidates(frame.assign(name=[f"c{i}" for i in range(40)])).source is None
    held = Dataset.from_csv("a.csv", target="label", drop=["name", "review"], validation=frame)
    assert held.source is None
    with pytest.raises(DataError, match="which file"):
        read_again(None, None)


def test_a_file_with_other_rows_is_refused(folder):
    dataset = Dataset.from_csv("a.csv", target="label", ids="name", drop="review")
    table(39).to_csv("a.csv", index=False)
    with pytest.raises(DataError, match="another dataset"):
        read_again(dataset.source, dataset.fingerprint)


@pytest.mark.parametrize(
    "source",
    [
        {"file": "a.csv", "options": {"target": "label", "unheard_of": 1}},
        {"file": "a.npz", "options": {"unheard_of": 1}},
        {"file": "a.csv", "options": {"target": "label", "drop": 7}},
        {"file": "a.csv", "options": {"target": "label", "ids": {"a": 1}}},
        {"file": "a.csv", "options": {"target": "label", "random_state": "seven"}},
        {"file": "a.csv", "options": ["target"]},
        {"file": "a.csv"},
        {"file": 7, "options": {}},
        {"file": "a\0b.csv", "options": {}},
        {"options": {"target": "label"}},
        {"demo": {"unheard_of": 1}},
        {"demo": "text"},
        {"file": "a.npz", "options": {}, "candidates": [7]},
        {"file": "a.npz", "options": {}, "candidates": 7},
        "a.csv",
        ["a.csv"],
        7,
    ],
)
def test_a_source_that_cannot_be_used_is_an_error_that_says_so(folder, source):
    with pytest.raises(ApieceError, match=r"[eE]xpected"):
        read_again(source, None)
