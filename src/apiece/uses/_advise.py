r"""What to do with the rows of a table, and what that does to the model, measured.

Advice is about sets of rows, judged together. Rows are split into five folds. For each fold, models
that were trained on the other four say which targets are doubtful (`_wrong`), and the model at hand
is refitted on these four with the most doubtful labels changed (or the rows dropped): nested sets,
from the most doubtful on. The fold, which had no part in choosing, scores the result.

Rows that score are as noisy as the others. With a share $\rho$ of wrong labels, a model that
predicts the right label with probabilities $p$ predicts the label at hand with
$\rho / (C - 1) + (1 - \rho C / (C - 1))\,p$, and that is what is scored, for every refit alike: a
proper score of $p$, in which a wrong label costs little. Accuracy on the labels at hand, divided by
$1 - \rho C / (C - 1)$, is unbiased. For quantities, rows count by the probability that their value
is right. Without wrong labels both are the plain scores.

A set is advised if its gain less one standard error is the largest and matters, if it does not
lower accuracy, and if its model with a share $\rho$ of wrong labels explains the labels at hand
better than the model of the data as they are without any: where classes merely overlap, it does
not. The effect that is stated was chosen without the fold that measures it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import ndtri

from apiece._base.html import table_html
from apiece._base.progress import track
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.data import Dataset, join_rows, take_rows
from apiece.engines import Model, weight_option
from apiece.errors import PlanError
from apiece.losses import LOSSES, Loss
from apiece.uses._outside import folds_of, outside, predict
from apiece.uses._wrong import label_doubt, noise_rate, value_posterior

if TYPE_CHECKING:
    import pandas as pd

ADVICE: Final = ("keep", "relabel", "drop", "check")
_FOLDS: Final = 5  # that score
_INNER: Final = 4  # folds of the rest, by which its rows are doubted
_MATTERS: Final = 0.005  # smallest gain that matters, as a share of the loss
_FEWEST: Final = 30  # rows that can be judged

# Shares of the doubted rows that are relabelled, and that are dropped next. Doubted are as many
# rows as there are wrong labels at least.
_Shares = tuple[float, float]
_KEEP: Final[_Shares] = (0.0, 0.0)
_RELABEL: Final[tuple[_Shares, ...]] = tuple((share, 0.0) for share in (0.25, 0.5, 0.75, 1.0))
_DROP_TOO: Final[tuple[_Shares, ...]] = ((0.5, 0.25), (0.75, 0.25))
_DROP: Final[tuple[_Shares, ...]] = tuple((0.0, share) for share in (0.25, 0.5, 1.0))


@dataclass(frozen=True, repr=False)
class Advice:
    """What to do with every row, and the measured effect of doing it.

    Parameters
    ----------
    rows
        The table that `table` returns.
    effect
        One row for each part of the advice (``relabel``, ``drop``) and for ``all`` of it: how many
        ``rows`` it is about, and the change of the ``loss`` (negative is better) and of
        ``accuracy`` or ``r2`` (positive is better) if it is followed, each with ``_low`` and
        ``_high``. Measured by refitting, on rows that had no part in choosing.
    metric
        The loss, by name.
    level
        Coverage of the intervals.
    """

    rows: pd.DataFrame
    effect: pd.DataFrame
    metric: str
    level: float

    def table(self) -> pd.DataFrame:
        """Return the advice, indexed by id.

        Returns
        -------
        pandas.DataFrame
            ``advice`` (one of `ADVICE`), ``to`` (the label, or the predicted value, that the row
            should rather have; missing for ``keep``), ``probability`` (of the label at hand, to
            models that have not seen the row; of a value, that it is right) and ``reason``.
        """
        return self.rows.copy()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> pd.Series:
        return self.rows[column]

    def __repr__(self) -> str:
        return f"Advice({self.headline()})"

    def _repr_html_(self) -> str:
        changed = self.rows[self.rows["advice"] != "keep"]
        return table_html(self.headline(), self.effect) + changed.head(20).to_html(border=0)

    def headline(self) -> str:
        """Return what to do and what it would gain, in one to three sentences."""
        count = self.rows["advice"].value_counts()
        n_check = int(count.get("check", 0))
        check = f" {_rows(n_check)} may be wrong: check them by hand." if n_check else ""
        parts = [
            f"{word} {_rows(int(count[word]))}" for word in ("relabel", "drop") if word in count
        ]
        if not parts:
            return (
                "Nothing to do: no change of the data was measured to make the model better."
                + check
            )
        row: dict[str, float] = self.effect.to_dict("index")["all"]  # type: ignore[assignment]
        measure = "accuracy" if "accuracy" in self.effect else "r2"
        what = " and ".join(parts)
        text = (
            f"{what[0].upper()}{what[1:]}: {self.metric.replace('_', ' ')} "
            f"{_moves(row['loss'])} by {_span(row, 'loss')}"
        )
        if measure == "accuracy":
            row = {name: 100 * part for name, part in row.items()}
            return (
                f"{text}, accuracy {_moves(row[measure])} by {_span(row, measure)} points.{check}"
            )
        return f"{text}, R2 {_moves(row[measure])} by {_span(row, measure)}.{check}"


def advice_for(
    dataset: Dataset, model: Model, loss: Loss, *, level: float = 0.9, seed: int = 0
) -> Advice:
    """Judge every row of a dataset, and measure what following the advice does.

    Points are judged, and validation rows that have ids. Other validation rows are trusted: they
    are never changed, and score as they are.

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
    choices = (_KEEP, *_RELABEL, *_DROP_TOO, *_DROP) if table.n_classes else (_KEEP, *_DROP)
    fold = folds_of(table.target, _FOLDS, seed, table.groups)
    doubt = _Doubt.of(table, fold, seed)
    scores = _Scores.empty(len(choices), table, doubt)
    for number in track(range(_FOLDS)):
        rest, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        part = table.take(rest)
        inner = folds_of(part.target, _INNER, seed + 1, part.groups)
        inside = _Doubt.of(part, inner, seed)
        for position, shares in enumerate(choices):
            target, is_kept, _ = inside.follow(shares)
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
    to: AnyArray  # (n,)
    probability: FloatArray  # (n,), of the target at hand
    rate: float  # share of wrong labels

    @property
    def weight(self) -> FloatArray:
        """How much each row counts where it scores."""
        is_label = self.target.dtype.kind == "i"
        return np.ones(len(self.target)) if is_label else self.probability

    @classmethod
    def of(cls, table: _Table, fold: IntArray, seed: int) -> _Doubt:
        target, n_classes, judged = table.target, table.n_classes, ~table.is_trusted
        found = outside(table.X, target, fold, n_classes=n_classes, seed=seed)
        if not n_classes:
            wrong = np.where(judged, value_posterior(found, target), 0.0)
            order = np.argsort(-wrong, kind="stable")[: round(float(wrong.sum()))]
            return cls(target, order, found, 1 - wrong, 0.0)
        rate, low = noise_rate(found[judged], target[judged])
        doubt, to = label_doubt(found, target)
        doubt[~judged] = -np.inf
        order = np.argsort(-doubt, kind="stable")[: int(low * judged.sum())]
        own = found[np.arange(len(target)), target]
        return cls(target, order[doubt[order] > 0], to, own, rate if low > 0 else 0.0)

    def follow(self, shares: _Shares) -> tuple[AnyArray, BoolArray, BoolArray]:
        """Return the targets then, which rows are kept, and which are relabelled."""
        first, last = (round(part * len(self.order)) for part in (shares[0], sum(shares)))
        is_new, is_kept = np.zeros(len(self.to), dtype=bool), np.ones(len(self.to), dtype=bool)
        is_new[self.order[:first]] = True
        is_kept[self.order[first:last]] = False
        return np.where(is_new, self.to, self.target), is_kept, is_new


