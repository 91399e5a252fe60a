from __future__ import annotations

import json
import zlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from apiece import synthetic
from apiece.errors import DataError
from apiece.reporting import _details
from apiece.reporting._details import Room
from apiece.reporting._images import thumbnail
from apiece.reporting._payload import packed_size

from conftest import make_blobs

LAWS = synthetic.random_laws(20, random_state=0)


def decoded(png):
    """Read the pixels of a PNG without filters, as `thumbnail` writes them."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    channels = {0: 1, 2: 3, 6: 4}[png[25]]
    start = png.index(b"IDAT")
    size = int.from_bytes(png[start - 4 : start], "big")
    rows = np.frombuffer(zlib.decompress(png[start + 4 : start + 4 + size]), np.uint8)
    return rows.reshape(height, -1)[:, 1:].reshape(height, width, channels)


@given(st.integers(1, 64), st.integers(1, 64), st.sampled_from([1, 3, 4]))
def test_a_small_picture_is_kept_pixel_by_pixel(height, width, channels):
    image = np.random.default_rng(0).integers(0, 256, (height, width, channels), dtype=np.uint8)
    assert_array_equal(decoded(thumbnail(image)), image)


@given(st.integers(1, 300), st.integers(1, 300))
def test_a_large_picture_is_averaged_down(height, width):
    found = decoded(thumbnail(np.full((height, width), 0.2)))
    assert max(found.shape[:2]) <= 64
    assert (found == 51).all()


def test_a_picture_with_channels_first_is_refused():
    with pytest.raises(DataError, match="Move the channels"):
        thumbnail(np.zeros((3, 32, 32)))


def test_rows_are_found_by_index_or_column_in_the_order_of_the_laws():
    table = pd.DataFrame({"name": [*range(19, -1, -1)], "word": list("abcdefghijklmnopqrst")})
    by_column = _details.rows_of(LAWS, table, "name")
    assert by_column["word"].tolist() == list("abcdefghijklmnopqrst")[::-1]
    by_index = _details.rows_of(LAWS, table)
    assert by_index["word"].tolist() == list("abcdefghijklmnopqrst")


def test_rows_that_fit_no_point_or_name_one_twice_are_refused():
    with pytest.raises(DataError, match="has none of the points"):
        _details.rows_of(LAWS, pd.DataFrame({"x": [1]}, index=["other"]))
    with pytest.raises(DataError, match="names some rows twice"):
        _details.rows_of(LAWS, pd.DataFrame({"x": [1, 2]}, index=[0, 0]))
    with pytest.raises(DataError, match="no column 'id'"):
        _details.rows_of(LAWS, pd.DataFrame({"x": [1]}), "id")


def test_columns_give_way_when_there_is_no_room():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcdefghijklmnop"), 600)) for _ in range(20)]
    rows = pd.DataFrame({"a": rng.random(20), "text": texts, "b": rng.random(20)})
    room = Room(10**6)
    all_of_them = _details.columns(LAWS, None, rows, room)
    assert [column["name"] for column in all_of_them.description["columns"]] == ["a", "text", "b"]
    assert room.notes == []
    shortest = json.dumps([text[:119] + "…" for text in texts]).encode()
    number = rows["a"].to_numpy(np.float32).tobytes()
    tight = Room(packed_size(number) + packed_size(shortest) + 10)
    some = _details.columns(LAWS, None, rows, tight)
    assert [column["name"] for column in some.description["columns"]] == ["a", "text"]
    assert max(len(cell) for cell in some.description["columns"][1]["text"]) == 120
    assert "'b'" in tight.notes[0]


def test_pictures_of_the_largest_values_come_first_when_not_all_fit():
    images = np.random.default_rng(0).integers(0, 256, (20, 8, 8), dtype=np.uint8)
    size = len(thumbnail(images[0]))
    room = Room(3 * size + 20)
    found = _details.pictures(LAWS, images, room)
    kept = np.flatnonzero(np.diff(found.arrays["picture_start"].astype(int)))
    largest = np.argsort(-np.abs(LAWS.mean(LAWS.k_ref)))[: len(kept)]
    assert sorted(largest) == kept.tolist()
    assert "largest value" in room.notes[0]


def test_pictures_must_match_the_points():
    with pytest.raises(DataError, match="3 images for 20 points"):
        _details.pictures(LAWS, np.zeros((3, 4, 4)), Room(10**6))


def test_nearness_is_that_of_the_features():
    dataset = make_blobs(n=30)
    laws = synthetic.random_laws(30, random_state=0)
    near = _details.neighbourhood(laws, dataset, None)
    assert near.description["near"] == {"by": "features", "width": 3}
    assert_allclose(near.arrays["near"], dataset.X, rtol=1e-6)


def test_many_features_are_seen_along_their_leading_directions():
    dataset = make_blobs(n=200, d=40)
    laws = synthetic.random_laws(200, random_state=0)
    near = _details.neighbourhood(laws, dataset, None)
    space = near.arrays["near"]
    centred = dataset.X - dataset.X.mean(axis=0)
    variances = np.linalg.eigvalsh(np.cov(centred, rowvar=False))[::-1]
    assert space.shape == (200, 16)
    assert_allclose(space.var(axis=0, ddof=1), variances[:16], rtol=1e-4)


def test_many_points_are_kept_as_bytes_with_nearly_the_same_distances(monkeypatch):
    monkeypatch.setattr(_details, "_FLOATS", 10)
    dataset = make_blobs(n=60)
    laws = synthetic.random_laws(60, random_state=0)
    space = _details.neighbourhood(laws, dataset, None).arrays["near"]
    assert space.dtype == np.int8
    exact = np.linalg.norm(dataset.X[:, None] - dataset.X, axis=2)
    coarse = np.linalg.norm(space[:, None].astype(float) - space, axis=2)
    assert np.corrcoef(exact.ravel(), coarse.ravel())[0, 1] > 0.99


def test_a_dataset_without_the_points_is_refused():
    laws = synthetic.random_laws(100, random_state=0)
    with pytest.raises(DataError, match="lacks 40 of the points"):
        _details.find(make_blobs(n=60), laws)
