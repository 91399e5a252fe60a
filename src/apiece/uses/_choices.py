r"""What could be done with doubtful rows, how it scores, and which of it is advised.

A choice relabels the most doubtful rows and drops the next ones. Rows that score are as noisy as
the others. With a share $\rho$ of wrong labels, a model that predicts the right label with
probabilities $p$ predicts the given label with $\rho / (C - 1) + (1 - \rho C / (C - 1))\,p$, and
that is what is scored, for every refit alike: a proper score of $p$, in which a wrong label costs
little. Rows that are hard, and not wrong, cost little then, too, and a model from which they were
taken out seems better than it is: so a change of labels must also gain if fewer are wrong, by 5 %
of all rows or half of the wrong ones. Rows whose targets are trusted score as they are, and where
there are some a change must gain on them instead. Accuracy on the given labels, divided by
$1 - \rho C / (C - 1)$, is unbiased. For quantities, rows count by the probability that their value
is right. Without wrong labels both are the plain scores.

A set must gain, labels by a standard error at least; accuracy must not fall; and the standard
errors of the gain and those by which the finder is sure must add up to three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.losses import Loss

_MATTERS: Final = 0.005  # smallest gain that matters, as a share of the loss
_MATTERS_LABELS: Final = 0.001  # the same for new labels on rows that had no part in choosing
_BOTH: Final = 3.0  # standard errors of the gain and of the finder together, for a first set, and
_LEAST: Final = 1.0  # of the gain of new labels alone, however sure the finder is
_HARD: Final = 0.05  # share of rows that may be hard, and not wrong; at most half of the wrong ones
_CHANCE: Final = 2.0  # standard errors by which accuracy may seem to fall

# How far down the doubted rows go, from the most doubtful on: a third of them; half; two thirds and
# all that are more probably wrong than right; all.
NONE, FEW, SOME, MOST, ALL = range(5)
# How far rows are relabelled, and how far the next ones are dropped. The first choice that gains is
# the start, and later ones replace it if they gain more.
Choice = tuple[int, int]
KEEP: Final[Choice] = (NONE, NONE)
LABELS: Final[tuple[Choice, ...]] = (
    *(KEEP, (MOST, MOST), (SOME, SOME), (FEW, FEW)),
    *((MOST, ALL), (SOME, MOST), (FEW, MOST), (NONE, MOST), (NONE, ALL)),
)
VALUES: Final[tuple[Choice, ...]] = (KEEP, (NONE, MOST), (NONE, FEW), (NONE, ALL))


@dataclass(frozen=True)
class Scores:
    """Scores of every row under each choice, lower is better, shape ``(n_choices, n)``."""

    loss: FloatArray
    wary: FloatArray  # with a smaller share of wrong labels
    miss: FloatArray  # one less accuracy, or squared errors
    weight: FloatArray  # of every row, shape (n,)
    rate: FloatArray  # how probably the label of a row is wrong, before looking, shape (n,)
    is_trusted: BoolArray  # rows whose targets are right for certain, shape (n,)
    n_classes: int
    sure: float  # standard errors by which wrong targets explain the table better than none

    @classmethod
    def empty(
        cls,
        n_choices: int,
        weight: FloatArray,
        rate: FloatArray,
        is_trusted: BoolArray,
        n_classes: int,
        sure: float,
    ) -> Scores:
        """Return zeros, to be filled fold by fold."""
        loss, wary, miss = (np.zeros((n_choices, len(rate))) for _ in range(3))
        return cls(loss, wary, miss, weight, rate, is_trusted, n_classes, sure)

    def add(
        self, choice: int, test: IntArray, target: AnyArray, loss: Loss, prediction: Any
    ) -> None:
        """Score rows of a fold by what a refit predicts; None if the model cannot be trained."""
        if prediction is None:
            self.loss[choice, test] = np.inf
            return
        if not self.n_classes:
            self.loss[choice, test] = loss.rows(target, prediction)
            self.miss[choice, test] = (target - prediction) ** 2
            return
        label = prediction.argmax(axis=1)
        fewer = np.maximum(self.rate - _HARD, self.rate / 2)
        for into, rate in ((self.wary, fewer), (self.loss, self.rate)):
            other = rate[test] / (self.n_classes - 1)
            right = 1 - other * self.n_classes
            seen = other[:, None] + right[:, None] * prediction
            into[choice, test] = loss.rows(target, label if loss.needs == "label" else seen)
        self.miss[choice, test] = (label != target) / right

    def gain(self, choice: int, than: int, rows: BoolArray) -> tuple[float, float]:
        """Return the mean gain of a choice over another, and its standard error."""
        return mean_of(self.loss[than, rows] - self.loss[choice, rows], self.weight[rows])

    def harms(self, choice: int, than: int, rows: BoolArray) -> bool:
        """Return whether a choice lowers accuracy or R2 by more than chance would."""
        better = self.miss[than, rows] - self.miss[choice, rows]
        mean, error = mean_of(better, self.weight[rows])
        return mean + _CHANCE * error < 0

    def matters(self, followed: IntArray) -> bool:
        """Return whether choices that rows had no part in gain enough, shape ``(n,)``."""
        change, _ = mean_of(change_of(self.loss, 0, followed), self.weight)
        matters = _MATTERS_LABELS if self.n_classes else _MATTERS
        return change < -matters * mean_of(self.loss[0], self.weight)[0]

    def is_wary(self, choice: int, than: int, rows: BoolArray) -> bool:
        """Return whether a choice gains on trusted rows, or else if fewer labels are wrong."""
        trusted = rows & self.is_trusted
        score, rows = (self.loss, trusted) if trusted.any() else (self.wary, rows)
        return mean_of(score[than, rows] - score[choice, rows], self.weight[rows])[0] >= 0

    def is_possible(self, choice: int) -> bool:
        """Return whether the model could be trained on every fold."""
        return bool(np.isfinite(self.loss[choice]).all())

    def choose(self, choices: tuple[Choice, ...], rows: BoolArray) -> tuple[int, int]:
        """Return the best rule to relabel, with drops where they add to its effect; 0 for none."""
        numbered = list(enumerate(choices))
        best = self._best([i for i, (new, out) in numbered if out == new > 0], 0, rows)
        same = choices[best][0]
        more = self._best([i for i, (new, out) in numbered if out > new == same], best, rows)
        return best, more or best

    def _best(self, among: list[int], than: int, rows: BoolArray) -> int:
        """Return the first choice that gains, or a later one that gains more; 0 if none does."""
        smallest = _MATTERS * mean_of(self.loss[0, rows], self.weight[rows])[0]
        least = _LEAST if than or self.n_classes else 0.0
        found, short = 0, least if than else max(_BOTH - self.sure, least)
        for choice in filter(self.is_possible, among):
            gain, error = self.gain(choice, found or than, rows)
            is_more = gain > smallest and gain > short * error
            if is_more and self.is_wary(choice, than, rows) and not self.harms(choice, than, rows):
                found, short, smallest = choice, _LEAST, 0.0
        return found


def change_of(score: FloatArray, before: Any, after: IntArray) -> FloatArray:
    """Return how much each row's score changes from one choice to the choices after."""
    rows = np.arange(score.shape[1])
    return np.asarray(score[after, rows] - score[before, rows])


def mean_of(values: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return the weighted mean and its standard error."""
    share = weight / weight.sum()
    mean = float(share @ values)
    return mean, float(np.sqrt((share**2) @ (values - mean) ** 2))