@dataclass(frozen=True)
class _Scores:
    """Scores of every row under each choice, lower is better, shape ``(n_choices, n)``."""

    loss: FloatArray
    miss: FloatArray  # one less accuracy, or squared errors
    plain: FloatArray  # loss of the data as they are if no label is wrong, shape (n,)
    weight: FloatArray  # of every row, shape (n,)
    rate: float  # share of wrong labels
    n_classes: int

    @classmethod
    def empty(cls, n_choices: int, table: _Table, doubt: _Doubt) -> _Scores:
        loss, miss = (np.zeros((n_choices, len(doubt.weight))) for _ in range(2))
        return cls(loss, miss, np.zeros(loss.shape[1]), doubt.weight, doubt.rate, table.n_classes)

    def add(
        self, choice: int, test: IntArray, target: AnyArray, loss: Loss, prediction: Any
    ) -> None:
        if prediction is None:  # the model cannot be trained so
            self.loss[choice, test] = np.inf
            return
        if not self.n_classes:
            self.loss[choice, test] = loss.rows(target, prediction)
            self.miss[choice, test] = (target - prediction) ** 2
            self.plain[test] = np.inf
            return
        label, other = prediction.argmax(axis=1), self.rate / (self.n_classes - 1)
        seen = other + (1 - other * self.n_classes) * prediction
        is_label = loss.needs == "label"
        self.loss[choice, test] = loss.rows(target, label if is_label else seen)
        if choice == 0:
            self.plain[test] = np.inf if is_label else loss.rows(target, prediction)
        self.miss[choice, test] = (label != target) / (1 - other * self.n_classes)

    def gain(self, choice: int, than: int, rows: BoolArray) -> tuple[float, float]:
        """Return the mean gain of a choice over another, and its standard error."""
        return _mean(self.loss[than, rows] - self.loss[choice, rows], self.weight[rows])

    def harms(self, choice: int, than: int, rows: BoolArray) -> bool:
        """Return whether a choice lowers accuracy or R2, or explains the labels no better."""
        if self.loss[choice, rows].mean() >= self.plain[rows].mean():
            return True
        better = self.miss[than, rows] - self.miss[choice, rows]
        mean, error = _mean(better, np.ones(len(better)))
        return mean + (2 * error if self.n_classes else 0.0) < 0

    def is_possible(self, choice: int) -> bool:
        return bool(np.isfinite(self.loss[choice]).all())

    def choose(self, choices: tuple[_Shares, ...], rows: BoolArray) -> tuple[int, int]:
        """Return the best way to relabel, and that with drops where they add to it; 0 is none."""
        best = self._best(_which(choices, relabel=True, drop=False), 0, rows)
        more = self._best(_which(choices, relabel=best > 0, drop=True), best, rows)
        return best, more or best

    def _best(self, among: list[int], than: int, rows: BoolArray) -> int:
        """Return the choice with the largest lower bound of its gain, 0 if none matters."""
        smallest = _MATTERS * _mean(self.loss[0, rows], self.weight[rows])[0]
        found, most = 0, smallest
        for choice in among:
            if not self.is_possible(choice):
                continue
            gain, error = self.gain(choice, than, rows)
            if gain - error > most and not self.harms(choice, than, rows):
                found, most = choice, gain - error
        return found


