"""What every engine holds, and how it travels to a worker."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from apiece.data import Dataset
from apiece.engines._models import Model
from apiece.losses import Loss


@dataclass(frozen=True, eq=False)
class BaseEngine:
    """The settings of an engine; what it derives from them is cached and stays where it is.

    Parameters
    ----------
    dataset
        The points and the validation set.
    model
        What is trained.
    metric
        The loss on the validation set.
    """

    name: ClassVar[str]
    is_exact: ClassVar[bool] = True
    rows_per_shard: ClassVar[int] = 50_000

    dataset: Dataset
    model: Model
    metric: Loss

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
