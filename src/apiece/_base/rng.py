"""Randomness: one integer seed per run, one independent stream per task.

A task's stream depends on the run's seed and the task's index alone, so results do not depend on
the order of the tasks, the number of workers or the number of interruptions.
"""

from __future__ import annotations

from operator import index

import numpy as np

from apiece.errors import PlanError

RandomState = int | np.random.Generator | None


def seed_from(random_state: RandomState) -> int:
    """Return the run's integer seed: the one given, one drawn from a generator, or fresh entropy.

    >>> seed_from(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    try:
        seed = index(random_state)
    except TypeError:
        seed = -1
    if seed < 0:
        raise PlanError(
            f"random_state={random_state!r} is not a seed: expected an integer of at least 0, a "
            "numpy Generator, or None. Pass for example random_state=0 (--random-state 0)."
        )
    return seed


def stream(seed: int, *key: int) -> np.random.Generator:
    """Return the independent generator that belongs to ``key`` under ``seed``."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
