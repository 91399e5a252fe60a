"""A collection that is ready to grow: its engine, store and settings, and the work itself."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from apiece._base.progress import OnProgress, duration, tracking
from apiece._base.rng import RandomState, seed_from
from apiece._base.typing import BoolArray, Positions
from apiece.collection._anchor import add_anchor
from apiece.collection._compute import compare
from apiece.collection._design import Design, DesignName
from apiece.collection._groups import GroupPlan, make_group_plan
from apiece.collection._loop import run_plan
from apiece.collection._pilot import warn_if_random
from apiece.collection._plan import DrawnPlan, drawn_from, make_plan
from apiece.collection._probe import expected_seconds, rows_per_unit
from apiece.collection._request import describe, group_table, point_table
from apiece.collection._start import start_run
from apiece.collection._trainings import TrainingPlan, plan_trainings, scored_in_turns
from apiece.collection._weak import check_request
from apiece.collection.pools import Pool
from apiece.data import Dataset, Groups
from apiece.engines import Engine
from apiece.errors import ApieceWarning, StoreError
from apiece.records import EngineRecord, Stage
from apiece.store import Manifest, Run, Store

_TASKS: Final = 4  # of a unit of work, if a run grows in rounds: a round may end within a unit

Shown = tuple[bool | None, OnProgress | None]


@dataclass
class Step:
    """One step of a run that grows in rounds.

    Parameters
    ----------
    deadline
        Time of ``time.monotonic`` after which no unit of work is begun.
    is_focus
        Which valued points matter for the answer; None for all.
    at
        The size that says most about the question; None for those of the design.
    is_checked
        Whether a step of this process came before.
    seconds, is_late
        Receive how long the units of work took, and whether the deadline has passed.
    """

    deadline: float = math.inf
    is_focus: BoolArray | None = None
    at: float | None = None
    is_checked: bool = False
    seconds: float = 0.0
    is_late: bool = False

    def may_go_on(self) -> bool:
        """Whether another unit of work may begin."""
        self.is_late |= time.monotonic() >= self.deadline
        return not self.is_late


@dataclass(frozen=True, eq=False)
class Collection:
    """What a call of `collect` has decided, see there.

    Parameters
    ----------
    dataset, engine, store, pool
        What is valued, by what, and where shards are kept and computed.
    valued, groups
        Positions to value, and groups of them.
    ends, design, n_sizes, share, group_size
        The design.
    random_state
        Seed, or None.
    rotates, is_sample, anchor, is_kept
        Whether rows take turns in scoring, whether models on nearly all rows end the run, and
        whether others can continue it.
    n_workers
        Processes here; None on a cluster.
    oracle
        An exact engine to compare an approximate one with.
    reason
        Why this engine, for people.
    """

    dataset: Dataset
    engine: Engine
    store: Store
    pool: Pool
    valued: Positions
    groups: Groups | None
    ends: Sequence[int]
    design: DesignName | None
    n_sizes: int
    share: int | None
    group_size: int | None
    random_state: RandomState
    rotates: bool
    is_sample: bool
    anchor: bool
    is_kept: bool
    n_workers: int | None
    oracle: Engine | None
    reason: str

    @property
    def is_reuse(self) -> bool:
        """Whether trainings are counted, each of which serves all points."""
        return self.engine.gives_trainings

    @property
    def unit(self) -> str:
        """What is requested: ``trainings`` or ``samples``."""
        return "trainings" if self.is_reuse else "samples"

    @property
    def can_focus(self) -> bool:
        """Whether tasks can value some of the points alone."""
        return not self.is_reuse and self.groups is None and self.share is None

    @property
    def stored(self) -> Manifest | None:
        """The manifest of the run that is there."""
        return self.store.manifest if self.store.has_run() else None

    def grow(self, amount: int, shown: Shown, step: Step | None = None) -> Run:
        """Collect until there are so many samples or trainings, of all tasks or until a deadline.

        Parameters
        ----------
        amount
            Samples or trainings altogether.
        shown
            The arguments ``progress`` and ``on_progress``.
        step
            A step of a run in rounds.
        """
        known, store = self.stored, self.store
        plan, engine = self._plan(amount, known, step)
        if known is None:
            warn_if_random(engine, plan)
        manifest = self._manifest(plan, engine, known, in_rounds=step is not None)
        unit = "trainings" if self.is_reuse else "contributions"
        with tracking(*shown, title="collecting", unit=unit) as tracker:
            for line in self._lines(plan, unit):
                tracker.say(line)
            if known is None and tracker.is_followed and self.n_workers:
                n_busy = min(self.n_workers, len(manifest.layout))
                seconds = expected_seconds(engine, plan) / n_busy
                workers = f"{self.n_workers} worker{'' if self.n_workers == 1 else 's'}"
                tracker.say(f"estimate: about {duration(seconds)} with {workers}")
                tracker.expected = seconds
            try:
                start_run(
                    store,
                    manifest,
                    lambda: self._table(plan, engine),
                    engine=engine,
                    plan=plan,
                    tracker=tracker,
                    is_probed=self.is_kept,
                    is_checked=step is not None and step.is_checked,
                )
            except StoreError:
                if known is None and self.random_state is None and store.has_run():
                    return self.grow(amount, shown, step)  # another collector has just started it
                raise
            if store.manifest.stages != manifest.stages:
                return self.grow(amount, shown, step)  # another collector has set the focus
            began = time.monotonic()
            may_go_on = None if step is None else step.may_go_on
            run_plan(engine, plan, store, pool=self.pool, tracker=tracker, may_go_on=may_go_on)
            if step is not None:
                step.seconds = time.monotonic() - began
            is_late = step is not None and step.is_late
            if self.anchor and not is_late:
                add_anchor(store, engine, plan.seed, plan.design.k_max, rotates=self.rotates)
        return self._checked(plan, is_late=is_late)

    def n_tasks(self, amount: int) -> int:
        """Return how many tasks the stored run had when it held so many samples or trainings."""
        return len(self._plan(amount, self.stored, None, is_part=True)[0])

    def _plan(
        self, amount: int, known: Manifest | None, step: Step | None, *, is_part: bool = False
    ) -> tuple[DrawnPlan | GroupPlan | TrainingPlan, Engine]:
        """Return the plan, and the engine as it will run."""
        dataset, engine, rotates = self.dataset, self.engine, self.rotates
        few = rotates and np.size(self.ends) < 3
        wanted = Design.of(
            self.ends,
            name=self.design or ("log-uniform" if few else "uniform"),
            samples=amount,
            n_sizes=self.n_sizes,
            share=self.share,
        )
        check_request(
            dataset,
            n_valued=1 if self.is_reuse else len(self.valued),
            samples=wanted.samples,
            unit=self.unit,
            is_new=known is None,
            is_quick=engine.is_quick,
        )
        if known is not None and known.samples > wanted.samples and not is_part:
            wanted = replace(wanted, samples=known.samples)  # a run grows, and never shrinks
        seed = seed_from(known.seed if known and self.random_state is None else self.random_state)
        stages = () if self.groups is not None else self._stages(wanted, known, step)
        if self.is_reuse:
            plan = plan_trainings(wanted, dataset, self.valued, seed=seed, rotates=rotates)
            plan = replace(plan, stages=stages)
            return plan, scored_in_turns(engine) if rotates else engine
        drawn: dict[str, Any] = {**drawn_from(dataset), "seed": seed, "rotates": rotates}
        if self.groups is not None:
            size = self.group_size
            return make_group_plan(
                wanted, **self.groups._asdict(), group_size=size, **drawn
            ), engine
        tasks = make_plan(wanted, points=self.valued, stages=stages, **drawn)
        return replace(tasks, is_sample=self.is_sample), engine

    def _stages(
        self, wanted: Design, known: Manifest | None, step: Step | None
    ) -> tuple[Stage, ...]:
        """Return the stages of a run; if it grows, with one for the new tasks."""
        if known is None:
            return ()
        stages = tuple(Stage.from_json(stage) for stage in known.stages or [])
        is_focus, at = (None, None) if step is None else (step.is_focus, step.at)
        if at is not None and wanted.name == "grid":
            at = None  # its sizes take turns
        if wanted.samples <= known.samples or (is_focus is None and at is None and not stages):
            return stages
        if is_focus is None:
            is_focus = np.ones(len(self.valued), dtype=bool)
        size = 0 if at is None else int(np.clip(round(at), wanted.k_min, wanted.k_max))
        return (*stages, Stage(known.layout.n_tasks, is_focus, size=size))

    def _manifest(
        self,
        plan: DrawnPlan | GroupPlan | TrainingPlan,
        engine: Engine,
        known: Manifest | None,
        *,
        in_rounds: bool,
    ) -> Manifest:
        rows = engine.rows_per_shard
        if known is None and (self.is_kept or in_rounds):
            rows = rows_per_unit(engine, plan)
        if in_rounds and not self.is_reuse:
            rows = min(rows, _TASKS * max(1, plan.points_per_task))
        manifest = describe(self.dataset, engine, plan, rows_per_unit=rows)
        if self.oracle is None:
            return manifest
        measured = manifest.engine.to_json() | compare(engine, self.oracle, plan)
        return replace(manifest, engine=EngineRecord.from_json(measured))

    def _table(self, plan: DrawnPlan | GroupPlan | TrainingPlan, engine: Engine) -> Any:
        if isinstance(plan, GroupPlan):
            assert self.groups is not None
            return group_table(self.dataset, plan, self.groups.names)
        return point_table(self.dataset, plan, engine)

    def _lines(self, plan: DrawnPlan | GroupPlan | TrainingPlan, unit: str) -> list[str]:
        """Say what will be done."""
        is_reuse, design = self.is_reuse, plan.design
        what = f"{plan.n_contributions:,} {unit} {'for' if is_reuse else 'of'} "
        what += f"{len(plan.points):,} {'points' if self.groups is None else 'groups'}"
        sets = ", training sets" if is_reuse else f" from {len(plan):,} training sets"
        return [
            f"engine: {self.engine.name} ({self.reason})",
            f"plan: {what}{sets} of {design.k_min:,} to {design.k_max:,} points, seed {plan.seed}",
        ]

    def _checked(self, plan: DrawnPlan | GroupPlan | TrainingPlan, *, is_late: bool) -> Run:
        """Return the run, unless something of it is missing."""
        run = Run(self.store)
        made = run.progress()
        if self.store.layout.n_tasks == len(plan) and not made.is_complete and not is_late:
            raise StoreError(
                f"{made.n_shards:,} of {made.n_shards_planned:,} shards are in "
                f"{self.store}: expected all of them. Something has removed files; collect again "
                "with the same settings to replace them."
            )
        _warn_of_weak_fits(made.notes)
        return run


def _warn_of_weak_fits(notes: dict[str, int]) -> None:
    if notes.get("unconverged"):
        of = f" of {notes['fits']:,}" if notes.get("fits") else ""
        warnings.warn(
            f"{notes['unconverged']:,}{of} fits stopped before convergence, which "
            "adds noise to their contributions. Raise max_iter, or scale the features.",
            ApieceWarning,
            stacklevel=5,
        )
    if notes.get("uncertified"):
        warnings.warn(
            f"{notes['uncertified']:,} contributions could not be computed to the stated error and "
            "are left out: fits did not reach the optimum of the model. Scale the features, or "
            "penalise the model more (such as a smaller C).",
            ApieceWarning,
            stacklevel=5,
        )
