"""The options that every constructor from a table shares, as types."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from apiece._base.rng import RandomState

if TYPE_CHECKING:
    import pandas as pd

Kind: TypeAlias = Literal["classification", "regression"]
FilePath: TypeAlias = str | os.PathLike[str]
Names: TypeAlias = str | Sequence[str]


class TableOptions(TypedDict, total=False):
    """Options of `Dataset.from_pandas`, where they are described."""

    validation: float | pd.DataFrame | FilePath | None
    text: Names | None
    ids: str | None
    groups: str | None
    drop: Names
    categorical: Names
    standardize: bool
    impute: bool
    kind: Kind | None
    text_features: int
    candidates: pd.DataFrame | FilePath | None
    random_state: RandomState
