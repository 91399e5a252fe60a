"""Points that were valued rarely, because their place was settled, on laws that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from apiece.estimators import Bayes
from apiece.estimators._rows import about_population
from apiece.records import Contributions, Stage, Theory, chances

N, EARLY, LATE, TOP, K_0 = 400, 24, 160, 20, 100.0
SPREAD, NOISE = 1.0, 3.0


def drawn(rng, psi, tasks, is_focus=None):
    """Return task, point, k and contribution of tasks that value all points, or a focus."""
    rows = []
    for task in tasks:
        k = int(rng.integers(50, 201))
        unit = K_0 / k
        points = np.arange(N)
        if is_focus is not None:
            points = points[is_focus | (rng.random(N) < 1 / 8)]
        noise = NOISE * unit**0.75 * (rng.normal(size=len(points)) + 0.03 * rng.normal())
        rows.append((np.full(len(points), task), points, np.full(len(points), k)))
        rows[-1] += (psi[points] * unit + noise,)
    return tuple(np.concatenate(columns) for columns in zip(*rows, strict=True))


def undecided(table):
    """Return which points may be among the best after some tasks, as `until.top` does."""
    laws = Bayes().fit(table)
    draws = np.stack(
        [laws.family.mean(one, np.array([K_0]))[:, 0] for one in laws.draws(400, random_state=0)]
    )
    best = np.argpartition(-draws, TOP - 1, axis=1)[:, :TOP]
    chance = np.bincount(best.ravel(), minlength=N) / len(draws)
    return (chance > 0.005) & (chance < 0.995)


def focused_table(seed):
    """Return the truth, a table of which later tasks value a focus, and the focus."""
    rng = np.random.default_rng(seed)
    psi = SPREAD * rng.normal(size=N)
    early = drawn(rng, psi, range(EARLY))
    task, point, k, delta = early
    first = Contributions.from_arrays(task=task, point=point, k=k, delta=delta)
    is_focus = undecided(first)
    later = drawn(rng, psi, range(EARLY, EARLY + LATE), is_focus)
    task, point, k, delta = map(np.concatenate, zip(early, later, strict=True))
    chance = chances([Stage(EARLY, is_focus)], task, point)
    table = Contributions.from_arrays(task=task, point=point, k=k, delta=delta)
    return psi, replace(table, chance=chance), is_focus


@pytest.fixture(scope="module")
def tables():
    return [focused_table(seed) for seed in range(4)]


def test_intervals_cover_settled_points_and_the_others(tables):
    hits = {True: [], False: []}
    for psi, table, is_focus in tables:
        low, high = Bayes().fit(table).interval(K_0, level=0.9)
        for which in hits:
            hits[which] += list(((low < psi) & (psi < high))[is_focus == which])
    settled, others = np.mean(hits[False]), np.mean(hits[True])
    assert min(len(hits[True]), len(hits[False])) > 300
    assert 0.86 < settled < 0.94
    assert 0.86 < others < 0.94


def test_the_total_forgets_the_luck_by_which_points_were_settled():
    rng = np.random.default_rng(0)
    is_lucky = np.arange(N) % 2 == 0
    # Nobody is worth anything. Half of the points begin well, and are looked at more closely.
    task, point, k, delta = drawn(rng, np.zeros(N), range(EARLY))
    delta += NOISE / 2 * np.where(is_lucky, 1, -1)[point] * K_0 / k
    later = drawn(rng, np.zeros(N), range(EARLY, EARLY + LATE), is_lucky)
    columns = ((task, point, k, delta), later)
    task, point, k, delta = map(np.concatenate, zip(*columns, strict=True))
    table = Contributions.from_arrays(task=task, point=point, k=k, delta=delta)
    known = replace(table, chance=chances([Stage(EARLY, is_lucky)], task, point))
    assert abs(Bayes().fit(known).mean(K_0).mean()) < 0.06
    assert Bayes().fit(table).mean(K_0).mean() < -0.15


def test_corrections_to_theory_are_for_all_points(tables):
    away, without = [], []
    sizes = np.array([50.0, 100.0, 200.0])
    for psi, table, _ in tables:
        # Theory expects nothing of any point; the correction has to find the mean of all.
        terms = np.concatenate(
            [np.zeros((N, len(sizes), 1)), 1e-6 * np.ones((N, len(sizes), 1))], axis=2
        )
        known = replace(
            table,
            control=np.zeros(len(table)),
            active=np.ones(len(table), dtype=np.int64),
            theory=Theory(sizes, terms),
        )
        for found, given in ((away, known), (without, replace(known, chance=None))):
            expected = about_population(given).theory.terms[:, 1, 0]
            found.append(expected.mean() - psi.mean())
    assert abs(np.mean(away)) < 0.1
    assert np.mean(without) > 0.25
