"""Plans of trainings: random training sets, each of which informs about all points in it.

Training sets are plain random draws from all points, candidates included, so that every point is
in some of them and out of others, and the numbers of points of each class vary. Rows outside a
training set score: on them the loss is measured where the dataset has no validation set, and
elsewhere they show how hard each point is to predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import IntArray, Positions
from apiece.collection._design import Design
from apiece.data import Dataset
from apiece.engines import Engine, ReuseEngine
from apiece.errors import CardinalityError, PlanError
from apiece.records import Stage, Task, stage_size

DEFAULT: Final = 2_000  # trainings
_SCORING: Final = 3_000  # rows that score at most, if rows take turns
_OUTSIDE: Final = 1_000  # rows outside D whose losses are kept, next to a validation set
_LEAST_OUTSIDE: Final = 0.25  # share of the pool that is left to score


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """The trainings of a run.

    Parameters
    ----------
    design
        Sizes; ``samples`` is the number of trainings.
    seed
        The run's seed.
    strata
        Class code of every point, candidates included (all zero for regression).
    n_pool
        How many of them are of the pool; these may score.
    points
        Positions to value, rising.
    rotates
        Whether rows of the pool score, instead of a validation set.
    stages
        From some training on, most have one size (`Stage`).

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> data, _ = load_demo()
    >>> design = Design.of((20, 40), samples=5)
    >>> plan = plan_trainings(design, data, np.arange(data.n_points), seed=0, rotates=False)
    >>> 20 <= plan[0].cardinality <= 40
    True
    """

    design: Design
    seed: int
    strata: IntArray
    n_pool: int
    points: Positions
    rotates: bool = False
    stages: tuple[Stage, ...] = ()

    points_per_task = 1  # a unit of work counts trainings

    def __len__(self) -> int:
        return self.design.samples

    @property
    def n_contributions(self) -> int:
        """How many trainings there are."""
        return len(self)

    def describe(self) -> dict[str, Any]:
        """Return the settings that decide which trainings there are, for a manifest."""
        scoring = {"scoring": "rotating"} if self.rotates else {}
        return self.design.describe() | scoring

    @cached_property
    def _members(self) -> list[IntArray]:
        return [np.flatnonzero(self.strata == code) for code in range(self.strata.max() + 1)]

    def __getitem__(self, index: int) -> Task:
        """Draw the training of that index, the same each time.

        ``points`` of the task are the rows outside D that are scored.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"training {index} is not among the {len(self)} of the plan")
        rng, sizes = stream(self.seed, index), self.design.sizes
        is_grid = self.design.name == "grid"
        k = sizes[index % len(sizes)] if is_grid else self.design.draw_size(rng)
        k = stage_size(index, self.stages, self.seed) or k
        subset = self._with_every_class(rng.choice(len(self.strata), k, replace=False), rng)
        is_outside = np.ones(len(self.strata), dtype=bool)
        is_outside[subset] = False
        outside = np.flatnonzero(is_outside)
        most = _SCORING if self.rotates else _OUTSIDE
        if len(outside) > most:
            outside = np.sort(rng.choice(outside, most, replace=False))
        return Task(index, subset, outside, int(rng.integers(2**31)))

    def _with_every_class(self, subset: IntArray, rng: np.random.Generator) -> IntArray:
        """Put a point of each class that is missing in the place of one of the largest class."""
        count = np.bincount(self.strata[subset], minlength=len(self._members))
        for code in np.flatnonzero(count == 0):
            largest = int(count.argmax())
            place = rng.choice(np.flatnonzero(self.strata[subset] == largest))
            subset[place] = rng.choice(self._members[code])
            count[code], count[largest] = 1, count[largest] - 1
        return subset


def plan_trainings(
    design: Design, dataset: Dataset, points: IntArray, *, seed: int, rotates: bool
) -> TrainingPlan:
    """Plan ``design.samples`` trainings.

    Raises
    ------
    PlanError
        If there is nothing to value, or if ``share`` is given.
    CardinalityError
        If a size of the design does not leave rows to compare with, or to score.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> data, _ = load_demo()
    >>> design = Design.of((20, 40), samples=5)
    >>> len(plan_trainings(design, data, np.arange(data.n_points), seed=0, rotates=False))
    5
    """
    n, n_pool = dataset.n_points, dataset.n_pool
    if not len(points):
        raise PlanError(
            "no points are to be valued: expected at least one. Pass points=, or candidates=."
        )
    if design.share is not None:
        raise PlanError(
            f"share={design.share} is given with engine 'reuse', in which every training serves "
            "all points: expected none. Leave share out."
        )
    most = int((1 - _LEAST_OUTSIDE) * n_pool)
    if design.k_max > most:
        raise CardinalityError(
            f"k_max={design.k_max} does not fit a pool of {n_pool:,} points: expected at most "
            f"{most:,}, since training sets with and without a point are compared. Lower k_max, "
            "or pass more points."
        )
    n_classes = max(1, dataset.n_classes)
    if design.k_min < 2 * n_classes:
        raise CardinalityError(
            f"k_min={design.k_min} is too few for {n_classes} classes: expected at least "
            f"{2 * n_classes}. Raise the smallest size."
        )
    strata = (
        dataset.targets(np.arange(n)).astype(np.int64)
        if dataset.is_classification
        else np.zeros(n, dtype=np.int64)
    )
    return TrainingPlan(design, seed, strata, n_pool, Positions(np.unique(points)), rotates)


def check_amount(
    samples: int | None, trainings: int | None, engine: Engine, *, has_groups: bool = False
) -> None:
    """Raise a clear error where what is asked for is not what the engine counts.

    Raises
    ------
    PlanError
        If samples are asked of engine ``reuse``, or trainings of another one, or if ``reuse`` is
        to value groups.
    """
    if has_groups and engine.name == ReuseEngine.name:
        raise PlanError(
            "engine 'reuse' values single points, and groups are given: expected none. Pass "
            "groups=False, or engine='refit' (--engine refit)."
        )
    if engine.gives_trainings and samples is not None:
        raise PlanError(
            f"samples={samples} is given, and engine {engine.name!r} counts trainings, each of "
            "which serves all points: expected trainings. Pass trainings= (--trainings), or "
            "engine='refit' (--engine refit)."
        )
    if not engine.gives_trainings and trainings is not None:
        other = "" if has_groups else ", or engine='reuse' (--engine reuse)"
        raise PlanError(
            f"trainings={trainings} is given, and engine {engine.name!r} counts contributions: "
            f"expected samples. Pass samples= (--samples){other}."
        )


def scored_in_turns(engine: Engine) -> Engine:
    """Return the engine without a validation set, so that rows of the pool score."""
    alone = engine.scored_by(np.empty(0, dtype=np.int64))
    obstacle = alone.supports(alone.dataset, alone.model, alone.metric)
    if obstacle is not None:
        raise PlanError(
            f"rows cannot take turns in scoring: {obstacle}. Pass another metric, or "
            "scoring='fixed' (--scoring fixed) with a validation set."
        )
    return alone
