"""Evidence for the law: straight lines through log means, on a grid of sizes.

Tables 1 and 2, figures 1, 3 to 6 and 8 to 13, and the law of the dataset as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd

from apiece import analysis, api
from apiece._typing import BoolArray, FloatArray
from apiece.estimators import LogOLS
from apiece.laws import Laws
from apiece.plots import plot_aggregate, plot_plane
from apiece.plots._style import size_axis
from apiece.reproduce import _paper
from apiece.reproduce._accuracy import scores
from apiece.reproduce._bench import TITLES, Bench, Setting
from apiece.reproduce._exhibit import Shown, decades, exhibit, panels

RELIABLE: Final = 0.8  # the paper leaves out points of lower R² where it shows parameters
_QUANTILES: Final = (0.2, 0.4, 0.6, 0.8)


def told(bench: Bench, setting: Setting) -> dict[str, Any]:
    """Return what every row says of its setting: data, model, points, samples at each size."""
    table = bench.contributions(setting)
    return {
        "data": bench.title(setting.dataset),
        "model": TITLES[setting.model],
        "points": table.n_points,
        "samples a size": round(len(table) / table.n_points / len(np.unique(table.k))),
    }


def reliable(laws: Laws) -> BoolArray:
    """Tell which points follow their line well enough to speak of its slope."""
    return np.asarray((laws.r2 >= RELIABLE) & laws.has_law)


def ceiling(bench: Bench, setting: Setting) -> float:
    r"""Return the R² that a perfect law would reach, given the noise of the means.

    $$1 - \frac{\mathbb{E}_i[s_{ik}^2 / n_{ik}]}{\mathrm{Var}_i[\bar\Delta_{ik}]}$$

    averaged over sizes, with $s_{ik}^2 / n_{ik}$ the variance of a mean.
    """
    means = bench.means(setting)
    noise, spread = np.nanmean(means.variance, axis=0), np.nanvar(means.psi, axis=0)
    return float(np.mean(1 - noise / spread))


def _overall(bench: Bench, setting: Setting) -> float:
    """Return the R² over points of laws of the series family, averaged over sizes."""
    laws, means = bench.laws(setting, "likelihood", family="series"), bench.means(setting)
    told = laws.mean(means.k)
    each = [scores(told[:, j], means.psi[:, j])["R²"] for j in range(len(means.k))]
    return float(np.mean(each))


@exhibit(
    "table1",
    "Overall R² of predicted expected contributions",
    *("grid", "losses", "models"),
    paper="R² of at least 0.929 in every cell, with 1,000 points and 1,000 samples a size for "
    "logistic regression, 200 points and 5,000 samples for MLP and SVM.",
)
def table1(bench: Bench) -> Shown:
    """Overall R² by data, model and loss, with the R² that noise alone allows."""
    rows = []
    for setting in bench.grids("losses", "models"):
        rows.append(
            {
                **told(bench, setting),
                "loss": setting.metric,
                "measured": bench.laws(setting).diagnostics["overall_r2"],
                "series law": _overall(bench, setting),
                "ceiling by noise": ceiling(bench, setting),
                "paper": _paper.OVERALL_R2[setting.model].get(setting.dataset),
            }
        )
    return Shown(
        pd.DataFrame(rows),
        note="*Series law*: the same measure for apiece's other family, a/k + b/k^1.5 + d/k², by "
        "weighted least squares. *Ceiling by noise*: what a law that knew the truth would reach "
        "against means as noisy as these. A curve fitted to the same means follows some of their "
        "noise, and may pass it.",
    )


@exhibit(
    "table2",
    "Correlation of alpha between models",
    *("grid", "models"),
    paper="Pearson correlations from -0.04 to 0.50.",
)
def table2(bench: Bench) -> Shown:
    """Pearson correlation of alpha between each pair of models, over points reliable in both."""
    rows = []
    order = [name for name in ("logistic", "svm", "mlp") if name in bench.models]
    for dataset in bench.datasets:
        for pair in combinations(order, 2):
            settings = [Setting(dataset, model) for model in pair]
            if not all(bench.has(setting) for setting in settings):
                continue
            alphas = []
            for setting in settings:
                laws = bench.laws(setting)
                alphas.append(pd.Series(laws.alpha, index=laws.ids)[reliable(laws)])
            both = pd.concat(alphas, axis=1, join="inner")
            known = _paper.ALPHA_CORRELATION.get(pair, {})
            rows.append(
                {
                    "data": bench.title(dataset),
                    "models": f"{TITLES[pair[0]]} / {TITLES[pair[1]]}",
                    "points": len(both),
                    "measured": both.corr().iloc[0, 1] if len(both) > 2 else np.nan,
                    "paper": known.get(dataset),
                }
            )
    return Shown(pd.DataFrame(rows, columns=["data", "models", "points", "measured", "paper"]))


@exhibit(
    "figure1",
    "Laws of single points, R² of their lines, and R² at each size",
    "grid",
    paper="IMDB, logistic regression: an overall R² of 0.987, and about 1.0 at every size.",
)
def figure1(bench: Bench) -> Shown:
    """Curves at quantiles of alpha, the histogram of R², and R² across points by size."""
    lead = bench.lead("grid")
    if lead is None:
        return Shown.nothing()
    setting = Setting(lead)
    laws = bench.laws(setting)
    by_size = laws.diagnostics["r2_by_size"]
    with panels(3) as (figure, (curves, histogram, sizes)):
        _lines(bench, setting, curves)
        _histogram(histogram, laws.r2, "R² of a point's line")
        sizes.plot(by_size["k"], by_size["r2"], "o-")
        size_axis(sizes)
        sizes.set(ylabel="R² across points", ylim=(min(0.0, *by_size["r2"]), 1.02))
        figure.suptitle(_words(bench, setting), fontsize="medium")
    rows = [
        {**told(bench, setting), "k": k, "measured": r2}
        for k, r2 in zip(by_size["k"], by_size["r2"], strict=True)
    ]
    return Shown(pd.DataFrame(rows), figure)


@exhibit(
    "figure3",
    "R² of the points' lines",
    *("grid", "models"),
    paper="Most points near 1, most of all for logistic regression.",
)
def figure3(bench: Bench) -> Shown:
    """Histograms of each point's R² in log space."""
    return _histograms(bench, lambda laws: laws.r2, "R² of a point's line", only=None)


