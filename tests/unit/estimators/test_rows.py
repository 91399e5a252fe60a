"""What contributions with rotating scoring rows say of all rows that could have been drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from apiece.estimators import Bayes
from apiece.estimators._rows import _block_effects
from apiece.estimators._theory import Corrections, corrected
from apiece.laws import Power, Series
from apiece.records import Contributions, Theory


@pytest.mark.parametrize("n", [8, 12, 40])
def test_blocks_without_effects_add_no_noise_however_few_the_tasks(n):
    rng = np.random.default_rng(n)
    n_cells = 4_000
    cell = np.repeat(np.arange(n_cells), n)
    active = np.array([sum(1 << g for g in rng.permutation(16)[:8]) for _ in range(len(cell))])
    found = _block_effects(cell, rng.normal(size=len(cell)), active, n_cells)
    assert abs(np.mean(found)) < 3 * np.std(found) / np.sqrt(n_cells)


def test_effects_of_blocks_are_measured_without_bias():
    rng = np.random.default_rng(0)
    n, n_cells = 20, 2_000
    cell = np.repeat(np.arange(n_cells), n)
    bits = np.zeros((len(cell), 16))
    for row in bits:
        row[rng.permutation(16)[:8]] = 1
    effect = 0.2 * rng.normal(size=(n_cells, 16))
    residual = (bits * effect[cell]).sum(axis=1) + rng.normal(size=len(cell))
    active = (bits @ 2.0 ** np.arange(16)).astype(np.int64)
    found = _block_effects(cell, residual, active, n_cells)
    # Half of the blocks are active, and an effect common to all blocks changes nothing.
    about = 0.5**2 * 0.2**2 * 15 / (1 + 0.2**2 * 16 / 4)
    assert_allclose(np.mean(found), about, rtol=0.2)


def test_what_is_not_known_of_corrections_widens_what_theory_expects():
    sizes, rng = np.array([100.0, 400.0]), np.random.default_rng(0)
    theory = Theory(sizes, rng.normal(size=(3, 2, 2)), np.zeros((3, 2, 2)))
    weights = Corrections(np.zeros(6), np.diag([0.1, 0, 0, 0, 0, 0]) ** 2)
    expected = corrected(theory, np.ones(2), weights, 200.0)
    assert_allclose(expected.terms[:, :, 0], theory.terms[:, :, 0])
    first = theory.terms[:, :, 0]
    assert_allclose(expected.row_noise, 0.1**2 * first[:, :, None] * first[:, None, :])


def test_deviations_from_theory_fall_faster_than_laws_do():
    basis, x = Series().prior_basis(300.0), np.array([[1.0, 4.0]])
    usual, beyond = (
        np.sqrt(np.diag(terms @ prior @ terms.T))
        for terms, prior in (
            (basis.columns(x, 0)[0], basis.prior),
            (basis.columns(x, 0)[0], basis.of_deviations().prior),
        )
    )
    assert usual[1] / usual[0] > 0.2
    assert beyond[1] / beyond[0] < 0.15
    power = Power().prior_basis(300.0)
    assert power.of_deviations() is power


def contributions(truth, *, noise, theory=None, n=200, seed=0):
    """Return contributions of points about the population, 60 of each, with theory or not."""
    rng, samples = np.random.default_rng(seed), 60
    point = np.repeat(np.arange(n), samples)
    k = np.round(np.exp(rng.uniform(np.log(100), np.log(1000), len(point)))).astype(int)
    delta = truth(k)[point, np.arange(len(k))] + noise * (100 / k) ** 1.5 * rng.normal(size=len(k))
    table = Contributions.from_arrays(
        task=np.tile(np.arange(samples), n),
        k=k,
        point=point,
        delta=delta,
        attrs={"design": {"name": "log-uniform", "scoring": "rotating"}},
    )
    return table if theory is None else replace(table, theory=theory)


def test_theory_is_taken_where_contributions_agree_with_it_and_left_where_they_do_not():
    rng, sizes, noise = np.random.default_rng(4), np.array([100.0, 300.0, 1000.0]), 4e-4
    height = 1e-4 * rng.normal(size=(200, 1))

    def truth(k):
        return height * (100 / np.asarray(k)) ** 1.4

    other = 1e-4 * rng.normal(size=(200, 1)) * (100 / sizes) ** 2
    right, wrong = (Theory(sizes, curves[:, :, None]) for curves in (truth(sizes), other))
    laws = [
        Bayes().fit(contributions(truth, noise=noise, theory=theory))
        for theory in (right, wrong, None)
    ]
    assert [each.attrs["settings"]["prior"] for each in laws] == ["theory", None, None]
    assert_array_equal(laws[1].params, laws[2].params)
    at = np.array([100, 300, 1000])
    errors = [np.abs(each.mean(at) - truth(at)).mean(axis=0) for each in laws]
    assert (errors[0] < 0.5 * errors[2]).all()


def test_contributions_to_the_population_may_fall_faster():
    basis, x = Series().prior_basis(300.0), np.array([[0.25, 1.0]])
    terms = basis.columns(x, 0)[0]
    fixed, population = (
        np.sqrt(np.diag(terms @ each.prior @ terms.T)) for each in (basis, basis.of_population())
    )
    assert population[0] / population[1] > 2 * fixed[0] / fixed[1]
    power = Power().prior_basis(300.0)
    assert power.of_population() is power
    height = 1e-3 * np.random.default_rng(5).normal(size=(20, 1))
    table = contributions(lambda k: height * (100 / k) ** 2, noise=3e-3, n=20)
    given = replace(table, attrs={"design": {"name": "log-uniform"}})
    ends = [np.abs(Bayes().fit(each).mean([100, 300])).mean(axis=0) for each in (table, given)]
    assert ends[0][0] / ends[0][1] > 1.1 * ends[1][0] / ends[1][1]


def test_few_points_that_are_not_what_theory_says_keep_their_laws_and_do_not_blur_the_others():
    rng = np.random.default_rng(2)
    n, samples, sizes = 200, 100, np.array([100.0, 300.0, 1000.0])
    point = np.repeat(np.arange(n), samples)
    k = np.round(np.exp(rng.uniform(np.log(100), np.log(1000), len(point)))).astype(int)
    is_apart = np.arange(n) < 4
    theory = rng.normal(size=n)[:, None] / sizes**2
    height = (rng.normal(size=n) + 8.0 * is_apart)[:, None] / 300**2

    def truth(k):
        x = k / 300
        usual = theory[:, 1:2] * x**-2 + 0.2 * height * x**-2.5
        return np.where(is_apart[:, None], height * x**-0.3, usual)

    grid, place = np.unique(k, return_inverse=True)
    noise = 10 / 300**2 * (300 / k) ** 1.5 * rng.normal(size=len(k))
    delta = truth(grid)[point, place] + noise
    table = Contributions.from_arrays(
        task=np.tile(np.arange(samples), n), k=k, point=point, delta=delta
    )
    table = replace(table, theory=Theory(sizes, theory[:, :, None]))
    found, alone = Bayes().fit(table), Bayes().fit(table.of(np.flatnonzero(~is_apart)))
    ratio = found.mean([1000])[is_apart] / truth(np.array([1000]))[is_apart]
    assert_allclose(ratio, 1, atol=0.3)

    def blur(laws):
        low, high = laws.interval([1000])
        away = laws.mean([1000])[-196:] - truth(np.array([1000]))[~is_apart]
        return np.array([np.std(away), np.mean(high - low, axis=0)[0]])

    assert (blur(found) < 1.5 * blur(alone)).all()  # 5 and 2.2 times without points apart
