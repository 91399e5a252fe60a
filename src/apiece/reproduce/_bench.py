"""The bench: datasets, and the runs that the tables and figures share, each collected once.

Runs are ordinary ones in folders under ``to``, so what is interrupted goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np

from apiece import api
from apiece._progress import Silent, reporter
from apiece._rng import stream
from apiece._typing import FloatArray, IntArray
from apiece.data import Dataset
from apiece.engine import choose_engine
from apiece.laws import Laws
from apiece.records import Contributions
from apiece.reproduce._scale import MODELS, Scale
from apiece.reproduce._sources import SOURCES, load
from apiece.sampling import Design, make_plan
from apiece.store import Run, open_run

T = TypeVar("T")

PAPER_LOSS: Final = "softmax_of_proba"  # what the paper's code computes
LOSSES: Final = (PAPER_LOSS, "log_loss")
TITLES: Final = {"logistic": "logistic regression", "mlp": "MLP", "svm": "SVM"}


@dataclass(frozen=True)
class Setting:
    """One run: a dataset, a model, a loss, and which sizes are sampled.

    ``grid`` has log-spaced sizes, ``uniform`` random ones in the same range, and ``beyond`` those
    larger than it.
    """

    dataset: str
    model: str = "logistic"
    metric: str = PAPER_LOSS
    design: str = "grid"

    def __str__(self) -> str:
        return f"{self.dataset}-{self.model}-{self.metric}-{self.design}"


@dataclass(frozen=True)
class Cost:
    """What a run takes: its shape, what is stored of it, and the time that the rest needs."""

    setting: Setting
    points: int
    sizes: int
    samples: int
    n_contributions: int
    n_left: int
    seconds: float

    def words(self, n_jobs: int) -> str:
        """Tell it in a line."""
        minutes = self.seconds / 60 / max(1, n_jobs)
        left = f"{self.n_left:,} contributions left, about {minutes:,.1f} minutes"
        return (
            f"{self.setting}: {self.points:,} points, {self.samples:,} samples each over "
            f"{self.sizes:,} sizes; {left if self.n_left else 'complete'}"
        )


class Means(NamedTuple):
    """Mean contributions ``(n_points, n_sizes)`` at sizes ``k``, and the variance of each mean."""

    k: FloatArray
    psi: FloatArray
    variance: FloatArray


@dataclass(frozen=True, eq=False)
class Bench:
    """Everything that tables and figures are made from.

    Parameters
    ----------
    data, to
        Folder of the datasets, and of the results.
    scale
        How much is computed.
    datasets, models
        Names of those that take part, in order.
    n_jobs
        Worker processes.
    stored
        Whether to make do with what is stored, also of runs that are not complete.
    progress
        As in `collect`.
    """

    data: Path
    to: Path
    scale: Scale
    datasets: tuple[str, ...]
    models: tuple[str, ...] = MODELS
    n_jobs: int = 1
    stored: bool = False
    progress: bool | None = False
    _made: dict[tuple[object, ...], object] = field(default_factory=dict, init=False)

    def once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return what was made under the key before, or make it now."""
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])

    def lead(self, *designs: str) -> str | None:
        """Return the dataset of figures that show one alone: IMDB, as in the paper, if it is there.

        Parameters
        ----------
        *designs
            Runs that it must have; None is returned if no dataset has them all.
        """
        for name in sorted(self.datasets, key=lambda name: name != "imdb"):
            if all(self.has(Setting(name, design=design)) for design in designs):
                return name
        return None

    def title(self, dataset: str) -> str:
        """Return the name of a dataset for people."""
        return SOURCES[dataset].title if dataset in SOURCES else dataset

    def dataset(self, name: str) -> Dataset:
        """Return a dataset, split as in the paper."""
        kept = self.to / "data"
        return self.once(("dataset", name), lambda: load(name, self.data, cache=kept))

    def settings(self, needs: tuple[str, ...]) -> Iterator[Setting]:
        """Yield the runs behind needs: ``grid``, ``losses``, ``models``, ``uniform``, ``beyond``.

        ``grid`` is logistic regression alone, ``losses`` adds the log loss, ``models`` the others.
        """
        return (setting for setting in self._settings(needs) if self.has(setting))

    def has(self, setting: Setting) -> bool:
        """Whether a run is at hand, or may be collected."""
        is_wanted = setting.model in self.models and setting.dataset in self.datasets
        return is_wanted and (not self.stored or self.n_stored(setting) > 0)

    def n_stored(self, setting: Setting) -> int:
        """Count the contributions that are stored of a run."""
        folder = self.folder(setting)
        is_there = (folder / "manifest.json").exists()
        return open_run(folder).progress().n_contributions if is_there else 0

    def _settings(self, needs: tuple[str, ...]) -> Iterator[Setting]:
        for dataset in self.datasets:
            if "grid" in needs:
                yield Setting(dataset)
            if "losses" in needs:
                yield Setting(dataset, metric="log_loss")
            if "models" in needs:
                yield from (Setting(dataset, name) for name in MODELS[1:])
            if "uniform" in needs:
                yield Setting(dataset, design="uniform")
        lead = self.lead()
        if "beyond" in needs and lead is not None:
            yield Setting(lead, design="uniform")
            yield Setting(lead, design="beyond")

    def grids(self, *needs: str) -> list[Setting]:
        """Return the grids of some needs, for tables and figures that have one part for each."""
        return list(self.settings(("grid", *needs)))

    def asked(self, setting: Setting) -> dict[str, Any]:
        """Return how `collect` is asked for a run."""
        scale, data = self.scale, self.dataset(setting.dataset)
        effort = scale.grid[setting.model]
        common = {
            "model": setting.model,
            "metric": setting.metric,
            "points": self.points(setting),
            "random_state": 0,
            "n_jobs": self.n_jobs,
        }
        if setting.design == "grid":
            samples = effort.samples * scale.n_sizes
            design = {"sizes": scale.sizes, "design": "grid", "n_sizes": scale.n_sizes}
        elif setting.design == "uniform":
            samples = scale.truth + max(scale.counts)
            design = {"sizes": scale.sizes, "design": "uniform"}
        else:
            sizes = self.beyond(data)
            samples = scale.beyond_samples * len(sizes)
            design = {"sizes": sizes, "design": "grid", "n_sizes": len(sizes)}
        return common | design | {"samples": samples}

    def beyond(self, data: Dataset) -> list[int]:
        """Return the sizes beyond the grid that the pool can serve."""
        most = int(0.6 * data.n_pool)  # so that most points stay outside most training sets
        return sorted({min(size, most) for size in self.scale.beyond})

    def points(self, setting: Setting) -> IntArray:
        """Return the points to value: random ones, among which those of other models are too."""
        data = self.dataset(setting.dataset)
        n = min(self.scale.grid[setting.model].points, data.n_pool)
        return np.sort(stream(0, 1).permutation(data.n_pool)[:n])

    def folder(self, setting: Setting) -> Path:
        """Return the folder of a run."""
        return self.to / "runs" / self.scale.name / str(setting)

    def cost(self, setting: Setting) -> Cost:
        """Tell what a run takes, timing a few training sets of it."""
        asked, data = self.asked(setting), self.dataset(setting.dataset)
        names = ("sizes", "design", "n_sizes")
        shape = {name: asked[name] for name in names if name in asked}
        wanted = Design.of(
            shape.pop("sizes"), name=shape.pop("design"), samples=asked["samples"], **shape
        )
        plan = make_plan(
            wanted, n_pool=data.n_pool, points=asked["points"], seed=0, strata=np.asarray(data.y)
        )
        left = max(0, plan.n_contributions - self.n_stored(setting))
        each = self.seconds_each(setting) if left else 0.0
        return Cost(
            setting,
            len(asked["points"]),
            len(wanted.all_sizes()),
            asked["samples"],
            plan.n_contributions,
            left,
            left * each,
        )

    def seconds_each(
        self, setting: Setting, engine: str = "auto", points: int | None = None
    ) -> float:
        """Time a contribution at the smallest, a middle and the largest size, in one process."""
        asked, data = self.asked(setting), self.dataset(setting.dataset)
        low, high = asked["sizes"][0], asked["sizes"][-1]
        chosen, _ = choose_engine(data, model=setting.model, metric=setting.metric, engine=engine)
        plan = make_plan(
            Design.of([low, round((low * high) ** 0.5), high], name="grid", samples=3),
            n_pool=data.n_pool,
            points=asked["points"][:points],
            seed=1,
            strata=np.asarray(data.y),
        )
        chosen.run(plan[0])  # what is prepared once is not timed
        start = perf_counter()
        n = sum(len(chosen.run(plan[index]).delta) for index in range(3))
        return (perf_counter() - start) / n

    def run(self, setting: Setting) -> Run:
        """Collect a run, or what is missing of it."""
        if self.stored:
            return open_run(self.folder(setting))
        self.say(lambda: self.cost(setting).words(self.n_jobs))
        return api.collect(
            self.dataset(setting.dataset),
            to=self.folder(setting),
            progress=self.progress,
            **self.asked(setting),
        )

    def say(self, words: Callable[[], str]) -> None:
        """Tell something on standard error, if anyone listens; else it is not even found out."""
        with reporter(self.progress) as hears:
            if not isinstance(hears, Silent):
                hears.say(words())

    def contributions(self, setting: Setting) -> Contributions:
        """Return the contributions of a run."""
        return self.once(("contributions", setting), lambda: self.run(setting).contributions())

    def laws(self, setting: Setting, method: str = "log_ols", **settings: Any) -> Laws:
        """Return the laws of a run: by default the paper's straight lines through log means."""
        table = self.contributions(setting)
        key = ("laws", setting, method, *sorted(settings.items()))
        return self.once(key, lambda: api.fit(table, method=method, **settings))

    def means(self, setting: Setting) -> Means:
        """Return the mean contribution of every point at every size of a run."""
        table = self.contributions(setting)
        k, place = np.unique(table.k, return_inverse=True)
        where = table.point * len(k) + place
        n = np.bincount(where, minlength=table.n_points * len(k))
        sums = np.bincount(where, weights=table.delta, minlength=len(n))
        mean = np.divide(sums, n, out=np.full(len(n), np.nan), where=n > 0)
        squares = np.bincount(where, weights=(table.delta - mean[where]) ** 2, minlength=len(n))
        pairs = n * (n - 1.0)
        variance = np.divide(squares, pairs, out=np.full(len(n), np.nan), where=pairs > 0)
        shape = (table.n_points, len(k))
        return Means(k.astype(np.float64), mean.reshape(shape), variance.reshape(shape))