@exhibit(
    "figure4",
    "How alpha spreads over points",
    *("grid", "models"),
    paper="A mode between 1 and 1.5, and clear differences between points.",
)
def figure4(bench: Bench) -> Shown:
    """Histograms of alpha over points with R² of at least 0.8."""
    return _histograms(bench, lambda laws: laws.alpha, "alpha")


@exhibit(
    "figure5",
    "Lines that cross: which point is worth more depends on the size",
    "grid",
    paper="Lines of different alpha cross, so the order of points changes with the size.",
)
def figure5(bench: Bench) -> Shown:
    """Mean contributions of points at quantiles of alpha; how many pairs change places."""
    settings = bench.grids()
    rows = []
    with panels(len(settings)) as (figure, axes):
        for setting, ax in zip(settings, axes, strict=True):
            _lines(bench, setting, ax)
            ax.set_title(_words(bench, setting))
            laws = bench.laws(setting)
            ends = np.argsort(laws.mean(np.array(laws.k_range, dtype=np.float64)), axis=0)
            rank = np.argsort(ends, axis=0)[reliable(laws)]
            swapped = [
                (one[0] - two[0]) * (one[1] - two[1]) < 0 for one, two in combinations(rank, 2)
            ]
            share = float(np.mean(swapped)) if swapped else np.nan
            rows.append({**told(bench, setting), "share of pairs that change places": share})
    return Shown(pd.DataFrame(rows), figure)


@exhibit(
    "figure6",
    "alpha and the distance to the boundary",
    "grid",
    paper="Points nearer to the boundary decay more slowly.",
)
def figure6(bench: Bench) -> Shown:
    """Alpha against the signed distance, and their correlation over points."""
    return _distances(bench, lambda laws: laws.alpha, "alpha", "alpha")


@exhibit(
    "figure8",
    "How log|c| spreads over points, and its relation with alpha",
    *("grid", "models"),
    paper="A well-shaped spread of log|c|, strongly correlated with alpha.",
)
def figure8(bench: Bench) -> Shown:
    """Histograms of log|c|, the plane of (alpha, |c|) of the leading data, and the correlations."""
    settings, lead = bench.grids("models"), bench.lead("grid")
    if lead is None:
        return Shown.nothing()
    rows = []
    with panels(len(settings) + 1) as (figure, axes):
        for setting, ax in zip(settings, axes[1:], strict=True):
            laws = bench.laws(setting)
            keep = reliable(laws) & (laws.c != 0)
            log_c, alpha = np.log(np.abs(laws.c[keep])), laws.alpha[keep]
            _histogram(ax, log_c, "log|c|")
            ax.set_title(_words(bench, setting))
            both = np.corrcoef(alpha, log_c)[0, 1] if keep.sum() > 2 else np.nan
            rows.append(
                {**told(bench, setting), **_quartiles(log_c), "correlation with alpha": float(both)}
            )
        laws = bench.laws(Setting(lead))
        plot_plane(laws.select(reliable(laws)), ax=axes[0])
        axes[0].set_title(_words(bench, Setting(lead)))
    return Shown(pd.DataFrame(rows), figure)


