"""An npz file of pictures is a dataset, and its pictures are found again by id."""

from __future__ import annotations

import numpy as np
import pytest

from apiece.data import Dataset, pictures_of
from apiece.errors import DataError

IMAGES = np.arange(40 * 2 * 3, dtype=np.uint8).reshape(40, 2, 3)
Y = np.repeat([0, 1], 20)


def test_pictures_without_features_are_the_features_from_0_to_1(tmp_path):
    np.savez(tmp_path / "a.npz", images=IMAGES, y=Y)
    dataset = Dataset.from_npz(tmp_path / "a.npz")
    assert dataset.X.shape == (40, 6)
    np.testing.assert_allclose(dataset.X[3], IMAGES[3].ravel() / 255, rtol=1e-6)


def test_features_come_before_pictures_where_a_file_has_both(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.arange(40.0)[:, None], images=IMAGES, y=Y)
    assert Dataset.from_npz(tmp_path / "a.npz").X.shape == (40, 1)


def test_pictures_are_found_by_the_ids_of_the_file(tmp_path):
    ids = np.array([f"p{i}" for i in range(40)])
    np.savez(tmp_path / "a.npz", images=IMAGES, y=Y, ids=ids)
    found = pictures_of(Dataset.from_npz(tmp_path / "a.npz"))
    assert found is not None
    np.testing.assert_array_equal(found["p7"], IMAGES[7])


def test_numbers_of_any_scale_are_shown_from_0_to_1(tmp_path):
    np.savez(tmp_path / "a.npz", images=IMAGES / 2.0, y=Y)
    found = pictures_of(Dataset.from_npz(tmp_path / "a.npz"))
    assert found is not None
    assert max(picture.max() for picture in found.values()) == 1.0


def test_data_without_pictures_have_none(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.arange(40.0)[:, None], y=Y)
    assert pictures_of(Dataset.from_npz(tmp_path / "a.npz")) is None
    assert pictures_of(Dataset.from_arrays(np.arange(40.0)[:, None], Y)) is None


@pytest.mark.parametrize("images", [IMAGES[:, 0], IMAGES.astype(str)])
def test_an_array_that_holds_no_pictures_is_refused(tmp_path, images):
    np.savez(tmp_path / "a.npz", images=images, y=Y)
    with pytest.raises(DataError, match=r"expected numbers of shape \(rows, height, width\)"):
        Dataset.from_npz(tmp_path / "a.npz")
