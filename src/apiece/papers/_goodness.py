"""How well the law holds: straight lines through log means, on a grid of sizes.

Table 1, and figures 1, 3 and 9 to 11.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import numpy as np
import pandas as pd

import apiece
from apiece.estimators import LogOLS
from apiece.laws import Laws
from apiece.papers import _paper
from apiece.papers._accuracy import scores
from apiece.papers._ceiling import ENOUGH, Ceiling, ceiling_of
from apiece.papers._drawing import (
    for_each,
    histogram,
    histograms,
    lines,
    quartiles,
    setting_columns,
    words,
)
from apiece.papers._items import Artifact, panels, paper_item
from apiece.papers._runs import Means, Setting
from apiece.papers._workspace import Workspace
from apiece.plots._style import size_axis

GRIDS: Final = (
    "1,000 points and 1,000 samples per size for logistic regression, 200 points and 5,000 samples "
    "for MLP and SVM"
)
_LARGE: Final = 0.25  # of what a cell is below the paper's, the part that is not noise
LOGISTIC: Final = "1,000 points, 1,000 samples per size"
SERIES: Final[dict[str, Any]] = {"method": "likelihood", "family": "series"}


def overall(laws: Laws, means: Means) -> float:
    """Return the R² over points that laws reach, averaged over sizes."""
    predicted = laws.mean(means.k)
    by_size = [scores(predicted[:, j], means.psi[:, j])["R²"] for j in range(len(means.k))]
    return float(np.mean(by_size))


def with_reasons(table: pd.DataFrame) -> pd.DataFrame:
    """Add why a cell is below the paper's number, or too noisy, as far as other columns show it."""
    return table.assign(**{"why lower": [_why(row) for row in table.to_dict("records")]})


def _why(row: dict[Hashable, Any]) -> str:
    measured, ceiling, series = row["measured"], row["ceiling by noise"], row["series law"]
    paper = float("nan") if row["paper"] is None else row["paper"]
    reasons = []
    if ceiling < ENOUGH or measured < paper > ceiling:
        reasons.append(f"noise allows {ceiling:.3f}{_enough(row)}")
    if measured < paper and ceiling - measured > _LARGE * (paper - measured) and series > measured:
        reasons.append(f"not a line: series law {series:.3f}")
    return "; ".join(reasons) or ("not explained" if measured < paper else "")


def _enough(row: dict[Hashable, Any]) -> str:
    """Say how many samples lift a low ceiling to 0.9."""
    if row["ceiling by noise"] >= ENOUGH:
        return ""
    wanted = row["samples for 0.9"]
    is_known = wanted is not None and wanted == wanted
    return f", {ENOUGH} with {wanted:,.0f} samples" if is_known else ", no signal at some size yet"


@paper_item(
    "table1",
    "Overall R² of predicted expected contributions",
    *("grid", "losses", "models"),
    paper="R² of at least 0.929 in every cell.",
    scale=GRIDS,
    finish=with_reasons,
    note="*Series law*: the same measure for a2/k + a3/k^1.5 + a4/k². *Ceiling by noise*: what "
    "the true curves would reach against these noisy means. Curves fitted to these means may "
    "exceed it. *Samples for 0.9*: samples per size that lift it to 0.9.",
)
def table1(work: Workspace) -> Artifact:
    """Overall R² by data, model and loss, with the R² that noise alone allows."""
    rows = []
    for setting in work.grids("losses", "models"):
        ceiling = ceiling_of(work, setting)
        rows.append(
            {
                **setting_columns(work, setting),
                "loss": setting.metric,
                "measured": work.laws(setting).diagnostics["overall_r2"],
                "series law": overall(work.laws(setting, **SERIES), work.means(setting)),
                "ceiling by noise": ceiling.reached,
                "samples for 0.9": ceiling.samples_for(ENOUGH),
                "paper": _paper.OVERALL_R2[setting.model].get(setting.dataset),
            }
        )
    return Artifact(pd.DataFrame(rows))


