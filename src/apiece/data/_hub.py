"""Hugging Face datasets, by their interface alone: the library itself is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from apiece._base.check import some
from apiece.errors import DataError


def tables_from_hf(dataset: Any, target: str) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the table of a dataset, and that of its validation split if it comes with splits."""
    if not isinstance(dataset, Mapping):
        return _as_table(dataset, target), None
    if "train" not in dataset:
        raise DataError(
            f"the mapping holds the splits {some(dataset)}: expected one called 'train', with "
            "'validation' or 'test' next to it. Pass a single split, such as dataset['name']."
        )
    held_out = next((dataset[name] for name in ("validation", "test") if name in dataset), None)
    pool = _as_table(dataset["train"], target)
    return pool, None if held_out is None else _as_table(held_out, target)


def _as_table(split: Any, target: str) -> pd.DataFrame:
    if isinstance(split, pd.DataFrame):
        return split
    if not hasattr(split, "to_pandas"):
        raise DataError(
            f"a {type(split).__name__} has no to_pandas(): expected a datasets.Dataset, or a "
            "mapping of splits. Load it without streaming, or use Dataset.from_pandas or "
            "Dataset.from_arrays."
        )
    frame: pd.DataFrame = split.to_pandas()
    features = getattr(split, "features", None)
    feature = features.get(target) if isinstance(features, Mapping) else None
    names = getattr(feature, "names", None)
    if names is None or target not in frame.columns:
        return frame
    # A code outside the names, such as -1 in unlabelled splits, becomes a missing target.
    label_of = dict(enumerate(str(name) for name in names))
    return frame.assign(**{target: frame[target].map(label_of)})
