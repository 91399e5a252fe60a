"""Estimators: how fast, how robust, how accurate, and how well calibrated.

    python benchmarks/estimators.py speed                       # against 1,000 Adam steps per point
    python benchmarks/estimators.py robustness [--points N]     # random inputs of every kind
    python benchmarks/estimators.py calibration                 # coverage on synthetic truth
    python benchmarks/estimators.py scale                       # 100,000 points: time and memory
    python benchmarks/estimators.py collect --runs DIR --data DIR       # what tells the truth
    python benchmarks/estimators.py accuracy --runs DIR         # against Monte Carlo truth
    python benchmarks/estimators.py features --runs DIR --data DIR      # what features add

Truth comes from the runs of ``apiece reproduce table1 --scale paper --models logistic``, or of
``collect``, which makes the same ones, all or those of ``--only``, of ``--valued`` points. DIR of
``--data`` holds adult.npz, cifar10.npz, higgs.npz, imdb.npz and magic.npz, each with X and y.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from _results import Results
from _truth import INSIDE, collect, points_of, r2, sets, spearman, truths
from apiece import synthetic, uses
from apiece.estimators import Amortized, Bayes, Likelihood
from apiece.laws import Laws
from apiece.records import Contributions

DESIGNS = ("one D per point", "shared")
PRIOR_SD = 0.5  # of the decays, as `Likelihood` has it
NETWORKS = {
    "amortized series": Amortized(family="series", kind="classification"),
    "amortized power": Amortized(kind="classification"),
    "the paper's network": Amortized(network="paper", kind="classification"),
}


# Accuracy --------------------------------------------------------------------------------------


def accuracy(options: argparse.Namespace) -> None:
    """Distributional Shapley over 100..1000 from few samples, against Monte Carlo truth."""
    methods = {
        "likelihood": Likelihood(),
        "bayes power": Bayes("power"),
        "bayes": Bayes(),
    }
    columns = {"run": "{}", "design": "{}", "samples": "{}"}
    columns |= dict.fromkeys(["Monte Carlo", *methods], "{:.3f} ± {:.3f}")
    columns |= {"worst draw": "{:+.3f}"} | dict.fromkeys(["Spearman", "R²"], "{:.2f} → {:.2f}")
    columns |= dict.fromkeys(["90 % coverage: power", "series"], "{:.2f}")
    columns |= {"training sets for truth": "{:,}", "points": "{:,}"}
    results = Results("estimators-accuracy", columns, options, **sets(options))
    for run in truths(options):
        truth, error = run.value()
        for design in DESIGNS:
            for samples in options.samples:
                rows: dict[str, list[float]] = {}
                for table in run.drawn(design, samples, options.draws):
                    estimates = {"Monte Carlo": np.bincount(table.point, table.delta) / samples}
                    for word, estimator in methods.items():
                        found = uses.value(estimator.fit(table), sizes=INSIDE)
                        estimates[word] = found["value"].to_numpy()
                        cover = covered(found, truth, error)
                        rows.setdefault(f"cover {word}", []).append(cover)
                    for word, values in estimates.items():
                        rows.setdefault(word, []).append(float(np.corrcoef(values, truth)[0, 1]))
                        rows.setdefault(f"s {word}", []).append(spearman(values, truth))
                        rows.setdefault(f"r {word}", []).append(r2(values, truth))
                mean = {word: float(np.mean(values)) for word, values in rows.items()}
                cells: list[Any] = [[mean[word], np.std(rows[word])] for word in estimates]
                cells.append(np.subtract(rows["bayes"], rows["Monte Carlo"]).min())
                for letter in "sr":
                    cells.append([mean[f"{letter} {word}"] for word in ("Monte Carlo", "bayes")])
                cells += [mean[f"cover {word}"] for word in ("bayes power", "bayes")]
                cells += [run.is_truth.sum(), len(truth)]
                results.add(run.name, design, samples, *cells)


def covered(found: Any, truth: np.ndarray, error: np.ndarray) -> float:
    """Share of true values inside 90 % intervals, which are widened by the truth's own error."""
    stderr = found["stderr"].to_numpy()
    reach = (found["high"] - found["low"]).to_numpy() / (2 * stderr)
    away = np.abs(found["value"].to_numpy() - truth)
    return float((away <= reach * np.hypot(stderr, error)).mean())


