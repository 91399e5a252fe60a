"""The workspace: datasets, and the runs that tables and figures share, each collected once.

Runs are ordinary run folders under ``to``, so an interrupted reproduction continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import process_time
from typing import Any, Final, TypeVar, cast

import numpy as np

import apiece
from apiece._base.progress import tracking
from apiece._base.rng import stream
from apiece._base.typing import Positions
from apiece.collection import Design, drawn_from, make_plan
from apiece.data import Dataset
from apiece.engines import EngineName, choose_engine
from apiece.estimators import MethodName
from apiece.laws import Laws
from apiece.papers._runs import CandidateData, Cost, Means, Setting
from apiece.papers._scale import MODELS, SCALES, Scale
from apiece.papers._sources import SOURCES, load
from apiece.records import Contributions
from apiece.store import Run, open_run

T = TypeVar("T")

_ENGINES: Final = {"mlp": "mlp-single"}  # single precision, as in the paper
_PAUSE: Final = 10  # times the usual gap between shards
TEST: Final = 6000  # rows that test an addition, at most
_SCORING: Final = 4000  # rows of the pool, at most, that score candidates, in addition to the usual
_SHARE: Final = 200  # points of the whole pool that share a training set: little common noise
_ROOM: Final = 1.25  # rows that stay in the pool, in parts of the largest size


@dataclass(frozen=True, eq=False)
class Workspace:
    """Datasets, runs and laws behind tables and figures.

    Parameters
    ----------
    data, to
        Folder of the datasets, and of the results.
    scale
        How much is computed.
    datasets, models
        Names of the datasets and models to include, in order.
    n_jobs
        Worker processes.
    stored
        Whether to use only stored results, also of incomplete runs.
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
        """Return the cached object of a key, or make and cache it."""
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])

    def lead(self, *designs: str) -> str | None:
        """Return the dataset of figures that show a single one: IMDB, as in the paper, if present.

        The dataset must have a run of each design; None is returned if no dataset does.
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

    def candidate_data(self, name: str) -> CandidateData:
        """Return a dataset with candidates to add, and rows to test on, all taken from its pool.

        As in the paper's code, more rows score the candidates than in other runs, because a
        selection for 1,000 rows overfits these rows. Fewer rows test and score where the pool
        would become too small for the largest size.
        """
        return self.once(("candidate_data", name), lambda: self._candidate_data(self.dataset(name)))

    def _candidate_data(self, data: Dataset) -> CandidateData:
        order = stream(0, 2).permutation(data.n_pool)
        wanted = min(TEST, data.n_pool // 3), min(_SCORING, data.n_pool // 5)
        at_most = data.n_pool - self.scale.candidates - round(_ROOM * self.scale.sizes[1])
        share = min(1.0, max(0, at_most) / sum(wanted))
        n_test, n_more = (round(share * n) for n in wanted)
        ends = np.cumsum([self.scale.candidates, n_test, n_more])
        candidates, test, more, pool = np.split(order, ends)
        rows = np.concatenate([np.sort(pool), np.sort(candidates)])
        moved = replace(
            data.with_points(rows, n_pool=len(pool)),
            rows_val=np.concatenate([data.X_val, data.X[more]]),
            y_val=np.concatenate([data.y_val, data.y[more]]),
            ids_val=None,
        )
        return CandidateData(moved, (data.X[test], data.y[test]))

    def fits(self, name: str, size: int) -> bool:
        """Whether different training sets of a size can be drawn next to the candidates."""
        return _ROOM * size <= self.candidate_data(name).data.n_pool

    def of(self, setting: Setting) -> Dataset:
        """Return the dataset of a run; with candidates if the run values candidates."""
        if setting.design == "candidates":
            return self.candidate_data(setting.dataset).data
        return self.dataset(setting.dataset)

    def settings(self, needs: tuple[str, ...]) -> Iterator[Setting]:
        """Yield the settings of the runs that are needed.

        ``grid`` is logistic regression alone, ``losses`` adds the log loss, ``models`` the others;
        ``uniform``, ``pool``, ``beyond`` and ``candidates`` are more runs of logistic regression.
        """
        return (setting for setting in self._settings(needs) if self.has(setting))

    def has(self, setting: Setting) -> bool:
        """Whether a run is stored, or may be collected."""
        is_wanted = setting.model in self.models and setting.dataset in self.datasets
        return is_wanted and (not self.stored or self.n_stored(setting) > 0)

    def n_stored(self, setting: Setting) -> int:
        """Count the contributions that are stored of a run."""
        return _stored(self.folder(setting))

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
            if "pool" in needs and self.scale.network:
                yield Setting(dataset, design="pool")
            if "candidates" in needs:
                yield Setting(dataset, design="candidates")
        lead = self.lead()
        if "beyond" in needs and lead is not None:
            yield Setting(lead, design="uniform")
            yield Setting(lead, design="beyond")

    def grids(self, *needs: str) -> list[Setting]:
        """Return the settings of grids, for tables and figures with one part per grid."""
        return list(self.settings(("grid", *needs)))

    def request(self, setting: Setting) -> dict[str, Any]:
        """Return the arguments of `collect` for a run."""
        scale, data = self.scale, self.of(setting)
        effort = scale.grid[setting.model]
        common: dict[str, Any] = {
            "model": setting.model,
            "metric": setting.metric,
            "engine": _ENGINES.get(setting.model, "auto"),
            "points": [] if setting.design == "candidates" else self.points(setting),
            "scoring": "fixed",
            "random_state": 0,
            "n_jobs": self.n_jobs,
        }
        if setting.design == "grid":
            samples = effort.samples * scale.n_sizes
            design = {"sizes": scale.sizes, "design": "grid", "n_sizes": scale.n_sizes}
        elif setting.design in ("uniform", "candidates"):
            is_uniform = setting.design == "uniform"
            samples = scale.truth + max(scale.counts) if is_uniform else scale.candidate_samples
            design = {"sizes": scale.sizes, "design": "uniform"}
        elif setting.design == "pool":
            samples = min(scale.network_samples, max(scale.counts))
            design = {"sizes": scale.sizes, "design": "uniform", "share": _SHARE}
        else:
            sizes = self.beyond(data)
            samples = scale.beyond_samples * len(sizes)
            design = {"sizes": sizes, "design": "grid", "n_sizes": len(sizes)}
        return common | design | {"samples": samples}

    def beyond(self, data: Dataset) -> list[int]:
        """Return the sizes beyond the grid for which the pool is large enough."""
        most = int(0.6 * data.n_pool)  # so that most points stay outside most training sets
        return sorted({min(size, most) for size in self.scale.beyond})

    def points(self, setting: Setting) -> Positions:
        """Return the points to value: a random sample that contains those of the other models."""
        data = self.of(setting)
        if setting.design == "candidates":
            return Positions(data.n_pool + np.arange(data.n_candidates))
        if setting.design == "pool":
            return Positions(np.arange(data.n_pool))
        n = min(self.scale.grid[setting.model].points, data.n_pool)
        return Positions(np.sort(stream(0, 1).permutation(data.n_pool)[:n]))

    def folder(self, setting: Setting) -> Path:
        """Return the folder of a run; with ``stored``, the scale with most contributions."""
        places = [self.to / "runs" / name / str(setting) for name in (self.scale.name, *SCALES)]
        if not self.stored:
            return places[0]
        return self.once(("folder", setting), lambda: max(places, key=_stored))

    def minutes(self, setting: Setting) -> float:
        """Return the minutes that a run took to collect, without pauses between shards."""
        shards = (self.folder(setting) / "shards").iterdir()
        gaps = np.diff(sorted(path.stat().st_mtime for path in shards))
        if not len(gaps):
            return float("nan")
        worked = gaps[gaps <= _PAUSE * np.quantile(gaps, 0.75)]
        return float(worked.mean() * (len(gaps) + 1) / 60)  # the first shard has no gap

    def cost(self, setting: Setting) -> Cost:
        """Estimate the cost of a run by timing a few training sets."""
        request, data = self.request(setting), self.of(setting)
        names = ("sizes", "design", "n_sizes", "share")
        shape = {name: request[name] for name in names if name in request}
        wanted = Design.of(
            shape.pop("sizes"), name=shape.pop("design"), samples=request["samples"], **shape
        )
        plan = make_plan(wanted, **drawn_from(data), points=self.points(setting), seed=0)
        left = max(0, plan.n_contributions - self.n_stored(setting))
        each = self.seconds_each(setting, request["engine"], request.get("share")) if left else 0.0
        return Cost(
            setting,
            len(self.points(setting)),
            len(wanted.all_sizes()),
            request["samples"],
            plan.n_contributions,
            left,
            left * each,
        )

    def seconds_each(
        self, setting: Setting, engine: EngineName = "auto", points: int | None = None
    ) -> float:
        """Return the processor time of one contribution, in seconds.

        It is measured in one process, at the smallest, a medium and the largest size.
        """
        request, data = self.request(setting), self.of(setting)
        low, high = request["sizes"][0], request["sizes"][-1]
        chosen_engine, _ = choose_engine(
            data, model=setting.model, metric=setting.metric, engine=engine
        )
        plan = make_plan(
            Design.of([low, round((low * high) ** 0.5), high], name="grid", samples=3),
            **drawn_from(data),
            points=Positions(self.points(setting)[:points]),
            seed=1,
        )
        chosen_engine.run(plan[0])  # warm up: one-time preparation is not timed
        start = process_time()
        n = sum(len(chosen_engine.run(plan[index]).delta) for index in range(3))
        return (process_time() - start) / n

    def run(self, setting: Setting) -> Run:
        """Collect a run, or the missing part of it."""
        if self.stored:
            return open_run(self.folder(setting))
        self.say(lambda: self.cost(setting).words(self.n_jobs))
        return apiece.collect(
            self.of(setting),
            to=self.folder(setting),
            progress=self.progress,
            **self.request(setting),
        )

    def say(self, words: Callable[[], str]) -> None:
        """Print a message to standard error if progress is shown; else do not compute it."""
        with tracking(self.progress, title="reproducing", unit="runs") as tracker:
            if tracker.is_followed:
                tracker.say(words())

    def contributions(self, setting: Setting) -> Contributions:
        """Return the contributions of a run."""
        return self.once(("contributions", setting), lambda: self.run(setting).contributions())

    def laws(self, setting: Setting, method: MethodName = "log_ols", **settings: Any) -> Laws:
        """Return the laws of a run: by default the paper's straight lines through log means."""
        table = self.contributions(setting)
        key = ("laws", setting, method, *sorted(settings.items()))
        return self.once(key, lambda: apiece.fit(table, method=method, **settings))

    def means(self, setting: Setting) -> Means:
        """Return the mean contribution of every point at every size of a run."""
        table = self.contributions(setting)
        return self.once(("means", setting), lambda: Means.of(table))


def _stored(folder: Path) -> int:
    """Count the contributions that the run in a folder holds."""
    if not (folder / "manifest.json").exists():
        return 0
    return open_run(folder).progress().n_contributions
