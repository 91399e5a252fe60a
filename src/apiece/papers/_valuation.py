"""Values from few samples: tables 3 and 4, figures 17 to 20.

Distributional Shapley values from the first m training sets of a run are compared with the mean of
all its other contributions, which counts as the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

import apiece
from apiece._base.files import write_whole
from apiece.estimators import Amortized
from apiece.papers import _paper
from apiece.papers._accuracy import PAPERS, has_network, scores, turns
from apiece.papers._items import Artifact, count_axis, panels, paper_item
from apiece.papers._runs import Setting
from apiece.papers._workspace import Workspace
from apiece.records import Contributions

_REPEATS: Final = 5
_NETWORKS: Final = {10: 3, 20: 1, 50: 3, 100: 1}  # repeats by samples: each takes many seconds
_POOLED: Final = {10: 1, 50: 1}  # on the whole pool, where each takes many minutes
_TRUTH: Final = (
    "1,000 points; truth from 10,000 samples per point; the amortized estimator is trained on the "
    "whole pool"
)
OURS: Final = "bayes"
_COLUMNS: Final = ("method", "samples", "repeat", "R²", "Pearson", "Spearman")


class _Part(NamedTuple):
    """Contributions of the valued points, so many of each, and which turn of them it is."""

    table: Contributions
    samples: int
    repeat: int


def _methods(work: Workspace, dataset: str) -> dict[str, Callable[[_Part], pd.DataFrame]]:
    """Return the estimators of values by name, in the order of the tables.

    The amortized estimator is included if torch is installed. It learns from as many contributions
    of every point of the pool, if they were collected, as in the paper; else from those of the
    valued points.
    """
    data, sizes, pool = work.dataset(dataset), work.scale.sizes, _pool(work, dataset)

    def by_law(**settings: Any) -> Callable[[_Part], pd.DataFrame]:
        return lambda part: apiece.value(apiece.fit(part.table, **settings), sizes=sizes)

    def by_network(part: _Part) -> pd.DataFrame:
        table = part.table if pool is None else one_turn(pool, part.samples, part.repeat)
        laws = apiece.fit(table, Amortized("power"), dataset=data)
        return apiece.value(laws, sizes=sizes).loc[pd.Index(part.table.ids)]

    methods = {
        "Monte Carlo": lambda part: apiece.value(part.table, source="samples"),
        "likelihood": by_law(method=PAPERS),
        "amortized": by_network,
        OURS: by_law(method="bayes", family="series"),
    }
    if not has_network(work):
        del methods["amortized"]
    return methods


def _pool(work: Workspace, dataset: str) -> Contributions | None:
    """Return contributions of all points of the pool; None if there are none."""
    setting = Setting(dataset, design="pool")
    is_known = has_network(work) and work.has(setting)
    return work.contributions(setting) if is_known else None


def one_turn(table: Contributions, samples: int, repeat: int) -> Contributions:
    """Return so many contributions of each point: the first ones, or those after some turns."""
    order = np.lexsort((table.task, table.point))
    counts = table.counts()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return table.where(rank // samples == repeat)


def valuations(work: Workspace, dataset: str, samples: int) -> pd.DataFrame:
    """Score every method with so many samples, on disjoint training sets per repeat.

    Scores are kept in a file, because networks take long to train. A run that has grown is scored
    again.
    """
    setting = Setting(dataset, design="uniform")
    pool, table = _pool(work, dataset), work.contributions(setting)  # the smaller one first
    seen = len(table) if pool is None else f"{len(table)}-{len(pool)}"
    path = work.folder(setting).with_name(f"{dataset}-values-{seen}-{samples}.csv")
    if not path.is_file():
        scored = _valuations(work, dataset, table, samples)
        write_whole(path, scored.to_csv(index=False).encode())
    return pd.read_csv(path)


def _valuations(work: Workspace, dataset: str, table: Contributions, samples: int) -> pd.DataFrame:
    rows = []
    networks = _NETWORKS if _pool(work, dataset) is None else _POOLED
    for repeat in range(min(_REPEATS, len(np.unique(table.task)) // (2 * samples))):
        mine = turns(table, samples) == repeat
        truth = apiece.value(table.where(~mine), source="samples")["value"].to_numpy()
        part = _Part(table.where(mine), samples, repeat)
        for method, values in _methods(work, dataset).items():
            if method == "amortized" and repeat >= networks.get(samples, 0):
                continue
            estimate = values(part)["value"].to_numpy()
            where = {"method": method, "samples": samples, "repeat": repeat}
            rows.append(where | scores(estimate, truth))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _behind(work: Workspace, setting: Setting) -> dict[str, int]:
    """Return how many points a run values, and the contributions of each."""
    table = work.contributions(setting)
    return {"points": table.n_points, "true from": round(len(table) / table.n_points)}


def _trained_on(work: Workspace, dataset: str, method: str) -> int | None:
    """Return the points whose contributions a network learned from; None for other methods."""
    if method != "amortized":
        return None
    pool = _pool(work, dataset)
    table = work.contributions(Setting(dataset, design="uniform")) if pool is None else pool
    return table.n_points


def _at(work: Workspace, samples: int) -> Artifact:
    """Return the measured correlations with some number of samples next to the paper's."""
    rows = []
    for setting in work.settings(("uniform",)):
        table = valuations(work, setting.dataset, samples)
        for method, part in table.groupby("method", sort=False):
            known = _paper.VALUATION[samples].get(str(method), {})
            rows.append(
                {
                    "data": work.title(setting.dataset),
                    **_behind(work, setting),
                    "method": method,
                    "trained on": _trained_on(work, setting.dataset, str(method)),
                    "repeats": len(part),
                    "measured": part["Pearson"].mean(),
                    "± over repeats": part["Pearson"].std(),
                    "Spearman": part["Spearman"].mean(),
                    "paper": known.get(setting.dataset),
                }
            )
    return Artifact(pd.DataFrame(rows))


