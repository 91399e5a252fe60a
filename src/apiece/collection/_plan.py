"""Plans: every task of a run, drawn on demand from the seed and the task's index.

Tasks come in rounds; in each round every block of points gets one task. Rounds are added until
every valued point has the requested contributions, also points that are often inside D. A plan for
more samples begins with the tasks of the plan for fewer, so a run can be extended. Whether a round
is added depends only on which points are in D, never on a contribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import BoolArray, IntArray, Positions
from apiece.collection._balance import allocate, check_sizes
from apiece.collection._design import Design
from apiece.collection._rotation import (
    LEAST_OF_A_CLASS,
    LEAST_ROWS,
    Rotation,
    as_bits,
    largest_size,
)
from apiece.data import Dataset
from apiece.errors import CardinalityError, PlanError
from apiece.records import Stage, Task, focused, stage_size

_PARTITION_STREAM = (0, 0)  # tasks use keys of length one


@dataclass(frozen=True, eq=False)
class DrawnPlan:
    """The tasks of a run.

    Parameters
    ----------
    design
        Sizes, samples and sharing.
    seed
        The run's seed.
    strata
        Class code of every pool point (all zero for regression), shape ``(n_pool,)``.
    points
        Positions to value, rising; from ``n_pool`` upwards they are candidates.
    round_sizes
        The size of each round of a grid, shape ``(n_rounds,)``; zeros where tasks draw their own.
    n_contributions
        Contributions of all tasks together.
    rotates
        Whether tasks score on rows of the pool that are drawn with them, instead of on a
        validation set.
    stages
        From some task on, most tasks value some of the points alone, or have one size (`Stage`).
    is_sample
        Whether the validation set is a sample of the population that matters.

    Examples
    --------
    >>> plan = make_plan(Design.of((5, 10), samples=4), n_pool=20, points=np.arange(20), seed=0)
    >>> len(plan[0].points) == 20 - plan[0].cardinality
    True
    """

    design: Design
    seed: int
    strata: IntArray
    points: Positions
    round_sizes: IntArray
    n_contributions: int = 0
    rotates: bool = False
    stages: tuple[Stage, ...] = ()
    is_sample: bool = False

    def __len__(self) -> int:
        return len(self.round_sizes) * len(self.blocks)

    def __getitem__(self, index: int) -> Task:
        """Draw the task of that index, the same each time."""
        if not 0 <= index < len(self):
            raise IndexError(f"task {index} is not among the {len(self)} tasks of the plan")
        round_index, block_index = divmod(index, len(self.blocks))
        block = self.blocks[block_index]
        task = self._draw(index, block, self.size_of(index, int(self.round_sizes[round_index])))
        return focused(task, self.points, self.stages, self.seed)

    def size_of(self, index: int, size: int) -> int:
        """Return the size of a task: that of its round or its stage, or 0 if it is drawn."""
        return size or stage_size(index, self.stages, self.seed)

    @property
    def points_per_task(self) -> int:
        """The most points that one task values."""
        return len(self.blocks[0])

    @cached_property
    def rotation(self) -> Rotation:
        """How rows take turns in training, scoring and being valued."""
        return Rotation(self.seed, self.strata)

    @cached_property
    def blocks(self) -> list[IntArray]:
        """The points that share their draws, largest block first."""
        share = self.design.share or len(self.points)
        n_blocks = -(-len(self.points) // share)
        if n_blocks == 1:
            return [self.points]
        shuffled = stream(self.seed, *_PARTITION_STREAM).permutation(self.points)
        return [np.sort(block) for block in np.array_split(shuffled, n_blocks)]

    @cached_property
    def members(self) -> list[IntArray]:
        """Positions of each class in the pool."""
        return [np.flatnonzero(self.strata == code) for code in range(self.strata.max() + 1)]

    @cached_property
    def most(self) -> IntArray:
        """The most points of each class that D may hold."""
        class_sizes = np.bincount(self.strata)
        valued = self.points[self.points < len(self.strata)]
        return np.asarray(class_sizes - np.isin(np.arange(len(class_sizes)), self.strata[valued]))

    @cached_property
    def _counts_at(self) -> dict[int, IntArray]:
        return {}

    def class_counts(self, k: int) -> IntArray:
        """How many points of each class a D of size ``k`` holds, shape ``(n_classes,)``."""
        if k not in self._counts_at:
            self._counts_at[k] = allocate(k, np.bincount(self.strata), self.most)
        return self._counts_at[k]

    def describe(self) -> dict[str, Any]:
        """Return the settings that decide which tasks there are, for a manifest."""
        scoring = "rotating" if self.rotates else "sample" if self.is_sample else None
        return self.design.describe() | ({} if scoring is None else {"scoring": scoring})

    def draw(self, index: int, size: int, usable: BoolArray | None = None) -> Task:
        """Draw a task of any index for all points; a ``size`` of 0 is drawn, too.

        Where rows rotate, ``usable`` says which of them may train and score.
        """
        return self._draw(index, self.points, size, usable)

    def _draw(
        self, index: int, block: IntArray, size: int, usable: BoolArray | None = None
    ) -> Task:
        rng = stream(self.seed, index)
        k = size or self.design.draw_size(rng)
        alone = int(block[0]) if len(block) == 1 else -1
        if self.rotates:
            return self._draw_rotating(index, block, k, rng, usable)
        subset = np.concatenate(
            [
                _draw_without(rng, members, count, alone)
                for members, count in zip(self.members, self.class_counts(k), strict=True)
            ]
        )
        rng.shuffle(subset)
        outside = block if alone >= 0 else block[~np.isin(block, subset)]
        return Task(index, subset, outside, int(rng.integers(2**31)), active=int(self.is_sample))

    def _draw_rotating(
        self,
        index: int,
        block: IntArray,
        k: int,
        rng: np.random.Generator,
        usable: BoolArray | None,
    ) -> Task:
        """Draw active blocks of rows, and split these between D and the scoring rows."""
        n_pool, block_of = len(self.strata), self.rotation.block_of
        inside = block[block < n_pool]
        active = self.rotation.draw(
            rng,
            k,
            without=int(block_of[inside[0]]) if len(block) == len(inside) == 1 else None,
            usable=usable,
            leaves_block=len(inside) > 0,
        )
        is_active = active[block_of]
        if usable is not None:
            is_active = is_active & usable
        members = [rows[is_active[rows]] for rows in self.members]
        sizes = np.array([len(rows) for rows in members])
        counts = allocate(k, sizes, sizes - 1)  # one row of each class scores
        subset = np.concatenate(
            [
                rng.choice(rows, size=count, replace=False, shuffle=False)
                for rows, count in zip(members, counts, strict=True)
            ]
        )
        rng.shuffle(subset)
        scores = is_active.copy()
        scores[subset] = False
        valued = np.concatenate([inside[~is_active[inside]], block[block >= n_pool]])
        seed = int(rng.integers(2**31))
        return Task(
            index,
            subset,
            valued,
            seed,
            scoring=np.flatnonzero(scores),
            active=as_bits(active),
            block_of=block_of,
        )


def _draw_without(rng: np.random.Generator, members: IntArray, count: int, alone: int) -> IntArray:
    """Draw ``count`` members without replacement, never the point ``alone``.

    A point that has its draws to itself is left out of them beforehand: the same distribution as
    drawing until it happens to be out, at no cost.
    """
    place = int(np.searchsorted(members, alone))
    is_member = place < len(members) and members[place] == alone
    chosen = rng.choice(len(members) - is_member, size=count, replace=False, shuffle=False)
    if is_member:
        chosen += chosen >= place
    return members[chosen]


class Drawn(TypedDict):
    """What training sets are drawn from, see `make_plan`."""

    n_pool: int
    strata: IntArray | None
    class_names: list[object] | None


def drawn_from(dataset: Dataset) -> Drawn:
    """Return what `make_plan` needs to know of a dataset.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> drawn_from(load_demo()[0])["n_pool"]
    369
    """
    return {
        "n_pool": dataset.n_pool,
        "strata": dataset.y if dataset.is_classification else None,
        "class_names": None if dataset.classes is None else dataset.classes.tolist(),
    }


def make_plan(
    design: Design,
    *,
    n_pool: int,
    points: Positions,
    seed: int,
    strata: IntArray | None = None,
    class_names: Sequence[object] | None = None,
    rotates: bool = False,
    stages: tuple[Stage, ...] = (),
) -> DrawnPlan:
    """Plan enough tasks that every point gets at least ``design.samples`` contributions.

    For a grid of $S$ sizes that is at least ``ceil(samples / S)`` at each size.

    Parameters
    ----------
    design
        Sizes, samples and sharing.
    n_pool
        How many points D is drawn from.
    points
        Positions to value, distinct; from ``n_pool`` upwards they are candidates.
    seed
        The run's seed.
    strata
        Class code of every pool point for balanced draws, or None.
    class_names
        The classes' labels, for messages.
    rotates
        Whether tasks score on rows of the pool that are drawn with them (`Rotation`).
    stages
        From some task on, most tasks value some of the points alone, or have one size.

    Raises
    ------
    CardinalityError
        If a size of the design cannot be drawn from the pool.
    PlanError
        If there is nothing to value.

    Examples
    --------
    >>> plan = make_plan(Design.of((5, 10), samples=4), n_pool=20, points=np.arange(20), seed=0)
    >>> plan[0].cardinality in range(5, 11)
    True
    """
    points = Positions(np.unique(points))
    if len(points) == 0:
        raise PlanError(
            "no points are to be valued: expected at least one. Pass points=, or candidates=."
        )
    codes = np.zeros(n_pool, dtype=np.int64) if strata is None else strata
    names = class_names if strata is not None else None
    nothing = np.empty(0, dtype=np.int64)
    empty = DrawnPlan(design, seed, codes, points, nothing, rotates=rotates, stages=stages)
    if rotates:
        check_rotation(design, codes, names)
    check_sizes(design.k_min, design.k_max, np.bincount(codes), empty.most, names)
    round_sizes, n_contributions = _rounds(empty)
    plan = replace(empty, round_sizes=round_sizes, n_contributions=n_contributions)
    if not stages:
        return plan
    n_left = sum(len(plan[index].points) for index in range(len(plan)))
    return replace(plan, n_contributions=n_left)


def check_rotation(design: Design, strata: IntArray, names: Sequence[object] | None) -> None:
    """Raise a clear error unless rows can take turns at every size of the design.

    Parameters
    ----------
    design
        Its sizes.
    strata, names
        Class code of every row, and the labels of the classes; None for regression.
    """
    counts = np.bincount(strata)
    n_rows, rarest = len(strata), int(counts.argmin())
    turns = "since rows take turns in training, scoring and being valued"
    if n_rows < LEAST_ROWS:
        raise CardinalityError(
            f"the table has {n_rows} rows: expected at least {LEAST_ROWS}, {turns}. Pass more "
            "rows, or a validation set (X_val= and y_val=, or --validation FILE)."
        )
    if counts[rarest] < LEAST_OF_A_CLASS and names is not None:
        n_rare = int((counts < LEAST_OF_A_CLASS).sum())
        rows = "1 row" if counts[rarest] == 1 else f"{counts[rarest]} rows"
        more = f" (and {n_rare - 1} more of the classes are as rare)" if n_rare > 1 else ""
        raise CardinalityError(
            f"class {names[rarest]!r} has {rows}{more}: expected at least "
            f"{LEAST_OF_A_CLASS} of every class, {turns}. Add rows, merge or remove the class, or "
            "pass a validation set (X_val= and y_val=, or --validation FILE); if the target is a "
            "quantity, pass kind='regression' (--task regression)."
        )
    largest = largest_size(n_rows, len(counts))
    if design.k_max > largest:
        raise CardinalityError(
            f"k_max={design.k_max} does not fit a table of {n_rows:,} rows that also score: "
            f"expected at most {largest:,}. Lower k_max (sizes=, --sizes), or pass a validation "
            "set."
        )


def _rounds(plan: DrawnPlan) -> tuple[IntArray, int]:
    """Return the size of every round needed, and the contributions they yield together."""
    design, blocks = plan.design, plan.blocks
    turns = design.sizes if design.name == "grid" else (0,)
    target = -(-design.samples // len(turns))
    is_alone = len(blocks[0]) == 1 or plan.points[0] >= len(plan.strata)
    if is_alone:  # each task values all of its points
        sizes = np.tile(np.array(turns, dtype=np.int64), target)
        return sizes, len(sizes) * len(plan.points)

    place = np.full(int(plan.points[-1]) + 1, -1)
    place[plan.points] = np.arange(len(plan.points))
    have = np.zeros((len(turns), len(plan.points)), dtype=np.int64)
    rounds: list[int] = []
    for level in range(1, target + 1):  # level by level, so that more samples only append rounds
        for turn, size in enumerate(turns):
            while have[turn].min() < level:
                for number, block in enumerate(blocks):
                    index = len(rounds) * len(blocks) + number
                    task = plan._draw(index, block, plan.size_of(index, size))
                    have[turn, place[task.points]] += 1
                rounds.append(size)
    return np.array(rounds, dtype=np.int64), int(have.sum())
