"""A short name for the exact content of a dataset.

Every part is hashed (BLAKE2b, 16 bytes) under its name, type and shape, in little-endian bytes, so
the digest depends on the content alone: not on the machine, the memory layout or the dtype that
the content arrived in. Strings are hashed as their lengths followed by all their characters, which
no other list of strings shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Final

import numpy as np

from apiece._base.typing import AnyArray
from apiece.data._rows import Rows, dense_blocks, is_sparse

_LAYOUT: Final = b"apiece.dataset/1"
_STORED_AS: Final = {"b": "|u1", "i": "<i8", "u": "<i8", "f": "<f8"}


def digest(parts: Mapping[str, AnyArray | Rows | str | None]) -> str:
    """Return the hexadecimal digest of named parts, in their order.

    Parameters
    ----------
    parts
        Arrays of numbers, booleans or strings of any shape, sparse matrices, strings, or None for a
        part that is absent.

    Returns
    -------
    str
        32 hexadecimal characters.

    Examples
    --------
    >>> digest({"ids": np.array(["ab", "c"])}) == digest({"ids": np.array(["a", "bc"])})
    False
    """
    hasher = blake2b(_LAYOUT, digest_size=16)
    for name, part in parts.items():
        for chunk in _chunks(name, part):
            hasher.update(chunk)
    return hasher.hexdigest()


def _chunks(name: str, part: AnyArray | Rows | str | None) -> Iterator[bytes | memoryview]:
    if part is None:
        yield f"{name}:absent;".encode()
    elif isinstance(part, str):
        encoded = part.encode("utf-8", "surrogatepass")
        yield f"{name}:text:{len(encoded)};".encode()
        yield encoded
    elif is_sparse(part):
        yield f"{name}:<f8:{part.shape};".encode()
        yield from (block.data for block in dense_blocks(part))
    elif part.dtype.kind == "U":
        yield f"{name}:strings:{part.shape};".encode()
        yield np.ascontiguousarray(np.char.str_len(part), dtype="<i8").data
        yield "".join(part.ravel().tolist()).encode("utf-8", "surrogatepass")
    else:
        stored_as = _STORED_AS[part.dtype.kind]
        yield f"{name}:{stored_as}:{part.shape};".encode()
        yield np.ascontiguousarray(part, dtype=stored_as).data
