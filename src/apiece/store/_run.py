"""A run: the contributions that were collected, and what they are about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apiece._base.arrow import ArrowTable
from apiece._base.check import as_bytes
from apiece._base.html import facts_html
from apiece._base.typing import AnyArray, Places, PointIds
from apiece.errors import StoreError
from apiece.estimators import plain_contributions
from apiece.records import (
    POPULATION,
    SCORING_ROWS,
    Anchor,
    Contributions,
    Moments,
    Stage,
    Table,
    Theory,
    Trainings,
    caveat,
    chances,
    extra_sizes,
    in_words,
)
from apiece.store._columns import Joined, theory_of, trainings_of
from apiece.store._folder import FolderStore
from apiece.store._manifest import Manifest, read_manifest
from apiece.store._memory import MemoryStore
from apiece.store._progress import Progress, count_progress
from apiece.store._store import Store
from apiece.store._streamed import Losses, Streamed

if TYPE_CHECKING:
    import pandas as pd

    from apiece.data import Dataset
    from apiece.estimators import Estimator, MethodName
    from apiece.laws import FamilyLike, Laws


@dataclass(frozen=True, eq=False)
class Run(ArrowTable):
    """Contributions on disk or in memory; what `collect` returns and `open` opens.

    Parameters
    ----------
    store
        Where the shards are.

    Examples
    --------
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> run = apiece.collect(load_demo()[0], sizes=(20, 40), samples=3, progress=False)
    >>> run.is_complete, len(run.ids)
    (True, 369)
    >>> run.progress().n_contributions == len(run.contributions()) == len(run.table())
    True
    >>> bool((run.losses().mean > 0).all()), run.provenance()["model"]
    (True, 'logistic')
    >>> with run.opened() as table, run.streamed("2GB") as same:
    ...     table.n_points == same.n_points
    True
    >>> sorted(run.snapshot())
    ['digest', 'is_complete', 'n_contributions']
    """

    store: Store
    _fitted: dict[str, Laws] = field(default_factory=dict, repr=False, init=False)

    def __repr__(self) -> str:
        manifest = self.manifest
        where = "in memory" if isinstance(self.store, MemoryStore) else f"at {self.store}"
        progress = self.progress()
        weakness = caveat({"engine": manifest.engine.to_json()})
        return (
            f"<Run {where}: {manifest.model.name} on {manifest.dataset.n_pool:,} points, "
            f"{manifest.metric}, "
            f"{progress.n_contributions:,} of {progress.n_planned:,} {self.unit}"
            + (f"; {weakness}>" if weakness else ">")
        )

    def _repr_html_(self) -> str:
        manifest, progress = self.manifest, self.progress()
        done = f"{progress.n_contributions:,} of {progress.n_planned:,}"
        facts: list[tuple[str, object]] = [
            ("place", self.store if isinstance(self.store, FolderStore) else "memory"),
            ("points", f"{manifest.points.n_valued:,}"),
            ("model", manifest.model.name),
            ("metric", manifest.metric),
            ("engine", manifest.engine.name),
            (self.unit, done),
            ("results are", in_words(self.scope)),
            ("seed", manifest.seed),
        ]
        weakness = caveat({"engine": manifest.engine.to_json()})
        return facts_html("Run", [*facts, *([("caveat", weakness)] if weakness else [])])

    @property
    def unit(self) -> str:
        """What the run counts: ``contributions`` or ``trainings``."""
        return "trainings" if self.has_trainings else "contributions"

    @property
    def path(self) -> Path | None:
        """The run's folder, or None for a run in memory or in an object store."""
        return self.store.path

    @property
    def manifest(self) -> Manifest:
        """Dataset, model, metric, design, seed and versions."""
        return self.store.manifest

    @cached_property
    def points(self) -> pd.DataFrame:
        """The points by position: ``id``, ``label``, ``role``, ``valued``, of groups ``rows``."""
        return self.store.points

    @property
    def rotates(self) -> bool:
        """Whether each task was scored on rows that were drawn with it."""
        return bool(self.manifest.design.scoring == "rotating")

    @property
    def scope(self) -> str:
        """What results are for: the ``"population"``, or the given ``"scoring rows"``."""
        return SCORING_ROWS if self.manifest.design.scoring is None else POPULATION

    @property
    def anchor(self) -> Anchor | None:
        """Losses of models trained on nearly all rows; None where they were not measured."""
        return self.store.anchor

    @property
    def theory(self) -> Theory | None:
        """What theory predicts for the valued points; None where it was not computed."""
        return theory_of(self.points)

    @property
    def ids(self) -> PointIds:
        """The ids of the valued points, shape ``(n_valued,)``."""
        return PointIds(np.asarray(self.points["id"][self.points["valued"]]))

    @property
    def labels(self) -> AnyArray:
        """The labels of the valued points, shape ``(n_valued,)``."""
        return np.asarray(self.points["label"][self.points["valued"]])

    @property
    def is_complete(self) -> bool:
        """Whether everything that was planned is stored."""
        return self.progress().is_complete

    def progress(self) -> Progress:
        """Count what is stored, from the footers of the shards alone.

        Raises
        ------
        StoreError
            If a shard is truncated; other damage shows when its contributions are read.
        """
        return count_progress(self.store)

    def snapshot(self) -> dict[str, Any]:
        """Return which contributions are stored now, as laws fitted to them remember it."""
        progress = self.progress()
        return {
            "n_contributions": progress.n_contributions,
            "digest": progress.digest,
            "is_complete": progress.is_complete,
        }

    def contributions(self) -> Contributions:
        """Return every stored contribution, ordered by task and point.

        ``point`` is a place among the valued points, whose names are ``ids``. Of a run of
        trainings it returns one for each point of each training set: the mean loss at that size,
        less the loss of the training. These are right on average and very noisy.

        Raises
        ------
        StoreError
            If a shard is damaged; what is unfinished is left out.
        """
        if self.has_trainings:
            return plain_contributions(self.trainings())
        join = Joined(self._columns())
        return Contributions(
            task=join("task", np.int64),
            k=join("k", np.int64),
            point=Places(join("point", np.int64)),
            delta=join("delta", np.float64),
            loss=join("loss", np.float64),
            ids=self.ids,
            attrs=self.provenance(),
            control=join("control", np.float64) if self.scope == POPULATION else None,
            active=join("active", np.int64) if self.scope == POPULATION else None,
            chance=join("chance", np.float64) if self.manifest.stages else None,
            theory=self.theory,
        )

    @property
    def has_trainings(self) -> bool:
        """Whether the run holds trainings (engine ``reuse``) in place of contributions."""
        return self.manifest.engine.name == "reuse"

    def trainings(self) -> Trainings:
        """Return every stored training, ordered by task.

        Raises
        ------
        StoreError
            If the run holds contributions, or a shard is damaged.

        Examples
        --------
        >>> import apiece
        >>> data, _ = apiece.data.load_demo()
        >>> run = apiece.collect(data, engine="reuse", trainings=20, sizes=(20, 40), progress=False)
        >>> len(run.trainings().k)
        20
        """
        if not self.has_trainings:
            raise StoreError(
                f"this run holds contributions of engine {self.manifest.engine.name!r}: expected "
                "one that was collected with engine='reuse'. Read it with run.contributions()."
            )
        shards = (self.store.read(index).columns for index in self.store.indices())
        return trainings_of(Joined(shards), self.points, self.rotates, self.provenance())

    def streamed(self, memory: int | str) -> Streamed:
        """Return every stored contribution in a form that takes limited memory.

        It lives in scratch files in the folder for temporary ones (``TMPDIR``), 48 bytes per
        contribution, until the ``with`` block around it ends.

        Parameters
        ----------
        memory
            Bytes that contributions may take at once, or words such as ``"2GB"``. What is kept for
            each point (its id, and 200 bytes or so of its law) comes on top.
        """
        return Streamed(
            self._columns(),
            ids=self.ids,
            attrs=self.provenance(),
            n_rows=self.progress().n_contributions,
            memory=as_bytes("memory", memory),
            has_control=self.scope == POPULATION,
            has_chance=bool(self.manifest.stages),
            theory=self.theory,
        )

    def opened(self, memory: int | str | None = None) -> AbstractContextManager[Table]:
        """Return every stored contribution for a ``with`` block, streamed if memory is bounded."""
        is_whole = memory is None or self.has_trainings
        return nullcontext(self.contributions()) if is_whole else self.streamed(str(memory))

    def table(self) -> pd.DataFrame:
        """Return every stored contribution: ``point``, ``k``, ``delta`` and more, one row each."""
        return self.contributions().table()

    def laws(
        self,
        method: MethodName | Estimator | None = None,
        *,
        family: FamilyLike | None = None,
        dataset: Dataset | None = None,
        refit: bool = False,
        memory: int | str | None = None,
    ) -> Laws:
        """Return the laws of the run: those that are stored with it, or fitted now.

        Stored laws (``laws.parquet`` in the run's folder) are used while they were fitted to the
        contributions that the run holds. Once it has grown they are fitted again, by the same
        estimator with the same settings. Laws of a complete run are stored; those of an unfinished
        run are not, so that looking at a run does not fix its answer.

        What happened is logged under the name ``apiece.laws``.

        Parameters
        ----------
        method, family
            How to fit, as in `fit`. None for the estimator of the stored laws, or the default. Laws
            of another method than the stored ones are returned and leave these as they are.
        dataset
            The dataset of the run, for methods that learn from features. None reads it again from
            its file, if stored laws were learned from features.
        refit
            Fit now, and replace what is stored.
        memory
            What contributions may take at once, such as ``"2GB"``, see `fit`.

        Raises
        ------
        StoreError
            If the stored laws belong to another run, or are outdated and the file does not tell
            how to fit them again.

        Examples
        --------
        >>> import apiece
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> data = apiece.Dataset.from_arrays(X, (X[:, 0] > 0).astype(int), random_state=0)
        >>> run = apiece.collect(data, sizes=(8, 20), samples=10, random_state=0, progress=False)
        >>> run.laws("likelihood").n_points == len(run.ids)
        True
        """
        from apiece.store._laws import laws_of_run

        return laws_of_run(self, method, family, dataset, refit, memory)

    def losses(self) -> Moments:
        """Summarise the losses $L(f_D)$, one for each task, by cardinality: one row.

        Shards are read one after another, so that it takes the memory of one.
        """
        if self.has_trainings:
            return self.trainings().losses()
        tasks = Losses()
        for columns in self._columns():
            tasks.add(columns)
        return tasks.moments

    def _columns(self) -> Iterator[dict[str, AnyArray]]:
        """Yield the columns of each shard, ``point`` as a place among the valued points.

        Where stages value some points rarely, ``chance`` is that of each contribution.
        """
        stages = [Stage.from_json(stage) for stage in self.manifest.stages or []]
        valued = np.flatnonzero(self.points["valued"].to_numpy())
        place = np.full(len(self.points), -1)
        place[valued] = np.arange(len(valued))
        for index in self.store.indices():
            columns = self.store.read(index).columns
            columns = {**columns, "point": place[columns["point"]]}
            if stages:
                columns["chance"] = chances(stages, columns["task"], Places(columns["point"]))
            yield columns

    @property
    def attrs(self) -> dict[str, Any]:
        """What a result derived from this run should remember of it."""
        return self.provenance()

    def provenance(self) -> dict[str, Any]:
        """Return what a result derived from this run should remember of it."""
        manifest = self.manifest
        facts: dict[str, Any] = {
            "dataset": manifest.dataset.fingerprint,
            "n_pool": manifest.dataset.n_pool,
            "model": manifest.model.name,
            "metric": manifest.metric,
            "engine": manifest.engine.to_json(),
            "design": manifest.design.to_json(),
            "seed": manifest.seed,
        }
        stages = [Stage.from_json(stage) for stage in manifest.stages or []]
        if extra := extra_sizes(stages, manifest.layout.n_tasks):
            facts["extra_sizes"] = [[k, share] for k, share in extra.items()]
        if "rows" in self.points:  # of each group, how many join at once
            facts["groups"] = dict(
                zip(self.ids.tolist(), self.points["rows"].tolist(), strict=True)
            )
        return facts


def open_run(path: str | Path) -> Run:
    """Open a stored run.

    Parameters
    ----------
    path
        The folder that `collect` wrote, or its address, such as ``s3://bucket/run``.

    Raises
    ------
    StoreError
        If the folder is not a run.

    Examples
    --------
    >>> import tempfile
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> folder = tempfile.mkdtemp()
    >>> _ = apiece.collect(load_demo()[0], to=folder, sizes=(20, 40), samples=3, progress=False)
    >>> open_run(folder).manifest.metric
    'log_loss'
    """
    store = FolderStore(path)
    read_manifest(store.files)
    return Run(store)