for _name, _samples, _paper_says in (
    ("table3", 10, "The amortized estimator is best; the likelihood is unreliable."),
    ("table4", 50, "All estimators are accurate."),
):
    paper_item(
        _name,
        f"Values from {_samples} samples per point: correlation with true values",
        *("uniform", "pool"),
        paper=_paper_says,
        scale=_TRUTH,
        note="True values are means of the other contributions of the run: *true from* of them. "
        "*Trained on*, in the file: the points that a network learned from.",
    )(partial(_at, samples=_samples))


def _curves(work: Workspace, names: tuple[str, ...]) -> Artifact:
    """Show both correlations against the number of samples."""
    datasets = [s.dataset for s in work.settings(("uniform",)) if s.dataset in names]
    parts, tables = [], {}
    for name in datasets:
        each = [valuations(work, name, samples) for samples in work.scale.counts]
        tables[name] = pd.concat([part for part in each if len(part)] or each)
    datasets = [name for name in datasets if len(tables[name])]
    with panels(2 * len(datasets), columns=2) as (figure, axes):
        for row, name in enumerate(datasets):
            mean = tables[name].groupby(["method", "samples"], sort=False).mean().reset_index()
            behind = _behind(work, Setting(name, design="uniform"))
            parts.append(mean.drop(columns="repeat").assign(data=work.title(name), **behind))
            for measure, ax in zip(("Pearson", "Spearman"), axes[2 * row :], strict=False):
                for method, part in mean.groupby("method", sort=False):
                    ax.plot(part["samples"], part[measure], "o-", label=str(method))
                count_axis(ax, tuple(sorted(set(mean["samples"]))))
                ax.set_ylabel(f"{measure} with the truth")
                ax.set_title(work.title(name))
                ax.legend()
    if not parts:
        return Artifact.nothing()
    first = ["data", "points", "true from", "method", "samples"]
    return Artifact(pd.concat(parts)[[*first, "R²", "Pearson", "Spearman"]], figure)


_PHYSICS: Final = ("miniboone", "higgs", "magic", "synthetic")
for _name, _title, _datasets in (
    ("figure17", "IMDB", ("imdb",)),
    ("figure18", "CIFAR-10", ("cifar10",)),
    ("figure19", "MiniBooNE, or HIGGS and MAGIC in its place", _PHYSICS),
    ("figure20", "adult", ("adult",)),
):
    paper_item(
        _name,
        f"Values by number of samples: {_title}",
        *("uniform", "pool"),
        paper="All estimators converge to the same values.",
        scale=_TRUTH,
    )(partial(_curves, names=_datasets))
