"""Draw how fixed and rotating scoring rows compare with the population, light and dark.

python benchmarks/truth.py --data DIR --picture --sets magic     # measures the points
python docs/images/population.py                                 # draws them, next to this file
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
FILE = HERE.parents[1] / "benchmarks" / "results" / "truth-points.json"
PANELS = {
    "500 fixed scoring rows": ("fixed", "low", "high"),
    "rows take turns in scoring": ("rotating", "rotating low", "rotating high"),
}
INK = {"population.png": ("#1f2328", "#0b6bcb", "#c4320a"), "population-dark.png": None}
INK["population-dark.png"] = ("#e6edf3", "#6cb6ff", "#ff9b70")


def draw(name: str, rows: list[dict[str, float]]) -> None:
    ink, right, wrong = INK[name]
    plt.rcParams.update(
        {"text.color": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink}
    )
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.9), sharex=True, layout="constrained")
    truth = 1e6 * np.array([row["truth"] for row in rows])
    for axis, (title, names) in zip(axes, PANELS.items(), strict=True):
        middle, low, high = (1e6 * np.array([row[word] for row in rows]) for word in names)
        misses = (truth < low) | (truth > high)
        for chosen, colour, word in ((~misses, right, "covers"), (misses, wrong, "misses")):
            axis.errorbar(
                truth[chosen],
                middle[chosen],
                np.abs(np.array([low, high]) - middle)[:, chosen],
                fmt="o" if word == "covers" else "s",
                ms=2.5,
                lw=0.6,
                color=colour,
                label=f"{chosen.mean():.0%}: 90 % interval {word} the truth",
            )
        ends = np.array([truth.min(), truth.max()])
        axis.plot(ends, ends, color=ink, lw=1, ls="--")
        axis.set_title(f"{title}: r = {np.corrcoef(truth, middle)[0, 1]:.2f}", fontsize=10)
        axis.set_xlabel("worth to the population")
        axis.legend(fontsize=7.5, frameon=False, loc="upper left", bbox_to_anchor=(0, -0.15))
        axis.spines[["top", "right"]].set_visible(False)
        axis.spines[["left", "bottom"]].set_color(ink)
    axes[0].set_ylabel("estimate (millionths of the log loss)")
    figure.savefig(HERE / name, dpi=150, transparent=True)
    plt.close(figure)


if __name__ == "__main__":
    held = json.loads(FILE.read_text(encoding="utf-8"))["rows"]
    for name in INK:
        draw(name, held)
