"""The first screen of a report: what was run, how good the fits are, what was spent."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from apiece._base.typing import FloatArray, IntArray
from apiece.laws import FitStatus, Laws
from apiece.records import DesignRecord, Table, in_words, scope_of
from apiece.store import Progress, Run

Fact = tuple[str, str]


def facts(
    laws: Laws, table: Table, points: IntArray, run: Run | None, level: float
) -> dict[str, list[Fact]]:
    """Return what the overview lists, group by group, as names and texts.

    ``points`` tells where those of the laws are in the table, -1 if nowhere. A sign is clear where
    the interval of that ``level`` leaves out zero.
    """
    groups = {
        "What was run": _setting(laws, run),
        "Quality of the fits": _quality(laws, level),
        "Budget spent": _budget(table, points, run.progress() if run else None),
    }
    return {title: listed for title, listed in groups.items() if listed}


def status_counts(laws: Laws) -> list[tuple[str, int]]:
    """Count the points of each status, most frequent first."""
    counts = Counter(str(FitStatus(member)) for member in laws.status)
    return sorted(counts.items(), key=lambda item: -item[1])


def advice_counts(advice: Any) -> list[tuple[str, int]]:
    """Count the points of each advice, most frequent first."""
    if advice is None or "advice" not in advice.columns:
        return []
    counts = Counter(str(word) for word in advice["advice"].dropna())
    return sorted(counts.items(), key=lambda item: -item[1])


def _setting(laws: Laws, run: Run | None) -> list[Fact]:
    known = laws.provenance
    k_min, k_max = laws.k_range
    listed: list[Fact] = [("points", _points(laws, run))]
    scope = in_words(scope_of(laws.attrs))
    if scope:
        listed.append(("results are", scope))
    if run is not None:
        data = run.manifest.dataset
        kind = f"{len(data.classes):,} classes" if data.classes else data.kind
        listed += [
            ("dataset", f"{data.target}: {kind}, {data.n_features:,} features"),
            (
                "scored on",
                f"{data.n_validation:,} validation rows"
                if data.n_validation
                else "all rows, in turns",
            ),
            ("fingerprint", data.fingerprint[:12]),
        ]
    if known.model:
        listed.append(("model", known.model))
    if known.metric:
        listed.append(("metric", known.metric))
    if known.engine:
        how = "exact" if known.engine.is_exact else "approximate"
        listed.append(("engine", f"{known.engine.name}, {how}"))
    listed.append(("sizes", f"{k_min:,} to {k_max:,} ({_design(known.design)})"))
    if known.seed is not None:
        listed.append(("seed", str(known.seed)))
    return listed


def _points(laws: Laws, run: Run | None) -> str:
    text = f"{laws.n_points:,}"
    if run is not None and run.manifest.dataset.n_candidates:
        text += f", of which {run.manifest.dataset.n_candidates:,} candidates"
    return text


def _design(design: DesignRecord | None) -> str:
    if design is None:
        return "as sampled"
    if "share" not in design.more:
        return design.name
    share = design.more["share"]
    shared = "all points share a draw" if share is None else f"{share:,} points share a draw"
    return f"{design.name}, {shared}"


def _quality(laws: Laws, level: float) -> list[Fact]:
    origin, known = laws.provenance, laws.has_law
    listed: list[Fact] = [("law", laws.family.describe())]
    if origin.estimator:
        chosen = ", chosen by a backtest" if origin.chosen_by == "auto" else ""
        listed.append(("estimator", f"{origin.estimator}{chosen}"))
    listed.append(("fitted", f"{int(known.sum()):,} of {laws.n_points:,} points"))
    for key, words in (("overall_r2", "overall R²"), ("overall_r2_variance", "R² of variance")):
        if laws.diagnostics.get(key) is not None:
            listed.append((words, f"{laws.diagnostics[key]:.3f}"))
    if np.isfinite(laws.r2).any():
        listed.append(("R² of points", _spread(laws.r2)))
    if laws.cov is not None and known.any():
        low, high = laws.interval(laws.k_ref, level=level)
        known = np.isfinite(low + high)
        clear = (low[known] > 0) | (high[known] < 0)
        if len(clear):
            size = f"k = {round(laws.k_ref):,}"
            listed.append((f"sign clear at {size}", f"{100 * clear.mean():.0f} % of the points"))
    return listed + _predicted(laws)


def _predicted(laws: Laws) -> list[Fact]:
    """Say how well these laws' own kind predicted the largest sizes, if that was tried."""
    if not laws.has_backtest:
        return []
    table = laws.backtest()
    is_own = (table["method"] == laws.provenance.estimator) & (table["family"] == laws.family.word)
    if not is_own.any():
        return []
    last = table[is_own].sort_values("k").iloc[-1]
    said = f"R² {last['r2']:.2f}, {100 * last['coverage']:.0f} % of 90 % intervals right"
    return [(f"predicted at k = {last['k']:,.0f}", said)]


def _budget(table: Table, points: IntArray, progress: Progress | None) -> list[Fact]:
    counts = np.where(points >= 0, table.counts()[points], 0)
    done = f"{counts.sum():,}"
    if progress is not None and not progress.is_complete:
        done += f" of {progress.n_planned:,} planned"
    listed: list[Fact] = [("contributions", done)]
    if counts.any():
        low, high = int(counts.min()), int(counts.max())
        listed.append(("per point", f"{low:,}" if low == high else f"{low:,} to {high:,}"))
    n_tasks = int(table.losses().n.sum())
    if n_tasks:
        listed.append(("training sets", f"{n_tasks:,}"))
    if progress is not None:
        listed += [
            (words, f"{progress.notes[key]:,}")
            for key, words in _NOTES.items()
            if progress.notes.get(key)
        ]
        if math.isfinite(progress.certificate):
            listed.append(("largest remaining error", f"{progress.certificate:.1e}"))
        if progress.failed:
            listed.append(("failed tasks", f"{len(progress.failed):,}"))
    return listed


_NOTES = {"fits": "model fits", "refits": "refitted", "unconverged": "stopped early"}


def _spread(values: FloatArray) -> str:
    low, middle, high = np.nanquantile(values, [0.05, 0.5, 0.95])
    return f"median {middle:.2f}, 90 % from {low:.2f} to {high:.2f}"
