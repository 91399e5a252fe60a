"""How many samples a grid needs: the R² that a perfect law would reach, by samples per size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from apiece._base.typing import FloatArray
from apiece.papers._drawing import setting_columns
from apiece.papers._items import Artifact, count_axis, panels, paper_item
from apiece.papers._runs import Means, Setting
from apiece.papers._workspace import Workspace
from apiece.records import Contributions

ENOUGH: Final = 0.9
_COUNTS: Final = (10, 30, 100, 300, 1000, 5000)
_MOST: Final = 1e9  # samples: beyond, the signal was not measured


@dataclass(frozen=True)
class Ceiling:
    r"""The signal of mean contributions and the noise of single ones, at each size.

    Points that share training sets share a part of the noise. It moves their means together, so it
    adds to the error of the true curves, but not to the spread of the means.

    Parameters
    ----------
    signal
        Variance of expected contributions over points at each size, shape ``(n_sizes,)``.
    noise
        Variance of one contribution, averaged over points.
    samples
        Contributions behind each mean.
    common
        The part of ``noise`` that all points have in common.
    """

    signal: FloatArray
    noise: FloatArray
    samples: float
    common: FloatArray | float = 0.0

    @classmethod
    def of(cls, means: Means, samples: float, common: FloatArray | float = 0.0) -> Ceiling:
        """Take the noise out of the spread of the means; one sample per point does not show it."""
        noise, spread = np.nanmean(means.variance, axis=0), np.nanvar(means.psi, axis=0)
        return cls(spread - noise + common / samples, samples * noise, samples, common)

    @property
    def reached(self) -> float:
        r"""The ceiling with the samples that there are, averaged over sizes.

        $$1 - \frac{\mathbb{E}_i[s_{ik}^2 / n_{ik}]}{\mathrm{Var}_i[\bar\Delta_{ik}]}$$
        """
        return float(np.mean(self._by_size(self.signal, self.samples)))

    def at(self, samples: float) -> float:
        """Return the ceiling with some number of samples per size; no signal counts as 0.

        >>> Ceiling(np.array([1.0, 3.0]), np.array([1.0, 1.0]), 1.0).at(1.0)
        0.625
        """
        by_size = self._by_size(np.maximum(self.signal, 0.0), samples)
        return float(np.mean(np.maximum(by_size, 0.0)))

    def _by_size(self, signal: FloatArray, samples: float) -> FloatArray:
        spread = signal + (self.noise - self.common) / samples
        return np.asarray(1 - self.noise / samples / spread)

    def samples_for(self, goal: float) -> float:
        """Return the fewest samples per size that reach a ceiling; nan if no signal is known.

        >>> Ceiling(np.array([1.0]), np.array([100.0]), 10.0).samples_for(0.9)
        900.0
        """
        if not np.all(self.signal > 0):
            return float("nan")
        low, high = 1.0, _MOST
        if self.at(high) < goal:
            return float("nan")
        while high > 1.001 * low:
            between = (low * high) ** 0.5
            low, high = (low, between) if self.at(between) >= goal else (between, high)
        return float(np.ceil(float(f"{high:.2g}")))


def common_noise(table: Contributions, means: Means) -> FloatArray:
    r"""Return the variance at each size that the points of a training set have in common.

    With $r_{it}$ what the contribution of point $i$ to training set $t$ differs from the mean of
    that point, and $m_t$ points, it is the mean over training sets of

    $$\bar r_t^2 - \frac{1}{m_t (m_t - 1)} \sum_i (r_{it} - \bar r_t)^2.$$
    """
    size = np.searchsorted(means.k, table.k)
    left = table.delta - means.psi[table.point, size]
    _, first, where, m = np.unique(
        table.task, return_index=True, return_inverse=True, return_counts=True
    )
    shift = np.bincount(where, weights=left) / m
    own = np.bincount(where, weights=(left - shift[where]) ** 2) / np.maximum(m - 1, 1)
    excess = np.where(m > 1, shift**2 - own / m, 0.0)
    sets = np.bincount(size[first], minlength=len(means.k))
    total = np.bincount(size[first], weights=excess, minlength=len(means.k))
    return np.asarray(np.maximum(total, 0.0) / np.maximum(sets - 1, 1))


def ceiling_of(work: Workspace, setting: Setting) -> Ceiling:
    """Return the ceiling of a grid."""
    means, samples = work.means(setting), setting_columns(work, setting)["samples per size"]
    return Ceiling.of(means, samples, common_noise(work.contributions(setting), means))


def draw(table: pd.DataFrame) -> Any:
    """Draw the ceilings of all rows against samples, one panel for each model."""
    curves = {count: f"{count:,} samples" for count in _COUNTS}
    datasets = list(dict.fromkeys(table["data"]))
    parts = list(table.groupby("model", sort=False))
    with panels(len(parts)) as (figure, axes):
        for (model, rows), ax in zip(parts, axes, strict=True):
            for row in rows.to_dict("records"):
                color = f"C{datasets.index(row['data'])}"
                ceilings = [row[name] for name in curves.values()]
                ax.plot(list(curves), ceilings, color=color, label=row["data"])
                ax.plot(row["samples per size"], row["reached"], "o", color=color)
            ax.axhline(ENOUGH, color="0.5", linestyle=":")
            count_axis(ax, _COUNTS)
            ax.tick_params(axis="x", labelsize="x-small")
            ax.set(xlabel="samples per size", ylabel="ceiling by noise", ylim=(0, 1.02))
            ax.set_title(model)
            ax.legend(fontsize="x-small")
    return figure


@paper_item(
    "ceiling",
    "The highest R² that noise allows, by samples per size",
    *("grid", "models"),
    paper="Not shown; with 5,000 samples per size R² is at least 0.929 for MLP and SVM.",
    note="1 less the variance of a mean of so many samples, divided by its variance over points; "
    "averaged over sizes. Dots: present samples.",
    draw=draw,
)
def ceilings(work: Workspace) -> Artifact:
    """Ceilings of all grids by samples."""
    rows = [
        setting_columns(work, setting) | row(ceiling_of(work, setting))
        for setting in work.grids("models")
    ]
    return Artifact(pd.DataFrame(rows))


def row(ceiling: Ceiling) -> dict[str, Any]:
    """Return the ceiling reached, at several counts, and the samples for 0.9."""
    columns = {f"{count:,} samples": ceiling.at(count) for count in _COUNTS}
    return {"reached": ceiling.reached, **columns, "samples for 0.9": ceiling.samples_for(ENOUGH)}
