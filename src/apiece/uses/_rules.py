"""What may be picked: how many, of which classes, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from apiece._base.check import one_of, some, unknown_name
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.errors import DataError, PlanError

Quotas = Mapping[Any, int] | str

_FIRST_LOOK: Final = 4  # times the picks: rows that are looked at before all are sorted


@dataclass(frozen=True)
class Rules:
    """How many points, how many of each class, and what they may cost together.

    Parameters
    ----------
    take
        How many points at most.
    group
        Class of every point, a position in ``quota``, shape ``(n_points,)``.
    quota
        How many of each class, shape ``(n_classes,)``.
    cost
        Cost of every point, shape ``(n_points,)``; ones where costs do not matter.
    budget
        What picks may cost together; infinite where costs do not matter.

    Examples
    --------
    >>> import numpy as np
    >>> rules = Rules(2, np.zeros(3, dtype=int), np.array([3]), np.ones(3), np.inf)
    >>> rules.pick(np.array([0.1, 0.3, 0.2]))
    array([1, 2])
    """

    take: int
    group: IntArray
    quota: IntArray
    cost: FloatArray
    budget: float

    @property
    def has_budget(self) -> bool:
        """Whether points cost something, so that only those that help are worth it."""
        return bool(np.isfinite(self.budget))

    def of(self, rows: IntArray) -> Rules:
        """Return the same rules for some of the points."""
        return replace(self, group=self.group[rows], cost=self.cost[rows])

    def pick(self, value: FloatArray) -> IntArray:
        """Return the rows to pick, best value for the cost first; equals keep their order."""
        state = SelectionState(self)
        for row in _rising(-value / self.cost, _FIRST_LOOK * self.take):
            if state.is_full or not self.is_wanted(value[row]):
                break
            if state.admits(row):
                state.add(row)
        return np.array(state.rows, dtype=np.int64)

    def shortlist(self, value: FloatArray, n: int) -> IntArray:
        """Return about ``n`` rows of the best value for the cost, of each class its share."""
        # Each class gets places in proportion to its quota, so that quotas can be filled.
        share = np.ceil(n * self.quota / max(1, self.quota.sum())).astype(np.int64)
        order = np.argsort(-value / self.cost, kind="stable")
        order = order[np.isfinite(value[order])]
        best = [order[self.group[order] == code][:places] for code, places in enumerate(share)]
        return np.sort(np.concatenate(best))

    def is_wanted(self, value: float) -> bool:
        """Whether a point of that value should be picked at all."""
        return bool(value > 0) if self.has_budget else bool(np.isfinite(value))


class SelectionState:
    """Rows picked so far, and what the rules still admit."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.rows: list[int] = []
        self.left = rules.quota.copy()
        self.money = rules.budget
        self.cheapest = float(rules.cost.min(initial=np.inf))

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be picked."""
        full = len(self.rows) >= self.rules.take or not self.left.any()
        return bool(full or self.money < self.cheapest)

    def admits(self, rows: int | IntArray) -> Any:
        """Whether rows may be picked next."""
        has_place = self.left[self.rules.group[rows]] > 0
        return has_place & (self.rules.cost[rows] <= self.money * (1 + 1e-12))

    def add(self, row: int) -> None:
        """Pick a row."""
        self.rows.append(row)
        self.left[self.rules.group[row]] -= 1
        self.money -= self.rules.cost[row]


def _rising(key: FloatArray, n_first: int) -> Iterator[int]:
    """Yield the rows by rising key, equals in their order and nan last, as a stable sort would.

    The first rows are selected without sorting the others, because usually they are enough.
    """
    rest = np.arange(len(key))
    if n_first < len(key) // 2:
        border = np.partition(key, n_first)[n_first]
        is_first = key <= border
        first, rest = np.flatnonzero(is_first), np.flatnonzero(~is_first)
        yield from first[np.argsort(key[first], kind="stable")].tolist()
    yield from rest[np.argsort(key[rest], kind="stable")].tolist()


class Limits(NamedTuple):
    """What a user wants of picks, as in `select`: how many, of which classes, at which cost.

    Examples
    --------
    >>> Limits(take=2).budget is None
    True
    """

    take: int | None = None
    quotas: Quotas | None = None
    costs: Any = None
    budget: float | None = None


def make_rules(
    limits: Limits, *, ids: AnyArray, labels: AnyArray | None, is_known: BoolArray
) -> Rules:
    """Check what a user wants of picks, and turn it into rules.

    Parameters
    ----------
    limits
        How many picks, of which classes, at which cost.
    ids, labels
        Names and labels of the points, each of shape ``(n_points,)``.
    is_known
        Which points have a law, shape ``(n_points,)``.

    Examples
    --------
    >>> is_known = np.ones(3, dtype=bool)
    >>> rules = make_rules(Limits(take=2), ids=np.arange(3), labels=None, is_known=is_known)
    >>> rules.pick(np.array([0.1, 0.3, 0.2]))
    array([1, 2])
    """
    take, quotas, costs, budget = limits
    n_known = int(is_known.sum())
    if (costs is None) != (budget is None):
        given, missing = ("costs", "budget") if budget is None else ("budget", "costs")
        raise PlanError(
            f"{given} is given without {missing}: expected both, in the same unit. Pass "
            f"{missing}= too, or leave {given} out."
        )
    if quotas is None:
        group = np.zeros(len(ids), dtype=np.int64)
        quota = np.array([len(ids)])
    else:
        group, quota = _quotas(quotas, take, labels, is_known)
        take = int(quota.sum()) if take is None else take
    if take is None:
        if budget is None:
            raise PlanError(
                "nothing says how many points to pick: expected take, quotas, or costs and a "
                "budget. Pass for example take=20 (--take 20)."
            )
        take = n_known
    if take != int(take) or not 1 <= take <= n_known:
        without = f" ({len(ids) - n_known:,} more have none)" if n_known < len(ids) else ""
        raise PlanError(
            f"take={take} cannot be picked: expected 1 <= take <= {n_known}, the points that have "
            f"a law{without}. Ask for fewer, or collect more."
        )
    if quotas is not None and take != quota.sum():
        raise PlanError(
            f"take={take} and quotas that sum to {quota.sum()} contradict each other: expected the "
            "same number. Leave take out."
        )
    cost = np.ones(len(ids)) if costs is None else _costs(costs, ids)
    money = np.inf if budget is None else float(budget)
    if not money > 0:
        raise PlanError(
            f"budget={budget} buys nothing: expected a positive number in the unit of costs. "
            "Pass for example budget=100."
        )
    return Rules(int(take), group, quota, cost, money)


def _quotas(
    quotas: Quotas, take: int | None, labels: AnyArray | None, is_known: BoolArray
) -> tuple[IntArray, IntArray]:
    """Return the class of every point and how many of each class to pick."""
    if labels is None:
        raise PlanError(
            "quotas need the labels of the points, which these laws do not hold: expected laws "
            "that were fitted to a run. Pass dataset= to name the labels."
        )
    names, group = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    known = np.bincount(group[is_known], minlength=len(names))
    if isinstance(quotas, str):
        one_of("quotas", quotas, ("balanced",))
        if take is None:
            raise PlanError(
                "quotas='balanced' does not say how many: expected take, which is split evenly "
                "among the classes. Pass for example take=20 (--take 20)."
            )
        return group, _even(int(take), known)
    quota = np.zeros(len(names), dtype=np.int64)
    for name, count in quotas.items():
        place = np.flatnonzero(names == str(name))
        if not len(place):
            raise unknown_name("class in quotas,", name, names.tolist())
        if count != int(count) or not 0 <= count <= known[place[0]]:
            raise PlanError(
                f"the quota of {name!r} is {count}: expected 0 to {known[place[0]]}, the points of "
                "that class that have a law. Ask for fewer."
            )
        quota[place[0]] = count
    return group, quota


def _even(take: int, most: IntArray) -> IntArray:
    """Split ``take`` among classes as evenly as their sizes allow; the first get what is left.

    >>> _even(7, np.array([9, 2, 9])).tolist()
    [3, 2, 2]
    """
    quota = np.zeros_like(most)
    for _ in range(min(take, int(most.sum()))):
        quota[np.argmin(np.where(quota < most, quota, take + 1))] += 1
    return quota


def _costs(costs: Any, ids: AnyArray) -> FloatArray:
    """Return the cost of every point, matched by id where costs are named."""
    import pandas as pd

    if isinstance(costs, Mapping):
        costs = pd.Series(dict(costs))
    if isinstance(costs, pd.Series):
        named: pd.Series = costs.set_axis(costs.index.astype(str))
        missing = np.setdiff1d(ids.astype(str), named.index.to_numpy())
        if len(missing) or named.index.has_duplicates:
            what = (
                f"{len(missing):,} points, {some(missing.tolist(), 3)}" if len(missing) else "some"
            )
            raise DataError(
                f"costs do not name one cost for {what}: expected one for every point. "
                "Pass a series or mapping from id to cost."
            )
        costs = named[ids.astype(str)].to_numpy()
    cost = np.asarray(costs, dtype=np.float64)
    if cost.shape != ids.shape or not (np.isfinite(cost) & (cost > 0)).all():
        raise DataError(
            f"costs have shape {cost.shape}, or some are not positive numbers: expected "
            f"{ids.shape}, one positive cost for each point. Leave free points out, or give them a "
            "small cost."
        )
    return cost
