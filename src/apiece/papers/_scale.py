"""Scales of a reproduction: as in the paper, an hour on a laptop, or a quick test."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

ScaleName = Literal["paper", "laptop", "smoke"]
MODELS: Final = ("logistic", "mlp", "svm")


@dataclass(frozen=True)
class Effort:
    """Number of valued points, and of contributions per point and size."""

    points: int
    samples: int


@dataclass(frozen=True)
class Addition:
    """Points added to training sets of two sizes: how many, to which sizes, how often."""

    take: int
    at: tuple[int, int]
    repeats: int = 1000


@dataclass(frozen=True)
class Scale:
    """How many points, samples and sizes.

    Parameters
    ----------
    name
        ``paper``, ``laptop`` or ``smoke``.
    sizes, n_sizes
        Range of the grid of log-spaced sizes, and how many they are.
    grid
        For each model, points and samples per size.
    counts
        Numbers of samples per point with which estimators are compared.
    truth
        Contributions per point behind the true values, in addition to those of the estimators.
    beyond, beyond_samples
        Sizes beyond the grid, and samples at each.
    candidates, candidate_samples
        Points to choose from for an addition, and contributions per point for their values.
    additions
        The experiments of adding points.
    network, network_samples
        Whether the amortized estimator is included, and the most contributions per point that it
        learns from: with more it has no advantage.

    Examples
    --------
    >>> SCALES["laptop"].sizes, SCALES["laptop"].grid["svm"].points
    ((100, 1000), 50)
    """

    name: ScaleName
    sizes: tuple[int, int] = (100, 1000)
    n_sizes: int = 10
    grid: dict[str, Effort] = field(default_factory=dict)
    counts: tuple[int, ...] = (10, 20, 50, 100)
    truth: int = 10_000
    beyond: tuple[int, ...] = (2500, 5000, 10_000)
    beyond_samples: int = 1000
    candidates: int = 1000
    candidate_samples: int = 500
    additions: tuple[Addition, ...] = ()
    network: bool = True
    network_samples: int = 100

    def at_most(self, points: int | None, samples: int | None) -> Scale:
        """Return the scale with fewer valued points, and fewer samples per size on grids.

        >>> SCALES["paper"].at_most(60, None).grid["mlp"]
        Effort(points=60, samples=5000)
        """
        grid = {
            model: Effort(
                min(effort.points, points or effort.points),
                min(effort.samples, samples or effort.samples),
            )
            for model, effort in self.grid.items()
        }
        return replace(self, grid=grid)


SCALES: Final[dict[str, Scale]] = {
    scale.name: scale
    for scale in (
        Scale(
            "paper",
            grid={
                "logistic": Effort(1000, 1000),
                "mlp": Effort(200, 5000),
                "svm": Effort(200, 5000),
            },
            counts=(10, 20, 50, 100, 200, 500),
            additions=(Addition(20, (100, 1000)), Addition(50, (200, 2000))),
        ),
        Scale(
            "laptop",
            grid={"logistic": Effort(200, 100), "mlp": Effort(30, 30), "svm": Effort(50, 50)},
            counts=(10, 20, 50, 100),
            truth=1000,
            beyond_samples=20,
            additions=(Addition(20, (100, 1000), 200), Addition(50, (200, 2000), 200)),
        ),
        Scale(
            "smoke",
            sizes=(20, 120),
            n_sizes=4,
            grid={"logistic": Effort(24, 12), "mlp": Effort(8, 4), "svm": Effort(8, 4)},
            counts=(10, 50),
            truth=100,
            beyond=(200, 300),
            beyond_samples=4,
            network=False,
            candidates=60,
            candidate_samples=24,
            additions=(Addition(6, (20, 100), 6), Addition(10, (30, 120), 6)),
        ),
    )
}