def features(options: argparse.Namespace) -> None:
    """The same with features, which bayes leaves out if D is shared, and by networks."""
    networks = {word: NETWORKS[word] for word in options.networks}
    columns = {"run": "{}", "samples": "{}"}
    columns |= dict.fromkeys(["Monte Carlo", "bayes", "bayes with features"], "{:.3f} ± {:.3f}")
    columns |= {"worst draw": "{:+.3f}", "90 % coverage": "{:.2f}"}
    columns |= {f"{word}; 90 % coverage": "{:.3f} ± {:.3f}; {:.2f}" for word in networks}
    results = Results("estimators-features", columns, options, **sets(options))
    for run in truths(options):
        truth, error = run.value()
        known = points_of(run, options)
        for samples in options.samples:
            rows: dict[str, list[float]] = {}
            for table in run.drawn(options.design, samples, options.draws):
                plain = np.bincount(table.point, table.delta) / samples
                found = {
                    "bayes": Bayes().fit(table),
                    "features": Bayes().fit(table, **known),
                    **{word: network.fit(table, **known) for word, network in networks.items()},
                }
                values = {word: uses.value(laws, sizes=INSIDE) for word, laws in found.items()}
                estimates = {word: frame["value"].to_numpy() for word, frame in values.items()}
                for word, estimate in {"plain": plain, **estimates}.items():
                    rows.setdefault(word, []).append(float(np.corrcoef(estimate, truth)[0, 1]))
                for word, frame in values.items():
                    rows.setdefault(f"cover {word}", []).append(covered(frame, truth, error))
            scores = {word: [np.mean(draws), np.std(draws)] for word, draws in rows.items()}
            coverage = {word: np.mean(rows[f"cover {word}"]) for word in found}
            results.add(
                run.name,
                samples,
                *(scores[word] for word in ("plain", "bayes", "features")),
                np.subtract(rows["features"], rows["plain"]).min(),
                coverage["features"],
                *([*scores[word], coverage[word]] for word in networks),
            )


# Synthetic -------------------------------------------------------------------------------------


def calibration(options: argparse.Namespace) -> None:
    """Coverage of 90 % intervals for psi_k on synthetic truth."""
    sizes = [100, 316, 1000, 2500, 10_000]
    columns = {"truth": "{}", "estimator": "{}", "samples": "{}"}
    columns |= {f"k = {k:,}": "{:.3f}" for k in sizes}
    results = Results(
        "estimators-calibration",
        columns,
        options,
        chosen_on=[f"synthetic seed {seed}" for seed in range(3)],
        reported_on=[f"synthetic seed {seed}" for seed in range(*options.seeds)],
    )
    for family in ("series", "power"):
        for estimator in (Likelihood(family), Bayes(family)):
            for samples in (10, 50, 200):
                inside = []
                for seed in range(*options.seeds):
                    truth = synthetic.random_laws(1000, family=family, random_state=seed)
                    table = synthetic.sample(truth, samples=samples, random_state=100 + seed)
                    low, high = estimator.fit(table).interval(sizes)
                    psi = truth.mean(sizes)
                    inside.append(((low <= psi) & (psi <= high)).mean(axis=0))
                word = type(estimator).__name__.lower()
                results.add(family, word, samples, *np.mean(inside, axis=0))


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
    columns = {"estimator": "{}", "failures": "{:,}", "points": "{:,}"}
    results = Results("estimators-robustness", columns, options)
    for word, count in failures.items():
        results.add(word, count, n_points)


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
    columns = {"sizes": "{}", "samples": "{:,}", "Adam, s per point": "{:.3f}"}
    columns |= {"likelihood, s per point": "{:.2e}", "ratio": "{:,.0f}", "same or better": "{:.0%}"}
    results = Results("estimators-speed", columns, options)
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
        results.add(count, 1000, loop, fast, loop / fast, better)


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
    columns = {"estimator": "{}", "points": "{:,}", "samples": "{}"}
    columns |= {"seconds": "{:.1f}", "peak, GB": "{:.2f}"}
    results = Results("estimators-scale", columns, options)
    for word, estimator, samples in cases:
        if options.only and options.only != word:
            continue
        truth = synthetic.random_laws(100_000, random_state=0)
        table = synthetic.sample(truth, samples=samples, random_state=1)
        started = time.process_time()
        estimator.fit(table)
        seconds = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        results.add(word, 100_000, samples, seconds, peak)


def main() -> None:
    every = (speed, robustness, calibration, scale, collect, accuracy, features)
    work = {each.__name__: each for each in every}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=work)
    parser.add_argument("--data", type=Path, help="folder with the .npz files")
    parser.add_argument("--runs", type=Path, help="folder of the runs with the truth")
    parser.add_argument("--only", default="", help="part of a run's name, or one case of scale")
    parser.add_argument("--points", type=int, default=100_000, help="for robustness")
    parser.add_argument("--valued", type=int, default=1000, help="points to value, for collect")
    parser.add_argument("--draws", type=int, default=5, help="draws of the samples")
    parser.add_argument("--samples", type=int, nargs="+", default=[10, 50], help="a point")
    parser.add_argument("--networks", nargs="*", default=[*NETWORKS], help="for features")
    parser.add_argument("--design", choices=DESIGNS, default=DESIGNS[0], help="for features")
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 3], help="for calibration")
    parser.add_argument("--adam", type=int, default=10, help="points of the loop of Adam steps")
    options = parser.parse_args()
    if options.what in ("collect", "accuracy", "features") and not options.runs:
        parser.error(f"{options.what} needs --runs DIR")
    if options.what in ("collect", "features") and options.data is None:
        parser.error(f"{options.what} needs --data DIR")
    work[options.what](options)


if __name__ == "__main__":
    main()
