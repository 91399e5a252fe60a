"""From files and arrays to a `Dataset`: points with ids, a validation set and a fingerprint."""

from __future__ import annotations

from apiece.data._dataset import Dataset
from apiece.data._demo import load_demo

__all__ = ["Dataset", "load_demo"]
