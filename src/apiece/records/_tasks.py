"""A task, its outcome, and a plan of tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from apiece._base.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Task:
    """One draw of a training set, and the points to value against it.

    Parameters
    ----------
    index
        Place of the task in its plan; with the run's seed it decides everything random.
    subset
        Positions in the pool that make up ``D``, shape ``(k,)``.
    points
        Positions to value, none of them in ``subset``; positions from the pool's size upwards
        are candidates.
    seed
        Seed of the models trained in this task, the same with and without the added point.
    rows
        Where groups are valued: the positions that join ``D`` together, for each of ``points``,
        which then are positions among the groups. None where every point is its own row.
    scoring
        Positions in the pool of the rows that score this task, none of them in ``subset`` or
        ``points``; None where the dataset's validation set does.
    active
        The blocks of rows that the task draws from, as the bits of a number; 0 where all do.
    block_of
        The block of every row of the pool; None where there are none.
    """

    index: int
    subset: IntArray
    points: IntArray
    seed: int
    rows: tuple[IntArray, ...] | None = None
    scoring: IntArray | None = None
    active: int = 0
    block_of: IntArray | None = None

    @property
    def cardinality(self) -> int:
        """How many training points ``D`` holds."""
        return len(self.subset)

    def part(self, which: IntArray) -> Task:
        """Return the task with some of its points, by their places in ``points``."""
        rows = None if self.rows is None else tuple(self.rows[place] for place in which)
        return replace(self, points=self.points[which], rows=rows)


@dataclass(frozen=True)
class Outcome:
    """What an engine computed for one task.

    Parameters
    ----------
    loss
        The loss of the model trained on ``D`` alone.
    delta
        Contribution of every point of the task, in its order, shape ``(n_points,)``. nan marks one
        that could not be computed to the stated error; it is counted, and not stored.
    certificate
        The largest remaining error of the contributions that are not nan, such as a Newton
        decrement; nan where training is taken as it is, inf where the fit on D has no certificate.
    notes
        Counts for the user, such as how many fits stopped before convergence.
    control
        What theory predicts for each contribution, shape ``(n_points,)``; None if not asked.
    """

    loss: float
    delta: FloatArray
    certificate: float = float("nan")
    notes: dict[str, int] = field(default_factory=dict)
    control: FloatArray | None = None


class Plan(Protocol):
    """A fixed sequence of tasks; the same settings and seed give the same plan."""

    def __len__(self) -> int:
        """Return the number of tasks."""
        ...

    def __getitem__(self, index: int) -> Task:
        """Draw the task of that index."""
        ...

    @property
    def points_per_task(self) -> int:
        """The most points that one task values."""
        ...

    @property
    def n_contributions(self) -> int:
        """How many contributions all tasks yield together."""
        ...
