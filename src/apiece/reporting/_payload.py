"""The data of a report as bytes: one description in JSON, then typed arrays, gzipped.

Before compression the bytes are

    length of the description (uint32) | description, UTF-8 JSON | padding | arrays

with every array at a multiple of 8 bytes, little-endian, so that a browser reads each of them in
place as a typed array. The description lists them under ``arrays`` as
``name: [dtype, offset, length]``, offsets counted from the first byte after the padding.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from apiece._base.typing import AnyArray

DTYPES: Final = ("f4", "f8", "i1", "u1", "u2", "u4")
_ALIGNMENT: Final = 8
_SAMPLE: Final = 500_000  # bytes from which the packed size of more is estimated


def pack(description: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> bytes:
    """Return the gzipped bytes of a report's data.

    Text in the description is written in ASCII, so no character of it has a meaning of its own.

    Parameters
    ----------
    description
        What JSON can hold; numbers that are not finite are refused.
    arrays
        Arrays of the types in ``DTYPES``, flattened in row order.
    """
    places, parts, offset = {}, [], 0
    for name, array in arrays.items():
        kind = f"{array.dtype.kind}{array.dtype.itemsize}"
        if kind not in DTYPES:
            raise TypeError(f"array {name!r} is of type {array.dtype}: expected one of {DTYPES}.")
        data = _padded(np.ascontiguousarray(array, dtype=f"<{kind}").tobytes())
        places[name] = [kind, offset, int(array.size)]
        parts.append(data)
        offset += len(data)
    text = json.dumps({**description, "arrays": places}, allow_nan=False, separators=(",", ":"))
    head = len(text).to_bytes(4, "little") + text.encode("ascii")
    # No time of writing in the header: equal reports are equal bytes.
    return gzip.compress(_padded(head) + b"".join(parts), compresslevel=6, mtime=0)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the description and the arrays that `pack` was given.

    >>> unpack(pack({"level": 0.9}, {"alpha": np.array([1.0, 2.0])}))[1]["alpha"]
    array([1., 2.])
    """
    raw = gzip.decompress(data)
    length = int.from_bytes(raw[:4], "little")
    description = json.loads(raw[4 : 4 + length])
    body = raw[-(-(4 + length) // _ALIGNMENT) * _ALIGNMENT :]
    places = description.pop("arrays")
    arrays = {
        name: np.frombuffer(body, dtype=f"<{kind}", count=count, offset=offset)
        for name, (kind, offset, count) in places.items()
    }
    return description, arrays


def packed_size(data: bytes) -> int:
    """Estimate how many bytes data takes once packed, from its middle if it is long."""
    middle = data[max(0, len(data) - _SAMPLE) // 2 :][:_SAMPLE]
    return len(data) * len(gzip.compress(middle, compresslevel=6)) // max(1, len(middle))


def as_text(data: bytes) -> str:
    """Return bytes in base64, whose alphabet cannot end an element of a page."""
    return base64.b64encode(data).decode("ascii")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
