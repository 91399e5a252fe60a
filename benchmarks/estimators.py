"""Estimators: how fast, how robust, how accurate, how calibrated, and how far they reach.

    python benchmarks/estimators.py speed                       # against 1,000 Adam steps a point
    python benchmarks/estimators.py robustness [--points N]     # random inputs of every kind
    python benchmarks/estimators.py calibration                 # coverage on synthetic truth
    python benchmarks/estimators.py scale                       # 100,000 points: time and memory
    python benchmarks/estimators.py collect --data DIR --runs DIR [--only higgs]
    python benchmarks/estimators.py accuracy --runs DIR         # against Monte Carlo truth
    python benchmarks/estimators.py features --runs DIR --data DIR      # what features add
    python benchmarks/estimators.py extrapolation --runs DIR    # beyond the fitted sizes
    python benchmarks/estimators.py leverage --runs DIR --data DIR      # which points are missed

Truth comes from the runs of ``apiece reproduce table1 --scale paper --models logistic``: 1,000
points, ten sizes from 100 to 1,000, over 1,000 training sets of each, which all points share.
``collect`` adds runs of the same points at 2,500, 5,000 and 10,000, and one of CIFAR-10, which is
dear: 200 points, 500 training sets of 100 to 1,000. It resumes where it was stopped. DIR of
``--data`` holds adult.npz, cifar10.npz, higgs.npz, imdb.npz and magic.npz, each with X and y.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import apiece
from apiece import synthetic, valuation
from apiece.estimators import Amortized, Auto, Bayes, Likelihood
from apiece.laws import Laws
from apiece.records import Contributions

DATASETS = ("magic", "higgs", "imdb", "adult", "cifar10")
METRICS = ("softmax_of_proba", "log_loss")
FAR, FAR_SAMPLES = (2500, 5000, 10_000), 60  # sizes beyond the fitted ones, and samples at each
INSIDE = (100, 1000)
Z90 = 1.645  # standard errors that a 90 % interval of a normal reaches
PRIOR_SD = 0.5  # of the decays, as `Likelihood` has it
NETWORKS = {
    "amortized series": Amortized(family="series", kind="classification"),
    "amortized power": Amortized(kind="classification"),
    "the paper's network": Amortized(network="paper", kind="classification"),
}


# Runs ------------------------------------------------------------------------------------------


def dataset(name: str, folder: Path) -> apiece.Dataset:
    """As ``apiece reproduce`` prepares it."""
    with np.load(folder / f"{name}.npz") as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"]
    is_table = name not in ("imdb", "cifar10")
    return apiece.Dataset.from_arrays(X, y, validation=1000, standardize=is_table, random_state=0)


def standardised(name: str, folder: Path) -> apiece.Dataset:
    """A part of the embedded data, standardised, where the paper takes them as they are."""
    with np.load(folder / f"{name}.npz") as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"]
    pool, rest = slice(10_000), slice(10_000, 11_000)
    return apiece.Dataset.from_arrays(
        X[pool], y[pool], X_val=X[rest], y_val=y[rest], standardize=True, kind="classification"
    )


def collect(options: argparse.Namespace) -> None:
    for name in DATASETS:
        for metric in METRICS if name != "cifar10" else METRICS[1:]:
            title = f"{name}-logistic-{metric}"
            if options.only not in title:
                continue
            common: dict[str, Any] = {"metric": metric, "random_state": 0}
            if name == "cifar10":
                common |= {"points": range(200), "to": options.runs / f"{title}-uniform"}
                part = standardised(name, options.data)
                apiece.collect(part, sizes=INSIDE, samples=500, **common)
                continue
            data = dataset(name, options.data)
            points = positions(apiece.open(options.runs / f"{title}-grid"))
            common |= {"points": points, "to": options.runs / f"{title}-beyond"}
            samples = FAR_SAMPLES * len(FAR)
            apiece.collect(data, sizes=FAR, design="grid", samples=samples, **common)


def positions(run: Any) -> np.ndarray:
    """Positions of a run's valued points in the pool."""
    return np.flatnonzero(run.points["valued"].to_numpy())


