"""Are values, intervals and signs right about the population, on tables of the size people have?

A user has a table of rows and values some of them. The truth is what these points contribute to
training sets of the population, from all other rows of a large dataset: each is a candidate, D and
the scoring rows are drawn anew for every task from the other rows, and the first-order control
variate is subtracted with a factor fitted there (its mean is zero, so the truth stays unbiased).

Ways to estimate, each from the same number of contributions per point:

- ``rotating``: nothing set aside, the laws of `bayes`;
- ``rotating, likelihood``: the same run, series laws of each point alone;
- ``rotating, mean``: the mean of the raw contributions at sizes near the one asked for;
- ``fixed``: a seventh of the table set aside to score on, the laws of `bayes`;
- ``sample``: these rows as a sample of the population;
- ``table, unlimited``: how far the rows of the table reach without theory. Means of as many
  contributions as the truth has, measured in the same way, from the rows of the table.

Settings of the method were chosen by looking at the sets in `CHOSEN_ON`; the others had no part.
With several ``--seeds`` a row is about as many tables and truths: means of coverage, calls and
wrong calls, medians of the others. What one table happens to hold moves all its points together, so
that the coverage of one table varies by some 0.05, and a single target can move R2 to -90.
Besides single sizes, ``value`` is the mean over all sizes from the smallest to the largest.

    python benchmarks/truth.py --data DIR [--rows 1500 3500] [--sets magic higgs ...]
    python benchmarks/truth.py --data DIR --agreement --sets magic electricity --rows 3500
    python benchmarks/truth.py --data DIR --picture --sets magic
    python benchmarks/truth.py --data DIR --averaging --rows 3500 --samples 50

``--agreement`` halves the rows that are not in the table and asks how well two truths agree, one
from each half: with rotating scoring rows, and with a quarter of the rows to draw from and a
quarter to score on. "noise of truths" is the share of their variance that more training sets would
take away.
``--picture`` keeps single points for the picture in docs/explanation/population.md.
``--averaging`` compares `bayes` with the plain mean of the same contributions, both for the same
fixed scoring rows: the correlation of values with those of many more training sets, and the sum of
the values over theirs, mean ± standard error over 8 draws.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import apiece
from _more_data import R_QUANTITIES
from _results import Results, summary
from _truth import means_at

CHOSEN_ON = (
    *("magic", "electricity", "california_housing", "higgs", "adult", "pol", "spambase"),
    *("miniboone", "fried", "tails", "logits", "rare", "flipped", "mixture", "steps"),
    *("categories", "moons", "mnist", "imdb", "waves", "wide"),
)
SIZES = (150, 400, 1000)
RANGE = (100, 1000)
N_VALUED = 200
LEVEL = 0.9
SHARES = slice(4, 7)  # among the scores: coverage, calls, wrong calls


class Data(NamedTuple):
    """All rows of a set: features, targets, and whether it is a regression."""

    X: np.ndarray
    y: np.ndarray
    is_regression: bool = False


def from_file(folder: Path, name: str) -> Data:
    held = np.load(folder / f"{name}.npz")
    X, y = held["X"].astype(np.float64), held["y"]
    if name in ("mnist", "cifar10"):
        from sklearn.decomposition import PCA

        X = X.reshape(len(X), -1) / np.abs(X).max()
        X = PCA(40, random_state=0).fit_transform(X)
    is_regression = name == "california_housing" or name in R_QUANTITIES
    return Data(X, y.astype(np.float64 if is_regression else np.int64), is_regression)


def fried(n: int, rng: np.random.Generator) -> Data:
    """Friedman's regression (1991): five of ten features matter, one of them twice."""
    X = rng.uniform(size=(n, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return Data(X, y + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n), True)


def tails(n: int, rng: np.random.Generator) -> Data:
    """A linear regression whose errors and features have heavy tails (Student's t, 3 and 5)."""
    X = rng.standard_t(5, size=(n, 12))
    return Data(X, X @ np.linspace(1, -1, 12) + rng.standard_t(3, size=n), True)


def logits(n: int, rng: np.random.Generator) -> Data:
    """A logistic model that is exactly right: 20 correlated normal features."""
    X = rng.normal(size=(n, 20)) @ (np.eye(20) + 0.3)
    p = 1 / (1 + np.exp(-X @ np.linspace(0.4, -0.4, 20)))
    return Data(X, (rng.uniform(size=n) < p).astype(np.int64))


def rare(n: int, rng: np.random.Generator) -> Data:
    """Two classes, one of them 3 % of the rows, 10 features."""
    y = (rng.uniform(size=n) < 0.03).astype(np.int64)
    return Data(rng.normal(size=(n, 10)) + 0.8 * y[:, None] * (np.arange(10) < 3), y)


def flipped(n: int, rng: np.random.Generator) -> Data:
    """Two classes apart, and a tenth of the labels wrong."""
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 15)) + 1.2 * y[:, None] * (np.arange(15) < 4)
    return Data(X, np.where(rng.uniform(size=n) < 0.1, 1 - y, y))


