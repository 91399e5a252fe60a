"""Runs that tell the truth: many contributions of real points, and few of them drawn to learn from.

They are those of ``apiece reproduce table1 --scale paper --models logistic``: 1,000 points, ten
sizes from 100 to 1,000, over 1,000 training sets of each, which all points share.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import apiece
from apiece._base.rng import stream
from apiece.records import Contributions

DATASETS = ("magic", "higgs", "imdb", "adult", "cifar10")
METRICS = ("softmax_of_proba", "log_loss")
INSIDE = (100, 1000)
ENOUGH = 5000  # training sets for the truth


def dataset(name: str, folder: Path) -> apiece.Dataset:
    """As ``apiece reproduce`` prepares it."""
    with np.load(folder / f"{name}.npz") as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"]
    is_table = name not in ("imdb", "cifar10")
    return apiece.Dataset.from_arrays(X, y, validation=1000, standardize=is_table, random_state=0)


def positions(run: Any) -> np.ndarray:
    """Positions of a run's valued points in the pool."""
    return np.flatnonzero(run.points["valued"].to_numpy())


@dataclass(frozen=True)
class Truth:
    """Contributions of a run, points x tasks (nan inside D): some for truth, the rest to draw from.

    Truth gets half of the tasks, and up to three quarters of a smaller run to have 5,000.

    ``stratum`` is the size of each task, as a position; ``weight`` is that of each size in the mean
    over all sizes of ``INSIDE``.
    """

    name: str
    delta: np.ndarray
    k: np.ndarray
    stratum: np.ndarray
    weight: np.ndarray
    is_truth: np.ndarray

    @classmethod
    def of(cls, folder: Path) -> Truth:
        """Read a run."""
        delta, k = matrix(folder)
        sizes, stratum = np.unique(k, return_inverse=True)
        # Between the sizes a curve is nearly a straight line in 1/k.
        every = -1 / np.arange(INSIDE[0], INSIDE[1] + 1)
        weight = np.array([np.interp(every, -1 / sizes, e).mean() for e in np.eye(len(sizes))])
        share = np.clip(ENOUGH / len(k), 0.5, 0.75)
        is_truth = np.empty(len(k), bool)
        is_truth[np.argsort(k, kind="stable")] = np.diff(np.ceil(share * np.arange(len(k) + 1))) > 0
        return cls(folder.name, delta, k, stratum, weight, is_truth)

    def value(self) -> tuple[np.ndarray, np.ndarray]:
        """Distributional Shapley values from the tasks for truth, and their standard errors."""
        value, variance = np.zeros((2, len(self.delta)))
        for stratum, weight in enumerate(self.weight):
            part = self.delta[:, self.is_truth & (self.stratum == stratum)]
            value += weight * np.nanmean(part, axis=1)
            variance += weight**2 * np.nanvar(part, axis=1) / np.isfinite(part).sum(axis=1)
        return value, np.sqrt(variance)

    def drawn(self, design: str, samples: int, n_draws: int) -> Iterator[Contributions]:
        """Draw ``samples`` contributions per point, sizes as if they were uniform in ``INSIDE``.

        With one D per point the training sets are dealt out, so that each serves as few points as
        can be (two or so with ten samples), and each counts as one of the point's own.
        """
        rng = np.random.default_rng(0)
        n = len(self.delta)
        rows, tasks = np.arange(n)[:, None], np.flatnonzero(~self.is_truth)
        chance = (self.weight / np.bincount(self.stratum[tasks]))[self.stratum[tasks]]
        for _ in range(n_draws):
            if design == "shared":
                task = np.tile(rng.choice(tasks, samples, replace=False, p=chance), (n, 1))
            else:
                even = (np.arange(n * samples) + rng.random()) / (n * samples)
                dealt = np.searchsorted(chance.cumsum()[:-1], even)
                task = tasks[rng.permutation(dealt)].reshape(n, samples)
            while (missing := self._unfit(task)).any():
                task[missing] = rng.choice(tasks, missing.sum(), p=chance)
            name = task if design == "shared" else task * n + rows
            yield Contributions.from_arrays(
                point=np.repeat(np.arange(n), samples),
                k=self.k[task].ravel(),
                delta=self.delta[rows, task].ravel(),
                task=name.ravel(),
            )

    def _unfit(self, task: np.ndarray) -> np.ndarray:
        """Where the point is inside D, or was dealt the same D before."""
        rows = np.arange(len(task))[:, None]
        order = np.argsort(task, axis=1, kind="stable")
        ranked = np.take_along_axis(task, order, axis=1)
        again = np.zeros(task.shape, bool)
        np.put_along_axis(again, order[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
        return again | np.isnan(self.delta[rows, task])


def matrix(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Contributions as points x tasks (nan inside D), and the size of each task."""
    table = apiece.open(folder).contributions()
    tasks, place = np.unique(table.task, return_inverse=True)
    delta = np.full((table.n_points, len(tasks)), np.nan)
    delta[table.point, place] = table.delta
    k = np.empty(len(tasks))
    k[place] = table.k
    return delta, k


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a.argsort().argsort(), b.argsort().argsort())[0, 1])


def r2(estimate: np.ndarray, truth: np.ndarray) -> float:
    return 1 - float(((estimate - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


def collect(options: argparse.Namespace) -> None:
    """Collect the runs whose names hold ``options.only``, or go on with them."""
    for name in DATASETS:
        for metric in METRICS:
            folder = options.runs / f"{name}-logistic-{metric}-grid"
            if options.only not in folder.name:
                continue
            data = dataset(name, options.data)
            apiece.collect(
                data,
                metric=metric,
                points=np.sort(stream(0, 1).permutation(data.n_pool)[: options.valued]),
                sizes=INSIDE,
                design="grid",
                n_sizes=10,
                samples=10_000,
                random_state=0,
                n_jobs=-1,
                to=folder,
            )


def folders(options: argparse.Namespace) -> list[Path]:
    """Return the runs that are there, of ``options.runs``, whose names hold ``options.only``."""
    every = [
        options.runs / f"{name}-logistic-{metric}-grid" for name in DATASETS for metric in METRICS
    ]
    return [run for run in every if options.only in run.name and (run / "manifest.json").exists()]


def truths(options: argparse.Namespace) -> Iterator[Truth]:
    """Read these runs."""
    return map(Truth.of, folders(options))


def sets(options: argparse.Namespace) -> dict[str, set[str]]:
    """Return the datasets that settings were chosen on, and those of the runs that are there."""
    there = {folder.name.partition("-")[0] for folder in folders(options)}
    return {"chosen_on": set(DATASETS), "reported_on": there}


def points_of(run: Truth, options: argparse.Namespace) -> dict[str, Any]:
    """Features and labels of a run's points, and of 3,000 others of the pool."""
    data = dataset(run.name.partition("-")[0], options.data)
    at = positions(apiece.open(options.runs / run.name))
    others = np.setdiff1d(np.arange(data.n_pool), at)[:3000]
    labels = np.asarray(data.labels())
    more = data.features(others), labels[others]
    return {"X": data.features(at), "y": labels[at], "more": more}


def means_at(table: Contributions, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean contribution of every point at one size, and its standard error.

    What theory predicts of single contributions is subtracted, by least squares, if it is known.
    """
    at = table.k == k
    delta, point = table.delta[at], table.point[at]
    if table.control is not None:
        c = table.control[at]
        delta = delta - (c @ delta) / max(c @ c, 1e-300) * c
    n = np.bincount(point)
    mean = np.bincount(point, delta) / n
    return mean, np.sqrt(np.bincount(point, (delta - mean[point]) ** 2) / n / (n - 1))