@paper_item(
    "figure1",
    "Laws of single points, R² of their lines, and R² at each size",
    "grid",
    paper="IMDB, logistic regression: an overall R² of 0.987, and about 1.0 at every size.",
    scale=LOGISTIC,
)
def figure1(work: Workspace) -> Artifact:
    """Curves at quantiles of alpha, the histogram of R², and R² across points by size."""
    lead = work.lead("grid")
    if lead is None:
        return Artifact.nothing()
    setting = Setting(lead)
    laws = work.laws(setting)
    by_size = laws.diagnostics["r2_by_size"]
    with panels(3) as (figure, (curves, shares, sizes)):
        lines(work, setting, curves)
        histogram(shares, laws.r2, "R² of a point's line")
        sizes.plot(by_size["k"], by_size["r2"], "o-")
        size_axis(sizes)
        sizes.set(ylabel="R² across points", ylim=(min(0.0, *by_size["r2"]), 1.02))
        figure.suptitle(words(work, setting), fontsize="medium")
    rows = [
        {**setting_columns(work, setting), "k": int(k), "measured": r2}
        for k, r2 in zip(by_size["k"], by_size["r2"], strict=True)
    ]
    return Artifact(pd.DataFrame(rows), figure)


paper_item(
    "figure3",
    "R² of the points' lines",
    *("grid", "models"),
    paper="Most points near 1, most of all for logistic regression.",
    scale=GRIDS,
)(lambda work: histograms(work, lambda laws: laws.r2, "R² of a point's line", only=None))


@paper_item(
    "figure9",
    "R² of the points' lines by number of samples",
    "grid",
    paper="The more samples, the nearer R² comes to 1: what is missing is noise of the means.",
    scale="up to 1,000 samples per size",
    note="If R² stays below the ceiling with ever more samples, noise is not the reason.",
)
def figure9(work: Workspace) -> Artifact:
    """Cumulative shares of each point's R², fitted to ever more of the samples."""

    def draw(setting: Setting, ax: Any) -> list[dict[str, Any]]:
        table, rows = work.contributions(setting), []
        most = int(table.task.max()) + 1
        for part in (most // 16, most // 4, most):
            first = table.where(table.task < part)
            laws, means = LogOLS().fit(first), Means.of(first)
            r2 = np.sort(laws.r2[np.isfinite(laws.r2)])
            samples = round(part / len(np.unique(table.k)))
            ax.plot(r2, np.arange(1, len(r2) + 1) / max(1, len(r2)), label=f"{samples} samples")
            rows.append(
                {"samples per size": samples, "overall R²": laws.diagnostics["overall_r2"]}
                | {"series law": overall(apiece.fit(first, **SERIES), means)}
                | {"ceiling by noise": Ceiling.of(means, samples).reached}
                | {f"R² {name}": value for name, value in quartiles(r2).items()}
            )
        ax.set(xlabel="R² of a point's line", ylabel="share of points below", xlim=(0, 1))
        ax.legend()
        return rows

    return for_each(work, work.grids(), draw)


@paper_item(
    "figure10",
    "R² and the size of contributions",
    "grid",
    paper="Points of low R² tend to have small contributions.",
    scale=LOGISTIC,
)
def figure10(work: Workspace) -> Artifact:
    """R² against the size of the mean contribution over sizes, and their rank correlation."""

    def draw(setting: Setting, ax: Any) -> list[dict[str, Any]]:
        laws = work.laws(setting)
        size = np.abs(np.nanmean(work.means(setting).psi, axis=1))
        ax.scatter(size, laws.r2, s=10, alpha=0.6, linewidths=0)
        ax.set(xscale="log", xlabel="|mean contribution| over sizes", ylabel="R² of a point's line")
        ranks = pd.DataFrame({"size": size, "r2": laws.r2}).corr("spearman").iloc[0, 1]
        return [{"Spearman correlation": ranks}]

    return for_each(work, work.grids(), draw)


paper_item(
    "figure11",
    "R² of the law of the variance",
    *("grid", "models"),
    paper="Near 1 for logistic regression and MLP, lower for a part of the points for SVM.",
    scale=GRIDS,
)(lambda work: histograms(work, lambda laws: laws.r2_variance, "R² of the variance", only=None))