def mixture(n: int, rng: np.random.Generator) -> Data:
    """Three classes of 60, 30 and 10 % in eight dimensions, each of two overlapping clusters."""
    y = rng.choice(3, size=n, p=[0.6, 0.3, 0.1])
    centres = 1.2 * np.random.default_rng(11).normal(size=(3, 2, 8))
    return Data(centres[y, rng.integers(2, size=n)] + rng.normal(size=(n, 8)), y)


def steps(n: int, rng: np.random.Generator) -> Data:
    """A regression on thresholds of 20 features, with errors that grow with the first of them."""
    X = rng.normal(size=(n, 20))
    y = (X[:, :6] > 0.3) @ np.array([2.0, -1.5, 1.0, 1.0, -0.5, 0.5])
    return Data(X, y + np.exp(0.4 * X[:, 0]) * rng.normal(size=n), True)


def categories(n: int, rng: np.random.Generator) -> Data:
    """Six categorical columns as indicators, some levels rare, and a pair that interacts."""
    fixed = np.random.default_rng(12)
    parts, score = [], np.zeros(n)
    for levels in (2, 3, 4, 5, 6, 8):
        chance = fixed.dirichlet(np.ones(levels))
        code = rng.choice(levels, size=n, p=chance)
        parts.append(code)
        score += fixed.normal(size=levels)[code]
    score += 1.5 * (parts[0] == 0) * (parts[1] == 0)
    X = np.concatenate([np.eye(code.max() + 1)[code] for code in parts], axis=1)
    return Data(X, (rng.uniform(size=n) < 1 / (1 + np.exp(-score))).astype(np.int64))


def moons(n: int, rng: np.random.Generator) -> Data:
    """Two interleaved arcs, which no line separates, and six features without meaning."""
    y = rng.integers(2, size=n)
    angle = np.pi * rng.uniform(size=n)
    arc = np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.where(y, -1, 1)[:, None]
    arc += np.where(y, 1, 0)[:, None] * np.array([1.0, 0.5]) + 0.2 * rng.normal(size=(n, 2))
    return Data(np.concatenate([arc, rng.normal(size=(n, 6))], axis=1), y)


def counts(n: int, rng: np.random.Generator) -> Data:
    """Twelve Poisson counts of rising rates, and a class that depends on some of their roots."""
    X = rng.poisson(np.linspace(0.3, 6, 12), size=(n, 12)).astype(np.float64)
    score = np.sqrt(X[:, ::3]) @ np.array([1.0, -1.2, 0.8, -0.5])
    return Data(X, (score + rng.logistic(size=n) > np.median(score)).astype(np.int64))


def rings(n: int, rng: np.random.Generator) -> Data:
    """Four classes around a centre, each at its own angle and with its own width."""
    y = rng.integers(4, size=n)
    angle = np.pi / 2 * y + 0.5 * rng.normal(size=n)
    away = 1 + 0.3 * y + 0.4 * rng.normal(size=n)
    X = np.stack([away * np.cos(angle), away * np.sin(angle)], axis=1)
    return Data(np.concatenate([X, rng.normal(size=(n, 3))], axis=1), y)


