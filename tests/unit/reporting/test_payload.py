from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from apiece.reporting._payload import as_text, pack, packed_size, unpack

NUMBERS = st.one_of(
    *(
        arrays(dtype, st.integers(0, 9))
        for dtype in (np.float32, np.float64, np.int8, np.uint8, np.uint32)
    )
)


@given(
    description=st.dictionaries(st.text(), st.text() | st.integers() | st.none()),
    columns=st.dictionaries(st.text(min_size=1), NUMBERS, max_size=5),
)
def test_what_is_packed_comes_back(description, columns):
    description.pop("arrays", None)
    found, arrays_found = unpack(pack(description, columns))
    assert found == json.loads(json.dumps(description))
    assert list(arrays_found) == list(columns)
    for name, column in columns.items():
        assert_array_equal(arrays_found[name], column)
        assert arrays_found[name].dtype == column.dtype


def test_equal_reports_are_equal_bytes():
    assert pack({"a": 1}, {"x": np.arange(3.0)}) == pack({"a": 1}, {"x": np.arange(3.0)})


@given(st.binary())
def test_text_of_bytes_has_no_character_that_markup_knows(data):
    assert set(as_text(data)) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
    )


def test_an_array_of_another_type_is_refused():
    with pytest.raises(TypeError, match="int64"):
        pack({}, {"x": np.arange(3)})


def test_a_number_that_is_not_finite_is_refused_in_the_description():
    with pytest.raises(ValueError, match="JSON"):
        pack({"x": float("nan")}, {})


@pytest.mark.parametrize("kind", ["noise", "text"])
def test_the_packed_size_is_estimated_to_a_few_percent(kind):
    rng = np.random.default_rng(0)
    words = np.array(["the", "film", "was", "good", "bad", "plot"])
    text = " ".join(words[rng.integers(0, 6, 400_000)]).encode()
    data = rng.random(300_000).tobytes() if kind == "noise" else text
    assert packed_size(data) == pytest.approx(len(gzip.compress(data, 6)), rel=0.03)
    assert packed_size(b"") == 0
