r"""Picks that do not buy the same thing twice: every pick is valued together with those before it.

A law values a point alone. What a set is worth is less than the sum when its points are alike, or
when together they overshoot: the best single points of one class may together move a decision
boundary too far. So points are picked one after the other, each by

$$\hat g(z \mid S) = \frac{1}{m} \sum_{j=1}^{m} \Delta(z, D_j \cup S),$$

its exact contribution once the picks so far, $S$, have joined $m$ fresh training sets $D_j$. The
engine computes that for all points of a shortlist at once.

Few training sets leave $\hat g$ noisy, and the largest of many noisy numbers is mostly noise. But a
pick changes little for most points, so what was measured for the picks before foretells what is
measured now: $\hat g$ is regressed on it, and shrunk towards the line as far as its noise and the
distance of the points from the line say (empirical Bayes). So evidence adds up over the picks.

In the end the picks are measured again, on training sets that had no part in picking them: their
gains sum to the gain of the set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from apiece._typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset
from apiece.errors import PlanError
from apiece.records import Task
from apiece.sampling import Design, DrawnPlan, make_plan
from apiece.selection._rules import Basket, Rules

if TYPE_CHECKING:
    from apiece.engine import Engine


_ALL_NOISE: Final = 9 / 7  # mean square of Student's t with the errors of ten draws


class Joint(NamedTuple):
    """Rows picked, in order, and what each gains after those before it, with its error."""

    rows: IntArray
    gain: FloatArray
    error: FloatArray


@dataclass
class Together:
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
        Training sets for each pick.
    most
        Picks at most.
    model, metric, engine
        As in `collect`.
    seed
        Decides the training sets.
    """

    dataset: Dataset
    ids: AnyArray
    sizes: tuple[int, int]
    draws: int
    most: int
    model: Any
    metric: Any
    engine: str
    seed: int

    def __post_init__(self) -> None:
        from apiece.engine import choose_engine

        if self.draws != int(self.draws) or self.draws < 2:
            raise PlanError(
                f"draws={self.draws} training sets for each pick: expected a whole number of at "
                "least 2. Pass for example draws=10."
            )
        self.position = self.dataset.positions(self.ids)
        # Candidates join training sets here, so all points are the engine's pool.
        everyone = replace(self.dataset, n_pool=self.dataset.n_points)
        self._engine: Engine
        self._engine, _ = choose_engine(
            everyone, model=self.model, metric=self.metric, engine=self.engine
        )
        self._plan = self._make_plan()
        self._next = 0

    def _make_plan(self) -> DrawnPlan:
        data = self.dataset
        low, high = self.sizes
        design = Design.of(
            (low, high),
            name="grid" if low == high else "uniform",
            samples=self.draws * (self.most + 1),
        )
        return make_plan(
            design,
            n_pool=data.n_pool,
            points=self.position,
            seed=self.seed,
            strata=data.y if data.is_classification else None,
            class_names=None if data.classes is None else data.classes.tolist(),
        )

    def pick(self, rules: Rules) -> Joint:
        """Pick rows one after the other, then measure what each gained."""
        basket, known = Basket(rules), np.full(len(self.position), np.nan)
        codes = self.dataset.targets(self.position)
        strata = codes if self.dataset.is_classification else np.zeros(len(codes), dtype=np.int64)
        while not basket.is_full:
            left = np.setdiff1d(np.arange(len(self.position)), basket.rows)
            left = left[basket.admits(left)]
            if not len(left):
                break
            gain, error = self._gains(left, basket.rows)
            gain = known[left] = shrunk(gain, error, known[left], strata[left])
            best = int(np.argmax(np.nan_to_num(gain / rules.cost[left], nan=-np.inf)))
            if not rules.is_wanted(gain[best]):
                break
            basket.add(int(left[best]))
        return self._measured(np.array(basket.rows, dtype=np.int64))

    def _gains(self, rows: IntArray, picked: list[int]) -> tuple[FloatArray, FloatArray]:
        """Return the mean gain of rows after the picks, and its standard error.

        Both have shape ``(n_rows,)``; nan where a row was never seen, or only once.
        """
        points = self.position[rows]
        seen = np.full((self.draws, len(rows)), np.nan)
        for row, task in zip(seen, self._draw(), strict=True):
            is_outside = ~np.isin(points, task.subset)
            if is_outside.any():
                row[is_outside] = self._run(task, picked, points[is_outside])
        count = np.isfinite(seen).sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.nansum(seen, axis=0) / count
            error = np.sqrt(np.nansum((seen - mean) ** 2, axis=0) / (count - 1) / count)
        return np.where(count > 0, mean, np.nan), np.where(count > 1, error, np.nan)

    def _measured(self, rows: IntArray) -> Joint:
        """Measure each pick after those before it, on training sets of their own."""
        gains = np.empty((self.draws, len(rows)))
        for number, task in enumerate(self._draw()):
            # A pick that happens to be in D joins in its turn.
            subset = task.subset[~np.isin(task.subset, self.position[rows])]
            for step, row in enumerate(rows):
                one = replace(task, subset=subset)
                gains[number, step] = self._run(
                    one, rows[:step].tolist(), self.position[[row]]
                ).item()
        error = gains.std(axis=0, ddof=1) / np.sqrt(self.draws)
        return Joint(rows, gains.mean(axis=0), error)

    def _draw(self) -> list[Task]:
        first, self._next = self._next, self._next + self.draws
        return [self._plan[index] for index in range(first, self._next)]

    def _run(self, task: Task, picked: list[int], points: IntArray) -> FloatArray:
        """Return the contributions of points to a training set that the picks have joined."""
        joined = self.position[np.array(picked, dtype=np.int64)]
        subset = np.concatenate([task.subset[~np.isin(task.subset, joined)], joined])
        return self._engine.run(Task(task.index, subset, points, task.seed)).delta


def shrunk(gain: FloatArray, error: FloatArray, before: FloatArray, strata: IntArray) -> FloatArray:
    r"""Improve noisy gains by what was known of the rows before.

    With the line $m = a_{\text{class}} + b\,g_{\text{before}}$ through the gains and standardised
    distances $z = (\hat g - m) / \mathrm{se}$, whose mean square is 1 if the gains are all noise
    (and $\nu / (\nu - 2)$ with errors from $\nu + 1$ draws, taken as 9/7),

    $$g = m + \max\left(0,\ 1 - \frac{9/7}{\overline{z^2}}\right) (\hat g - m).$$

    Parameters
    ----------
    gain, error
        What was measured, and its standard error; nan where unknown, shape ``(n,)``.
    before
        What was known before, nan for nothing, shape ``(n,)``.
    strata
        Class of every row, codes from 0, shape ``(n,)``.
    """
    is_seen = np.isfinite(gain + before) & (error > 0)
    unit = np.abs(before[is_seen]).max(initial=0.0) or 1.0
    terms = np.column_stack([np.eye(strata.max() + 1)[strata], before / unit])
    n_free = int(is_seen.sum()) - terms.shape[1]
    if n_free < 2 * terms.shape[1]:
        return gain
    weight = 1.0 / error[is_seen]
    line = terms[is_seen] * weight[:, None]
    line = terms @ np.linalg.lstsq(line, gain[is_seen] * weight, rcond=None)[0]
    square = float((((gain - line)[is_seen] * weight) ** 2).sum()) / n_free
    share = max(0.0, 1.0 - _ALL_NOISE / square) if square > 0 else 1.0
    better = np.where(is_seen, line + share * (gain - line), gain)
    return np.where(np.isfinite(better), better, line)