def wide(n: int, rng: np.random.Generator) -> Data:
    """Sixty features that share six factors, and a class with one row in five."""
    loads = np.random.default_rng(13).normal(size=(6, 60))
    factors = rng.normal(size=(n, 6))
    X = factors @ loads + rng.normal(size=(n, 60))
    score = factors[:, :3].sum(axis=1) + rng.normal(size=n)
    return Data(X, (score > 1.7).astype(np.int64))


def waves(n: int, rng: np.random.Generator) -> Data:
    """A regression on sines and products of eight uniform features, with even errors."""
    X = rng.uniform(-1, 1, size=(n, 8))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + rng.uniform(-1, 1, size=n)
    return Data(X, y, True)


def orders(n: int, rng: np.random.Generator) -> Data:
    """A regression on lognormal features and a yes or no, with errors in proportion."""
    X = np.exp(0.6 * rng.normal(size=(n, 6)))
    yes = rng.integers(2, size=n)
    y = X @ np.linspace(1, 0.2, 6) + 2 * yes
    return Data(np.column_stack([X, yes]), y * np.exp(0.25 * rng.normal(size=n)), True)


SYNTHETIC: dict[str, Callable[[int, np.random.Generator], Data]] = {
    f.__name__: f
    for f in (
        *(fried, tails, logits, rare, flipped, mixture, steps, categories, moons),
        *(counts, rings, wide, waves, orders),
    )
}
FILES = (*(name for name in CHOSEN_ON if name not in SYNTHETIC), "cifar10")