def _which(choices: tuple[_Shares, ...], *, relabel: bool, drop: bool) -> list[int]:
    wanted = (relabel, drop)
    return [i for i, (new, out) in enumerate(choices) if (new > 0, out > 0) == wanted]


def _mean(values: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return the weighted mean and its standard error."""
    share = weight / weight.sum()
    mean = float(share @ values)
    return mean, float(np.sqrt((share**2) @ (values - mean) ** 2))


def _check(table: _Table, level: float) -> None:
    if not 0 < level < 1:
        raise PlanError(
            f"level={level}: expected the coverage of the intervals, between 0 and 1. Pass for "
            "example level=0.9 (--level 0.9)."
        )
    n = len(table.target)
    second = n if not table.n_classes else np.sort(np.bincount(table.target, minlength=2))[-2]
    if n < _FEWEST or second < _FOLDS:
        raise PlanError(
            f"there are {n} rows, {second} of them of the second most frequent class: expected at "
            f"least {_FEWEST} and {_FOLDS}, to train models without each of them. Collect more "
            "data."
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
    fitted = model.seeded(seed)
    options = {} if table.weight is None else {weight_option(fitted): table.weight[kept]}
    fitted.fit(table.rows_at(kept), target[kept], **options)
    return predict(fitted, test, table.n_classes)


def _advice(
    table: _Table,
    fold: IntArray,
    doubt: _Doubt,
    scores: _Scores,
    choices: tuple[_Shares, ...],
    loss: Loss,
    level: float,
) -> Advice:
    everything = np.ones(len(fold), dtype=bool)
    _, final = scores.choose(choices, everything)
    # The effect is measured on each fold by what the others choose.
    crossed = np.array([scores.choose(choices, fold != number) for number in range(_FOLDS)])[fold]
    gain, error = _mean(_change(scores.loss, 0, crossed[:, 1]), scores.weight)
    if final and gain + error >= 0:
        final = 0
    _, is_kept, is_new = doubt.follow(choices[final])
    is_changed = is_new | ~is_kept
    parts = {
        "relabel": (is_new, 0, crossed[:, 0]),
        "drop": (~is_kept, crossed[:, 0], crossed[:, 1]),
    }
    parts = {word: part for word, part in parts.items() if part[0].any()}
    parts["all"] = (is_changed, 0, crossed[:, 1])
    return Advice(
        _rows_of_advice(table, doubt, is_kept, is_new),
        _effect(parts, scores, table, level, is_none=not is_changed.any()),
        loss.name,
        level,
    )


def _change(score: FloatArray, before: Any, after: IntArray) -> FloatArray:
    rows = np.arange(score.shape[1])
    return np.asarray(score[after, rows] - score[before, rows])


def _effect(
    parts: dict[str, Any], scores: _Scores, table: _Table, level: float, *, is_none: bool
) -> pd.DataFrame:
    import pandas as pd

    z = float(ndtri((1 + level) / 2))
    spread = 1.0
    if not table.n_classes:
        centre, _ = _mean(table.target, scores.weight)
        spread = max(_mean((table.target - centre) ** 2, scores.weight)[0], 1e-300)
    measure = "accuracy" if table.n_classes else "r2"
    rows = []
    for is_about, before, after in parts.values():
        row: dict[str, float] = {"rows": int(is_about.sum())}
        for name, score, unit in (("loss", scores.loss, 1.0), (measure, scores.miss, -spread)):
            mean, error = _mean(_change(score, before, after) / unit, scores.weight)
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
    advice[doubt.order[: len(doubt.order) // 2]] = "check"
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
            "to": to if table.n_classes else pd.to_numeric(pd.Series(to)).to_numpy(),
            "probability": doubt.probability[:n],
            "reason": [_reason(*each) for each in zip(advice, own, names, strict=True)],
        },
        index=pd.Index(table.ids, name="point"),
    )


def _reason(advice: str, own: Any, to: Any) -> str:
    if advice == "keep":
        return "nothing speaks against it"
    if isinstance(to, float):
        said = f"{own:.4g} is far from {to:.4g}, which models predict that have not seen the row"
    else:
        said = f"models that have not seen the row say {to}, not {own}"
    return {
        "relabel": f"{said}, and with all such labels changed the model predicts better",
        "drop": f"{said}, and without all such rows the model predicts better",
        "check": f"{said}; changing it was not measured to help",
    }[advice]


def _rows(n: int) -> str:
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def _moves(change: float) -> str:
    return "falls" if change < 0 else "rises"


def _span(row: dict[str, float], name: str) -> str:
    """Return the size of a change with its interval, counted in the direction it moves."""
    sign = -1 if row[name] < 0 else 1
    mean, low, high = (sign * row[part] for part in (name, f"{name}_low", f"{name}_high"))
    low, high = sorted((low, high))
    return f"{mean:.3g} ({low:.3g} to {high:.3g})"
