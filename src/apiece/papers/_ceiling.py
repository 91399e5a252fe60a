"""How many samples a grid needs: the R² that a perfect law would reach, by samples per size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from apiece._base.typing import FloatArray
from apiece.papers._drawing import setting_columns, words
from apiece.papers._items import Artifact, count_axis, panels, paper_item
from apiece.papers._runs import Means, Setting
from apiece.papers._workspace import Workspace

ENOUGH: Final = 0.9
_COUNTS: Final = (10, 30, 100, 300, 1000, 5000)
_MOST: Final = 1e9  # samples: beyond, the signal was not measured


@dataclass(frozen=True)
class Ceiling:
    r"""The signal of mean contributions and the noise of single ones, at each size.

    Parameters
    ----------
    signal
        Variance of expected contributions over points at each size, shape ``(n_sizes,)``.
    noise
        Variance of one contribution, averaged over points.
    samples
        Contributions behind each mean.
    """

    signal: FloatArray
    noise: FloatArray
    samples: float

    @classmethod
    def of(cls, means: Means, samples: float) -> Ceiling:
        """Take the noise out of the spread of the means; one sample per point does not show it."""
        noise, spread = np.nanmean(means.variance, axis=0), np.nanvar(means.psi, axis=0)
        return cls(spread - noise, samples * noise, samples)

    @property
    def reached(self) -> float:
        r"""The ceiling with the samples that there are, averaged over sizes.

        $$1 - \frac{\mathbb{E}_i[s_{ik}^2 / n_{ik}]}{\mathrm{Var}_i[\bar\Delta_{ik}]}$$
        """
        return float(np.mean(self.signal / (self.signal + self.noise / self.samples)))

    def at(self, samples: float) -> float:
        """Return the ceiling with some number of samples per size; no signal counts as 0.

        >>> Ceiling(np.array([1.0, 3.0]), np.array([1.0, 1.0]), 1.0).at(1.0)
        0.625
        """
        signal = np.maximum(self.signal, 0.0)
        return float(np.mean(signal / (signal + self.noise / samples)))

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


def ceiling_of(work: Workspace, setting: Setting) -> Ceiling:
    """Return the ceiling of a grid."""
    samples = setting_columns(work, setting)["samples per size"]
    return Ceiling.of(work.means(setting), samples)


@paper_item(
    "ceiling",
    "The highest R² that noise allows, by samples per size",
    *("grid", "models"),
    paper="Not shown; with 5,000 samples per size R² is at least 0.929 for MLP and SVM.",
    note="The variance over points of the expected contributions, divided by itself plus the "
    "variance of a mean of that many samples; averaged over sizes.",
)
def ceilings(work: Workspace) -> Artifact:
    """Ceilings of all grids against samples."""
    rows: list[dict[str, Any]] = []
    with panels(1, height=3.4) as (figure, (ax,)):
        for setting in work.grids("models"):
            columns = setting_columns(work, setting)
            ceiling = ceiling_of(work, setting)
            curve = {count: ceiling.at(count) for count in _COUNTS}
            (line,) = ax.plot(curve.keys(), curve.values(), label=words(work, setting))
            ax.plot(ceiling.samples, ceiling.reached, "o", color=line.get_color())
            rows.append(columns | row(ceiling))
        count_axis(ax, _COUNTS)
        ax.set(xlabel="samples per size", ylabel="ceiling by noise", ylim=(0, 1.02))
        ax.legend(fontsize="x-small")
    return Artifact(pd.DataFrame(rows), figure)


def row(ceiling: Ceiling) -> dict[str, Any]:
    """Return the ceiling reached, at several counts, and the samples for 0.9."""
    columns = {f"{count:,} samples": ceiling.at(count) for count in _COUNTS}
    return {"reached": ceiling.reached, **columns, "samples for 0.9": ceiling.samples_for(ENOUGH)}