def load(folder: Path, name: str, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    data = SYNTHETIC[name](20_000, rng) if name in SYNTHETIC else from_file(folder, name)
    order = rng.permutation(len(data.y))
    return Data(data.X[order], data.y[order], data.is_regression)


def standardised(data: Data, n: int) -> Data:
    """Return features (and quantities) in units of the user's table."""
    table = data.X[:n]
    spread = table.std(axis=0)
    X = (data.X - table.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    if not data.is_regression:
        return Data(X, data.y)
    return Data(X, (data.y - data.y[:n].mean()) / data.y[:n].std(), True)


class Truth(NamedTuple):
    """Expected contributions, ``(n_sizes + 1, n_points)``, values last, and their errors."""

    psi: np.ndarray
    error: np.ndarray


def truth_of(data: Data, rows: slice, points: slice, samples: int, *, fixed: int = 0) -> Truth:
    """Measure contributions of points to training sets drawn from other rows, and their values."""
    return Truth(*with_values(*measured(data, rows, points, samples, fixed=fixed)))


def measured(
    data: Data,
    rows: slice,
    points: slice,
    samples: int,
    *,
    sizes: tuple[int, ...] = SIZES,
    fixed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Measure contributions at some sizes, and their errors, each ``(n_sizes, n_points)``.

    Rows that start at the first one hold the points, which then are left out of their own sets.
    """
    kind = "regression" if data.is_regression else "classification"
    X, y = data.X[rows], data.y[rows]
    scoring: dict[str, Any] = {"validation": 0}
    if fixed:
        scoring = {"X_val": X[fixed : fixed + 12_000], "y_val": y[fixed : fixed + 12_000]}
        X, y = X[:fixed], y[:fixed]
    is_inside = rows.start == 0  # the points are the first of these rows, and not candidates
    candidates = None if is_inside else (data.X[points], data.y[points])
    dataset = apiece.Dataset.from_arrays(X, y, kind=kind, candidates=candidates, **scoring)
    valued = np.arange(N_VALUED) if is_inside else []
    run = apiece.collect(
        dataset,
        sizes=sizes,
        samples=len(sizes) * samples,
        points=valued,
        random_state=7,
        progress=False,
    )
    table = run.contributions()
    found = [means_at(table, k) for k in sizes]
    return np.array([psi for psi, _ in found]), np.array([error for _, error in found])


class Estimate(NamedTuple):
    """Estimates and half widths of 90 % intervals, ``(n_sizes + 1, n_points)``; values last."""

    psi: np.ndarray
    half: np.ndarray


def from_laws(laws: apiece.Laws) -> Estimate:
    low, high = laws.interval(np.array(SIZES), level=LEVEL)
    values = apiece.value(laws, sizes=(SIZES[0], SIZES[-1]), level=LEVEL)
    half = (values["high"] - values["low"]).to_numpy() / 2
    return Estimate(
        np.vstack([laws.mean(np.array(SIZES)).T, values["value"]]),
        np.vstack([(high - low).T / 2, half]),
    )


def with_values(psi: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add the mean over sizes, from the curve of three terms through the three sizes."""
    k, powers = np.array(SIZES, dtype=float), -np.array([1.0, 1.5, 2.0])
    every = np.arange(SIZES[0], SIZES[-1] + 1.0)
    means = (every[:, None] ** powers).mean(axis=0)
    weights = np.linalg.solve((k[:, None] ** powers).T, means)
    return (
        np.vstack([psi, weights @ psi]),
        np.vstack([error, np.sqrt(weights**2 @ error**2)]),
    )


def plain_mean(run: apiece.Run) -> Estimate:
    """Average raw contributions at sizes within a factor of 1.6."""
    table = run.contributions()
    psi, half = [], []
    for k in SIZES:
        near = (table.k > k / 1.6) & (table.k < k * 1.6)
        scaled = table.delta[near] * (table.k[near] / k) ** 2
        point, n = table.point[near], np.bincount(table.point[near], minlength=N_VALUED)
        mean = np.bincount(point, scaled, N_VALUED) / np.maximum(n, 1)
        spread = np.bincount(point, (scaled - mean[point]) ** 2, N_VALUED)
        psi.append(mean)
        half.append(1.645 * np.sqrt(spread / np.maximum(n, 2) / np.maximum(n - 1, 1)))
    return Estimate(*with_values(np.array(psi), np.array(half)))


def estimates(data: Data, n: int, samples: int, seed: int) -> dict[str, Estimate]:
    kind = "regression" if data.is_regression else "classification"
    settings: dict[str, Any] = {"sizes": RANGE, "samples": samples, "progress": False}
    X, y, valued = data.X[:n], data.y[:n], np.arange(N_VALUED)
    whole = apiece.Dataset.from_arrays(X, y, kind=kind, validation=0)
    run = apiece.collect(whole, points=valued, random_state=seed, **settings)
    n_pool = n - n // 7
    carved = apiece.Dataset.from_arrays(
        X[:n_pool], y[:n_pool], X_val=X[n_pool:], y_val=y[n_pool:], kind=kind
    )
    settings |= {"points": valued, "random_state": seed}
    fixed = apiece.collect(carved, **settings)
    sample = apiece.collect(carved, scoring="sample", **settings)
    return {
        "rotating": from_laws(run.laws()),
        "rotating, likelihood": from_laws(run.laws("likelihood", family="series")),
        "rotating, mean": plain_mean(run),
        "fixed": from_laws(fixed.laws()),
        "sample": from_laws(sample.laws()),
    }


def score(found: Estimate, truth: Truth, j: int) -> list[float]:
    """Return correlation, R2, total, top 20, coverage, calls and wrong calls at one size."""
    psi, true, error = found.psi[j], truth.psi[j], truth.error[j]
    half = np.sqrt(found.half[j] ** 2 + (1.645 * error) ** 2)
    calls = np.abs(psi) > found.half[j] * 1.96 / 1.645
    wrong = np.sign(psi[calls]) != np.sign(true[calls])
    best = set(np.argsort(-true)[:20])
    return [
        float(np.corrcoef(psi, true)[0, 1]),
        1 - float(((psi - true) ** 2).sum() / ((true - true.mean()) ** 2).sum()),
        float(psi.sum() / true.sum()),
        len(best & set(np.argsort(-psi)[:20])) / 20,
        float(np.mean(np.abs(psi - true) <= half)),
        float(calls.mean()),
        float(wrong.mean()) if calls.any() else float("nan"),
    ]


COLUMNS = {
    "data": "{}",
    "part": "{}",
    "rows": "{:,}",
    "method": "{}",
    "k": "{}",
    "r": "{:.2f}",
    "R2": "{:.2f}",
    "total": "{:.2f}",
    "top 20": "{:.2f}",
    "coverage": "{:.2f}",
    "called": "{:.2f}",
    "wrong": "{:.2f}",
    "reliability of truth": "{:.2f}",
    "tables": "{}",
}


def agreement(options: argparse.Namespace) -> None:
    """Compare truths from disjoint halves of the other rows."""
    columns = {"data": "{}", "rows": "{:,}", "k": "{}", "rotating": "{:.2f}"}
    columns |= {"noise of truths": "{:.2f}", "fixed": "{:.2f}"}
    results = Results("truth-agreement", columns, options, reported_on=set(options.sets))
    valued = slice(N_VALUED)
    for name in options.sets:
        for n in options.rows:
            held = load(options.data, name, options.seeds[0])
            if len(held.y) < n + 6_000:
                continue
            data = standardised(held, n)
            middle = n + (len(data.y) - n) // 2
            halves = slice(n, middle), slice(middle, None)
            rotating = [truth_of(data, half, valued, options.truth) for half in halves]
            quarter = (middle - n) // 2
            fixed = [
                truth_of(data, half, valued, options.truth // 2, fixed=quarter) for half in halves
            ]
            for j, k in enumerate((*(f"{k:,}" for k in SIZES), "value")):
                pairs = ([truth.psi[j] for truth in pair] for pair in (rotating, fixed))
                r = [float(np.corrcoef(*pair)[0, 1]) for pair in pairs]
                noise = np.mean([(t.error[j] ** 2).mean() / t.psi[j].var() for t in rotating])
                results.add(name, middle - n, k, r[0], float(noise), r[1])


def picture(options: argparse.Namespace) -> None:
    """Keep the estimates of single points, and their truth, at the largest size."""
    columns = dict.fromkeys(("truth", "fixed", "low", "high", "rotating"), "{:.3e}")
    columns |= {"rotating low": "{:.3e}", "rotating high": "{:.3e}"}
    results = Results("truth-points", columns, options, reported_on=set(options.sets))
    n = max(options.rows)
    data = standardised(load(options.data, options.sets[0], options.seeds[0]), n)
    truth = truth_of(data, slice(n, None), slice(N_VALUED), options.truth)
    found = estimates(data, n, options.samples, options.seeds[0])
    fixed, rotating = found["fixed"], found["rotating"]
    for i in range(N_VALUED):
        cells = [float(truth.psi[-2, i])]
        for way in (fixed, rotating):
            psi, half = float(way.psi[-2, i]), float(way.half[-2, i])
            cells += [psi, psi - half, psi + half]
        results.add(*cells)


def averaging(options: argparse.Namespace) -> None:
    """Compare laws with plain means of the same contributions, for given scoring rows."""
    columns = {"data": "{}", "part": "{}", "averaging": "{:.3f}", "bayes": "{:.3f}"}
    columns |= {"bayes ahead by": "{:.3f} ± {:.3f}"}
    columns |= dict.fromkeys(("total, averaging", "total, bayes"), "{:.2f} ± {:.2f}")
    results = Results(
        "truth-averaging", columns, options, chosen_on=CHOSEN_ON, reported_on=set(options.sets)
    )
    n, n_draws = max(options.rows), 8
    grid = np.geomspace(*RANGE, 50)
    for name in options.sets:
        held = load(options.data, name, options.seeds[0])
        if len(held.y) < n:
            continue
        data = standardised(held, n)
        n_pool = n - n // 7
        carved = apiece.Dataset.from_arrays(
            data.X[:n_pool],
            data.y[:n_pool],
            X_val=data.X[n_pool:n],
            y_val=data.y[n_pool:n],
            kind="regression" if data.is_regression else "classification",
        )
        run = apiece.collect(
            carved,
            points=np.arange(N_VALUED),
            sizes=RANGE,
            design="log-uniform",
            samples=(n_draws + 32) * options.samples,
            random_state=options.seeds[0],
            progress=False,
        )
        table = run.contributions()
        part = np.random.default_rng(0).integers(n_draws + 32, size=table.task.max() + 1)
        truth = means(table.where(part[table.task] >= n_draws))
        plain, laws, totals = [], [], []
        for draw in range(n_draws):
            few = table.where(part[table.task] == draw)
            value = apiece.fit(few).mean(grid).mean(axis=1)
            plain.append(float(np.corrcoef(means(few), truth)[0, 1]))
            laws.append(float(np.corrcoef(value, truth)[0, 1]))
            totals.append([float(each.sum() / truth.sum()) for each in (means(few), value)])
        ahead = summary(list(np.array(laws) - plain))
        kind = "choosing" if name in CHOSEN_ON else "apart"
        cells = [float(np.mean(plain)), float(np.mean(laws)), ahead]
        results.add(name, kind, *cells, *map(summary, map(list, zip(*totals, strict=True))))


def means(table: apiece.Contributions) -> np.ndarray:
    """Average the contributions of each point."""
    return np.bincount(table.point, table.delta, N_VALUED) / np.bincount(
        table.point, minlength=N_VALUED
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="*", default=[1500, 3500])
    parser.add_argument("--sets", nargs="*", default=[*FILES, *SYNTHETIC])
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--truth", type=int, default=400, help="training sets of each size")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--name", default="truth", help="of the result file")
    parser.add_argument("--resume", action="store_true", help="keep rows of the other sets")
    parser.add_argument("--agreement", action="store_true")
    parser.add_argument("--picture", action="store_true")
    parser.add_argument("--averaging", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", apiece.ApieceWarning)
    ways = {"agreement": agreement, "picture": picture, "averaging": averaging}
    next((do for way, do in ways.items() if getattr(options, way)), suite)(options)


def suite(options: argparse.Namespace) -> None:
    """Score every way to estimate on every set, for tables of several sizes."""
    results = Results(
        options.name, COLUMNS, options, chosen_on=CHOSEN_ON, reported_on=set(options.sets)
    )
    if options.resume:
        results.resume(but=options.sets)
    for name in options.sets:
        part = "choosing" if name in CHOSEN_ON else "apart"
        for n in options.rows:
            scores = [scored(options, name, n, seed) for seed in options.seeds]
            for method, k in scores[0]:
                every = np.array([each[method, k] for each in scores])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # no sign was called
                    found = np.nanmedian(every, axis=0)
                    found[SHARES] = np.nanmean(every[:, SHARES], axis=0)
                results.add(name, part, n, method, k, *map(float, found), len(scores))


def scored(
    options: argparse.Namespace, name: str, n: int, seed: int
) -> dict[tuple[str, str], list[float]]:
    """Score every way on one table; nothing if there are too few other rows."""
    held = load(options.data, name, seed)
    if len(held.y) < n + 3_000:
        return {}
    data = standardised(held, n)
    others, valued = slice(n, None), slice(N_VALUED)
    truth = truth_of(data, others, valued, options.truth)
    found = estimates(data, n, options.samples, seed)
    table = truth_of(data, slice(0, n), valued, options.truth)
    found["table, unlimited"] = Estimate(table.psi, 1.645 * table.error)
    noise = (truth.error**2).mean(axis=1) / truth.psi.var(axis=1)
    return {
        (method, k): [*score(estimate, truth, j), 1 - float(noise[j])]
        for method, estimate in found.items()
        for j, k in enumerate((*(f"{k:,}" for k in SIZES), "value"))
    }


if __name__ == "__main__":
    main()
