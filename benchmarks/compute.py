"""Accuracy for the compute it costs: the paper's way against shared training sets and `bayes`.

    python benchmarks/compute.py --runs DIR --data DIR --to docs/images/accuracy-per-second.png

The paper's way draws a training set of its own for every contribution and trains twice. Ours
draws one training set for all points, and the engine tells what each of them adds. Both costs are
measured in one run, on training sets of the same sizes; accuracy is Pearson's correlation of
Distributional Shapley values (k in 100..1000) with the Monte Carlo truth of the same runs as in
``benchmarks/estimators.py accuracy``. Numbers are kept with the figure, and not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import apiece
from _results import Results
from _truth import DATASETS, INSIDE, Truth, dataset
from apiece import uses
from apiece.estimators import Bayes, Likelihood

RUNS = ("higgs-log_loss", "magic-log_loss", "imdb-softmax_of_proba", "adult-softmax_of_proba")
THEIRS, OURS = (1, 2, 5, 10, 20, 50), (10, 20, 50, 100, 200, 500)
DRAWS = 3


def cost(data: apiece.Dataset, metric: str, n_points: int, n_tasks: int = 8) -> dict[str, float]:
    """Seconds for one refit, and for one task of ``n_points`` by the engine."""
    rng = np.random.default_rng(0)
    X, y = data.features(np.arange(data.n_pool)), data.labels()[: data.n_pool]
    refits = []
    for k in np.linspace(*INSIDE, n_tasks).astype(int):
        rows = rng.choice(len(X), k, replace=False)
        started = time.perf_counter()
        model = LogisticRegression(max_iter=1000).fit(X[rows], y[rows])
        log_loss(data.y_val, model.predict_proba(data.X_val), labels=model.classes_)
        refits.append(time.perf_counter() - started)
    options: dict[str, Any] = {"metric": metric, "points": range(n_points), "progress": False}
    apiece.collect(data, sizes=INSIDE, samples=1, random_state=1, **options)  # loads what it needs
    started = time.perf_counter()
    run = apiece.collect(data, sizes=INSIDE, samples=n_tasks, random_state=0, **options)
    tasks = len(np.unique(run.contributions().task))
    return {
        "refit": float(np.mean(refits)),
        "task": (time.perf_counter() - started) / tasks,
    }


def accuracy(run: Truth) -> dict[str, list[tuple[int, float]]]:
    """Correlation with the truth by number of samples, for each way."""
    ways: dict[str, tuple[str, tuple[int, ...], Any]] = {
        "Monte Carlo": ("one D per point", THEIRS, None),
        "likelihood": (
            "one D per point",
            tuple(m for m in THEIRS if m >= 5),
            Likelihood(prior_sd=None),
        ),
        "ours": ("shared", OURS, Bayes()),
    }
    curves: dict[str, list[tuple[int, float]]] = {}
    truth, _ = run.value()
    for word, (design, counts, estimator) in ways.items():
        for samples in counts:
            found = []
            for table in run.drawn(design, samples, DRAWS):
                if estimator is None:
                    estimate = np.bincount(table.point, table.delta) / samples
                else:
                    estimate = uses.value(estimator.fit(table), sizes=INSIDE)["value"].to_numpy()
                found.append(float(np.corrcoef(estimate, truth)[0, 1]))
            curves.setdefault(word, []).append((samples, float(np.mean(found))))
    return curves


def draw(numbers: dict[str, Any], to: Path) -> None:
    import matplotlib.pyplot as plt

    from apiece.plots import style

    with style():
        figure, axes = plt.subplots(1, len(numbers), figsize=(3.1 * len(numbers), 3.3), sharey=True)
        for ax, (name, row) in zip(np.atleast_1d(axes), numbers.items(), strict=True):
            theirs = 2 * row["cost"]["refit"] * row["n_points"]
            for word, curve in row["accuracy"].items():
                samples, r = np.array(curve).T
                seconds = samples * (row["cost"]["task"] if word == "ours" else theirs)
                label = "one D for all points, bayes" if word == "ours" else f"refits, {word}"
                ax.plot(seconds, r, marker="o", markersize=4, label=label)
            ax.axvline(theirs, color="0.6", linestyle=":", linewidth=1)
            ax.set(xscale="log", xlabel=f"seconds for {row['n_points']} points", ylim=(0, 1.02))
            ax.set_title(name.replace("-", ", "), fontsize=9)
        np.atleast_1d(axes)[0].set_ylabel("correlation with the truth")
        figure.tight_layout(rect=(0, 0.08, 1, 1))
        figure.legend(*ax.get_legend_handles_labels(), loc="lower center", ncols=3, fontsize=8)
        figure.savefig(to, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs with truth")
    parser.add_argument("--data", type=Path, required=True, help="folder with the .npz files")
    parser.add_argument("--to", type=Path, required=True, help="PNG to write")
    parser.add_argument("--only", default="", help="part of a run's name")
    options = parser.parse_args()
    kept = options.to.with_suffix(".json")
    numbers = json.loads(kept.read_text()) if kept.exists() else {}
    has_earlier = bool(numbers)
    for name in RUNS:
        if name in numbers or options.only not in name:
            continue
        word, metric = name.split("-")
        run = Truth.of(options.runs / f"{word}-logistic-{metric}-grid")
        numbers[name] = {
            "n_points": len(run.delta),
            "n_truth": int(run.is_truth.sum()),
            "cost": cost(dataset(word, options.data), metric, len(run.delta)),
            "accuracy": accuracy(run),
        }
        kept.write_text(json.dumps(numbers, indent=1))
    columns = {"run": "{}", "way": "{}", "samples": "{}", "seconds": "{:.3g}", "Pearson": "{:.3f}"}
    columns |= {"training sets for truth": "{:,}", "points": "{:,}"}
    sets = [name.partition("-")[0] for name in numbers]
    results = Results(
        "compute",
        columns,
        options,
        chosen_on=DATASETS,
        reported_on=sets,
        has_earlier_rows=has_earlier,
    )
    for name, row in numbers.items():
        for way, curve in row["accuracy"].items():
            refits = 2 * row["cost"]["refit"] * row["n_points"]
            each = row["cost"]["task"] if way == "ours" else refits
            for samples, pearson in curve:
                cells = samples * each, pearson, row["n_truth"], row["n_points"]
                results.add(name, way, samples, *cells)
    draw(numbers, options.to)


if __name__ == "__main__":
    main()
