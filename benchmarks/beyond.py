"""Laws beyond the sizes they were fitted on: how far they reach, and which points are missed.

    python benchmarks/beyond.py collect --data DIR --runs DIR [--only higgs]
    python benchmarks/beyond.py reach --runs DIR                # R², correlations, coverage
    python benchmarks/beyond.py leverage --runs DIR --data DIR  # which points are missed

``collect`` adds to the runs of ``apiece reproduce table1 --scale paper --models logistic`` runs of
the same points at 2,500, 5,000 and 10,000; it resumes where it was stopped. DIR of ``--data`` holds
adult.npz, higgs.npz, imdb.npz and magic.npz, each with X and y.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import apiece
from _results import Results
from _truth import DATASETS, METRICS, Truth, dataset, matrix, positions, r2, sets, spearman, truths
from apiece.estimators import Auto, Bayes, Likelihood
from apiece.laws import Laws

FAR, FAR_SAMPLES = (2500, 5000, 10_000), 60  # sizes beyond the fitted ones, and samples at each
Z90 = 1.645  # standard errors that a 90 % interval of a normal reaches


def collect(options: argparse.Namespace) -> None:
    """Go on with the runs of the tables and of IMDB; CIFAR-10 is too expensive."""
    for name in DATASETS[:-1]:
        for metric in METRICS:
            title = f"{name}-logistic-{metric}"
            if options.only not in title:
                continue
            apiece.collect(
                dataset(name, options.data),
                metric=metric,
                points=positions(apiece.open(options.runs / f"{title}-grid")),
                sizes=FAR,
                design="grid",
                samples=FAR_SAMPLES * len(FAR),
                random_state=0,
                to=options.runs / f"{title}-beyond",
            )


def reach(options: argparse.Namespace) -> None:
    """Fitted on 100..1000 with 50 and 500 samples per point, tested beyond."""
    methods = {
        "likelihood power": Likelihood(),
        "likelihood series24": Likelihood("series24"),
        "bayes power": Bayes("power"),
        "bayes series24": Bayes("series24"),
        "bayes": Bayes(),
        "bayes ridge": Bayes("ridge"),
        "bayes blend": Bayes("blend"),
        "auto": Auto(),
    }
    columns = {"run": "{}", "samples": "{}", "k": "{:,}", "best possible R²": "{:.2f}"}
    columns |= dict.fromkeys(methods, "{:.2f}, {:.2f}, {:.2f}") | {"auto takes": "{}"}
    coverage = ["90 % coverage: power", "series", "ridge", "coverage of auto"]
    results = Results(
        "beyond-reach",
        columns | dict.fromkeys(coverage, "{:.2f}"),
        options,
        **sets(options),
    )
    for run, delta, sizes in reaching(options):
        for samples in options.samples:
            table = next(run.drawn("shared", samples, 1))
            laws = {word: estimator.fit(table) for word, estimator in methods.items()}
            for far in FAR:
                late = delta[:, sizes == far]
                if late.shape[1] >= 30:
                    results.add(run.name, samples, far, *beyond(laws, late, far))


def reaching(options: argparse.Namespace) -> Iterator[tuple[Truth, np.ndarray, np.ndarray]]:
    """Runs that go on beyond the fitted sizes, with contributions and sizes there."""
    for run in truths(options):
        folder = options.runs / f"{run.name.removesuffix('-grid')}-beyond"
        if (folder / "manifest.json").exists():
            yield run, *matrix(folder)


def beyond(laws: dict[str, Laws], late: np.ndarray, far: int) -> list[Any]:
    """What laws tell of one size beyond the fitted ones: R², Pearson, Spearman; then coverage."""
    truth = np.nanmean(late, axis=1)
    error = np.nanstd(late, axis=1) / np.sqrt(np.isfinite(late).sum(axis=1))
    cells: list[Any] = [1 - (error**2).mean() / truth.var()]  # the truth's own error caps it
    for found in laws.values():
        predicted = found.mean(far)
        cells.append(
            [r2(predicted, truth), np.corrcoef(predicted, truth)[0, 1], spearman(predicted, truth)]
        )
    chosen = laws["auto"].attrs
    cells.append(f"{chosen['estimator']} {chosen['settings']['family']}")
    for word in ("bayes power", "bayes", "bayes ridge", "auto"):
        low, high = laws[word].interval(far)
        away = truth - laws[word].mean(far)
        reach = np.where(away > 0, high - laws[word].mean(far), laws[word].mean(far) - low)
        cells.append((np.abs(away) <= np.hypot(reach, Z90 * error)).mean())
    return cells


def leverage(options: argparse.Namespace) -> None:
    """R² of `auto` beyond the fitted sizes among points of little and of much leverage."""
    parts = {"least half": (0, 0.5), "next 30 %": (0.5, 0.8), "next 15 %": (0.8, 0.95)}
    parts |= {"most 5 %": (0.95, 1)}
    columns = {"run": "{}", "samples": "{}", "k": "{:,}"}
    columns |= dict.fromkeys(["all", *parts], "{:.2f}")
    columns |= {"leverage there": "{:,.0f} to {:,.0f}", "error of the ten worst": "{:.0%}"}
    results = Results("beyond-leverage", columns, options, **sets(options))
    for run, delta, sizes in reaching(options):
        data = dataset(run.name.partition("-")[0], options.data)
        every = data.features(np.arange(data.n_pool))
        own = every[positions(apiece.open(options.runs / run.name))] - every.mean(axis=0)
        size = np.einsum("ij,jk,ik->i", own, np.linalg.pinv(np.cov(every.T)), own)
        for samples in options.samples:
            laws = Auto().fit(next(run.drawn("shared", samples, 1)))
            for far in FAR:
                truth = np.nanmean(delta[:, sizes == far], axis=1)
                predicted = laws.mean(far)
                cells: list[Any] = [r2(predicted, truth)]
                for low, high in parts.values():
                    at = (size >= np.quantile(size, low)) & (size <= np.quantile(size, high))
                    cells.append(r2(predicted[at], truth[at]))
                error = np.sort((predicted - truth) ** 2)[::-1]
                cells += [[size[at].min(), size[at].max()], error[:10].sum() / error.sum()]
                results.add(run.name, samples, far, *cells)


def main() -> None:
    """Read the options and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["collect", "reach", "leverage"])
    parser.add_argument(
        "--runs", type=Path, required=True, help="folder of the runs with the truth"
    )
    parser.add_argument("--data", type=Path, help="folder with the .npz files")
    parser.add_argument("--only", default="", help="part of a run's name")
    parser.add_argument("--samples", type=int, nargs="+", default=[50, 500], help="a point")
    options = parser.parse_args()
    if options.what != "reach" and options.data is None:
        parser.error(f"{options.what} needs --data DIR")
    globals()[options.what](options)


if __name__ == "__main__":
    main()
