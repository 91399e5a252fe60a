"""Provenance of results, as plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np

from apiece.errors import DataError


def version() -> str:
    """Return the version of the installed package, ``"unknown"`` in a bare source tree."""
    try:
        return metadata.version("apiece")
    except metadata.PackageNotFoundError:
        return "unknown"


def provenance(estimator: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that every estimator adds to those of its contributions."""
    return {
        "version": version(),
        "estimator": estimator,
        "settings": dict(settings),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def plain(value: Any, where: str = "attrs") -> Any:
    """Return ``value`` with tuples, arrays and NumPy numbers turned into what JSON can hold.

    A number that is not finite becomes None, because JSON cannot represent it.

    >>> plain({"sizes": (100, np.int64(1000)), "r2": float("nan")})
    {'sizes': [100, 1000], 'r2': None}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, where) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist(), where)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise DataError(
        f"{where} holds {value!r} of type {type(value).__name__}: expected text, numbers, lists "
        "and dictionaries, which a file can keep. Convert it first, for example with str()."
    )
