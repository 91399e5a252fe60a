"""From the columns of shards and the table of points to arrays of a whole run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from apiece._base.typing import AnyArray, PointIds
from apiece.records import Lists, Theory, Trainings

if TYPE_CHECKING:
    import pandas as pd


class Joined:
    """Columns of all shards, end to end: ``joined(name, dtype)`` is one of them."""

    def __init__(self, shards: Iterable[dict[str, AnyArray]]) -> None:
        self._shards = list(shards)

    def __call__(self, name: str, dtype: Any) -> AnyArray:
        parts = [np.empty(0, dtype), *(shard[name] for shard in self._shards)]
        return np.concatenate(parts).astype(dtype, copy=False)


def theory_of(points: pd.DataFrame) -> Theory | None:
    """Return what theory predicts for the valued points; None where it was not computed."""
    names, sizes = _theory_columns(points)
    if not sizes:
        return None
    valued = points[points["valued"]]
    terms = (
        valued[names]
        .to_numpy(dtype=np.float64)
        .reshape(len(valued), len(sizes), len(names) // len(sizes))
    )
    noise = None
    if f"rows_{sizes[0]}_{sizes[0]}" in valued:
        noise = np.empty((len(valued), len(sizes), len(sizes)))
        for i, k in enumerate(sizes):
            for j, other in enumerate(sizes[: i + 1]):
                noise[:, i, j] = noise[:, j, i] = valued[f"rows_{k}_{other}"]
    return Theory(np.array(sizes, dtype=np.float64), terms, noise)


def trainings_of(
    join: Joined, points: pd.DataFrame, rotates: bool, attrs: dict[str, Any]
) -> Trainings:
    """Return the trainings of all shards, with the theory at the median size as features."""
    names, sizes = _theory_columns(points)
    median = sizes[len(sizes) // 2] if sizes else 0
    used = [name for name in names if name.startswith(f"theory_{median}_")]
    return Trainings(
        task=join("task", np.int64),
        k=join("k", np.int64),
        loss=join("loss", np.float64),
        trained=Lists(join("n_trained", np.int64), join("trained", np.int32)),
        scored=Lists(join("n_scored", np.int64), join("scored", np.int32)),
        row_loss=join("row_loss", np.float32),
        ids=PointIds(points["id"].to_numpy()),
        labels=points["label"].to_numpy(),
        is_pool=(points["role"] == "pool").to_numpy(),
        is_valued=points["valued"].to_numpy(dtype=bool),
        rotates=rotates,
        features=points[used].to_numpy(dtype=np.float64),
        attrs=attrs,
    )


def _theory_columns(points: pd.DataFrame) -> tuple[list[str], list[int]]:
    """Return the names of the columns of theory, perhaps none, and its sizes, rising."""
    names = [str(name) for name in points.columns if str(name).startswith("theory_")]
    noise = [str(name) for name in points.columns if str(name).startswith("rows_")]
    return names, sorted({int(name.split("_")[1]) for name in names + noise})
