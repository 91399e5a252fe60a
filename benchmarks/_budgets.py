"""How much computing a question takes: parts ``until`` and ``plan`` of `any_model.py`."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression

import apiece
from _results import Results
from apiece.collection import Design, make_plan
from apiece.estimators import Bayes
from apiece.records import Contributions, Stage

N_POINTS, N_VALIDATION, SIZES, TOP = 400, 1_000, (60, 180), 20
MOST = 400  # samples
STEPS = [4, 6, 8, 10, 12, 14, 17, 20, 24, 28, 34, 40, 56, 80, 112, 160, 220, 300, MOST]  # fixed
PLANNED = (25, 100)
K = np.array([np.sqrt(SIZES[0] * SIZES[1])])
REQUEST = {"sizes": SIZES, "anchor": False, "progress": False}
CHOSEN_ON = ("electricity", "magic")


class Judge:
    """The true values of the points of a set, from other runs, and how near a run comes."""

    def __init__(self, runs) -> None:
        apart = [replace(run, task=run.task + number * 10**6) for number, run in enumerate(runs)]
        laws = Bayes().fit(Contributions.concat(apart))
        self.truth, self.error = laws.mean(K)[:, 0], laws.stderr(K)[:, 0]
        draws = self.truth + self.error * np.random.default_rng(0).normal(size=(2_000, N_POINTS))
        best = np.argpartition(-draws, TOP - 1, axis=1)[:, :TOP]
        self.chance = np.bincount(best.ravel(), minlength=N_POINTS) / len(draws)

    def share(self, laws) -> float:
        """Return the share of the true best points among those that laws say are best.

        As far as the truth can tell: the chance to be among the best of those that were chosen,
        over that of those with the best chances.
        """
        chosen = np.argsort(-laws.mean(K)[:, 0])[:TOP]
        return float(self.chance[chosen].sum() / np.sort(self.chance)[-TOP:].sum())

    def covered(self, laws):
        """Return which points have a 90 % interval that holds the truth, given its noise."""
        low, high = (bound[:, 0] for bound in laws.interval(K, level=0.9))
        z = norm.ppf(0.95)
        half = z * np.hypot((high - low) / 2 / z, self.error)
        return np.abs((low + high) / 2 - self.truth) < half


def dataset_of(name: str, folder, table):
    X, y, _ = table(name, folder, N_POINTS)
    rest = slice(N_POINTS, N_POINTS + N_VALIDATION)
    return apiece.Dataset.from_arrays(X[:N_POINTS], y[:N_POINTS], X_val=X[rest], y_val=y[rest])


def fixed_runs(data, draws: int):
    """Return contributions of runs of ``MOST`` samples, and a judge of each from all others."""
    runs = [
        apiece.collect(data, samples=MOST, random_state=seed, **REQUEST).contributions()
        for seed in range(draws)
    ]
    judges = [Judge([run for run in runs if run is not one]) for one in runs]
    return runs, judges


def first(data, whole, samples: int, seed: int):
    """Return what a run of fewer samples holds: the first tasks of a longer one."""
    plan = make_plan(
        Design.of(SIZES, samples=samples),
        n_pool=N_POINTS,
        points=np.arange(N_POINTS),
        seed=seed,
        strata=data.y,
    )
    return whole.where(whole.task < len(plan))


def n_trainings(table) -> int:
    """Return the trainings behind contributions from pairs: one a training set, one a point."""
    return len(table.delta) + len(np.unique(table.task))


def stopping(options, table) -> None:
    """Compare ``until="top 20"`` with fixed samples that find as many of the best points."""
    results = Results(
        "any-model-until",
        {
            "data": "{}",
            "true top 20 found, until": "{:.2f}",
            "found, fixed": "{:.2f}",
            "samples, fixed": "{:,.0f}",
            "trainings, until": "{:,.0f}",
            "trainings, fixed": "{:,.0f}",
            "fixed over until": "{:.1f}",
            "coverage, until": "{:.2f}",
            "of settled points": "{:.2f}",
            "of the others": "{:.2f}",
            "of these, fixed": "{:.2f}",
            "coverage, fixed": "{:.2f}",
        },
        options,
        chosen_on=CHOSEN_ON,
        reported_on=options.stopped,
    )
    for name in options.stopped:
        data = dataset_of(name, options.data, table)
        runs, judges = fixed_runs(data, options.draws)
        ours = [stopped(data, runs, judges, seed) for seed in range(options.draws)]
        aim = np.mean([found for found, *_ in ours])
        fixed = np.array([measured(data, runs, judges, step) for step in STEPS])
        rising = IsotonicRegression().fit_transform(STEPS, fixed[:, 0])
        rising += 1e-9 * np.arange(len(STEPS))
        share, samples, cost, inside = (
            np.interp(aim, rising, column) for column in (rising, STEPS, *fixed[:, 1:].T)
        )
        costs = np.mean([cost for _, cost, *_ in ours]), cost
        print(
            name, *(f"{each}: {share:.3f}" for each, share in zip(STEPS, fixed[:, 0], strict=True))
        )
        _, _, *columns = zip(*ours, strict=True)
        covered, as_fixed, settled = map(np.concatenate, columns)
        results.add(
            name,
            aim,
            share,
            samples,
            *costs,
            costs[1] / costs[0],
            covered.mean(),
            covered[settled].mean() if settled.any() else np.nan,
            covered[~settled].mean(),
            as_fixed[~settled].mean(),
            inside,
        )


def measured(data, runs, judges, samples: int):
    """Return share of the best found, trainings and coverage of fixed samples, means over runs."""
    found = []
    for seed, (whole, judge) in enumerate(zip(runs, judges, strict=True)):
        part = first(data, whole, samples, seed)
        laws = Bayes().fit(part)
        found.append((judge.share(laws), n_trainings(part), judge.covered(laws).mean()))
    return np.mean(found, axis=0)


def stopped(data, runs, judges, seed: int):
    """Return share of the best found and trainings of a run; and for each point what is true.

    Whether its interval holds the truth, whether that of another draw's fixed run of as many
    samples does, and whether its place was settled.
    """
    criterion, judge = apiece.until.top(TOP), judges[seed]
    run = apiece.collect(data, until=criterion, samples=MOST, random_state=seed, **REQUEST)
    part = run.contributions()
    laws = Bayes().fit(part)
    settled = np.zeros(N_POINTS, dtype=bool)
    if run.manifest.stages:
        settled = ~Stage.from_json(run.manifest.stages[-1]).is_focus
    other = (seed + 1) % len(runs)
    as_many = Bayes().fit(first(data, runs[other], run.manifest.samples, other))
    covered = judge.covered(laws), judges[other].covered(as_many)
    return judge.share(laws), n_trainings(part), *covered, settled


def planned(options, table) -> None:
    """Compare what a plan says with what the run then takes and reaches."""
    results = Results(
        "any-model-plan",
        {
            "data": "{}",
            "samples": "{:,}",
            "correlation, planned": "{:.2f}",
            "correlation, reached": "{:.2f}",
            "half width, planned": "{:.2f}",
            "half width, reached": "{:.2f}",
            "seconds, planned": "{:.0f}",
            "seconds, taken": "{:.0f}",
            "time left, shown over true": "{:.2f} to {:.2f}",
            "longest silence, seconds": "{:.1f}",
        },
        options,
        reported_on=options.stopped,
    )
    for name in options.stopped:
        data = dataset_of(name, options.data, table)
        _, (judge, *_) = fixed_runs(data, 3)
        for samples in PLANNED:
            plan = apiece.plan(data, sizes=SIZES, samples=samples, random_state=1)
            events = []
            began = time.monotonic()
            run = apiece.collect(
                data, samples=samples, random_state=0, on_progress=events.append, **REQUEST
            )
            seconds = time.monotonic() - began
            laws = Bayes().fit(run.contributions())
            low, high = (bound[:, 0] for bound in laws.interval(K, level=0.9))
            spread = np.sqrt(np.var(judge.truth) - np.mean(judge.error**2))
            noise = np.mean(judge.error**2) / np.var(judge.truth)
            results.add(
                name,
                samples,
                plan.correlation,
                np.corrcoef(laws.mean(K)[:, 0], judge.truth)[0, 1] / np.sqrt(1 - noise),
                plan.width,
                np.median(high - low) / 2 / spread,
                plan.seconds,
                seconds,
                *time_left(events, seconds),
            )


def time_left(events, seconds: float):
    """Return ends of time left as shown over what was left, and the longest time without an event.

    From the first tenth of the work on, while at least a tenth of the time was left.
    """
    ends = [event.elapsed for event in events] + [seconds]
    shown = [
        event.remaining / (seconds - event.elapsed)
        for event in events
        if event.total and event.done >= event.total / 10 and event.elapsed < 0.9 * seconds
    ]
    silence = max(after - before for before, after in pairwise(ends))
    return ([min(shown), max(shown)] if shown else [np.nan, np.nan]), silence
