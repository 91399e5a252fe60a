"""The first screen of a report: the file, the model and how good it is, what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from apiece._base.text import change_in_words
from apiece.data import Dataset
from apiece.laws import Laws
from apiece.losses import is_squared
from apiece.store import Run
from apiece.uses import Advice, Quality

_NAMES: Final = {
    "accuracy": "accuracy",
    "f1": "F1",
    "roc_auc": "ROC AUC",
    "r2": "R²",
    "rmse": "RMSE",
}


def head(
    laws: Laws,
    run: Run | None,
    dataset: Dataset | None,
    quality: Quality | None,
    advice: Advice | None,
) -> dict[str, Any]:
    """Return what the first screen says; parts that are not known are None."""
    return {
        "file": _file(run, dataset),
        "data": None if dataset is None else dataset.summary(is_guess=False),
        "target": None if dataset is None else dataset.target_name,
        "model": laws.provenance.model or None,
        "measures": [] if quality is None else [list(pair) for pair in quality.words()],
        "rmse": None if quality is None else quality.metrics.get("rmse"),
        "advice": None if advice is None else _advised(advice),
    }


def _file(run: Run | None, dataset: Dataset | None) -> str | None:
    """Return the name of the file that the points come from, without its folder."""
    source = None if dataset is None else dataset.source
    if not source and run is not None:
        source = run.manifest.dataset.source
    file = (source or {}).get("file")
    return None if file is None else Path(str(file)).name


def _advised(advice: Advice) -> dict[str, Any]:
    """Return the advice in words, its effect by part, and the size that it is for."""
    n = len(advice)
    return {
        "headline": advice.headline(),
        "scope": f"For a training set of all {n:,} rows: the model was refitted on rows changed as "
        "advised, and scored on rows that had no part in choosing.",
        "effect": [_part(str(name), row, advice) for name, row in advice.effect.iterrows()],
    }


def _part(name: str, row: Any, advice: Advice) -> list[str]:
    """Return a part of the advice: its name, how many rows, and each change with its interval."""
    cells = [name, f"{int(row['rows']):,}"]
    for column in advice.effect.columns:
        is_hard_to_read = column == "loss" and is_squared(advice.metric)  # R2 is next to it
        if is_hard_to_read or f"{column}_low" not in advice.effect.columns:
            continue
        word = advice.metric.replace("_", " ") if column == "loss" else _NAMES.get(column, column)
        scale, unit = (100, " points") if column == "accuracy" else (1, "")
        mean, low, high = (scale * float(row[part]) for part in _columns(column))
        cells.append(f"{word} {change_in_words(mean, low, high, unit)}")
    return cells


def _columns(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"
