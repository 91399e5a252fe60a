"""Pictures of points: the array ``images`` of an npz file, as features and for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apiece._base.typing import AnyArray
from apiece.errors import DataError

if TYPE_CHECKING:
    from apiece.data._dataset import Dataset


def pixels(images: AnyArray, name: str) -> AnyArray:
    """Return pictures as rows of features from 0 to 1.

    Parameters
    ----------
    images
        Shape ``(n_rows, height, width)``, or with channels as a fourth axis; ``uint8``, or other
        numbers, which are taken as they are.
    name
        What to call them in messages.

    Examples
    --------
    >>> pixels(np.full((2, 1, 2), 255, dtype=np.uint8), "images").tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    if images.ndim not in (3, 4) or images.dtype.kind not in "uifb":
        raise DataError(
            f"{name} has shape {images.shape} of {images.dtype}: expected numbers of shape "
            "(rows, height, width) or (rows, height, width, channels). Save the pictures so."
        )
    rows = images.reshape(len(images), -1)
    return rows.astype(np.float32) / 255 if images.dtype == np.uint8 else rows


def pictures_of(dataset: Dataset) -> dict[Any, AnyArray] | None:
    """Return the pictures in the npz file that a dataset was read from, by id; None without any.

    Numbers other than ``uint8`` are scaled from 0 to 1, by the largest of all.

    Examples
    --------
    >>> import tempfile
    >>> from apiece.data import Dataset
    >>> file = Path(tempfile.mkdtemp()) / "pictures.npz"
    >>> np.savez(file, images=np.zeros((40, 8, 8), dtype=np.uint8), y=np.arange(40) % 2)
    >>> pictures_of(Dataset.from_npz(file))[0].shape
    (8, 8)
    """
    from apiece.data._readers import format_of, read_npz

    file = (dataset.source or {}).get("file")
    if file is None or not Path(file).is_file() or format_of(file) != "npz":
        return None
    arrays = read_npz(file)
    if "images" not in arrays:
        return None
    images, ids = arrays["images"], arrays.get("ids", np.arange(len(arrays["images"])))
    if images.dtype != np.uint8 and images.size:
        images = images / max(float(np.nanmax(images)), 1.0)
    return dict(zip(ids.tolist(), images, strict=False))
