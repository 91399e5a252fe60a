"""Rounds: a run that grows step by step until a criterion is met.

The sizes of rounds are fixed: each holds 1.3 times as many samples, or trainings, as the one
before. Every round ends with a whole run, so that it can be stopped, resumed and extended, and is
the same as if that many had been asked for at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from apiece._base.progress import Tracker
from apiece.collection.until import Criterion, Round
from apiece.store import Run

_GROWTH: Final = 1.3
_FIRST: Final = {"samples": 8, "trainings": 64}
MOST: Final = {"samples": 1_000, "trainings": 20_000}


def targets(unit: str, most: int, stored: int = 0) -> Iterator[int]:
    """Yield how many samples or trainings each round has, from those that are stored on.

    >>> list(targets("samples", 20))
    [8, 11, 15, 20]
    >>> list(targets("samples", 20, stored=12))
    [15, 20]
    """
    size = min(_FIRST[unit], most)
    while True:
        if size >= stored or size >= most:
            yield max(size, stored)
        if size >= most:
            return
        size = min(max(size + 1, -(-int(size * 10 * _GROWTH) // 10)), most)


def collect_in_rounds(
    grow: Callable[[int], Run],
    criterion: Criterion,
    rounds: list[int],
    unit: str,
    tracker: Tracker,
) -> Run:
    """Grow a run until a criterion is met, or the last round is done.

    Parameters
    ----------
    grow
        Collects a number of samples or trainings.
    criterion
        When to stop.
    rounds
        Samples or trainings of each round.
    unit
        What they are.
    tracker
        Receives why the collection stopped.
    """
    began = time.monotonic()
    before: Round | None = None
    had = 0
    tracker.say(f"in rounds until {criterion!r}, at most {rounds[-1]:,} {unit}")
    tracker.is_muted = True  # each round would repeat its engine and plan
    for number, size in enumerate(rounds):
        started = time.monotonic()
        run = grow(size)
        now = time.monotonic()
        following = rounds[number + 1] - size if number + 1 < len(rounds) else 0
        expected = (now - started) / max(1, size - had) * following
        state = Round(run, now - began, expected, before)
        if criterion.needs_laws:
            state.mean, state.has_sign  # noqa: B018  # now: the run grows
        if criterion.is_met(state):
            tracker.is_muted = False
            tracker.say(f"stopped after {size:,} {unit}: {criterion!r}")
            return run
        before, had = state, size
    tracker.is_muted = False
    tracker.say(f"{rounds[-1]:,} {unit} are done, without reaching: {criterion!r}")
    return run
