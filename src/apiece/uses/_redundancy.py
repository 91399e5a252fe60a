r"""Picks that are valued together: every pick is valued after those before it.

A law values a single point. The value of a set is less than the sum if its points are alike, or if
together they overshoot: the best single points of one class may together move a decision boundary
too far. So points are picked one after the other, each by

$$\hat g(z \mid S) = \frac{1}{m} \sum_{j=1}^{m} \Delta(z, D_j \cup S),$$

its exact contribution once the picks so far, $S$, have joined $m$ fresh training sets $D_j$. The
engine computes that for all points of a shortlist at once.

Each training set is scored on other validation rows, the $j$-th of $m$ equal parts, if these have
enough rows; else several share a part. So the spread of the gains over $j$ includes the noise of
the training sets and of the rows, to which picks would otherwise overfit. Each step picks the point
that raises the gain of the set most, measured by its mean minus one standard error. In the end the
picks are measured again, on training sets that were not used for picking; their gains sum to the
gain of the set.

Without a validation set, scoring rows rotate, as in a run: each training set comes with other
scoring rows, none of them in the training set or among the picks, and values the points of the pool
that are in neither. More training sets are then drawn, so that each point of the shortlist is
valued by the requested number of training sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from apiece._base.progress import current_tracker
from apiece._base.rng import stream
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.collection import Design, DrawnPlan, drawn_from, make_plan, valued_share
from apiece.data import Dataset, take_rows
from apiece.errors import PlanError
from apiece.losses import LossLike
from apiece.records import Task
from apiece.uses._rules import Rules, SelectionState

if TYPE_CHECKING:
    from apiece.engines import Engine, EngineName


_ENOUGH: Final = 50  # validation rows that a training set is judged by, at least, if there are
_MOST: Final = 500_000  # contributions that take them a minute or so


class GreedyPicks(NamedTuple):
    """Rows picked, in order, and what each gains after those before it, with its error."""

    rows: IntArray
    gain: FloatArray
    error: FloatArray


@dataclass
class GreedySelector:
    """Values points together, through an engine, on training sets that are never used twice.

    Parameters
    ----------
    dataset
        Pool and candidates.
    ids
        Names of the points that may be picked, shape ``(n_rows,)``; rows are positions in it.
    sizes
        The smallest and the largest training set.
    draws
        Training sets that value each point of the pool for each pick, and parts of the validation
        rows.
    most
        Picks at most.
    model, metric, engine
        As in `collect`.
    seed
        Decides the training sets.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> data, _ = load_demo()
    >>> GreedySelector(data, data.ids, (40, 60), 2, 3, "logistic", "log_loss", "auto", seed=0).most
    3
    """

    dataset: Dataset
    ids: AnyArray
    sizes: tuple[int, int]
    draws: int
    most: int
    model: Any
    metric: LossLike
    engine: EngineName
    seed: int

    def __post_init__(self) -> None:
        if self.draws != int(self.draws) or self.draws < 2:
            raise PlanError(
                f"draws={self.draws} training sets for each pick: expected a whole number of at "
                "least 2. Pass for example draws=10."
            )
        self._rotates = not self.dataset.n_validation
        self.position = self.dataset.positions(self.ids)
        self._engine: Engine
        self._engine = self._scorer(np.arange(self.dataset.n_validation))
        self._plan = self._make_plan()
        self._next = 0

    def _make_plan(self) -> DrawnPlan:
        low, high = self.sizes
        design = Design.of(
            (low, high),
            name="grid" if low == high else "uniform",
            # Rotating draws are made one by one, without the picks, and need no rounds.
            samples=1 if self._rotates else self.draws * (self.most + 1),
        )
        return make_plan(
            design,
            **drawn_from(self.dataset),
            points=self.position,
            seed=self.seed,
            rotates=self._rotates,
        )

    @cached_property
    def _n_sets(self) -> int:
        """Training sets for each pick: where rows rotate, each values a share of the pool."""
        n_pool = self.dataset.n_pool
        if not self._rotates or (self.position >= n_pool).all():
            return self.draws
        return math.ceil(self.draws / valued_share(self.sizes[1], n_pool))

    def _scorer(self, rows: IntArray) -> Engine:
        """Return an engine that judges by some of the validation rows."""
        from apiece.engines import choose_engine

        data = self.dataset
        # Candidates join training sets here, so all points are the engine's pool.
        everyone = replace(
            data,
            n_pool=data.n_points,
            rows_val=take_rows(data.rows_val, rows),
            y_val=data.y_val[rows],
        )
        return choose_engine(everyone, model=self.model, metric=self.metric, engine=self.engine)[0]

    @cached_property
    def _scorers(self) -> list[Engine]:
        """One for each part of the rows, or one for all if the metric is not a mean over rows."""
        if not self._engine.metric.is_mean_of_rows:
            return [self._engine]
        order = stream(self.seed, 7).permutation(self.dataset.n_validation)
        n_parts = max(1, min(self.draws, len(order) // _ENOUGH))
        return [self._scorer(rows) for rows in np.array_split(order, n_parts)]

    @property
    def is_quick(self) -> bool:
        """Whether picking takes a minute or so, rather than hours."""
        n_contributions = self.most * self.draws * len(self.position)
        return self._engine.is_quick and n_contributions <= _MOST

    def pick(self, rules: Rules) -> GreedyPicks:
        """Pick rows one after the other, then measure what each gained."""
        state, so_far = SelectionState(rules), np.zeros((self._n_sets, 1))
        tracker = current_tracker()
        tracker.start(self.most)
        while not state.is_full:
            left = np.setdiff1d(np.arange(len(self.position)), state.rows)
            left = left[state.admits(left)]
            if not len(left):
                break
            gains = self._gains(left, state.rows)
            mean = _mean(gains)
            rise = (mean - _error(so_far + gains) + _error(so_far)) / rules.cost[left]
            best = int(np.argmax(np.nan_to_num(rise, nan=-np.inf)))
            if not rules.is_wanted(mean[best]):
                break
            state.add(int(left[best]))
            tracker.advance()
            so_far += np.where(np.isnan(gains), mean, gains)[:, [best]]
        return self._measured(np.array(state.rows, dtype=np.int64))

    def _gains(self, rows: IntArray, picked: list[int]) -> FloatArray:
        """Return what rows gain after the picks, by training set, shape ``(n_sets, n_rows)``.

        The gain is nan on a training set that contains the row or is scored on it.
        """
        gains = np.full((self._n_sets, len(rows)), np.nan)
        points = self.position[rows]
        for number, task in enumerate(self._draw(self._n_sets, picked)):
            is_outside = ~np.isin(points, task.subset)
            if task.scoring is not None:
                is_outside &= ~np.isin(points, task.scoring)
            if is_outside.any():
                gains[number, is_outside] = self._run(number, task, picked, points[is_outside])
        return gains

    def _measured(self, rows: IntArray) -> GreedyPicks:
        """Measure each pick after those before it, on new training sets."""
        gains = np.empty((self.draws, len(rows)))
        for number, task in enumerate(self._draw(self.draws, rows.tolist())):
            # A pick that happens to be in D joins in its turn.
            subset = task.subset[~np.isin(task.subset, self.position[rows])]
            for step, row in enumerate(rows):
                one = replace(task, subset=subset)
                gains[number, step] = self._run(
                    number, one, rows[:step].tolist(), self.position[[row]]
                ).item()
        return GreedyPicks(rows, _mean(gains), _error(gains))

    def _draw(self, n: int, picked: list[int]) -> list[Task]:
        """Draw fresh training sets; where rows rotate, picks neither train nor score."""
        indices = range(self._next, self._next + n)
        self._next += n
        if not self._rotates:
            return [self._plan[index] for index in indices]
        low, high = self.sizes
        usable = ~np.isin(np.arange(self.dataset.n_pool), self.position[picked])
        return [self._plan.draw(index, low if low == high else 0, usable) for index in indices]

    def _run(self, number: int, task: Task, picked: list[int], points: IntArray) -> FloatArray:
        """Return the contributions of points to a training set that the picks have joined."""
        if task.scoring is None:
            scorer = self._scorers[number % len(self._scorers)]
        else:
            scorer = self._engine.scored_by(task.scoring)
        joined = self.position[np.array(picked, dtype=np.int64)]
        subset = np.concatenate([task.subset[~np.isin(task.subset, joined)], joined])
        return scorer.run(Task(task.index, subset, points, task.seed)).delta


def _mean(gains: FloatArray) -> FloatArray:
    """Return the mean over the training sets with a known gain, shape ``(n_rows,)``."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(gains, axis=0) / np.isfinite(gains).sum(axis=0))


def _error(gains: FloatArray) -> FloatArray:
    """Return the standard error of that mean, shape ``(n_rows,)``; nan below two of them."""
    n = np.isfinite(gains).sum(axis=0)
    squares = np.nansum((gains - _mean(gains)) ** 2, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(n > 1, np.sqrt(squares / (n * (n - 1.0))), np.nan))
