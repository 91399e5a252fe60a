"""Settings and cost of runs, and means of their contributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.data import Dataset
from apiece.losses import LossName
from apiece.records import Contributions

PAPER_LOSS: Final[LossName] = "softmax_of_proba"  # what the paper's code computes
TITLES: Final = {"logistic": "logistic regression", "mlp": "MLP", "svm": "SVM"}


@dataclass(frozen=True)
class Setting:
    """One run: a dataset, a model, a loss, and which sizes are sampled.

    ``grid`` has log-spaced sizes, ``uniform`` random ones in the same range, and ``beyond`` those
    larger than it; ``candidates`` are the points to add, also at random sizes of that range, and
    ``pool`` are all points, for the amortized estimator.
    """

    dataset: str
    model: str = "logistic"
    metric: LossName = PAPER_LOSS
    design: str = "grid"

    def __str__(self) -> str:
        return f"{self.dataset}-{self.model}-{self.metric}-{self.design}"


@dataclass(frozen=True)
class Cost:
    """Cost of a run: its shape, the stored part, and the time that the rest takes."""

    setting: Setting
    points: int
    sizes: int
    samples: int
    n_contributions: int
    n_left: int
    seconds: float

    def words(self, n_jobs: int) -> str:
        """Return the cost as a line of text."""
        minutes = self.seconds / 60 / max(1, n_jobs)
        left = f"{self.n_left:,} contributions left, about {minutes:,.1f} minutes"
        return (
            f"{self.setting}: {self.points:,} points, {self.samples:,} samples each over "
            f"{self.sizes:,} sizes; {left if self.n_left else 'complete'}"
        )


class CandidateData(NamedTuple):
    """A dataset with candidates, and rows that test what they add: features and labels."""

    data: Dataset
    test: tuple[FloatArray, AnyArray]


class Means(NamedTuple):
    """Mean contributions ``(n_points, n_sizes)`` at sizes ``k``, and the variance of each mean."""

    k: FloatArray
    psi: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, table: Contributions) -> Means:
        """Average contributions."""
        k, place = np.unique(table.k, return_inverse=True)
        where = table.point * len(k) + place
        n = np.bincount(where, minlength=table.n_points * len(k))
        sums = np.bincount(where, weights=table.delta, minlength=len(n))
        mean = np.divide(sums, n, out=np.full(len(n), np.nan), where=n > 0)
        squares = np.bincount(where, weights=(table.delta - mean[where]) ** 2, minlength=len(n))
        pairs = n * (n - 1.0)
        variance = np.divide(squares, pairs, out=np.full(len(n), np.nan), where=pairs > 0)
        shape = (table.n_points, len(k))
        return cls(k.astype(np.float64), mean.reshape(shape), variance.reshape(shape))
