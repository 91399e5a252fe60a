"""Iterations over many problems: rows that leave, bounds, limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from apiece._base.batched import CONVERGED, LOST, RUNNING, find_root, solve


class Rest(NamedTuple):
    left: np.ndarray


class Row(NamedTuple):
    number: np.ndarray


def test_rows_leave_when_they_are_done_and_keep_what_they_had():
    seen = []

    def step(now, fixed):
        seen.append(fixed.number.tolist())
        left = now.left - 1
        return Rest(left), np.where(left < -5, LOST, np.where(left == 0, CONVERGED, RUNNING))

    start = np.array([2, 1, 9])
    end, status, n_steps = solve(step, Rest(start), Row(np.arange(3)), max_steps=3)
    assert seen == [[0, 1, 2], [0, 2], [2]]
    assert_array_equal(end.left, [0, 0, 6])
    assert_array_equal(status, [CONVERGED, CONVERGED, RUNNING])
    assert n_steps == 3
    assert_array_equal(start, [2, 1, 9])


def test_a_root_beyond_a_bound_ends_at_the_bound():
    def step(x):  # to the root of log x = 0 and of log x = 2
        return x * (np.array([0.0, 2.0]) - np.log(x))

    root = find_root(step, np.full(2, 0.5), high=5.0, tolerance=1e-9)
    assert_allclose(root, [1.0, 5.0], rtol=1e-12)


def test_the_search_for_a_root_gives_up_after_its_last_step():
    assert find_root(np.ones_like, np.zeros(1), tolerance=1e-9, max_steps=7) == [7.0]
