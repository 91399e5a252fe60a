"""Requests that ask for too much, or whose answer will be weaker than it looks."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from apiece._base.typing import BoolArray
from apiece.data import Dataset, small_data
from apiece.errors import ApieceWarning, PlanError

_MOST: Final = 1_000_000  # contributions per point, or trainings
_MANY_CONTRIBUTIONS: Final = 2 * 10**9  # some 20 GB of shards
_SAME: Final = 0.9  # share of the validation rows
_FAR: Final = 20.0  # standard deviations
_LEVELS: Final = 10  # values of a column; with fewer a rare one is not an extreme one


def check_request(
    dataset: Dataset, *, n_valued: int, samples: int, unit: str, is_new: bool, is_quick: bool
) -> None:
    """Warn of a dataset too small to learn from, of rows that score themselves, of a huge run.

    A run that is resumed (not ``is_new``) is not warned of again. Models with a quick engine
    follow rows that lie far from all others, so these are named.

    Raises
    ------
    PlanError
        If planning alone would take hours.
    """
    if samples > _MOST:
        few, is_of = (100, " contributions per point") if unit == "samples" else (2000, "")
        raise PlanError(
            f"{unit}={samples:,} is more than can be planned: expected at most {_MOST:,}{is_of}. "
            f"{few:,} are enough for most uses; pass for example {unit}={few} (--{unit} {few})."
        )
    if not is_new:
        return
    found = _weaknesses(dataset, n_valued=n_valued, samples=samples)
    for message in [*found, *(_extremes(dataset) if is_quick else [])]:
        warnings.warn(message, ApieceWarning, stacklevel=3)


def _weaknesses(dataset: Dataset, *, n_valued: int, samples: int) -> list[str]:
    small = small_data(dataset)
    found = [] if small is None else [f"{small}."]
    share = _in_pool(dataset) if dataset.n_validation else 0.0
    if share >= _SAME:
        found.append(
            f"{share:.0%} of the validation rows are also in the pool: a point then scores "
            "itself, and its value is too high. Validate on rows that are not in the pool."
        )
    if samples * n_valued > _MANY_CONTRIBUTIONS:
        found.append(
            f"{samples:,} samples of {n_valued:,} points are at least {samples * n_valued:,} "
            "contributions, which takes a long time and much space. A hundred samples per point "
            "are enough for most uses."
        )
    return found


def _extremes(dataset: Dataset) -> list[str]:
    """Name the row that lies farthest from the mean of a column, if that is very far."""
    rows = dataset.rows
    if not isinstance(rows, np.ndarray) or not rows.size:
        return []
    pool = np.asarray(rows[: dataset.n_pool], dtype=np.float64)
    spread = pool.std(axis=0)
    away = np.abs(pool - pool.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    for column in np.argsort(-away.max(axis=0)):
        far = float(away[:, column].max())
        if not far > _FAR:
            break
        if len(np.unique(pool[:, column])) > _LEVELS:
            row = dataset.ids[int(away[:, column].argmax())]
            said = (
                f"row {row} lies {far:.0f} standard deviations from the mean of "
                f"{dataset.feature_names[column]}: values at large sizes depend on rare rows like "
                "it, of which any table has too few, and intervals may be too narrow. Correct the "
                "row, or take the logarithm of the column or limit its range."
            )
            return [said]
    return []


def _in_pool(dataset: Dataset) -> float:
    """Return the share of validation rows that are in the pool with the same target."""
    pool, scoring = _hashes(dataset.rows), _hashes(dataset.rows_val)
    if pool is None or scoring is None:
        return 0.0
    pool = pool[: dataset.n_pool]
    rows, targets = np.concatenate([pool, scoring]), np.concatenate([dataset.y, dataset.y_val])
    pairs = np.empty(len(rows), dtype=[("row", rows.dtype), ("target", targets.dtype)])
    pairs["row"], pairs["target"] = rows, targets
    _, number = np.unique(pairs, return_inverse=True)
    is_known: BoolArray = np.isin(number[len(pool) :], number[: len(pool)])
    return float(is_known.mean())


def _hashes(rows: Any) -> Any:
    """Return a number for each row, equal where rows are; None for sparse matrices."""
    import pandas as pd

    if isinstance(rows, np.ndarray):
        rows = pd.DataFrame(rows, copy=False)
    if not isinstance(rows, pd.DataFrame):
        return None
    columns = {
        place: column.map(_as_bytes) if column.dtype == object else column
        for place, (_, column) in enumerate(rows.items())
    }
    return pd.util.hash_pandas_object(pd.DataFrame(columns), index=False).to_numpy()


def _as_bytes(cell: Any) -> Any:
    """Return the bytes of an embedding, which pandas cannot hash; other cells as they are."""
    return np.asarray(cell).tobytes() if isinstance(cell, list | tuple | np.ndarray) else cell
