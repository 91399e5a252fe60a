"""Where a dataset came from, so that it can be read again: a file, and how it was read.

A run keeps the source in its manifest. Data from memory have no source.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Source = dict[str, Any]


def source_of(path: object, options: Mapping[str, Any]) -> Source | None:
    """Return the source of a dataset, or None if an option cannot be written down.

    Parameters
    ----------
    path
        The file.
    options
        The options of `Dataset.from_file` that read it.
    """
    plain = {
        name: _plain(value, name == "validation")
        for name, value in options.items()
        if name != "candidates"  # which `joined` adds
    }
    source = {"file": _plain(path, is_file=True), "options": plain}
    try:
        json.dumps(source)
    except TypeError:
        return None
    return source


def joined(source: Source | None, candidates: object, ids: object) -> Source | None:
    """Return the source of a dataset that candidates have joined."""
    if source is None or not isinstance(candidates, str | os.PathLike):
        return None
    if not (ids is None or isinstance(ids, str)):
        return None
    more = [*source.get("candidates", []), {"file": _plain(candidates, is_file=True), "ids": ids}]
    return {**source, "candidates": more}


def _plain(value: object, is_file: bool) -> object:
    """Return files as absolute paths, tuples as lists, and the rest as it is."""
    if isinstance(value, os.PathLike) or (is_file and isinstance(value, str)):
        return str(Path(value).absolute())
    return list(value) if isinstance(value, tuple) else value
