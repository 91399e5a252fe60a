"""Values from few samples: tables 3 and 4, figures 17 to 20.

Distributional Shapley values from the first m training sets of a run are compared with the mean of
all its other contributions, which stands for the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pandas as pd

import apiece
from apiece._base.files import write_whole
from apiece.estimators import Amortized
from apiece.papers import _paper
from apiece.papers._accuracy import PAPERS, has_network, scores
from apiece.papers._bench import Bench
from apiece.papers._exhibit import Shown, count_axis, exhibit, panels
from apiece.papers._runs import Setting
from apiece.records import Contributions

_REPEATS: Final = 5
_NETWORKS: Final = {10: 3, 20: 1, 50: 3, 100: 1}  # repeats by samples: each takes many seconds
OURS: Final = "bayes"
_COLUMNS: Final = ("method", "samples", "repeat", "R²", "Pearson", "Spearman")


def _methods(bench: Bench, dataset: str) -> dict[str, Callable[[Contributions], pd.DataFrame]]:
    """Return the estimators of values by name, in the order of the tables.

    The amortized one takes part where torch is installed.
    """
    data, sizes = bench.dataset(dataset), bench.scale.sizes

    def by_law(**settings: Any) -> Callable[[Contributions], pd.DataFrame]:
        return lambda part: apiece.value(apiece.fit(part, **settings), sizes=sizes)

    methods = {
        "Monte Carlo": lambda part: apiece.value(part, source="samples"),
        "likelihood": by_law(method=PAPERS),
        "amortized": by_law(method=Amortized("power"), dataset=data),
        OURS: by_law(method="bayes", family="series"),
    }
    if not has_network(bench):
        del methods["amortized"]
    return methods


def valuations(bench: Bench, dataset: str) -> pd.DataFrame:
    """Score every method with every number of samples, on disjoint training sets a repeat.

    Kept in a file, since networks take long to train; a run that grew is scored anew.
    """
    setting = Setting(dataset, design="uniform")
    table = bench.contributions(setting)
    path = bench.folder(setting).with_name(f"{dataset}-values-{len(table)}.csv")
    if not path.is_file():
        found = _valuations(bench, dataset, table)
        write_whole(path, found.to_csv(index=False).encode())
    return pd.read_csv(path)


def _valuations(bench: Bench, dataset: str, table: Contributions) -> pd.DataFrame:
    n_tasks = int(table.task.max()) + 1
    rows = []
    for samples in bench.scale.counts:
        for repeat in range(min(_REPEATS, n_tasks // (2 * samples))):
            mine = table.task // samples == repeat
            truth = apiece.value(table.where(~mine), source="samples")["value"].to_numpy()
            for method, values in _methods(bench, dataset).items():
                if method == "amortized" and repeat >= _NETWORKS.get(samples, 0):
                    continue
                told = values(table.where(mine))["value"].to_numpy()
                where = {"method": method, "samples": samples, "repeat": repeat}
                rows.append(where | scores(told, truth))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _behind(bench: Bench, setting: Setting) -> dict[str, int]:
    """Return how many points a run values, and the contributions of each."""
    table = bench.contributions(setting)
    return {"points": table.n_points, "true from": round(len(table) / table.n_points)}


def _at(bench: Bench, samples: int) -> Shown:
    """Set the measured correlations with so many samples beside the paper's."""
    rows = []
    for setting in bench.settings(("uniform",)):
        table = valuations(bench, setting.dataset)
        if table.empty:
            continue
        for method, part in table[table["samples"] == samples].groupby("method", sort=False):
            known = _paper.VALUATION[samples].get(str(method), {})
            rows.append(
                {
                    "data": bench.title(setting.dataset),
                    **_behind(bench, setting),
                    "method": method,
                    "measured": part["Pearson"].mean(),
                    "± over repeats": part["Pearson"].std(),
                    "Spearman": part["Spearman"].mean(),
                    "paper": known.get(setting.dataset),
                }
            )
    names = [
        "data",
        "points",
        "true from",
        "method",
        "measured",
        "± over repeats",
        "Spearman",
        "paper",
    ]
    return Shown(
        pd.DataFrame(rows, columns=names),
        note="True values are the means of all other contributions of the run, *true from* so many "
        "a point. *bayes* is apiece's own estimator, with the series family; it is not in the "
        "paper. *amortized* is trained on these points alone, in the paper on the whole training "
        "set, which is 25 times as many on IMDB.",
    )


@exhibit(
    "table3",
    "Values from 10 samples a point: correlation with true values",
    *("uniform",),
    paper="The amortized estimator is best, and the likelihood unreliable with so few samples.",
)
def table3(bench: Bench) -> Shown:
    """Pearson correlations with 10 samples."""
    return _at(bench, 10)


@exhibit(
    "table4",
    "Values from 50 samples a point: correlation with true values",
    *("uniform",),
    paper="All estimators are accurate.",
)
def table4(bench: Bench) -> Shown:
    """Pearson correlations with 50 samples."""
    return _at(bench, 50)


def _curves(bench: Bench, names: tuple[str, ...]) -> Shown:
    """Show both correlations against the number of samples."""
    found = [s.dataset for s in bench.settings(("uniform",)) if s.dataset in names]
    found = [name for name in found if not valuations(bench, name).empty]
    parts = []
    with panels(2 * len(found), columns=2) as (figure, axes):
        for row, name in enumerate(found):
            table = valuations(bench, name)
            mean = table.groupby(["method", "samples"], sort=False).mean().reset_index()
            behind = _behind(bench, Setting(name, design="uniform"))
            parts.append(mean.drop(columns="repeat").assign(data=bench.title(name), **behind))
            for measure, ax in zip(("Pearson", "Spearman"), axes[2 * row :], strict=False):
                for method, part in mean.groupby("method", sort=False):
                    ax.plot(part["samples"], part[measure], "o-", label=str(method))
                count_axis(ax, tuple(sorted(set(mean["samples"]))))
                ax.set_ylabel(f"{measure} with the truth")
                ax.set_title(bench.title(name))
                ax.legend()
    if not parts:
        return Shown.nothing()
    first = ["data", "points", "true from", "method", "samples"]
    return Shown(pd.concat(parts)[[*first, "R²", "Pearson", "Spearman"]], figure)


def _register(number: int, title: str, *names: str) -> None:
    exhibit(
        f"figure{number}",
        f"Values by number of samples: {title}",
        "uniform",
        paper="All estimators converge to the same values.",
    )(lambda bench: _curves(bench, names))


_register(17, "IMDB", "imdb")
_register(18, "CIFAR-10", "cifar10")
_register(
    19, "MiniBooNE, or HIGGS and MAGIC in its place", "miniboone", "higgs", "magic", "synthetic"
)
_register(20, "adult", "adult")
