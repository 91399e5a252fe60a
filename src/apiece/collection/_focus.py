"""Sampling where it matters: from some task on, points whose place is settled are valued rarely.

Training sets are drawn as before. A task of a focused stage values the points of the focus, and
each other point with a small chance, which is drawn with the task. So whether a contribution is
computed never depends on its own value: each is an unbiased draw for its point, and every point has
a chance in every task. Stages are kept in the manifest, so that any collector draws the same tasks.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import BoolArray, IntArray
from apiece.records import Task

CHANCE: Final = 1 / 8  # that a task values a point outside the focus
_STREAM: Final = (5, 5)


@dataclass(frozen=True, eq=False)
class Stage:
    """The focus of all tasks from one on, until the next stage.

    Parameters
    ----------
    start
        Index of the first task.
    is_focus
        Which of the valued points are in the focus, shape ``(n_valued,)``.

    Examples
    --------
    >>> stage = Stage(8, np.array([True, False, True]))
    >>> Stage.from_json(stage.to_json()).is_focus
    array([ True, False,  True])
    """

    start: int
    is_focus: BoolArray

    def to_json(self) -> dict[str, Any]:
        """Return the stage for a manifest; ``points`` are bits in base 64."""
        bits = base64.b64encode(np.packbits(self.is_focus).tobytes()).decode("ascii")
        return {"start": self.start, "n_points": len(self.is_focus), "points": bits}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Stage:
        """Return the stage of a manifest."""
        bits = np.frombuffer(base64.b64decode(content["points"]), dtype=np.uint8)
        return cls(int(content["start"]), np.unpackbits(bits)[: content["n_points"]].astype(bool))


def focused(task: Task, points: IntArray, stages: tuple[Stage, ...], seed: int) -> Task:
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
    """
    stage = next((one for one in reversed(stages) if one.start <= task.index), None)
    if stage is None or not len(task.points):
        return task
    kept = stage.is_focus[np.searchsorted(points, task.points)]
    kept |= stream(seed, task.index, *_STREAM).random(len(kept)) < CHANCE
    return task.part(np.flatnonzero(kept) if kept.any() else np.arange(1))
