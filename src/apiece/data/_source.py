"""Where a dataset came from, so that it can be read again: a file, and how it was read.

A run keeps this in its manifest. What came from memory cannot be found again and has no source.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from apiece.errors import DataError

if TYPE_CHECKING:
    from apiece.data._dataset import Dataset

Source = dict[str, Any]

_FILES: Final = ("validation", "candidates")  # options whose text is a path


def remembered(dataset: Dataset, path: object, options: Mapping[str, Any]) -> Dataset:
    """Return the dataset with its source, or without one if an option cannot be written down.

    Parameters
    ----------
    dataset
        What was read.
    path
        The file.
    options
        How `Dataset.from_file` was told to read it.
    """
    told = {name: _plain(value, name in _FILES) for name, value in options.items()}
    source = {"file": _plain(path, is_file=True), "options": told}
    try:
        json.dumps(source)
    except TypeError:
        return replace(dataset, source=None)
    return replace(dataset, source=source)


def joined(source: Source | None, candidates: object, ids: object) -> Source | None:
    """Return the source of a dataset that candidates have joined."""
    if source is None or not isinstance(candidates, str | os.PathLike):
        return None
    if not (ids is None or isinstance(ids, str)):
        return None
    more = [*source.get("candidates", []), {"file": _plain(candidates, is_file=True), "ids": ids}]
    return {**source, "candidates": more}


def read_again(source: Mapping[str, Any] | None, fingerprint: str | None) -> Dataset:
    """Read a dataset from where it came.

    Raises
    ------
    DataError
        If that is not known, not there, or holds other data by now.
    """
    from apiece.data._dataset import Dataset
    from apiece.data._demo import load_demo

    if not source:
        raise DataError(
            "the run does not say which file its data came from: expected one, which data from "
            "memory lacks. Pass dataset=, or rows= (--data) for what people know of the points."
        )
    if "demo" in source:
        dataset, _ = load_demo(**source["demo"])
    else:
        dataset = Dataset.from_file(source["file"], **source["options"])
    for more in source.get("candidates", []):
        dataset = dataset.with_candidates(more["file"], ids=more["ids"])
    dataset.check_is(fingerprint)
    return dataset


def _plain(value: object, is_file: bool) -> object:
    """Return files as absolute paths, tuples as lists, and the rest as it is."""
    if isinstance(value, os.PathLike) or (is_file and isinstance(value, str)):
        return str(Path(value).absolute())
    return list(value) if isinstance(value, tuple) else value
