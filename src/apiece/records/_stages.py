r"""Sampling where it matters: from some task on, points whose place is settled are valued rarely.

Training sets are drawn as before. A task of a focused stage values the points of the focus, and
each other point with a small chance $p$, which is drawn with the task. So whether a contribution is
computed never depends on its own value: each is an unbiased draw for its point, and every point has
a chance in every task. Stages are kept in the manifest, so that any collector draws the same tasks.

A point's law needs no weights for that: which contributions were drawn depends on those that were
seen, and not on others, so the likelihood of what was seen is the same. Sums over all points do
need them: points of the focus were drawn more often because of what they had shown. There each
contribution counts $1/p$ (`Contributions.by_chance`), and the sum over tasks has the expectation of
one in which all points were valued.

Most tasks of a stage may have the size that says most about the question, and the others sizes of
the design. Laws are given the size, so they need no weights for that either; values by Monte Carlo
do (`extra_sizes`).
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import BoolArray, FloatArray, IntArray, Places, Positions
from apiece.records._tasks import Task

CHANCE: Final = 1 / 8  # that a task values a point outside the focus
SHARE: Final = 3 / 4  # of tasks that have the size that the question is about
_STREAM: Final = (5, 5)
_SIZE_STREAM: Final = (5, 6)


@dataclass(frozen=True, eq=False)
class Stage:
    """The focus of all tasks from one on, until the next stage.

    Parameters
    ----------
    start
        Index of the first task.
    is_focus
        Which of the valued points are in the focus, shape ``(n_valued,)``.
    chance
        That a task values a point outside the focus.
    size, share
        A size that this share of the tasks has; 0 for none.

    Examples
    --------
    >>> stage = Stage(8, np.array([True, False, True]))
    >>> Stage.from_json(stage.to_json()).is_focus
    array([ True, False,  True])
    """

    start: int
    is_focus: BoolArray
    chance: float = CHANCE
    size: int = 0
    share: float = SHARE

    def to_json(self) -> dict[str, Any]:
        """Return the stage for a manifest; ``points`` are bits in base 64."""
        bits = base64.b64encode(np.packbits(self.is_focus).tobytes()).decode("ascii")
        content = {
            "start": self.start,
            "n_points": len(self.is_focus),
            "points": bits,
            "chance": self.chance,
        }
        return content | ({"size": self.size, "share": self.share} if self.size else {})

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Stage:
        """Return the stage of a manifest."""
        bits = np.frombuffer(base64.b64decode(content["points"]), dtype=np.uint8)
        is_focus = np.unpackbits(bits)[: content["n_points"]].astype(bool)
        return cls(
            int(content["start"]),
            is_focus,
            float(content.get("chance", CHANCE)),
            int(content.get("size", 0)),
            float(content.get("share", SHARE)),
        )


def focused(task: Task, points: Positions, stages: Sequence[Stage], seed: int) -> Task:
    """Return a task with those of its points that its stage values, at least one.

    Parameters
    ----------
    task
        As drawn for all points.
    points
        All valued positions, rising.
    stages
        In their order.
    seed
        The run's seed.

    Examples
    --------
    >>> task = Task(9, np.array([0]), np.array([1, 2, 3]), 0)
    >>> stage = Stage(8, np.array([True, True, False, False]), chance=1e-9)
    >>> focused(task, np.arange(4), [stage], seed=0).points
    array([1])
    """
    stage = _stage_of(task.index, stages)
    if stage is None or not len(task.points):
        return task
    kept = stage.is_focus[np.searchsorted(points, task.points)]
    rng = stream(seed, task.index, *_STREAM)
    kept |= rng.random(len(kept)) < stage.chance
    return task.part(np.flatnonzero(kept) if kept.any() else rng.integers(len(kept), size=1))


def chances(stages: Sequence[Stage], task: IntArray, place: Places) -> FloatArray:
    """Return the chance that each contribution had to be drawn with its task.

    Parameters
    ----------
    stages
        In their order.
    task, place
        Of each contribution: its task, and its point's place among the valued ones.

    Examples
    --------
    >>> stage = Stage(8, np.array([True, False]))
    >>> chances([stage], task=np.array([7, 8, 8]), place=np.array([1, 0, 1]))
    array([1.   , 1.   , 0.125])
    """
    result = np.ones(len(task))
    number = np.searchsorted([stage.start for stage in stages], task, side="right") - 1
    for index, stage in enumerate(stages):
        rows = number == index
        result[rows] = np.where(stage.is_focus[place[rows]], 1.0, stage.chance)
    return result


def stage_size(index: int, stages: Sequence[Stage], seed: int) -> int:
    """Return the size that a task has because of its stage; 0 if the design draws its size.

    Parameters
    ----------
    index
        Of the task.
    stages
        In their order.
    seed
        The run's seed.

    Examples
    --------
    >>> stage = Stage(8, np.array([True]), size=50, share=1.0)
    >>> stage_size(7, [stage], seed=0), stage_size(8, [stage], seed=0)
    (0, 50)
    """
    stage = _stage_of(index, stages)
    if stage is None or not stage.size:
        return 0
    return stage.size if stream(seed, index, *_SIZE_STREAM).random() < stage.share else 0


def extra_sizes(stages: Sequence[Stage], n_tasks: int) -> dict[int, float]:
    """Return which share of all tasks has a size because of a stage, by size.

    Parameters
    ----------
    stages
        In their order.
    n_tasks
        How many tasks the run has.

    Examples
    --------
    >>> extra_sizes([Stage(8, np.array([True]), size=50)], n_tasks=16)
    {50: 0.375}
    """
    result: dict[int, float] = {}
    ends = [*(stage.start for stage in stages), n_tasks][1:]
    for stage, end in zip(stages, ends, strict=True):
        if stage.size and n_tasks:
            more = stage.share * max(0, end - stage.start) / n_tasks
            result[stage.size] = result.get(stage.size, 0.0) + more
    return result


def _stage_of(index: int, stages: Sequence[Stage]) -> Stage | None:
    return next((one for one in reversed(stages) if one.start <= index), None)
