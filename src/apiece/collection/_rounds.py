"""Rounds: a run that grows step by step until a criterion is met.

The sizes of rounds are fixed: each holds about 1.3 times as many samples, or trainings, as the one
before. So a run can be stopped, resumed and extended, and holds what asking for that many at once
would give, but for points outside the focus of a criterion, which later rounds value rarely, and
for the size that says most about the question, which most training sets of later rounds have. A
limit of time makes the last round smaller if the whole one would end too late. If a round takes
longer than expected, its units of work under way are the last, and the same call goes on from
there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from apiece._base.progress import tracking
from apiece.collection._growth import Collection, Shown, Step
from apiece.collection.until import Criterion, Round, seconds
from apiece.store import Run

_GROWTH: Final = 1.3
_FIRST: Final = {"samples": 4, "trainings": 64}
_MULTIPLE: Final = {"samples": 1, "trainings": 32}  # of a unit of work, which is computed whole
_LEAST: Final = 1.05  # growth below which another round is not worth its beginnings
_MARGIN: Final = 0.9  # share of the time left that a last round is planned for
_FIRST_AT: Final = {"samples": 20, "trainings": 256}  # before sizes go where the question is
MOST: Final = {"samples": 1_000, "trainings": 20_000}


def targets(unit: str, most: int, stored: int = 0) -> Iterator[int]:
    """Yield how many samples or trainings each round has, from those that are stored on.

    >>> list(targets("samples", 20))
    [4, 6, 8, 11, 15, 20]
    >>> list(targets("samples", 20, stored=12))
    [15, 20]
    >>> list(targets("trainings", 200))
    [64, 96, 128, 192, 200]
    """
    multiple = _MULTIPLE[unit]
    size = min(_FIRST[unit], most)
    while True:
        if size >= stored or size >= most:
            yield max(size, stored)
        if size >= most:
            return
        size = min(multiple * math.ceil(round(size * _GROWTH / multiple, 6)), most)


class _Pace(NamedTuple):
    """Seconds for one more sample or training, for the next check, and for all else in a round."""

    each: float
    check: float
    other: float

    def seconds(self, more: int) -> float:
        return self.each * more + self.check + self.other

    def fitting(self, seconds: float) -> int:
        """How many more samples or trainings take so long."""
        left = _MARGIN * (seconds - self.other)
        return int(min(left / self.each, 1e9)) if left > 0 and self.each > 0 else 0


def collect_in_rounds(
    collection: Collection,
    criterion: Criterion,
    most: int | None,
    shown: Shown,
    *,
    began: float,
) -> Run:
    """Grow a run until a criterion is met, or the last round is done.

    Parameters
    ----------
    collection
        What is collected.
    criterion
        When to stop.
    most
        Samples or trainings at most.
    shown
        The arguments ``progress`` and ``on_progress`` of `collect`.
    began
        Time of ``time.monotonic`` from which the time of the collection counts.
    """
    unit, stored = collection.unit, collection.stored
    had = 0 if stored is None else stored.samples
    rounds = list(targets(unit, most or MOST[unit], had))
    counted = "trainings" if collection.is_reuse else "contributions"
    with tracking(*shown, title="collecting", unit=counted) as tracker:
        tracker.say(f"engine: {collection.engine.name} ({collection.reason})")
        tracker.say(f"in rounds until {criterion!r}, at most {rounds[-1]:,} {unit}")
        tracker.is_muted = True  # each round would repeat its engine and plan
        tracker.deadline = began + criterion.limit
        run, why = _grown(collection, criterion, rounds, began, had)
        tracker.is_muted = False
        tracker.say(f"stopped at {run.manifest.samples:,} {unit}: {why}")
    return run


def _grown(
    collection: Collection, criterion: Criterion, rounds: list[int], began: float, had: int
) -> tuple[Run, str]:
    """Return the run, and why it ended."""
    unit, deadline = collection.unit, began + criterion.limit
    step, before, number = Step(deadline), None, 0
    over = "" if criterion.limit == math.inf else repr(seconds(criterion.limit))
    size = rounds[0]
    while True:
        started = time.monotonic()
        run = collection.grow(size, (None, None), step)
        done = time.monotonic()
        if step.is_late:
            made = run.progress()
            return run, (
                f"{over}. The last round is unfinished ({made.n_contributions:,} of "
                f"{made.n_planned:,} {run.unit}); the same call goes on with it"
            )
        if size not in rounds:
            return run, over  # after a last round for the time that was left
        if not step.is_checked and had:
            before = _earlier(collection, run, size)
        state = Round(run, done - began, 0.0, before)
        if criterion.needs_laws:
            state.look()
        checked = time.monotonic()
        number = rounds.index(size) + 1
        following = rounds[min(number, len(rounds) - 1)]
        pace = _Pace(
            step.seconds / max(1, size - had),
            (checked - done) * following / size,
            done - started - step.seconds if step.is_checked else 0.0,
        )
        left = deadline - checked
        if pace.seconds(following - size) > left:
            multiple = _MULTIPLE[unit]
            fitting = size + pace.fitting(left) // multiple * multiple
            following = min(following, max(fitting, math.ceil(size * _LEAST)))
        state = state.at(checked - began, pace.seconds(following - size))
        if criterion.is_met(state):
            return run, criterion.reason(state)
        if size == rounds[-1]:
            return run, f"as many as were asked for, without reaching {criterion!r}"
        may_focus = collection.can_focus and criterion.needs_laws
        focus = criterion.undecided(state) if may_focus else None
        may_choose = criterion.needs_laws and size >= _FIRST_AT[unit]
        at = criterion.telling(state) if may_choose else None
        step = Step(deadline, focus, at, is_checked=True)
        before, had, size = state, size, following


def _earlier(collection: Collection, run: Run, size: int) -> Round | None:
    """Return the rounds before one of a size, for criteria that compare, of a run that goes on."""
    before = None
    for earlier in targets(collection.unit, size):
        if earlier < size:
            before = Round(run, 0.0, 0.0, before, collection.n_tasks(earlier))
    return before
