"""Parameters of the laws: their spread, their correlations, and differences between models.

Table 2, figures 4 to 6, 8, 12 and 13, and the law of the dataset as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd

import apiece
from apiece import uses
from apiece._base.typing import FloatArray
from apiece.laws import Laws
from apiece.papers import _paper
from apiece.papers._drawing import (
    for_each,
    histogram,
    histograms,
    lines,
    quartiles,
    reliable,
    setting_columns,
    words,
)
from apiece.papers._goodness import GRIDS, LOGISTIC
from apiece.papers._items import Artifact, decades, panels, paper_item
from apiece.papers._runs import TITLES, Setting
from apiece.papers._workspace import Workspace
from apiece.plots import plot_aggregate, plot_plane

_FEWEST: Final = 10  # points needed for a correlation


@paper_item(
    "table2",
    "Correlation of alpha between models",
    *("grid", "models"),
    paper="Pearson correlations from -0.04 to 0.50.",
    scale=GRIDS,
)
def table2(work: Workspace) -> Artifact:
    """Pearson correlation of alpha between each pair of models, over points reliable in both."""
    rows = []
    order = [name for name in ("logistic", "svm", "mlp") if name in work.models]
    for dataset in work.datasets:
        for pair in combinations(order, 2):
            settings = [Setting(dataset, model) for model in pair]
            if not all(work.has(setting) for setting in settings):
                continue
            alphas, samples = [], []
            for setting in settings:
                samples.append(setting_columns(work, setting)["samples per size"])
                laws = work.laws(setting)
                alphas.append(pd.Series(laws.alpha, index=laws.ids)[reliable(laws)])
            both = pd.concat(alphas, axis=1, join="inner")
            known = _paper.ALPHA_CORRELATION.get(pair, {})
            rows.append(
                {
                    "data": work.title(dataset),
                    "models": f"{TITLES[pair[0]]} / {TITLES[pair[1]]}",
                    "points": len(both),
                    "samples per size": " / ".join(f"{count:,}" for count in samples),
                    "measured": both.corr().iloc[0, 1] if len(both) >= _FEWEST else np.nan,
                    "paper": known.get(dataset),
                }
            )
    return Artifact(pd.DataFrame(rows))


paper_item(
    "figure4",
    "How alpha spreads over points",
    *("grid", "models"),
    paper="A mode between 1 and 1.5, and clear differences between points.",
    scale=GRIDS,
)(lambda work: histograms(work, lambda laws: laws.alpha, "alpha"))


@paper_item(
    "figure5",
    "Lines that cross: which point has the higher value depends on the size",
    "grid",
    paper="Lines of different alpha cross, so the order of points changes with the size.",
    scale=LOGISTIC,
)
def figure5(work: Workspace) -> Artifact:
    """Mean contributions of points at quantiles of alpha; how many pairs change places."""

    def draw(setting: Setting, ax: Any) -> list[dict[str, Any]]:
        lines(work, setting, ax)
        laws = work.laws(setting)
        ends = np.argsort(laws.mean(np.array(laws.k_range, dtype=np.float64)), axis=0)
        rank = np.argsort(ends, axis=0)[reliable(laws)]
        swapped = [(one[0] - two[0]) * (one[1] - two[1]) < 0 for one, two in combinations(rank, 2)]
        share = float(np.mean(swapped)) if swapped else np.nan
        return [{"share of pairs that change places": share}]

    return for_each(work, work.grids(), draw)


@paper_item(
    "figure8",
    "How log|c| spreads over points, and its relation with alpha",
    *("grid", "models"),
    paper="A well-shaped spread of log|c|, strongly correlated with alpha.",
    scale=LOGISTIC,
)
def figure8(work: Workspace) -> Artifact:
    """Histograms of log|c|, the plane of (alpha, |c|) of the leading data, and the correlations."""
    settings, lead = work.grids("models"), work.lead("grid")
    rows = []
    with panels(len(settings) + (lead is not None)) as (figure, axes):
        for setting, ax in zip(settings, axes[lead is not None :], strict=True):
            laws = work.laws(setting)
            keep = reliable(laws) & (laws.c != 0)
            log_c, alpha = np.log(np.abs(laws.c[keep])), laws.alpha[keep]
            histogram(ax, log_c, "log|c|")
            ax.set_title(words(work, setting))
            both = np.corrcoef(alpha, log_c)[0, 1] if keep.sum() > 2 else np.nan
            rows.append(
                {
                    **setting_columns(work, setting),
                    **quartiles(log_c),
                    "correlation with alpha": float(both),
                }
            )
        if lead is not None:
            laws = work.laws(Setting(lead))
            plot_plane(laws.select(reliable(laws)), ax=axes[0])
            axes[0].set_title(words(work, Setting(lead)))
    return Artifact(pd.DataFrame(rows), figure)


@paper_item(
    "figure12",
    "The decay beta of the variance",
    *("grid", "models"),
    paper="beta mostly between 2 and 4 for logistic regression, between 1 and 2 for MLP and SVM.",
    scale=GRIDS,
)
def figure12(work: Workspace) -> Artifact:
    """Histograms of beta; quartiles of log sigma² in the table."""
    artifact = histograms(work, lambda laws: laws.beta, "beta")
    spread = [
        quartiles(2 * np.log(laws.sigma[reliable(laws)]))["median"]
        for laws in map(work.laws, work.grids("models"))
    ]
    return Artifact(artifact.table.assign(**{"median log sigma²": spread}), artifact.figure)


def _distances(
    work: Workspace, quantity: Callable[[Laws], FloatArray], label: str, name: str
) -> Artifact:
    """Show a quantity of laws against the signed distance to the boundary; correlations."""

    def draw(setting: Setting, ax: Any) -> list[dict[str, Any]]:
        data, laws = work.dataset(setting.dataset), work.laws(setting)
        kept = laws.select(reliable(laws))
        far = uses.boundary(data).loc[kept.ids.tolist()]
        sign = np.where(far["label"] == data.labels().max(), 1.0, -1.0)
        ax.scatter(sign * far["distance"], quantity(kept), s=10, alpha=0.6, linewidths=0)
        ax.set(xlabel="distance to the boundary, by class", ylabel=label)
        relation = uses.boundary_relation(kept, data)
        is_one = (relation["quantity"] == name) & (relation["label"] == "all")
        one = relation[is_one & (relation["measure"] == "spearman")].iloc[0]
        return [{"Spearman correlation": one["agreement"], "low": one["low"], "high": one["high"]}]

    settings = [s for s in work.grids() if work.dataset(s.dataset).n_classes == 2]
    return for_each(work, settings, draw)


paper_item(
    "figure6",
    "alpha and the distance to the boundary",
    "grid",
    paper="Points nearer to the boundary decay more slowly.",
    scale=LOGISTIC,
)(lambda work: _distances(work, lambda laws: laws.alpha, "alpha", "alpha"))

paper_item(
    "figure13",
    "log|c| and the distance to the boundary",
    "grid",
    paper="No clear trend on MiniBooNE, a positive one on IMDB.",
    scale=LOGISTIC,
)(lambda work: _distances(work, lambda laws: np.log(np.abs(laws.c)), "log|c|", "log_abs_c"))


@paper_item(
    "aggregate",
    "The law of the dataset as a whole",
    "grid",
    paper="Equation 2: the mean loss falls as ε + b / k^λ.",
    scale="no numbers",
)
def aggregate(work: Workspace) -> Artifact:
    """Mean losses of the training sets, and the law through them."""

    def draw(setting: Setting, ax: Any) -> list[dict[str, Any]]:
        table = work.contributions(setting)
        law = apiece.aggregate(table)
        plot_aggregate(law, contributions=table, ax=ax)
        decades(ax)
        return [{"ε": law.eps, "b": law.b, "λ": law.lam}]

    return for_each(work, work.grids(), draw)