@exhibit(
    "figure9",
    "R² of the points' lines by number of samples",
    "grid",
    paper="The more samples, the nearer R² comes to 1: what is missing is noise of the means.",
)
def figure9(bench: Bench) -> Shown:
    """Cumulative shares of each point's R², fitted to ever more of the samples."""
    settings = bench.grids()
    rows = []
    with panels(len(settings)) as (figure, axes):
        for setting, ax in zip(settings, axes, strict=True):
            table = bench.contributions(setting)
            n_sizes = len(np.unique(table.k))
            most = int(table.task.max()) + 1
            for part in (most // 16, most // 4, most):
                laws = LogOLS().fit(table.where(table.task < part))
                r2 = np.sort(laws.r2[np.isfinite(laws.r2)])
                samples = round(part / n_sizes)
                ax.plot(r2, np.arange(1, len(r2) + 1) / max(1, len(r2)), label=f"{samples} samples")
                rows.append(
                    told(bench, setting)
                    | {"samples a size": samples, "overall R²": laws.diagnostics["overall_r2"]}
                    | {f"R² {name}": value for name, value in _quartiles(r2).items()}
                )
            ax.set(xlabel="R² of a point's line", ylabel="share of points below", xlim=(0, 1))
            ax.set_title(_words(bench, setting))
            ax.legend()
    return Shown(pd.DataFrame(rows), figure)


@exhibit(
    "figure10",
    "R² and the size of contributions",
    "grid",
    paper="Points of low R² tend to have small contributions.",
)
def figure10(bench: Bench) -> Shown:
    """R² against the size of the mean contribution over sizes, and their rank correlation."""
    settings = bench.grids()
    rows = []
    with panels(len(settings)) as (figure, axes):
        for setting, ax in zip(settings, axes, strict=True):
            laws = bench.laws(setting)
            size = np.abs(np.nanmean(bench.means(setting).psi, axis=1))
            ax.scatter(size, laws.r2, s=10, alpha=0.6, linewidths=0)
            ax.set(
                xscale="log", xlabel="|mean contribution| over sizes", ylabel="R² of a point's line"
            )
            ax.set_title(_words(bench, setting))
            ranks = pd.DataFrame({"size": size, "r2": laws.r2}).corr("spearman").iloc[0, 1]
            rows.append({**told(bench, setting), "Spearman correlation": ranks})
    return Shown(pd.DataFrame(rows), figure)


@exhibit(
    "figure11",
    "R² of the law of the variance",
    *("grid", "models"),
    paper="Near 1 for logistic regression and MLP, lower for a part of the points for SVM.",
)
def figure11(bench: Bench) -> Shown:
    """Histograms of each point's R² for its variance."""
    return _histograms(bench, lambda laws: laws.r2_variance, "R² of the variance", only=None)


@exhibit(
    "figure12",
    "The decay beta of the variance",
    *("grid", "models"),
    paper="beta mostly between 2 and 4 for logistic regression, between 1 and 2 for MLP and SVM.",
)
def figure12(bench: Bench) -> Shown:
    """Histograms of beta; quartiles of log sigma² in the table."""
    shown = _histograms(bench, lambda laws: laws.beta, "beta")
    spread = []
    for setting in bench.grids("models"):
        laws = bench.laws(setting)
        spread.append(float(np.nanmedian(2 * np.log(laws.sigma[reliable(laws)]))))
    return Shown(shown.table.assign(**{"median log sigma²": spread}), shown.figure)


@exhibit(
    "figure13",
    "log|c| and the distance to the boundary",
    "grid",
    paper="No clear trend on MiniBooNE, a positive one on IMDB.",
)
def figure13(bench: Bench) -> Shown:
    """log|c| against the signed distance, and their correlation over points."""
    return _distances(bench, lambda laws: np.log(np.abs(laws.c)), "log|c|", "log_abs_c")


@exhibit(
    "aggregate",
    "The law of the dataset as a whole",
    "grid",
    paper="Equation 2: the mean loss falls as ε + b / k^λ.",
)
def aggregate(bench: Bench) -> Shown:
    """Mean losses of the training sets, and the law through them."""
    settings = bench.grids()
    rows = []
    with panels(len(settings)) as (figure, axes):
        for setting, ax in zip(settings, axes, strict=True):
            table = bench.contributions(setting)
            law = api.aggregate(table)
            plot_aggregate(law, contributions=table, ax=ax)
            decades(ax)
            ax.set_title(_words(bench, setting))
            rows.append({**told(bench, setting), "ε": law.eps, "b": law.b, "λ": law.lam})
    return Shown(pd.DataFrame(rows), figure)


def _words(bench: Bench, setting: Setting) -> str:
    return f"{bench.title(setting.dataset)}, {TITLES[setting.model]}"


def _quartiles(values: FloatArray) -> dict[str, float]:
    known = values[np.isfinite(values)]
    found = np.quantile(known, [0.25, 0.5, 0.75]) if len(known) else np.full(3, np.nan)
    return dict(zip(("lower quartile", "median", "upper quartile"), found.tolist(), strict=True))


def _histogram(ax: Any, values: FloatArray, name: str) -> None:
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [0.01, 0.99]) if len(known) else (0.0, 1.0)
    ax.hist(np.clip(known, low, high), bins=30, edgecolor="white", linewidth=0.3)
    ax.set(xlabel=name, ylabel="points")


