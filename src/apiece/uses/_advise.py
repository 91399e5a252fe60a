r"""What to do with the rows of a table, and what that does to the model, measured.

Advice is about sets of rows, judged together. Rows are split into five folds. For each fold, models
that were trained on the other four say which targets are doubtful (`_wrong`), and the model
is refitted on these four with the most doubtful labels changed (or the rows dropped): nested sets,
from the most doubtful on. The fold, which had no part in choosing, scores the result.

Nothing is changed unless wrong targets explain the table better than none (`_wrong`). The likeliest
share of them scores, and a standard error less doubts: too small a share would hide gains, and too
many changed labels make a model too sure. As many rows are doubted as are expected to be wrong, and
of each label its share: changing one label alone would move the model towards the others. Advice is
about the more doubtful two thirds of them and all that are more probably wrong than right, else
half of them, or a third (`_choices`). The effect that is stated was chosen without the fold that
measures it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import ndtri

from apiece._base.progress import track
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.data import Dataset, join_rows, take_rows
from apiece.engines import Model, weight_option
from apiece.errors import PlanError
from apiece.losses import LOSSES, Loss
from apiece.records import ALL_ROWS, POPULATION
from apiece.uses._advice import Advice, reason
from apiece.uses._choices import KEEP, LABELS, VALUES, Choice, Scores, change_of, mean_of
from apiece.uses._outside import folds_of, mixed, outside, predict
from apiece.uses._plausible import roughly
from apiece.uses._stray import suspect_values
from apiece.uses._wrong import Rate, rate_of_wrong, suspect_labels

if TYPE_CHECKING:
    import pandas as pd

_FOLDS: Final = 5  # folds that score in turns
_INNER: Final = 4  # folds of the rest, by which its rows are doubted
_DOUBTED: Final = 0.2  # a target that is less probably wrong is not doubted
_FEWEST: Final = 30  # rows that can be judged


def advice_for(
    dataset: Dataset, model: Model, loss: Loss, *, level: float = 0.9, seed: int = 0
) -> Advice:
    """Judge every row of a dataset, and measure what following the advice does.

    Points are judged, and validation rows that have ids. Other validation rows are trusted: they
    are never changed, score as they are, and tell wrong targets from rows that are hard to know.

    Parameters
    ----------
    dataset
        The data.
    model
        What is refitted.
    loss
        What is measured, and besides it accuracy or R2.
    level
        Coverage of the intervals.
    seed
        Of the folds and models.
    """
    table = _Table.of(dataset)
    _check(table, level)
    loss = _scored_by(loss, dataset.kind, model.has_proba)
    fold = folds_of(table.target, _FOLDS, seed, table.groups)
    (doubt,) = [_Doubt.of(table, fold, seed) for _ in track(range(1))]  # a step that is counted
    choices = (LABELS if table.n_classes else VALUES) if len(doubt.order) else (KEEP,)
    rate = np.where(table.is_trusted, 0.0, doubt.rate.likeliest)
    weight = np.ones(len(rate)) if table.n_classes else doubt.probability
    scores = Scores.empty(
        len(choices), weight, rate, table.is_trusted, table.n_classes, doubt.rate.sure
    )
    for number in track(range(_FOLDS)) if len(choices) > 1 else ():
        rest, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        part = table.take(rest)
        inner = folds_of(part.target, _INNER, seed + 1, part.groups)
        inside = _Doubt.of(part, inner, seed, doubt)
        for position, choice in enumerate(choices):
            target, is_kept, _ = inside.follow(choice)
            prediction = _refitted(model, part, target, is_kept, table.rows_at(test), seed)
            scores.add(position, test, table.target[test], loss, prediction)
    return _advice(table, fold, doubt, scores, choices, loss, level)


@dataclass(frozen=True)
class _Table:
    """All rows that train and score: points, then validation rows."""

    X: FloatArray
    rows: Any
    target: AnyArray
    n_classes: int
    is_trusted: BoolArray
    groups: AnyArray | None
    weight: FloatArray | None
    ids: AnyArray
    classes: AnyArray | None

    @classmethod
    def of(cls, dataset: Dataset) -> _Table:
        n, n_more = dataset.n_points, dataset.n_validation
        more_ids = dataset.ids_val
        is_trusted = np.arange(n + n_more) >= (n if more_ids is None else n + n_more)
        groups, weight = dataset.groups, dataset.sample_weight
        no_group = np.full(n_more, "", dtype=object)
        return cls(
            X=np.concatenate([dataset.points_X, dataset.X_val]),
            rows=join_rows(dataset.rows, dataset.rows_val) if n_more else dataset.rows,
            target=np.concatenate([dataset.points_y, dataset.y_val]),
            n_classes=dataset.n_classes,
            is_trusted=is_trusted,
            groups=None if groups is None else np.concatenate([groups.astype(object), no_group]),
            weight=None if weight is None else np.concatenate([weight, np.ones(n_more)]),
            ids=dataset.ids
            if more_ids is None
            else np.array([*dataset.ids.tolist(), *more_ids.tolist()], dtype=object),
            classes=dataset.classes,
        )

    def rows_at(self, positions: IntArray) -> Any:
        """Return features as models get them."""
        return take_rows(self.rows, positions)

    def take(self, positions: IntArray) -> _Table:
        return _Table(
            X=self.X[positions],
            rows=self.rows_at(positions),
            target=self.target[positions],
            n_classes=self.n_classes,
            is_trusted=self.is_trusted[positions],
            groups=None if self.groups is None else self.groups[positions],
            weight=None if self.weight is None else self.weight[positions],
            ids=self.ids,
            classes=self.classes,
        )


@dataclass(frozen=True)
class _Doubt:
    """Which targets are doubtful, from the most doubtful on, and what they should rather be."""

    target: AnyArray
    order: IntArray  # rows that are doubted
    ends: tuple[int, ...]  # of the parts of them: `_choices.NONE` to `ALL`
    to: AnyArray  # (n,)
    is_doubtful: BoolArray  # (n,), too probably wrong not to be looked at
    probability: FloatArray  # (n,), of the given target
    rate: Rate  # share of wrong targets

    @classmethod
    def of(cls, table: _Table, fold: IntArray, seed: int, known: _Doubt | None = None) -> _Doubt:
        """Doubt rows by models of the other folds, at the rate of a larger table if it is known."""
        target, is_trusted, judged = table.target, table.is_trusted, ~table.is_trusted
        each = outside(
            table.X, target, fold, n_classes=table.n_classes, seed=seed, groups=table.groups
        )
        found, rate = mixed(each, target), None if known is None else known.rate
        label, to = target, target.copy()
        if table.n_classes:
            # A linear model is the steadier one: what it cannot fit it cannot learn.
            rate = rate or rate_of_wrong((found, each[0]), target, is_trusted)
            suspicion = suspect_labels(found, target, is_trusted, rate)
            chance = found[np.arange(len(target)), target]
        else:
            suspicion = suspect_values(found, target, is_trusted, rate)
            rate = suspicion.rate
            label = (target > suspicion.to).astype(np.int64)
            chance = 1 - suspicion.wrong
        to[judged] = suspicion.to[judged]
        is_doubtful = suspicion.wrong >= _DOUBTED
        order, ends = _parts(suspicion.wrong, label, is_even=not table.n_classes)
        return cls(target, order, ends, to, is_doubtful, chance, rate)

    def follow(self, choice: Choice) -> tuple[AnyArray, BoolArray, BoolArray]:
        """Return the targets then, which rows are kept, and which are relabelled."""
        first, last = (self.ends[part] for part in choice)
        is_new, is_kept = np.zeros(len(self.to), dtype=bool), np.ones(len(self.to), dtype=bool)
        is_new[self.order[:first]] = True
        is_kept[self.order[first:last]] = False
        return np.where(is_new, self.to, self.target), is_kept, is_new


def _parts(
    wrong: FloatArray, label: IntArray, *, is_even: bool
) -> tuple[IntArray, tuple[int, ...]]:
    """Return the rows to doubt, from the most doubtful on, and where their parts end."""
    order = _order(wrong, label, is_even=is_even)
    n_few, n_some, n_most = (round(share * len(order)) for share in (1 / 3, 1 / 2, 2 / 3))
    rest = order[n_most:]
    is_wrong = wrong[rest] > 0.5
    order = np.concatenate([order[:n_most], rest[is_wrong], rest[~is_wrong]])
    return order, (0, n_few, n_some, n_most + int(is_wrong.sum()), len(order))


def _order(wrong: FloatArray, label: IntArray, *, is_even: bool) -> IntArray:
    """Return the rows to doubt: of each label as many as are expected to be wrong.

    Rows come in an order in which every beginning holds each label's share. If the number is even,
    the smallest of any label holds for all: of values, as many that are too high as too low, since
    a long tail on one side is no error.
    """
    codes = np.unique(label)
    expected = {code: max(float(wrong[label == code].sum()), 1e-12) for code in codes}
    if is_even:
        most = [min(expected[code], (wrong[label == code] >= _DOUBTED).sum()) for code in codes]
        expected = dict.fromkeys(codes, max(min(most) if len(codes) > 1 else 0.0, 1e-12))
    place = np.full(len(wrong), np.inf)
    for code in codes:
        rows = np.flatnonzero(label == code)
        rows = rows[np.argsort(-wrong[rows], kind="stable")]
        place[rows] = (np.arange(len(rows)) + 0.5) / expected[code]
    place[wrong < _DOUBTED] = np.inf
    order = np.argsort(place, kind="stable")
    return order[place[order] <= 1]


def _check(table: _Table, level: float) -> None:
    if not 0 < level < 1:
        raise PlanError(
            f"level={level}: expected the coverage of the intervals, between 0 and 1. Pass for "
            "example level=0.9 (--level 0.9)."
        )
    n = len(table.target)
    second = n if not table.n_classes else np.sort(np.bincount(table.target, minlength=2))[-2]
    if n < _FEWEST or second < _FOLDS:
        of_class = (
            f", {second} of them of the second most frequent class" if table.n_classes else ""
        )
        raise PlanError(
            f"there are {n} rows{of_class}: expected at least {_FEWEST}, and {_FOLDS} of each of "
            "two classes, to train models without each row. Add rows; apiece.value (apiece value) "
            "needs fewer."
        )


def _scored_by(loss: Loss, kind: str, has_proba: bool) -> Loss:
    """Return the loss if it scores row by row from probabilities, labels or values."""
    if type(loss).rows is not Loss.rows and loss.needs in ("proba", "label", "value"):
        return loss
    default = "log_loss" if has_proba else "zero_one"
    return LOSSES[default if kind == "classification" else "squared_error"]


def _refitted(
    model: Model, table: _Table, target: AnyArray, is_kept: BoolArray, test: Any, seed: int
) -> FloatArray | None:
    """Train on the rows that are kept and predict others; None if one class is left."""
    kept = np.flatnonzero(is_kept)
    if table.n_classes and len(np.unique(target[kept])) < 2:
        return None
    fitted = roughly(model.seeded(seed))
    options = {} if table.weight is None else {weight_option(fitted): table.weight[kept]}
    fitted.fit(table.rows_at(kept), target[kept], **options)
    return predict(fitted, test, table.n_classes)


def _advice(
    table: _Table,
    fold: IntArray,
    doubt: _Doubt,
    scores: Scores,
    choices: tuple[Choice, ...],
    loss: Loss,
    level: float,
) -> Advice:
    everything = np.ones(len(fold), dtype=bool)
    _, final = scores.choose(choices, everything)
    # The effect is measured on each fold by what the others choose.
    crossed = np.array([scores.choose(choices, fold != number) for number in range(_FOLDS)])[fold]
    # Some of them may drop rows although the advice does not: that is no effect of the advice.
    has_drops = choices[final][1] > choices[final][0]
    followed = crossed[:, 1 if has_drops else 0]
    if not scores.matters(followed):
        final = 0
    _, is_kept, is_new = doubt.follow(choices[final])
    is_changed = is_new | ~is_kept
    parts = {
        "relabel": (is_new, 0, crossed[:, 0]),
        "drop": (~is_kept, crossed[:, 0], crossed[:, 1]),
    }
    parts = {word: part for word, part in parts.items() if part[0].any()}
    parts["all"] = (is_changed, 0, followed)
    return Advice(
        _rows_of_advice(table, doubt, is_kept, is_new),
        _effect(parts, scores, table, level, is_none=not is_changed.any()),
        loss.name,
        level,
        ALL_ROWS if table.is_trusted.any() else POPULATION,
    )


def _effect(
    parts: dict[str, Any], scores: Scores, table: _Table, level: float, *, is_none: bool
) -> pd.DataFrame:
    import pandas as pd

    z = float(ndtri((1 + level) / 2))
    spread = 1.0
    if not table.n_classes:
        centre, _ = mean_of(table.target, scores.weight)
        spread = max(mean_of((table.target - centre) ** 2, scores.weight)[0], 1e-300)
    measure = "accuracy" if table.n_classes else "r2"
    rows = []
    for is_about, before, after in parts.values():
        row: dict[str, float] = {"rows": int(is_about.sum())}
        for name, score, unit in (("loss", scores.loss, 1.0), (measure, scores.miss, -spread)):
            mean, error = mean_of(change_of(score, before, after) / unit, scores.weight)
            mean, error = (0.0, 0.0) if is_none else (mean, error)
            row |= {name: mean, f"{name}_low": mean - z * error, f"{name}_high": mean + z * error}
        rows.append(row)
    return pd.DataFrame(rows, index=pd.Index(parts, name="part"))


def _rows_of_advice(
    table: _Table, doubt: _Doubt, is_kept: BoolArray, is_new: BoolArray
) -> pd.DataFrame:
    import pandas as pd

    n = len(table.ids)  # trusted rows, which have no ids, come last
    is_kept, is_new = is_kept[:n], is_new[:n]
    advice = np.full(n, "keep", dtype=object)
    advice[doubt.is_doubtful[:n]] = "check"
    advice[~is_kept] = "drop"
    advice[is_new] = "relabel"
    is_changed = advice != "keep"
    names = doubt.to[:n] if table.classes is None else table.classes[doubt.to[:n]]
    own = table.target[:n] if table.classes is None else table.classes[table.target[:n]]
    to = names.astype(object)
    to[~is_changed] = None
    return pd.DataFrame(
        {
            "advice": advice,
            "label": own,
            "to": to if table.n_classes else pd.to_numeric(pd.Series(to)).to_numpy(),
            "probability": doubt.probability[:n],
            "reason": [reason(*each) for each in zip(advice, own, names, strict=True)],
        },
        index=pd.Index(table.ids, name="point"),
    )
