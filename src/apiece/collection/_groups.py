r"""Plans for groups: contributions of sets of points that join as a whole.

A group $G$ of several rows is valued as a point is, by

$$\Delta(G, D) = L(f_D) - L(f_{D \cup G}).$$

Whole groups have separate training sets, drawn from the pool without the rows of the group: a large
group would almost never be outside a training set that is drawn for all groups. If ``group_size``
rows of each group join, drawn for every training set, or if all groups are candidates, one $D$ is
used for every group, because some rows of each group are outside it.

Where rows take turns in scoring, the scoring rows are drawn together with $D$, as for points. A
whole group is left out of both: $D$ and the scoring rows are then disjoint random parts of the
other rows, so that the mean over draws is what the group adds to random rows, scored on others
like them, without bias. Blocks of whole groups would be wrong here: $D$ would then consist of a
few groups, not of random rows. Where ``group_size`` rows join, none of these trains or scores, but
other rows of the group may, as any row of the population may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import IntArray, Positions
from apiece.collection._balance import check_sizes
from apiece.collection._design import Design
from apiece.collection._plan import DrawnPlan, check_rotation
from apiece.collection._rotation import largest_size
from apiece.errors import CardinalityError, PlanError
from apiece.records import Task

_PATIENCE = 20  # training sets after which half must have left each group enough rows


@dataclass(frozen=True, eq=False)
class GroupPlan:
    """The tasks of a run that values groups.

    Parameters
    ----------
    design
        Sizes and samples.
    seed
        The run's seed.
    strata
        Class code of every pool point (all zero for regression), shape ``(n_pool,)``.
    rows
        Positions of each group's rows, in pool and candidates.
    group_size
        How many of them join at once; None for all.
    round_sizes
        The size of each round of a grid, shape ``(n_rounds,)``; zeros where tasks draw their own.
    n_contributions
        Contributions of all tasks together.
    rotates
        Whether tasks score on rows of the pool that are drawn with them, instead of on a
        validation set.

    Examples
    --------
    >>> plan = make_group_plan(
    ...     Design.of((5, 10), samples=4), n_pool=20, names=["a", "b"],
    ...     rows=(np.arange(3), np.arange(3, 6)), group_size=None, seed=0,
    ... )
    >>> len(plan[0].rows) == len(plan[0].points)
    True
    """

    design: Design
    seed: int
    strata: IntArray
    rows: tuple[IntArray, ...]
    group_size: int | None
    round_sizes: IntArray
    n_contributions: int = 0
    rotates: bool = False

    def __len__(self) -> int:
        return len(self.round_sizes) * (len(self.rows) if self.has_own_draws else 1)

    def __getitem__(self, index: int) -> Task:
        """Draw the task of that index, the same each time."""
        if not 0 <= index < len(self):
            raise IndexError(f"task {index} is not among the {len(self)} tasks of the plan")
        if self.has_own_draws:
            round_index, group = divmod(index, len(self.rows))
            return self._draw_without(index, group, int(self.round_sizes[round_index]))
        return self._draw_for_all(index, int(self.round_sizes[index]))

    def describe(self) -> dict[str, Any]:
        """Return the settings that decide which tasks there are, for a manifest."""
        scoring = {"scoring": "rotating"} if self.rotates else {}
        return self.design.describe() | scoring

    @property
    def points(self) -> IntArray:
        """Positions of the groups, all of which are valued."""
        return np.arange(len(self.rows))

    @property
    def points_per_task(self) -> int:
        """The most groups that one task values."""
        return 1 if self.has_own_draws else len(self.rows)

    @property
    def n_joining(self) -> IntArray:
        """How many rows of each group join at once, shape ``(n_groups,)``."""
        return np.array([self.group_size or len(rows) for rows in self.rows])

    @cached_property
    def has_own_draws(self) -> bool:
        """Whether training sets are drawn for each group, without its rows."""
        n_pool = len(self.strata)
        return self.group_size is None and any(rows[0] < n_pool for rows in self.rows)

    @cached_property
    def _for_all(self) -> DrawnPlan:
        return self._drawn_from(np.arange(len(self.strata)))

    def _drawn_from(self, pool: IntArray) -> DrawnPlan:
        outside = Positions(np.array([len(pool)]))  # a point that is never inside D
        return DrawnPlan(
            self.design,
            self.seed,
            self.strata[pool],
            outside,
            self.round_sizes,
            rotates=self.rotates,
        )

    def _draw_without(self, index: int, group: int, size: int) -> Task:
        points, rows = np.array([group]), (self.rows[group],)
        pool = np.arange(len(self.strata))
        if self.rotates:
            usable = ~np.isin(pool, self.rows[group])
            return replace(self._for_all.draw(index, size, usable), points=points, rows=rows)
        rest = np.setdiff1d(pool, self.rows[group])
        drawn = self._drawn_from(rest).draw(index, size)
        return replace(drawn, subset=rest[drawn.subset], points=points, rows=rows)

    def _draw_for_all(self, index: int, size: int) -> Task:
        drawn = self._for_all.draw(index, size)
        rng = stream(self.seed, index, 1)
        taken = drawn.subset
        if drawn.scoring is not None:
            taken = np.concatenate([taken, drawn.scoring])
        outside = [rows[~np.isin(rows, taken)] for rows in self.rows]
        joining = {
            group: np.sort(rng.choice(rows, n, replace=False)) if n < len(rows) else rows
            for group, (rows, n) in enumerate(zip(outside, self.n_joining, strict=True))
            if len(rows) >= n
        }
        points = np.array(list(joining), dtype=np.int64)
        return replace(drawn, points=points, rows=tuple(joining.values()))


def make_group_plan(
    design: Design,
    *,
    n_pool: int,
    names: Sequence[str],
    rows: tuple[IntArray, ...],
    group_size: int | None,
    seed: int,
    strata: IntArray | None = None,
    class_names: Sequence[object] | None = None,
    rotates: bool = False,
) -> GroupPlan:
    """Plan enough tasks that every group gets at least ``design.samples`` contributions.

    Parameters
    ----------
    design
        Sizes and samples; ``share`` is for points.
    n_pool
        How many points D is drawn from.
    names, rows
        The groups' names, and the positions of their rows; from ``n_pool`` upwards these are
        candidates.
    group_size
        How many rows of a group join at once, drawn again each time; None for all of them.
    seed, strata, class_names, rotates
        As in `make_plan`.

    Raises
    ------
    CardinalityError
        If a size of the design cannot be drawn from the pool without a group.
    PlanError
        If a group has too few rows.

    Examples
    --------
    >>> plan = make_group_plan(
    ...     Design.of((5, 10), samples=4), n_pool=20, names=["a", "b"],
    ...     rows=(np.arange(3), np.arange(3, 6)), group_size=None, seed=0,
    ... )
    >>> plan.n_contributions >= 8
    True
    """
    if design.share is not None:
        raise PlanError(
            f"share={design.share} is given for groups: expected none, since whole groups have "
            "their own training sets. Leave share out."
        )
    codes = np.zeros(n_pool, dtype=np.int64) if strata is None else strata
    empty = GroupPlan(
        design, seed, codes, rows, group_size, np.empty(0, dtype=np.int64), rotates=rotates
    )
    sizes, labels = np.bincount(codes), class_names if strata is not None else None
    if rotates:
        check_rotation(design, codes, labels)
    check_sizes(design.k_min, design.k_max, sizes, sizes, labels)
    if group_size is not None:
        _check_group_size(group_size, names, rows)
    if empty.has_own_draws:
        for name, members in zip(names, rows, strict=True):
            inside = np.bincount(codes[members[members < n_pool]], minlength=len(sizes))
            _check_rest(str(name), inside, sizes - inside, empty, labels)
    round_sizes, n_contributions = _rounds(empty, names)
    return replace(empty, round_sizes=round_sizes, n_contributions=n_contributions)


def _check_group_size(size: object, names: Sequence[str], rows: tuple[IntArray, ...]) -> None:
    if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
        raise PlanError(
            f"group_size={size!r} is not a number of rows: expected a whole number of at least 1, "
            "or None for whole groups. Pass for example group_size=20 (--group-size 20)."
        )
    lengths = zip(map(len, rows), map(str, names), strict=True)
    few = [(n, name) for n, name in lengths if n < size]
    if few:
        n, name = min(few)
        raise PlanError(
            f"group_size={size} is more than the {n} rows of group {name!r}: expected at most as "
            f"many as the smallest group has. Lower it, or leave the smaller ({len(few)}) without "
            "a name."
        )


def _check_rest(
    name: str,
    inside: IntArray,
    rest: IntArray,
    plan: GroupPlan,
    labels: Sequence[object] | None,
) -> None:
    """Raise a clear error unless training sets can be drawn without the rows of a group.

    ``inside`` and ``rest`` are how many rows of each class are in the group and outside it.
    """
    remedy = "Let some of its rows enter at a time: pass group_size= (--group-size)"
    least = 2 if plan.rotates else 1
    if rest.min() < least and labels is not None:
        scoring = " and among the rows that score it" if plan.rotates else ""
        raise CardinalityError(
            f"without group {name!r} the pool has {rest.min() or 'no'} point of class "
            f"{labels[int(rest.argmin())]!r}: expected every class in the training sets that the "
            f"group joins{scoring}, so at least {least}. {remedy}."
        )
    most = largest_size(int(rest.sum()), len(rest)) if plan.rotates else int(rest.sum())
    if plan.design.k_max > most:
        raise CardinalityError(
            f"k_max={plan.design.k_max} does not fit the {rest.sum():,} points that the pool has "
            f"without the {inside.sum():,} rows of group {name!r}: expected at most {most:,}. "
            f"{remedy}, or lower k_max."
        )


def _rounds(plan: GroupPlan, names: Sequence[str]) -> tuple[IntArray, int]:
    """Return the size of every round needed, and the contributions they yield together."""
    design, n_groups = plan.design, len(plan.rows)
    turns = design.sizes if design.name == "grid" else (0,)
    target = -(-design.samples // len(turns))
    if plan.has_own_draws:
        return np.tile(np.array(turns, dtype=np.int64), target), len(turns) * target * n_groups
    have = np.zeros((len(turns), n_groups), dtype=np.int64)
    drawn = np.zeros(len(turns), dtype=np.int64)
    rounds: list[int] = []
    for level in range(1, target + 1):  # level by level, so that more samples only append rounds
        for turn, size in enumerate(turns):
            while have[turn].min() < level:
                have[turn, plan._draw_for_all(len(rounds), size).points] += 1
                drawn[turn] += 1
                rounds.append(size)
                if drawn[turn] >= _PATIENCE and 2 * have[turn].min() < drawn[turn]:
                    raise _too_few(plan, names, int(have[turn].argmin()))
    return np.array(rounds, dtype=np.int64), int(have.sum())


def _too_few(plan: GroupPlan, names: Sequence[str], group: int) -> PlanError:
    return PlanError(
        f"group {str(names[group])!r} has {len(plan.rows[group])} rows, and training sets of up to "
        f"{plan.design.k_max} points mostly leave fewer than {plan.n_joining[group]} of them "
        "outside: expected enough to join. Lower group_size= (--group-size) or the sizes."
    )
