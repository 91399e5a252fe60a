"""Accuracy of the estimators from few samples: figures 2, 7 and 14 to 16.

Laws are fitted to the first training sets of the run with random sizes, and judged by the mean
contributions on the grid and beyond it.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

import apiece
from apiece._base.typing import FloatArray, IntArray
from apiece.estimators import Amortized, Bayes, Likelihood
from apiece.laws import Laws
from apiece.papers._items import Artifact, count_axis, decades, panels, paper_item
from apiece.papers._runs import Setting
from apiece.papers._workspace import Workspace
from apiece.plots import plot_agreement, plot_curves
from apiece.plots._style import size_axis
from apiece.records import Contributions

METHODS: Final = ("likelihood", "amortized", "bayes")
PAPERS: Final = Likelihood("power", prior_sd=None)


def fitted(work: Workspace, method: str, samples: int, dataset: str) -> Laws:
    """Fit power laws to the first training sets alone, about ``samples`` for each point."""
    table = work.contributions(Setting(dataset, design="uniform"))
    first = table.where(turns(table, samples) == 0)
    if method == "amortized":
        return apiece.fit(first, Amortized("power"), dataset=work.dataset(dataset))
    return apiece.fit(first, PAPERS if method == "likelihood" else Bayes("power"))


def turns(table: Contributions, samples: int) -> IntArray:
    """Return for each row to which turn of so many training sets it belongs, from 0.

    Runs may be incomplete, so training sets are counted, not their numbers.
    """
    _, place = np.unique(table.task, return_inverse=True)
    return np.asarray(place // samples)


def has_network(work: Workspace) -> bool:
    """Whether the amortized estimator is included: it needs torch, and many seconds per fit."""
    return work.scale.network and find_spec("torch") is not None


def scores(predicted: FloatArray, psi: FloatArray) -> dict[str, float]:
    """Compare predicted with mean contributions over points: R², Pearson, Spearman."""
    known = np.isfinite(predicted) & np.isfinite(psi)
    predicted, psi = predicted[known], psi[known]
    left = np.sum((psi - predicted) ** 2) / np.sum((psi - psi.mean()) ** 2)
    return {
        "R²": float(1 - left),
        "Pearson": float(np.corrcoef(predicted, psi)[0, 1]),
        "Spearman": float(spearmanr(predicted, psi).statistic),
    }


def against(
    work: Workspace, setting: Setting, laws: Laws
) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield every size of a run, what laws predict there, and what was measured.

    Only points in both are used, because the runs may have different scales.
    """
    means = work.means(setting)
    row = pd.Index(laws.ids).get_indexer(pd.Index(work.contributions(setting).ids))
    both = row >= 0
    for column, k in enumerate(means.k):
        yield int(k), laws.mean(k)[row[both]], means.psi[both, column]


def by_size(work: Workspace) -> pd.DataFrame:
    """Score the estimators with several numbers of samples at all sizes, also beyond the grid."""
    lead = work.lead("grid", "uniform")
    if lead is None:
        return pd.DataFrame()
    return work.once(("by size", lead), lambda: _by_size(work, lead))


def _by_size(work: Workspace, lead: str) -> pd.DataFrame:
    title = work.title(lead)
    runs = [Setting(lead), Setting(lead, design="beyond")]
    rows = []
    for method in METHODS:
        for samples in work.scale.counts:
            if method == "amortized" and (
                samples > work.scale.network_samples or not has_network(work)
            ):
                continue
            laws = fitted(work, method, samples, lead)
            for setting in filter(work.has, runs):
                for k, predicted, psi in against(work, setting, laws):
                    where = {"data": title, "method": method, "samples": samples, "k": k}
                    rows.append(where | scores(predicted, psi))
    return pd.DataFrame(rows).drop_duplicates(["method", "samples", "k"])


@paper_item(
    "figure2",
    "The likelihood estimator on one point",
    *("uniform",),
    paper="The curve allows more deviation at small sizes.",
    scale="one point of IMDB, 100 samples",
)
def figure2(work: Workspace) -> Artifact:
    """Samples of one point and the law fitted to them, with its interval."""
    lead, samples = work.lead("uniform"), min(100, max(work.scale.counts))
    if lead is None:
        return Artifact.nothing()
    table = work.contributions(Setting(lead, design="uniform"))
    part = table.where(turns(table, samples) == 0)
    laws = fitted(work, "likelihood", samples, lead)
    clear = np.abs(laws.mean(laws.k_ref)) / laws.stderr(laws.k_ref)
    row = int(np.nanargmax(np.where(laws.mean(laws.k_ref) > 0, clear, np.nan)))
    with panels(1, height=3.4) as (figure, (ax,)):
        mine = part.point == row
        ax.scatter(part.k[mine], part.delta[mine], s=10, color="0.5", alpha=0.7, linewidths=0)
        plot_curves(laws, [laws.ids[row]], ax=ax)
        ax.set_yscale("linear")
        ax.set_ylim(*np.quantile(part.delta[mine], [0.01, 0.99]))
    one = {"data": work.title(lead), "point": laws.ids[row], "samples": int(mine.sum())}
    noise = {"sigma": laws.sigma[row], "beta": laws.beta[row]}
    return Artifact(
        pd.DataFrame([{**one, "c": laws.c[row], "alpha": laws.alpha[row], **noise}]), figure
    )


