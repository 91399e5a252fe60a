from __future__ import annotations

import numpy as np
import pytest

from apiece.data._fingerprint import digest


def test_the_digest_is_the_same_on_every_machine():
    # Written down once: it must not change between machines, versions or releases.
    parts = {
        "kind": "classification",
        "classes": None,
        "ids": np.array(["é", ""]),
        "X": np.array([[1.0, 2.5]]),
        "y": np.array([3]),
        "flags": np.array([True]),
    }
    assert digest(parts) == "e68a70c4f2ae1c5cbcf368ac75ff4e7b"


def test_layout_and_width_do_not_matter():
    X = np.arange(12.0).reshape(3, 4)
    assert digest({"X": X}) == digest({"X": np.asfortranarray(X)})
    assert digest({"X": X}) == digest({"X": np.repeat(X, 2, axis=1)[:, ::2]})
    assert digest({"X": X}) == digest({"X": X.astype(">f8")})
    assert digest({"X": X}) == digest({"X": X.astype(np.float32)})
    assert digest({"y": np.array([1, 2])}) == digest({"y": np.array([1, 2], dtype=np.int8)})
    assert digest({"i": np.array(["a"])}) == digest({"i": np.array(["a"], dtype="U9")})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array(["ab", "c"]), np.array(["a", "bc"])),
        (np.array(["a", ""]), np.array(["", "a"])),
        (np.array(["a\0b"]), np.array(["a", "b"])),
        (np.array(["1"]), np.array([1])),
        (np.array([1]), np.array([1.0])),
        (np.array([[1.0, 2.0]]), np.array([[1.0], [2.0]])),
        (np.array([True]), np.array([1])),
        (np.array([]), None),
        ("", None),
    ],
)
def test_different_content_has_different_digests(one, other):
    assert digest({"part": one}) != digest({"part": other})


def test_a_part_counts_under_its_name():
    assert digest({"a": np.array([1.0])}) != digest({"b": np.array([1.0])})
    swapped = digest({"a": np.array([2]), "b": np.array([1])})
    assert digest({"a": np.array([1]), "b": np.array([2])}) != swapped


def test_lone_surrogates_can_be_hashed():
    assert digest({"i": np.array(["\ud800"])}) != digest({"i": np.array(["?"])})
