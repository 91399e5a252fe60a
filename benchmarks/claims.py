"""Power laws against series laws, and accuracy for the compute, with the spread over splits.

For every set and split, a table is divided into a pool and 1,000 scoring rows, which stay fixed as
in the paper. Points of the pool are valued by logistic or ridge regression. Laws are fitted to few
training sets of random sizes from 100 to 1,000, and compared with means over many other training
sets: at four sizes in that range and at one beyond it. Written are two tables:

- claims-laws: R2 and rank correlation over points, for each law, inside the sizes and beyond;
- claims-compute: correlation of values (the mean over sizes 100 to 1,000) with the true ones, and
  processor time, for three ways: two refits for every contribution, training sets that all points
  share with plain means, and the same with `bayes`.

    python benchmarks/claims.py --data DIR --to docs/images/accuracy-for-compute.png

With ``--paper`` a third one, claims-paper, from the stored numbers of the paper's tables alone.
Numbers are the mean and the standard deviation over splits. Synthetic sets are written down in
truth.py, and so are the sets on which settings were chosen.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression, Ridge

import apiece
from _results import Results
from apiece import uses
from apiece.estimators import Bayes, Likelihood
from apiece.papers import measured
from apiece.papers._verdict import ours
from truth import CHOSEN_ON, load, standardised

INSIDE, GRID, BEYOND = (100, 1000), [100, 215, 464, 1000], [2400]
N_VALIDATION, N_POOL = 1_000, 6_000
FEW = (10, 50)
LAWS: dict[str, Any] = {
    "likelihood, power": Likelihood("power", prior_sd=None),
    "bayes, power": Bayes("power"),
    "bayes, series": Bayes("series"),
}
REFITS, MEANS, OURS = "two refits, mean", "shared sets, plain mean", "shared sets, bayes"
COUNTS = {REFITS: (1, 2, 5, 10, 20, 50), MEANS: (5, 10, 20, 50, 100), OURS: (10, 20, 50, 100)}
KEPT = 100  # training sets that estimates may use; the others are behind the true values


def dataset(folder: Path, name: str, split: int) -> apiece.Dataset:
    data = load(folder, name, split)
    n = min(len(data.y) - N_VALIDATION, N_POOL)
    data = standardised(data, n)
    rest = slice(n, n + N_VALIDATION)
    return apiece.Dataset.from_arrays(
        *(data.X[:n], data.y[:n]),
        X_val=data.X[rest],
        y_val=data.y[rest],
        kind="regression" if data.is_regression else "classification",
    )


def means(data: apiece.Dataset, sizes: list[int], samples: int, **options: Any) -> np.ndarray:
    """Return mean contributions at some sizes, shape ``(n_points, n_sizes)``."""
    design = {"design": "grid", "n_sizes": len(sizes), "samples": samples * len(sizes)}
    table = apiece.collect(data, sizes=sizes, **design, **options).contributions()
    place = np.searchsorted(sizes, table.k)
    cells = table.point * len(sizes) + place
    shape = len(options["points"]), len(sizes)
    n = np.bincount(cells, minlength=shape[0] * shape[1])
    return (np.bincount(cells, table.delta, minlength=len(n)) / n).reshape(shape)


def judge(estimate: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Return R2 and rank correlation over points, averaged over sizes."""
    left = ((estimate - truth) ** 2).sum(axis=0) / ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    ranks = [spearmanr(a, b).statistic for a, b in zip(estimate.T, truth.T, strict=True)]
    return float(np.mean(1 - left)), float(np.mean(ranks))


def refit_seconds(data: apiece.Dataset) -> float:
    """Return the processor time of two fits, averaged over sizes."""
    rng = np.random.default_rng(0)
    start = time.process_time()
    for k in np.linspace(*INSIDE, 5).astype(int):
        rows = rng.choice(data.n_pool, k, replace=False)
        estimator = LogisticRegression(max_iter=1000) if data.is_classification else Ridge()
        model = estimator.fit(data.X[rows], data.y[rows])
        (model.predict_proba if data.is_classification else model.predict)(data.X_val)
    return 2 * (time.process_time() - start) / 5


def measure(data: apiece.Dataset, options: argparse.Namespace, split: int) -> dict[str, Any]:
    points = np.sort(np.random.default_rng(split).permutation(data.n_pool)[: options.points])
    model = "logistic" if data.is_classification else "ridge"
    asked: dict[str, Any] = {"model": model, "scoring": "fixed"}
    asked |= {"points": points, "random_state": split, "progress": False}
    uniform = {"sizes": INSIDE, "design": "uniform"}
    apiece.collect(data, samples=1, **uniform, **asked)  # loads what it needs
    start = time.process_time()
    table = apiece.collect(data, samples=options.truth + KEPT, **uniform, **asked).contributions()
    seconds = (time.process_time() - start) / (int(table.task.max()) + 1)
    truths = {"inside": (GRID, options.grid), "beyond": (BEYOND, options.grid)}
    true = {
        where: means(data, sizes, samples, **(asked | {"random_state": split + 100}))
        for where, (sizes, samples) in truths.items()
    }
    laws = []
    for samples in FEW:
        first = table.where(table.task < samples)
        for word, estimator in LAWS.items():
            fitted = estimator.fit(first)
            for where, (sizes, _) in truths.items():
                scores = judge(fitted.mean(np.array(sizes, dtype=float)), true[where])
                laws.append([where, samples, word, *scores])
    return {"laws": laws, "compute": compute(table, seconds, refit_seconds(data), split)}


