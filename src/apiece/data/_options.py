"""The options that constructors of a dataset share, as types."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from apiece._base.rng import RandomState

Kind: TypeAlias = Literal["classification", "regression"]
FilePath: TypeAlias = str | os.PathLike[str]
Names: TypeAlias = str | Sequence[str]
Steps: TypeAlias = dict[Literal["standardize", "impute"], bool]
Table: TypeAlias = Any  # a pandas or polars frame, an Arrow table, or anything that reads as one


class FileOptions(TypedDict, total=False):
    """Options of `Dataset.from_file`, described in `Dataset.from_pandas`."""

    validation: float | Table | FilePath | None
    preprocess: Any
    text: Names | None
    ids: str | None
    groups: str | None
    sample_weight: str | None
    drop: Names
    categorical: Names
    impute: bool
    kind: Kind | None
    text_features: int
    candidates: Table | FilePath | None
    random_state: RandomState


class TableOptions(FileOptions, total=False):
    """Options of `Dataset.from_pandas`, where they are described."""

    standardize: bool


class ArrayOptions(TypedDict, total=False):
    """Options of `Dataset.from_npz`, described in `Dataset.from_arrays`."""

    kind: Kind | None
    preprocess: Any
    standardize: bool
    impute: bool
    candidates: tuple[object, object] | FilePath | None
    random_state: RandomState
