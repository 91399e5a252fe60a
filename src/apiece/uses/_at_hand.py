r"""Picks for a given training set: what do candidates add, together, to rows that are held?

With the rows $H$ that are held, candidates are picked one after the other, each by the gain

$$\hat g(z \mid S)
  = \frac{1}{m} \sum_{j=1}^{m} \bigl[L_j(f_{H \cup S}) - L_j(f_{H \cup S \cup z})\bigr]$$

on $m$ parts of the scoring rows, once the picks so far, $S$, have joined. An engine computes that
for all candidates at once. Scoring rows are the validation set; where there is none, all rows that
are not held, in turns: a candidate is never scored by its own part, nor by a row that is picked.

Picks are fitted to the rows that score them. So what they promise is measured on others: the parts
are split into groups, and for each group the picks are chosen again by the other groups, and
measured on the $n$ rows of all groups, each by the choice of the others. The interval is about rows
not seen. It has the noise of the rows that measure, $\hat\sigma^2 / n$ with the variance of gains
row by row, and that of the choice. Picks that other rows choose gain more or less: between groups,
gains differ by $\hat\tau^2$ more than the rows explain. The final picks are one more choice, which
adds $\hat\tau^2 (1 + 1 / g)$ with $g$ groups. A loss that is no mean over rows is measured by part.

All rows choose better than those of $g - 1$ groups. Where $m$ rows choose, they flatter their picks
by about $c / m$, and the picks fall short of the best by as much. So of the gap between what
flatters, on the rows that chose, and what other rows measured, $1 / (2g - 1)$ is added to the
promise, and $c / n$, which is $(g - 1) / (2g - 1)$ of the gap, to its error.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from apiece._base.progress import current_tracker
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset, take_rows
from apiece.engines import Engine, choose_engine, weight_option
from apiece.errors import PlanError
from apiece.laws import Laws
from apiece.losses import LossLike
from apiece.records import Task
from apiece.uses._outside import folds_of, predict
from apiece.uses._redundancy import GreedyPicks
from apiece.uses._rules import Limits, Rules, SelectionState, make_rules
from apiece.uses._select import JointSettings, labels_of

if TYPE_CHECKING:
    import pandas as pd

_PARTS: Final = 6  # of the scoring rows
_GROUPS: Final = 3  # of the parts, each of which measures what the others choose
_ENOUGH: Final = 10  # scoring rows in a part
_BEST: Final = 500  # candidates that the laws leave, at least
_NEAR: Final = 100  # candidates that are valued together, at least, and
_EACH: Final = 10  # for each pick
_NOBODY: Final = np.empty(0, dtype=np.int64)


def picks_at_hand(
    have: Any,
    limits: Limits,
    joint: JointSettings,
    *,
    laws: Laws | None = None,
    level: float = 0.9,
    seed: int = 0,
) -> pd.DataFrame:
    """Pick the points that gain most together on top of those that are held.

    Parameters
    ----------
    have
        Ids of the points that are held.
    limits
        How many picks, of which classes, at which cost.
    joint
        The data, held points and validation set included; what is trained; and how many of the
        best single points are valued together, 10 for each pick by default, and at least 100.
    laws
        Laws of the points to choose from, which screen them; None values all of them.
    level
        Coverage of the intervals.
    seed
        Decides the parts of the scoring rows.

    Returns
    -------
    pandas.DataFrame
        As of `picks_from_laws`, with ``gain``, ``gain_low`` and ``gain_high``: what the pick and
        all above it gain on rows not seen.
    """
    import pandas as pd
    from scipy.stats import t

    dataset = joint.dataset
    assert dataset is not None  # `select` looks for it
    ids = dataset.ids if laws is None else laws.ids
    held, position = np.unique(dataset.positions(have)), dataset.positions(ids)
    alone = np.zeros(len(ids)) if laws is None else laws.mean(float(len(held)))
    alone = np.where(np.isin(position, held), np.nan, alone)
    is_known = np.isfinite(alone)
    labels = dataset.labels()[position] if laws is None else labels_of(laws, dataset)
    rules = make_rules(limits, ids=ids, labels=labels, is_known=is_known)
    near = np.flatnonzero(is_known)
    n_near = joint.shortlist
    if n_near is None:
        n_near = max(_EACH * min(rules.take, len(near)), _NEAR)
    if laws is not None:
        near = rules.shortlist(alone, max(n_near, _BEST))
    trained = joint.model, joint.metric, joint.engine
    at_hand = AtHand(dataset, held, position[near], *trained, seed, n_near)
    found = at_hand.pick(rules.of(near))
    promise = at_hand.promise(rules.of(near), found)
    rows, tail = near[found.rows], (1 + level) / 2
    # The rows that chose the picks flatter them, so their gains are scaled to what is promised.
    flattery = promise.gain[-1] / found.gain.sum() if len(rows) and found.gain.sum() > 0 else 1.0
    columns: dict[str, Any] = {"rank": np.arange(1, len(rows) + 1)}
    for name, mean, error, n_free in (
        ("value", flattery * found.gain, found.error, len(at_hand.parts) - 1),
        ("gain", promise.gain, promise.error, promise.n_free),
    ):
        half = float(t.ppf(tail, n_free))
        low, high = ("low", "high") if name == "value" else ("gain_low", "gain_high")
        columns |= {name: mean, low: mean - half * error, high: mean + half * error}
    if laws is not None:
        columns["alone"] = alone[rows]
    if labels is not None:
        columns["label"] = labels[rows]
    if limits.costs is not None:
        columns["cost"] = rules.cost[rows]
    return pd.DataFrame(columns, index=pd.Index(ids[rows], name="point"))


class Promise(NamedTuple):
    """What the first pick, the first two, ... gain together on rows not seen, with errors.

    ``n_free`` are the degrees of freedom of the noise of rows.
    """

    gain: FloatArray
    error: FloatArray
    n_free: int


@dataclass(frozen=True, eq=False)
class AtHand:
    """Values candidates together, on top of the rows that are held.

    Parameters
    ----------
    dataset
        The points, held or not, and the validation set if there is one.
    have
        Positions of the points that are held, shape ``(n_have,)``.
    position
        Positions of the candidates, shape ``(n_rows,)``; rows are positions in it.
    model, metric, engine
        As in `collect`.
    seed
        Decides the parts of the scoring rows.
    n_near
        How many of the best single candidates are valued together.
    """

    dataset: Dataset
    have: IntArray
    position: IntArray
    model: Any
    metric: LossLike
    engine: Any
    seed: int
    n_near: int = _NEAR

    def __post_init__(self) -> None:
        n_classes = self.dataset.n_classes
        n_held = len(np.unique(self._targets[self.have])) if n_classes else len(self.have)
        if n_held < 2:
            what = f"rows of {n_held} class" if n_classes else f"{n_held} rows"
            raise PlanError(
                f"have holds {what}: expected enough to train a model, of at least two classes or "
                "two rows. Name the rows that the model is trained on today."
            )
        if not len(self.position):
            raise PlanError("have holds all rows: expected some that could be added. Name fewer.")
        n_scoring = len(self._part)
        if n_scoring < 2 * _ENOUGH:
            raise PlanError(
                f"{n_scoring} rows are left to score by: expected at least {2 * _ENOUGH}. Hold "
                "fewer, or pass a dataset with a validation set."
            )

    @property
    def _targets(self) -> AnyArray:
        return self.dataset.points_y

    @cached_property
    def scoring(self) -> IntArray:
        """Rows that score: of the validation set, or else points that are not held."""
        if self.dataset.n_validation:
            return np.arange(self.dataset.n_validation)
        return np.setdiff1d(np.arange(self.dataset.n_points), self.have)

    @cached_property
    def _part(self) -> IntArray:
        """The part of every scoring row."""
        data = self.dataset
        target = data.y_val if data.n_validation else data.points_y[self.scoring]
        n_parts = max(2, min(_PARTS, len(target) // _ENOUGH))
        return folds_of(target, n_parts, self.seed)

    @cached_property
    def parts(self) -> IntArray:
        """Numbers of the parts."""
        return np.unique(self._part)

    @property
    def _group(self) -> IntArray:
        """The group of every part."""
        return np.asarray(self.parts % min(_GROUPS, len(self.parts)))

    @cached_property
    def _engine(self) -> Engine:
        # All points may join training sets here, so all are the engine's pool.
        everyone = replace(self.dataset, n_pool=self.dataset.n_points, groups=None)
        return choose_engine(everyone, model=self.model, metric=self.metric, engine=self.engine)[0]

    def _scored_by(self, rows: IntArray) -> Engine:
        if not self.dataset.n_validation:
            return self._engine.scored_by(rows)
        data = self._engine.dataset
        part = replace(
            data, rows_val=take_rows(data.rows_val, rows), y_val=data.y_val[rows], ids_val=None
        )
        return replace(self._engine, dataset=part)

    @cached_property
    def _scorers(self) -> list[Engine]:
        return [self._scored_by(self.scoring[self._part == part]) for part in self.parts]

    def _scorer(self, part: int, joined: IntArray) -> Engine:
        """Return an engine that scores by a part of the scoring rows, less those that joined."""
        if not self.dataset.n_validation:
            mine = self.scoring[self._part == part]
            if np.isin(joined, mine).any():
                return self._scored_by(np.setdiff1d(mine, joined))
        return self._scorers[part]

    def gains(self, rows: IntArray, picked: list[int], parts: IntArray) -> FloatArray:
        """Return what rows add after the picks, by part, shape ``(n_parts, n_rows)``.

        A part that holds a candidate cannot score it: its gain there is nan.
        """
        gains = np.full((len(parts), len(rows)), np.nan)
        points, joined = self.position[rows], self.position[np.array(picked, dtype=np.int64)]
        subset = np.concatenate([self.have, joined])
        for number, part in enumerate(parts):
            is_outside = np.ones(len(rows), dtype=bool)
            if not self.dataset.n_validation:
                is_outside = ~np.isin(points, self.scoring[self._part == part])
            if is_outside.any():
                task = Task(0, subset, points[is_outside], self.seed)
                gains[number, is_outside] = self._scorer(part, joined).run(task).delta
        return gains

    def pick(self, rules: Rules, parts: IntArray | None = None) -> GreedyPicks:
        """Pick rows one after the other, by some parts of the scoring rows or by all."""
        parts = self.parts if parts is None else parts
        state = SelectionState(rules)
        gain, error = [], []
        near = np.arange(len(self.position))
        tracker = current_tracker()
        while not state.is_full:
            left = np.setdiff1d(near, state.rows)
            left = left[state.admits(left)]
            if not len(left):
                break
            gains = self.gains(left, state.rows, parts)
            mean = _mean(gains)
            best = int(np.argmax(np.nan_to_num(mean / rules.cost[left], nan=-np.inf)))
            if not rules.is_wanted(mean[best]):
                break
            if not state.rows:
                near = left[rules.of(left).shortlist(mean, self.n_near)]
            state.add(int(left[best]))
            gain.append(mean[best])
            error.append(np.nanstd(gains[:, best], ddof=1) / np.sqrt(len(parts)))
            tracker.advance()
        return GreedyPicks(np.array(state.rows, dtype=np.int64), np.array(gain), np.array(error))

    def promise(self, rules: Rules, picks: GreedyPicks) -> Promise:
        """Measure what picks gain on rows that had no part in choosing them.

        Returns
        -------
        Promise
            Shape ``(n_picks,)`` each, of ``picks``, which all rows chose.
        """
        n_picks = len(picks.rows)
        gains, group = [], []
        for number in np.unique(self._group):
            chosen_by = self.parts[self._group != number]
            joined = self.position[self.pick(rules, chosen_by).rows[:n_picks]]
            losses = np.stack([self._losses(number, joined, n) for n in range(len(joined) + 1)])
            found = losses[0] - losses[1:]
            last = found[-1:] if len(found) else np.zeros((1, losses.shape[1]))
            more = np.repeat(last, n_picks - len(found), axis=0)
            gains.append(np.concatenate([found, more]).T)
            group.append(np.full(losses.shape[1], number))
        each, of, n_groups = np.concatenate(gains), np.concatenate(group), len(gains)
        gain, error = each.mean(axis=0), _error(each, of)
        gap = np.maximum(np.cumsum(picks.gain) - gain, 0.0) / (2 * n_groups - 1)
        return Promise(
            gain + gap, np.hypot(error, (n_groups - 1) * gap), max(len(of) - n_groups, 1)
        )

    def _losses(self, group: int, joined: IntArray, n: int) -> FloatArray:
        """Return the loss on each row of a group of parts once the first ``n`` points have joined.

        No point of ``joined`` scores. A loss that is no mean over rows, or needs decision values,
        is that of each part.
        """
        subset, engine = np.concatenate([self.have, joined[:n]]), self._engine
        parts, metric = self.parts[self._group == group], engine.metric
        if not metric.is_mean_of_rows or metric.needs == "decision":
            task = Task(0, subset, _NOBODY, self.seed)
            return np.array([self._scorer(part, joined).run(task).loss for part in parts])
        rows, data = self.scoring[np.isin(self._part, parts)], engine.dataset
        if data.n_validation:
            features, target = take_rows(data.rows_val, rows), data.y_val[rows]
        else:
            rows = np.setdiff1d(rows, joined)
            features, target = data.take(rows), data.targets(rows)
        fitted, weight = engine.model.seeded(self.seed), data.sample_weight
        options = {} if weight is None else {weight_option(fitted): weight[subset]}
        fitted.fit(data.take(subset), data.targets(subset), **options)
        found = predict(fitted, features, data.n_classes)
        if metric.needs == "label":
            found = found.argmax(axis=1)
        return np.asarray(metric.rows(target, found))


def _error(gains: FloatArray, group: IntArray) -> FloatArray:
    """Return the standard error of the mean gain as a guess of another choice's gain.

    ``gains`` has shape ``(n_rows, n_picks)``; picks differ between groups of rows.
    """
    names, size = np.unique(group, return_counts=True)
    means = np.stack([gains[group == name].mean(axis=0) for name in names])
    if len(names) == len(
        gains
    ):  # groups of one row or part each: rows and choice cannot be separated
        return np.asarray(means.std(axis=0, ddof=1) * np.sqrt(1 + 1 / len(names)))
    within = ((gains - means[np.searchsorted(names, group)]) ** 2).sum(axis=0)
    rows = within / (len(gains) - len(names))
    choice = np.maximum(means.var(axis=0, ddof=1) - rows / size.mean(), 0.0)
    return np.asarray(np.sqrt(rows / len(gains) + choice * (1 + 1 / len(names))))


def _mean(gains: FloatArray) -> FloatArray:
    """Return the mean over the parts that tell something, nan where none does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmean(gains, axis=0))