def compute(table: apiece.Contributions, seconds: float, refits: float, split: int) -> list:
    """Return way, samples, seconds and correlation with true values."""
    later = table.where(table.task >= KEPT)
    n = table.n_points
    truth = np.bincount(later.point, later.delta, minlength=n) / np.bincount(later.point)
    early, rng = table.where(table.task < KEPT), np.random.default_rng(split)
    rows = [np.flatnonzero(early.point == point) for point in range(n)]
    found = []
    for way, counts in COUNTS.items():
        for samples in counts:
            if way == REFITS:  # each point has training sets of its own
                drawn = [rng.choice(row, samples, replace=False) for row in rows]
                estimate, cost = early.delta[np.array(drawn)].mean(axis=1), refits * n
            else:
                first = table.where(table.task < samples)
                estimate, cost = np.bincount(first.point, first.delta, minlength=n), seconds
                estimate = estimate / np.maximum(np.bincount(first.point, minlength=n), 1)
            spent, start = cost * samples, time.process_time()
            if way == OURS:
                laws = Bayes().fit(first)
                estimate = uses.value(laws, sizes=INSIDE)["value"].to_numpy()
                spent += time.process_time() - start
            found.append([way, samples, spent, np.corrcoef(estimate, truth)[0, 1]])
    return found


def spread(rows: list[list], n_words: int) -> list[list]:
    """Return the words of each row, and the mean and deviation over splits of its numbers."""
    head = [row[:n_words] for row in rows[0]]
    numbers = np.array([[row[n_words:] for row in split] for split in rows], dtype=float)
    mean, deviation = numbers.mean(axis=0), numbers.std(axis=0, ddof=1 if len(rows) > 1 else 0)
    return [
        [*words, *([m, s] for m, s in zip(ms, ss, strict=True))]
        for words, ms, ss in zip(head, mean, deviation, strict=True)
    ]


def picture(rows: list[dict[str, Any]], to: Path) -> None:
    import matplotlib.pyplot as plt

    from apiece.plots import style

    names = list(dict.fromkeys(row["data"] for row in rows))
    with style():
        columns = 3
        shape = -(-len(names) // columns), columns
        figure, axes = plt.subplots(*shape, figsize=(9, 2.7 * shape[0]), sharey=True, squeeze=False)
        for ax in axes.ravel()[len(names) :]:
            ax.set_visible(False)
        for ax, name in zip(axes.ravel(), names, strict=False):
            for way in COUNTS:
                part = [row for row in rows if (row["data"], row["way"]) == (name, way)]
                seconds, r = ([row[key][0] for row in part] for key in ("seconds", "correlation"))
                ax.plot(seconds, r, marker="o", markersize=3, label=way)
            ax.set(xscale="log", ylim=(0, 1.02), xlabel="processor seconds")
            ax.set_title(f"{name} ({part[0]['part']})", fontsize=9)
        figure.supylabel("correlation with true values", fontsize=9)
        figure.tight_layout(rect=(0, 0.07, 1, 1))
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncols=3)
        figure.savefig(to, dpi=110)


def from_the_paper(settings: dict[str, Any]) -> None:
    """Write what the runs of the paper's tables say about bayes, series laws and engines."""
    columns = dict.fromkeys(("claim", "here", "by which number", "points and samples"), "{}")
    results = Results("claims-paper", columns, settings)
    for row in ours(measured):
        results.add(*row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the .npz files")
    parser.add_argument("--to", type=Path, help="PNG to write")
    parser.add_argument(
        "--sets", nargs="+", default=["magic", "rings", "counts", "orders", "waves", "cifar10"]
    )
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--truth", type=int, default=600, help="sets of random size behind values")
    parser.add_argument("--grid", type=int, default=150, help="sets at each size behind laws")
    parser.add_argument("--picture", action="store_true", help="only draw the picture again")
    parser.add_argument("--paper", action="store_true", help="only from the paper's tables")
    options = parser.parse_args()
    if options.paper:
        from_the_paper({})
        return
    warnings.simplefilter("ignore", apiece.errors.ApieceWarning)  # sizes beyond are the question
    about = {"chosen_on": CHOSEN_ON, "reported_on": options.sets}
    columns = {"data": "{}", "part": "{}"}
    law_columns = columns | {"sizes": "{}", "samples": "{}", "law": "{}"}
    law_columns |= {"R2": "{:.2f} ± {:.2f}", "rank correlation": "{:.3f} ± {:.3f}"}
    way_columns = columns | {"way": "{}", "samples": "{}"}
    way_columns |= {"seconds": "{:.2g} ± {:.1g}", "correlation": "{:.3f} ± {:.3f}"}
    settings = {key: value for key, value in vars(options).items() if key != "to"}
    laws = Results("claims-laws", law_columns, settings, **about)
    ways = Results("claims-compute", way_columns, settings, **about)
    if not options.picture:
        for name in options.sets:
            part = "choosing" if name in CHOSEN_ON else "apart"
            splits = range(options.splits)
            found = [measure(dataset(options.data, name, s), options, s) for s in splits]
            for row in spread([each["laws"] for each in found], 3):
                laws.add(name, part, *row)
            for row in spread([each["compute"] for each in found], 2):
                ways.add(name, part, *row)
    if options.to is not None:
        picture(json.loads(ways.file.read_text())["rows"], options.to)


if __name__ == "__main__":
    main()