@dataclass(frozen=True)
class Truth:
    """Contributions of a run, points x tasks (nan inside D): half for truth, half to draw from.

    ``stratum`` is the size of each task, as a position, where sizes repeat, and one for all where
    they do not; ``weight`` is that of each stratum in the mean over all sizes of ``INSIDE``.
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
        if len(sizes) > 50:
            stratum, weight = np.zeros(len(k), int), np.ones(1)
        else:  # between the sizes a curve is nearly a straight line in 1/k
            every = -1 / np.arange(INSIDE[0], INSIDE[1] + 1)
            weight = np.array([np.interp(every, -1 / sizes, e).mean() for e in np.eye(len(sizes))])
        is_truth = np.zeros(len(k), bool)
        is_truth[np.argsort(k, kind="stable")[::2]] = True
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
        """Draw ``samples`` contributions a point, sizes as if they were uniform in ``INSIDE``.

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


def r2(told: np.ndarray, truth: np.ndarray) -> float:
    return 1 - float(((told - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


# Accuracy --------------------------------------------------------------------------------------


def truths(options: argparse.Namespace) -> Iterator[Truth]:
    for name in DATASETS:
        for metric in METRICS:
            for design in ("grid", "uniform"):
                folder = options.runs / f"{name}-logistic-{metric}-{design}"
                if options.only in folder.name and (folder / "manifest.json").exists():
                    yield Truth.of(folder)
                    break


def accuracy(options: argparse.Namespace) -> None:
    """Distributional Shapley over 100..1000 from few samples, against Monte Carlo truth."""
    methods = {
        "likelihood": Likelihood(),
        "bayes power": Bayes("power"),
        "bayes": Bayes(),
    }
    head = ["data", "design", "samples", "Monte Carlo", *methods, "worst draw"]
    head += ["Spearman", "R²", "90 % cover: power", "series"]
    print(f"| {' | '.join(head)} |\n|" + " --- |" * len(head))
    for run in truths(options):
        truth, error = run.value()
        print(f"<!-- {run.name}: {run.is_truth.sum():,} training sets for truth, {len(truth)} -->")
        for design in ("one D per point", "shared"):
            for samples in options.samples:
                rows: dict[str, list[float]] = {}
                for table in run.drawn(design, samples, options.draws):
                    told = {"Monte Carlo": np.bincount(table.point, table.delta) / samples}
                    for word, estimator in methods.items():
                        found = valuation.value(estimator.fit(table), sizes=INSIDE)
                        told[word] = found["value"].to_numpy()
                        cover = covered(found, truth, error)
                        rows.setdefault(f"cover {word}", []).append(cover)
                    for word, values in told.items():
                        rows.setdefault(word, []).append(float(np.corrcoef(values, truth)[0, 1]))
                        rows.setdefault(f"s {word}", []).append(spearman(values, truth))
                        rows.setdefault(f"r {word}", []).append(r2(values, truth))
                mean = {word: float(np.mean(values)) for word, values in rows.items()}
                cells = [f"{mean[word]:.3f} ± {np.std(rows[word]):.3f}" for word in told]
                worst = np.subtract(rows["bayes"], rows["Monte Carlo"]).min()
                cells.append(f"{worst:+.3f}")
                for letter in "sr":
                    pair = [mean[f"{letter} {word}"] for word in ("Monte Carlo", "bayes")]
                    cells.append(" → ".join(f"{cell:.2f}" for cell in pair))
                cells += [f"{mean[f'cover {word}']:.2f}" for word in ("bayes power", "bayes")]
                print(f"| {run.name} | {design} | {samples} | {' | '.join(cells)} |", flush=True)


def covered(found: Any, truth: np.ndarray, error: np.ndarray) -> float:
    """Share of true values inside 90 % intervals, which are widened by the truth's own error."""
    stderr = found["stderr"].to_numpy()
    reach = (found["high"] - found["low"]).to_numpy() / (2 * stderr)
    away = np.abs(found["value"].to_numpy() - truth)
    return float((away <= reach * np.hypot(stderr, error)).mean())


def features(options: argparse.Namespace) -> None:
    """The same with features, one D per point: bayes, and the networks of amortized."""
    networks = {word: NETWORKS[word] for word in options.networks}
    head = ["data", "samples", "Monte Carlo", "bayes", "bayes with features", "worst draw"]
    head += ["90 % cover", *networks]
    print(f"| {' | '.join(head)} |\n|" + " --- |" * len(head))
    for run in truths(options):
        truth, error = run.value()
        known = points_of(run, options)
        for samples in options.samples:
            rows: dict[str, list[float]] = {}
            for table in run.drawn("one D per point", samples, options.draws):
                plain = np.bincount(table.point, table.delta) / samples
                found = {
                    "bayes": Bayes().fit(table),
                    "features": Bayes().fit(table, **known),
                    **{word: network.fit(table, **known) for word, network in networks.items()},
                }
                values = {word: valuation.value(laws, sizes=INSIDE) for word, laws in found.items()}
                told = {word: table["value"].to_numpy() for word, table in values.items()}
                for word, estimate in {"plain": plain, **told}.items():
                    rows.setdefault(word, []).append(float(np.corrcoef(estimate, truth)[0, 1]))
                cover = covered(values["features"], truth, error)
                rows.setdefault("cover", []).append(cover)
            cells = {w: f"{np.mean(cells):.3f} ± {np.std(cells):.3f}" for w, cells in rows.items()}
            worst = np.subtract(rows["features"], rows["plain"]).min()
            line = [cells["plain"], cells["bayes"], cells["features"], f"{worst:+.3f}"]
            line += [f"{np.mean(rows['cover']):.2f}", *(cells[word] for word in networks)]
            print(f"| {run.name} | {samples} | {' | '.join(line)} |", flush=True)


def points_of(run: Truth, options: argparse.Namespace) -> dict[str, Any]:
    """Features and labels of a run's points, and of 3,000 others of the pool."""
    of = standardised if run.name.endswith("uniform") else dataset
    data = of(run.name.partition("-")[0], options.data)
    at = positions(apiece.open(options.runs / run.name))
    others = np.setdiff1d(np.arange(data.n_pool), at)[:3000]
    labels = np.asarray(data.labels())
    more = data.features(others), labels[others]
    return {"X": data.features(at), "y": labels[at], "more": more}


def extrapolation(options: argparse.Namespace) -> None:
    """Fitted on 100..1000 with 50 and 500 samples a point, tested beyond."""
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
    head = ["data", "samples", "k", "best possible R²", *methods, "auto takes"]
    head += ["90 % cover: power", "series", "ridge", "auto"]
    print(f"| {' | '.join(head)} |\n|" + " --- |" * len(head))
    for run, delta, sizes in reaching(options):
        for samples in options.samples:
            table = next(run.drawn("shared", samples, 1))
            laws = {word: estimator.fit(table) for word, estimator in methods.items()}
            for far in FAR:
                late = delta[:, sizes == far]
                if late.shape[1] >= 30:
                    cells = beyond(laws, late, far)
                    print(f"| {run.name} | {samples} | {far:,} | {' | '.join(cells)} |", flush=True)


def reaching(options: argparse.Namespace) -> Iterator[tuple[Truth, np.ndarray, np.ndarray]]:
    """Runs that go on beyond the fitted sizes, with contributions and sizes there."""
    for run in truths(options):
        folder = options.runs / f"{run.name.removesuffix('-grid')}-beyond"
        if (folder / "manifest.json").exists():
            yield run, *matrix(folder)


def beyond(laws: dict[str, Laws], late: np.ndarray, far: int) -> list[str]:
    """What laws tell of one size beyond the fitted ones: R², Pearson, Spearman; then coverage."""
    truth = np.nanmean(late, axis=1)
    error = np.nanstd(late, axis=1) / np.sqrt(np.isfinite(late).sum(axis=1))
    cells = [f"{1 - float((error**2).mean() / truth.var()):.2f}"]  # the truth's own error caps it
    for found in laws.values():
        told = found.mean(far)
        scores = r2(told, truth), np.corrcoef(told, truth)[0, 1], spearman(told, truth)
        cells.append(", ".join(f"{score:.2f}" for score in scores))
    chosen = laws["auto"].attrs
    cells.append(f"{chosen['estimator']} {chosen['settings']['family']}")
    for word in ("bayes power", "bayes", "bayes ridge", "auto"):
        low, high = laws[word].interval(far)
        away = truth - laws[word].mean(far)
        reach = np.where(away > 0, high - laws[word].mean(far), laws[word].mean(far) - low)
        cells.append(f"{(np.abs(away) <= np.hypot(reach, Z90 * error)).mean():.2f}")
    return cells


def leverage(options: argparse.Namespace) -> None:
    """R² of `auto` beyond the fitted sizes among points of little and of much leverage."""
    parts = {"least half": (0, 0.5), "next 30 %": (0.5, 0.8), "next 15 %": (0.8, 0.95)}
    parts |= {"most 5 %": (0.95, 1)}
    head = ["data", "samples", "k", "all", *parts, "leverage there", "error of the ten worst"]
    print(f"| {' | '.join(head)} |\n|" + " --- |" * len(head))
    for run, delta, sizes in reaching(options):
        data = dataset(run.name.partition("-")[0], options.data)
        every = data.features(np.arange(data.n_pool))
        own = every[positions(apiece.open(options.runs / run.name))] - every.mean(axis=0)
        size = np.einsum("ij,jk,ik->i", own, np.linalg.pinv(np.cov(every.T)), own)
        for samples in options.samples:
            laws = Auto().fit(next(run.drawn("shared", samples, 1)))
            for far in FAR:
                truth = np.nanmean(delta[:, sizes == far], axis=1)
                told = laws.mean(far)
                cells = [f"{r2(told, truth):.2f}"]
                for low, high in parts.values():
                    at = (size >= np.quantile(size, low)) & (size <= np.quantile(size, high))
                    cells.append(f"{r2(told[at], truth[at]):.2f}")
                error = np.sort((told - truth) ** 2)[::-1]
                cells.append(f"{size[at].min():,.0f} to {size[at].max():,.0f}")
                cells.append(f"{error[:10].sum() / error.sum():.0%}")
                print(f"| {run.name} | {samples} | {far:,} | {' | '.join(cells)} |", flush=True)


# Synthetic -------------------------------------------------------------------------------------


def calibration(options: argparse.Namespace) -> None:
    """Coverage of 90 % intervals for psi_k on synthetic truth."""
    sizes = [100, 316, 1000, 2500, 10_000]
    print("| truth | estimator | samples | " + " | ".join(f"k = {k:,}" for k in sizes) + " |")
    print("|" + " --- |" * (3 + len(sizes)))
    for family in ("series", "power"):
        for estimator in (Likelihood(family), Bayes(family)):
            for samples in (10, 50, 200):
                inside = []
                for seed in range(3):
                    truth = synthetic.random_laws(1000, family=family, random_state=seed)
                    table = synthetic.sample(truth, samples=samples, random_state=100 + seed)
                    low, high = estimator.fit(table).interval(sizes)
                    psi = truth.mean(sizes)
                    inside.append(((low <= psi) & (psi <= high)).mean(axis=0))
                word = type(estimator).__name__.lower()
                cells = " | ".join(f"{share:.3f}" for share in np.mean(inside, axis=0))
                print(f"| {family} | {word} | {samples} | {cells} |", flush=True)


def robustness(options: argparse.Namespace) -> None:
    """Random inputs of every kind; a failure is an exception, a warning, or a law with a nan."""
    rng = np.random.default_rng(0)
    estimators = {
        "likelihood": Likelihood(),
        "likelihood series": Likelihood("series"),
        "bayes": Bayes(),
        "bayes power": Bayes("power"),
        "bayes blend": Bayes("blend"),  # ridge laws and both series
    }
    failures = dict.fromkeys(estimators, 0)
    n_points = 0
    np.seterr(all="raise", under="ignore")
    while n_points < options.points:
        table = nasty(rng, min(5_000, options.points))
        n_points += table.n_points
        for word, estimator in estimators.items():
            try:
                laws = estimator.fit(table)
            except Exception as error:
                print(f"{word}: {error!r}")
                failures[word] += table.n_points
                continue
            known = np.isfinite(laws.params).all(axis=1)
            if word.startswith("bayes"):  # others have no interval from one size, or from zeros
                known &= np.isfinite(laws.stderr(100))
            is_bad = ~known & (laws.n_samples >= 3)
            failures[word] += int(is_bad.sum())
    for word, count in failures.items():
        print(f"{word}: {count} failures of {n_points:,} points")


def nasty(rng: np.random.Generator, n: int) -> Contributions:
    points, sizes, deltas = [], [], []
    for point in range(n):
        m = int(np.exp(rng.uniform(np.log(3), np.log(1000 if point % 50 == 0 else 60))))
        k = rng.integers(1, 10 ** rng.integers(1, 5), m, endpoint=True)
        noise = rng.standard_normal(m)
        kind = rng.integers(0, 8)
        if kind == 0:
            delta = np.full(m, noise[0])
        elif kind == 1:
            delta = np.zeros(m)
        elif kind == 2:
            k[:] = k[0]
            delta = noise
        elif kind == 3:
            delta = np.where(rng.random(m) < 0.1, 1e6 * noise, noise)
        elif kind == 4:
            delta = k ** -rng.uniform(0, 4)
        elif kind == 5:
            delta = np.where(rng.random(m) < 0.8, 0.0, noise)
        elif kind == 6:
            delta = k**-1.2 + 1e-12 * noise
        else:
            delta = noise * k ** rng.uniform(-3, 1)
        points += [point] * m
        sizes += k.tolist()
        deltas += (delta * 10.0 ** rng.uniform(-100, 100)).tolist()
    return Contributions.from_arrays(point=points, k=sizes, delta=deltas)


def speed(options: argparse.Namespace) -> None:
    """Likelihood against 1,000 Adam steps for one point after another, in one run."""
    print("| sizes | samples | Adam, s a point | likelihood, s a point | ratio | same or better |")
    print("| --- | --- | --- | --- | --- | --- |")
    for design, n_points in (("uniform", 500), ("grid", 20_000)):
        truth = synthetic.random_laws(n_points, random_state=0)
        table = synthetic.sample(truth, samples=1000, design=design, random_state=1, shared=False)
        fast = min(_seconds(lambda t=table: Likelihood().fit(t)) for _ in range(3)) / n_points
        laws = Likelihood().fit(table)
        rows = [np.flatnonzero(table.point == point) for point in range(options.adam)]
        started = time.perf_counter()
        slow = [adam(table.k[row], table.delta[row]) for row in rows]
        loop = (time.perf_counter() - started) / options.adam
        ours = [_objective(table.k[row], table.delta[row], laws, j) for j, row in enumerate(rows)]
        better = np.mean([mine <= theirs + 1e-6 for mine, theirs in zip(ours, slow, strict=True)])
        count = len(np.unique(table.k))
        print(f"| {count} | 1,000 | {loop:.3f} | {fast:.2e} | {loop / fast:,.0f} | {better:.0%} |")


def _seconds(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def adam(k: np.ndarray, delta: np.ndarray) -> float:
    """1,000 Adam steps on (log alpha, log beta), c and sigma profiled out; the lowest objective.

    It is that of `Likelihood`: the likelihood and the prior of the decays, for one contribution.
    """
    import torch

    torch.set_num_threads(1)
    log_k = torch.log(torch.tensor(k, dtype=torch.float64))
    y = torch.tensor(delta / np.abs(delta).max(), dtype=torch.float64)
    theta = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([theta], lr=0.05)
    best = np.inf
    for _ in range(1000):
        optimiser.zero_grad()
        alpha, beta = torch.exp(torch.clamp(theta, max=2.0))
        weight = torch.exp(beta * (log_k - log_k.mean()))
        curve = torch.exp(-alpha * (log_k - log_k.mean()))
        height = (weight * curve * y).sum() / (weight * curve**2).sum()
        q = (weight * (y - height * curve) ** 2).mean()
        prior = ((alpha - 1) ** 2 + (beta / 2 - 1) ** 2) / (2 * PRIOR_SD**2 * len(k))
        loss = 0.5 * torch.log(q) - 0.5 * beta * (log_k - log_k.mean()).mean() + prior
        loss.backward()
        optimiser.step()
        best = min(best, float(loss.detach()))
    return best


def _objective(k: np.ndarray, delta: np.ndarray, laws: Laws, j: int) -> float:
    """The same objective at our estimate."""
    alpha, beta = laws.alpha[j], laws.beta[j]
    log_k, y = np.log(k), delta / np.abs(delta).max()
    weight = np.exp(beta * (log_k - log_k.mean()))
    curve = np.exp(-alpha * (log_k - log_k.mean()))
    height = (weight * curve * y).sum() / (weight * curve**2).sum()
    prior = ((alpha - 1) ** 2 + (beta / 2 - 1) ** 2) / (2 * PRIOR_SD**2 * len(k))
    return float(0.5 * np.log((weight * (y - height * curve) ** 2).mean()) + prior)


def scale(options: argparse.Namespace) -> None:
    """100,000 points: seconds and peak memory of one call."""
    cases = [("bayes", Bayes(), 20), ("bayes power", Bayes("power"), 20)]
    cases += [("bayes ridge", Bayes("ridge"), 20)]
    cases += [("likelihood", Likelihood(), 100), ("likelihood series", Likelihood("series"), 20)]
    for word, estimator, samples in cases:
        if options.only and options.only != word:
            continue
        truth = synthetic.random_laws(100_000, random_state=0)
        table = synthetic.sample(truth, samples=samples, random_state=1)
        started = time.process_time()
        estimator.fit(table)
        seconds = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{word}: 100,000 points x {samples} samples, {seconds:.1f} s, peak {peak:.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what",
        choices=[
            "speed", "robustness", "calibration", "scale", "collect", "accuracy", "features",
            "extrapolation", "leverage",
        ],
    )  # fmt: skip
    parser.add_argument("--data", type=Path, help="folder with the .npz files")
    parser.add_argument("--runs", type=Path, help="folder of the runs with the truth")
    parser.add_argument("--only", default="", help="part of a run's name, or one case of scale")
    parser.add_argument("--points", type=int, default=100_000, help="for robustness")
    parser.add_argument("--draws", type=int, default=5, help="draws of the samples")
    parser.add_argument("--samples", type=int, nargs="+", help="a point")
    parser.add_argument("--networks", nargs="*", default=[*NETWORKS], help="for features")
    parser.add_argument("--adam", type=int, default=10, help="points of the loop of Adam steps")
    options = parser.parse_args()
    options.samples = options.samples or (
        [50, 500] if options.what in ("extrapolation", "leverage") else [10, 50]
    )
    with_runs = ("accuracy", "features", "extrapolation", "leverage", "collect")
    if options.what in with_runs and not options.runs:
        parser.error(f"{options.what} needs --runs DIR")
    if options.what in ("collect", "features", "leverage") and options.data is None:
        parser.error(f"{options.what} needs --data DIR")
    globals()[options.what](options)


if __name__ == "__main__":
    main()
