"""What contributions with rotating scoring rows say of all rows that could have been drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

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