def _histograms(
    bench: Bench,
    quantity: Callable[[Laws], FloatArray],
    name: str,
    only: Callable[[Laws], BoolArray] | None = reliable,
) -> Shown:
    """Show a quantity of the laws as one histogram for each grid, and its quartiles."""
    settings = bench.grids("models")
    rows = []
    with panels(len(settings)) as (figure, axes):
        for setting, ax in zip(settings, axes, strict=True):
            laws = bench.laws(setting)
            values = quantity(laws)[only(laws)] if only else quantity(laws)
            _histogram(ax, values, name)
            ax.set_title(_words(bench, setting))
            rows.append({**told(bench, setting), **_quartiles(values)})
    return Shown(pd.DataFrame(rows), figure)


def _lines(bench: Bench, setting: Setting, ax: Any) -> None:
    """Draw mean contributions and lines of the points at quantiles of alpha."""
    laws, (k, psi, _) = bench.laws(setting), bench.means(setting)
    rows = np.flatnonzero(reliable(laws))
    order = rows[np.argsort(laws.alpha[rows])]
    for share in _QUANTILES if len(order) else ():
        row = order[round(share * (len(order) - 1))]
        (line,) = ax.plot(k, np.abs(laws.mean(k)[row]), label=f"{laws.alpha[row]:.2f}")
        marker = "o" if laws.c[row] > 0 else "v"
        ax.plot(k, np.abs(psi[row]), marker, color=line.get_color(), markersize=4)
    ax.set(yscale="log", ylabel="|mean contribution|")
    size_axis(ax)
    ax.legend(title="alpha")


def _distances(
    bench: Bench, quantity: Callable[[Laws], FloatArray], label: str, name: str
) -> Shown:
    settings = [s for s in bench.grids() if bench.dataset(s.dataset).n_classes == 2]
    rows = []
    with panels(len(settings)) as (figure, axes):
        for setting, ax in zip(settings, axes, strict=True):
            data, laws = bench.dataset(setting.dataset), bench.laws(setting)
            kept = laws.select(reliable(laws))
            far = analysis.boundary(data).loc[kept.ids]
            sign = np.where(far["label"] == data.labels().max(), 1.0, -1.0)
            ax.scatter(sign * far["distance"], quantity(kept), s=10, alpha=0.6, linewidths=0)
            ax.set(xlabel="distance to the boundary, by class", ylabel=label)
            ax.set_title(_words(bench, setting))
            found = analysis.boundary_relation(kept, data)
            is_one = (found["quantity"] == name) & (found["label"] == "all")
            one = found[is_one & (found["measure"] == "spearman")].iloc[0]
            rows.append(
                told(bench, setting)
                | {"Spearman correlation": one["agreement"], "low": one["low"], "high": one["high"]}
            )
    return Shown(pd.DataFrame(rows), figure)
