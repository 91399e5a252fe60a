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
        Index of the task in its plan; with the seed of the run it determines all random numbers.
    subset
        Positions in the pool that make up ``D``, shape ``(k,)``.
    points
        Positions to value, none of them in ``subset``; positions from the pool's size upwards
        are candidates.
    seed
        Seed of the models trained in this task, the same with and without the added point.
    rows
        If groups are valued: for each of ``points``, the positions that join ``D`` together;
        ``points`` are then numbers of groups. None if single points are valued.
    scoring
        Positions in the pool of the rows that score this task, none of them in ``subset`` or
        ``points``; None if the validation set of the dataset scores it.
    active
        The blocks of rows that the task draws from, as the bits of a number: 1 if all rows are one
        block, and 0 if the task is about the validation rows, not about a population.
    block_of
        The block of every row of the pool; None without blocks.

    Examples
    --------
    >>> import numpy as np
    >>> Task(0, subset=np.array([4, 1, 7]), points=np.array([0, 2]), seed=1).cardinality
    3
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
    """Result of an engine for one task.

    Parameters
    ----------
    loss
        The loss of the model trained on ``D`` alone.
    delta
        Contribution of every point of the task, in its order, shape ``(n_points,)``. nan marks a
        contribution that could not be computed to the stated error; it is counted, not stored.
    certificate
        The largest remaining error of the contributions that are not nan, such as a Newton
        decrement; nan for models without a certificate, inf if the fit on D was not certified.
    notes
        Counts for the user, such as how many fits stopped before convergence.
    control
        Prediction of each contribution by theory, shape ``(n_points,)``; None if not requested.

    Examples
    --------
    >>> import numpy as np
    >>> Outcome(loss=0.5, delta=np.array([0.01, -0.02])).notes
    {}
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
