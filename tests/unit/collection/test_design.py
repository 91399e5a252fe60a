from __future__ import annotations

import numpy as np
import pytest

from apiece.collection import Design, log_spaced
from apiece.errors import CardinalityError, PlanError, UnknownNameError


def test_uniform_sizes_reach_both_ends_and_are_equally_likely():
    design = Design.of((3, 7))
    rng = np.random.default_rng(0)
    drawn = np.array([design.draw_size(rng) for _ in range(5_000)])
    counts = np.bincount(drawn, minlength=8)[3:]
    assert set(drawn) == {3, 4, 5, 6, 7}
    # each count is binomial(5000, 0.2): standard deviation 28, accept five of them
    assert np.all(np.abs(counts - 1_000) < 142)


def test_log_uniform_sizes_give_every_octave_the_same_share():
    design = Design.of((16, 1023), name="log-uniform")
    rng = np.random.default_rng(0)
    drawn = np.array([design.draw_size(rng) for _ in range(6_000)])
    octaves = np.bincount(np.floor(np.log2(drawn)).astype(int), minlength=10)[4:]
    assert drawn.min() >= 16
    assert drawn.max() <= 1023
    assert np.all(np.abs(octaves - 1_000) < 5 * np.sqrt(6_000 * (1 / 6) * (5 / 6)))


def test_a_grid_over_a_range_is_log_spaced_with_both_ends():
    assert Design.of((100, 1000), name="grid").sizes == log_spaced(100, 1000, 10)
    assert Design.of((100, 1000), name="grid").sizes[0] == 100
    assert Design.of((100, 1000), name="grid").sizes[-1] == 1000


def test_a_narrow_grid_has_no_size_twice():
    assert Design.of((3, 6), name="grid", n_sizes=10).sizes == (3, 4, 5, 6)


def test_more_than_two_sizes_mean_a_grid_of_just_these():
    design = Design.of([40, 10, 20, 20])
    assert (design.name, design.sizes) == ("grid", (10, 20, 40))


def test_a_single_size_is_a_grid_of_one():
    assert Design.of([50], name="grid").sizes == (50,)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"sizes": (10,)}, PlanError, "not a range"),
        ({"sizes": (10, 5)}, CardinalityError, "rising"),
        ({"sizes": (0, 5)}, CardinalityError, "1 <= k_min"),
        ({"sizes": (10, 20.5)}, PlanError, "whole number"),
        ({"sizes": ("a", "b")}, PlanError, "whole number"),
        ({"sizes": (10, 20), "samples": 0}, PlanError, "samples=0"),
        ({"sizes": (10, 20), "share": 0}, PlanError, "share=0"),
        ({"sizes": (10, 20), "name": "unifrom"}, UnknownNameError, "Did you mean 'uniform'"),
        ({"sizes": (1, 2, 3), "name": "log-uniform"}, PlanError, "log-uniform"),
    ],
)
def test_a_design_that_makes_no_sense_is_refused_in_words(settings, error, words):
    with pytest.raises(error, match=words):
        Design.of(settings.pop("sizes"), **settings)
