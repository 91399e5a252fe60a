"""The layout of a run: which unit of work holds which tasks and which of their points.

Units are fixed by the plan, so two collectors that compute the same unit write the same file, and
the names of the files show what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apiece._base.typing import Count, IntArray
from apiece.records import Plan


@dataclass(frozen=True)
class Unit:
    """One unit of work, stored as one shard.

    Parameters
    ----------
    index
        Its place in the run.
    tasks
        Its tasks.
    part, n_parts
        It has the ``part``-th of ``n_parts`` slices of each task's points.

    Examples
    --------
    >>> import numpy as np
    >>> Unit(0, range(2), part=1, n_parts=2).slice_of(np.arange(5))
    array([2, 3, 4])
    """

    index: int
    tasks: range
    part: int = 0
    n_parts: int = 1

    def slice_of(self, points: IntArray) -> IntArray:
        """Return the points of a task that belong to this unit."""
        start = len(points) * self.part // self.n_parts
        return points[start : len(points) * (self.part + 1) // self.n_parts]


@dataclass(frozen=True)
class Layout:
    """How tasks are grouped, or split, into units of work.

    Parameters
    ----------
    n_tasks
        Tasks of the plan.
    tasks_per_shard
        Consecutive tasks in one unit.
    parts_per_task
        Into how many units one task is split; then ``tasks_per_shard`` is 1.

    Examples
    --------
    >>> layout = Layout(n_tasks=5, tasks_per_shard=2, parts_per_task=1)
    >>> len(layout), layout.unit(2).tasks
    (3, range(4, 5))
    """

    n_tasks: Count
    tasks_per_shard: Count
    parts_per_task: Count

    @classmethod
    def of(cls, plan: Plan, rows_per_shard: int) -> Layout:
        """Choose units of about ``rows_per_shard`` contributions."""
        rows = max(1, plan.points_per_task)
        if rows > rows_per_shard:
            return cls(len(plan), 1, max(1, round(rows / rows_per_shard)))
        return cls(len(plan), rows_per_shard // rows, 1)

    def __len__(self) -> int:
        return -(-self.n_tasks // self.tasks_per_shard) * self.parts_per_task

    def unit(self, index: int) -> Unit:
        """Return the unit of that index."""
        group, part = divmod(index, self.parts_per_task)
        first = group * self.tasks_per_shard
        tasks = range(first, min(first + self.tasks_per_shard, self.n_tasks))
        return Unit(index, tasks, part, self.parts_per_task)

    def describe(self) -> dict[str, Any]:
        """Return the layout as written to a manifest."""
        return {
            "n_tasks": self.n_tasks,
            "tasks_per_shard": self.tasks_per_shard,
            "parts_per_task": self.parts_per_task,
        }
