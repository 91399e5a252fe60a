"""Thumbnails: small pictures of points as PNG, without an imaging library."""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from apiece._base.typing import AnyArray
from apiece.errors import DataError

LARGEST: Final = 64  # pixels along the longer side of a thumbnail
_COLOUR_TYPES: Final = {1: 0, 3: 2, 4: 6}  # channels: PNG's word for grey, RGB and RGBA


def thumbnail(image: npt.ArrayLike) -> bytes:
    r"""Return a picture as PNG of at most 64 x 64 pixels.

    Parameters
    ----------
    image
        Shape ``(height, width)`` or ``(height, width, channels)`` with 1, 3 or 4 channels;
        ``uint8``, or numbers from 0 to 1.

    Examples
    --------
    >>> thumbnail(np.zeros((2, 2)))[:4]
    b'\x89PNG'
    """
    pixels = _shrunk(_as_bytes(np.asarray(image)))
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    # Each row is preceded by the number of its filter, here none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _as_bytes(image: AnyArray) -> AnyArray:
    pixels = image[:, :, None] if image.ndim == 2 else image
    if pixels.ndim != 3 or pixels.shape[2] not in _COLOUR_TYPES or 0 in pixels.shape:
        raise DataError(
            f"an image has shape {image.shape}: expected (height, width) or (height, width, "
            "channels) with 1, 3 or 4 channels. Move the channels to the last axis."
        )
    if pixels.dtype != np.uint8:
        finite = np.nan_to_num(pixels.astype(np.float64))
        pixels = np.rint(255 * np.clip(finite, 0.0, 1.0)).astype(np.uint8)
    return pixels


def _shrunk(pixels: AnyArray) -> AnyArray:
    """Average blocks of pixels until the longer side fits."""
    step = -(-max(pixels.shape[:2]) // LARGEST)
    if step == 1:
        return pixels
    height, width = (max(1, side // step) for side in pixels.shape[:2])
    step_y, step_x = (min(step, side) for side in pixels.shape[:2])
    blocks = pixels[: height * step_y, : width * step_x].astype(np.float64)
    blocks = blocks.reshape(height, step_y, width, step_x, -1).mean(axis=(1, 3))
    return np.asarray(np.rint(blocks), dtype=np.uint8)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