def _curves(work: Workspace, table: pd.DataFrame, measures: tuple[str, ...]) -> Any:
    methods = list(dict.fromkeys(table["method"]))
    with panels(len(measures) * len(methods), columns=len(methods)) as (figure, axes):
        for (measure, method), ax in zip(product(measures, methods), axes, strict=True):
            part = table[table["method"] == method].sort_values("k")
            for samples, rows in part.groupby("samples"):
                color = f"C{work.scale.counts.index(samples)}"
                ax.plot(rows["k"], rows[measure], color=color, label=f"{samples} samples")
            ax.axvline(work.scale.sizes[1], color="0.5", linestyle=":")
            ax.set(ylabel=measure, ylim=(max(-0.5, table[measure].min() - 0.05), 1.02))
            ax.set_title(method)
            size_axis(ax)
            decades(ax)
        axes[0].legend(fontsize="x-small")
        figure.suptitle(f"{table['data'].iloc[0]}, logistic regression", fontsize="medium")
    return figure


def _judged(work: Workspace) -> str:
    """Describe the truth: means of how many samples at each size."""
    lead = work.lead("grid", "uniform") or ""
    fitted_to = work.contributions(Setting(lead, design="uniform")).ids
    parts = []
    for setting in filter(work.has, (Setting(lead), Setting(lead, design="beyond"))):
        table = work.contributions(setting)
        k, n = np.unique(table.k), len(np.intersect1d(table.ids, fitted_to))
        each = len(table) / table.n_points / len(k)
        parts.append(
            f"from {k[0]:,} to {k[-1]:,} means of {each:,.0f} samples per size for {n:,} points"
        )
    return f"Truth: {'; '.join(parts)}."


@paper_item(
    "figure7",
    "Correlation of predictions with mean contributions, within the fitted sizes and beyond",
    *("grid", "beyond"),
    paper="High within 100 to 1,000, a little lower ten times beyond; more samples are better.",
    scale="1,000 points; truth from 1,000 samples per size, also beyond 1,000",
)
def figure7(work: Workspace) -> Artifact:
    """Pearson correlation by size."""
    table = by_size(work)
    if table.empty:
        return Artifact.nothing()
    names = ["data", "method", "samples"]
    return Artifact(
        table.pivot(index=names, columns="k", values="Pearson").reset_index(),
        _curves(work, table, ("Pearson",)),
        _judged(work),
    )


@paper_item(
    "figure14",
    "Predictions against mean contributions at four sizes",
    *("grid", "beyond"),
    paper="IMDB: all three measures near 1, most of all at larger sizes.",
    scale="1,000 points; truth from 1,000 samples per size, also beyond 1,000",
)
def figure14(work: Workspace) -> Artifact:
    """Scatter plots for the likelihood estimator with the most samples."""
    lead, samples = work.lead("grid", "uniform"), max(work.scale.counts)
    if lead is None:
        return Artifact.nothing()
    sizes = list(against(work, Setting(lead), fitted(work, "likelihood", samples, lead)))
    chosen = np.unique(np.linspace(0, len(sizes) - 1, 4).round().astype(int))
    rows = []
    with panels(len(chosen), columns=4) as (figure, axes):
        for column, ax in zip(chosen, axes, strict=True):
            k, predicted, psi = sizes[column]
            frames = [pd.DataFrame({"value": each}) for each in (predicted, psi)]
            plot_agreement(*frames, names=("predicted", "measured"), ax=ax)
            ax.set_title(f"k = {k:,}")
            ax.locator_params(axis="x", nbins=4)
            where = {"data": work.title(lead), "samples": samples, "k": k}
            rows.append(where | scores(predicted, psi))
    return Artifact(pd.DataFrame(rows), figure, _judged(work))


@paper_item(
    "figure15",
    "R², Pearson and Spearman by size, within the fitted sizes and beyond",
    *("grid", "beyond"),
    paper="Correlations stay high ten times beyond the fitted sizes, where R² falls.",
    scale="1,000 points; truth from 1,000 samples per size, also beyond 1,000",
)
def figure15(work: Workspace) -> Artifact:
    """All three measures by size."""
    table = by_size(work)
    if table.empty:
        return Artifact.nothing()
    measures = ["R²", "Pearson", "Spearman"]
    where = np.where(table["k"] <= work.scale.sizes[1], "fitted", "beyond")
    names = ["data", "method", "samples", "sizes"]
    means = table.assign(sizes=where).groupby(names, sort=False)[measures].mean()
    figure = _curves(work, table, ("R²", "Pearson", "Spearman"))
    return Artifact(means.reset_index(), figure, _judged(work))


@paper_item(
    "figure16",
    "Convergence of the likelihood estimator",
    *("grid", "beyond"),
    paper="R² comes near 1 with few samples within the fitted sizes, not beyond them.",
    scale="1,000 points; truth from 1,000 samples per size, also beyond 1,000",
)
def figure16(work: Workspace) -> Artifact:
    """R² against the number of samples, one line per size."""
    table = by_size(work)
    if table.empty:
        return Artifact.nothing()
    table = table[table["method"] == "likelihood"]
    inside = table["k"] <= work.scale.sizes[1]
    parts = {"fitted sizes": table[inside], "beyond": table[~inside]}
    with panels(2) as (figure, axes):
        for (name, part), ax in zip(parts.items(), axes, strict=True):
            for k, rows in part.groupby("k"):
                ax.plot(rows["samples"], rows["R²"], "o-", label=f"k = {k:,}", markersize=3)
            count_axis(ax, work.scale.counts)
            ax.set(ylabel="R²", title=name, ylim=(-0.5, 1.02))
            if len(part):
                ax.legend(fontsize="x-small")
    wide = table.pivot(index=["data", "k"], columns="samples", values="R²")
    return Artifact(wide.rename(columns="{} samples".format).reset_index(), figure, _judged(work))
