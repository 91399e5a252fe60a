"""Collect contributions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from apiece._base.check import one_of
from apiece._base.progress import OnProgress, clock, tracking
from apiece._base.rng import RandomState, seed_from
from apiece.collection._anchor import add_anchor
from apiece.collection._compute import compare
from apiece.collection._design import Design, DesignName
from apiece.collection._groups import GroupPlan, make_group_plan
from apiece.collection._loop import run_plan
from apiece.collection._pilot import choose_by_pilot, warn_if_random
from apiece.collection._plan import DrawnPlan, make_plan
from apiece.collection._probe import expected_seconds, rows_per_unit
from apiece.collection._request import (
    default_sizes,
    describe,
    group_table,
    point_table,
    positions,
    store_of,
)
from apiece.collection._rounds import MOST, collect_in_rounds, targets
from apiece.collection._start import start_run
from apiece.collection._trainings import (
    DEFAULT,
    TrainingPlan,
    plan_trainings,
    refuse_trainings,
    scored_in_turns,
)
from apiece.collection._weak import check_request
from apiece.collection.pools import Pool, pool_of
from apiece.collection.until import Criterion, as_criterion
from apiece.data import Dataset, groups_of
from apiece.engines import (
    EngineChoice,
    RefitEngine,
    ReuseEngine,
    choose_engine,
    choose_group_engine,
)
from apiece.errors import ApieceWarning, DataError, PlanError, StoreError
from apiece.losses import Loss
from apiece.records import EngineRecord
from apiece.store import Run, Store

Scoring = Literal["auto", "fixed", "rotating"]


def collect(
    dataset: Dataset,
    *,
    model: Any = "auto",
    sizes: Sequence[int] | None = None,
    samples: int | None = None,
    metric: str | Loss | Callable[[Any, Any], float] | None = None,
    design: DesignName | None = None,
    n_sizes: int = 10,
    engine: EngineChoice = "auto",
    points: npt.ArrayLike | None = None,
    candidates: Any = None,
    groups: Any = None,
    group_size: int | None = None,
    share: int | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    backend: str | Pool | None = None,
    to: str | Path | Store | None = None,
    progress: bool | None = None,
    on_progress: OnProgress | None = None,
    scoring: Scoring = "auto",
    anchor: bool = True,
    trainings: int | None = None,
    until: Criterion | str | None = None,
) -> Run:
    r"""Sample contributions of every point at many training-set sizes.

    A contribution is $\Delta(z, D) = L(f_D) - L(f_{D \cup z})$: by how much the loss $L$ on the
    validation set falls when point $z$ joins a random training set $D$ of $k$ points.

    Call it again with the same arguments to resume a run that was interrupted, or with more
    ``samples`` to extend it; with fewer it goes on as it was planned.

    Parameters
    ----------
    dataset
        The pool that D is drawn from, the validation set, and any candidates.
    model
        ``auto`` (logistic regression for classes, ridge regression for quantities), another name
        (``logistic``, ``linear``, ``ridge``, ``poisson``, ``mlp``, ``svm``, ``knn``, ``tree``,
        ``forest``, ``boosting``, and where installed ``xgboost``, ``lightgbm``, ``catboost``), any
        scikit-learn classifier or regressor, pipelines included, or ``module:name`` of one.
    sizes
        ``(k_min, k_max)``, or a list of sizes for a grid of just these. By default from a
        twentieth of the pool, at most 100, up to two thirds of it, at most 1,000 (20,000 with an
        engine that values many points at once). With a validation set, up to half of the pool, at
        most 1,000.
    samples
        Contributions that every valued point gets at least, over all sizes together; 100 by
        default. With ``until`` the most, 1,000 by default.
    metric
        ``log_loss`` (default for classification), ``softmax_of_proba``, ``brier``, ``zero_one``,
        ``hinge`` (for models with decision values), ``squared_error`` (default for regression),
        ``absolute_error``, ``poisson_deviance``, a `Loss`, or a callable
        ``(y_true, prediction) -> loss``.
    design
        ``uniform`` (default for fixed scoring), ``grid`` (``n_sizes`` sizes evenly spaced in log
        k) or ``log-uniform`` (default for rotating scoring).
    n_sizes
        How many sizes a grid over a range has.
    engine
        ``auto`` picks the fastest exact engine for the model. Where there is none, and no
        ``samples`` are asked for, a pilot of 50 trainings chooses ``refit`` or ``reuse``.
        ``refit`` trains the model anew for every contribution. ``reuse`` trains it once for each
        training set and learns the laws of all points from the losses. ``first-order``
        approximates by influence functions, ``mlp-single`` by single precision; the run and every
        result from it then say so, with the correlation with exact contributions. Also a subclass
        of `Engine`, or an `Engine` whose further settings are kept.
    points
        Positions in the pool to value, all by default; ``[]`` to value the candidates alone.
    candidates
        Points outside the pool to value too: ``(X, y)``, or a frame or file with the dataset's
        columns.
    groups
        Sets of points that enter together, and are valued as a whole: the group of every point,
        shape ``(n_points,)``, or a series or mapping from ids, missing for none. By default the
        groups of the dataset, if it has any; False values points one by one. A group that holds
        points of the pool joins training sets drawn from the others.
    group_size
        How many points of a group enter at once, drawn anew for every training set; None for all.
    share
        How many points share one draw of D: None for all, 1 for the paper's design.
    random_state
        Seed. None draws one and writes it into the manifest; a resumed run keeps its own.
    n_jobs
        Worker processes, -1 for one per core; None for this process alone, or what a surrounding
        ``joblib.parallel_config`` says. The answer does not depend on it.
    backend
        Cluster to run on: the address of a Dask scheduler (``dask://host:port``), ``ray``, or a
        `Pool` object. Results do not depend on the backend.
    scoring
        Which rows score. ``rotating``: in each task some rows train, others score and others are
        valued, so that results are about the population the rows come from and no row is set
        aside. ``fixed``: the dataset's validation set scores every task. ``auto`` (default) is
        rotating for a dataset without a validation set.
    anchor
        Whether to end with models trained on nearly all rows (one, or eight folds where scoring
        rows rotate), whose loss anchors the law of the loss, see `aggregate`.
    trainings
        How many models engine ``reuse`` trains, 2,000 by default; ``samples`` is not used there.
        With ``until`` the most, 20,000 by default.
    until
        When to stop: a criterion of `apiece.until`, such as ``until.minutes(10) | until.top(20)``,
        or words such as ``"10m or top 20"``. It is looked at after each round; rounds grow.
    to
        Folder of the run, or its address in an object store (``s3://bucket/run``, or any other
        that fsspec knows), or a `Store` object; None keeps it in memory.
    progress
        True for a bar on standard error, False for none, None for a bar on a terminal or in a
        notebook if the work takes more than two seconds.
    on_progress
        Called with a `ProgressEvent` (``done``, ``total``, ``elapsed``, ``remaining``, ``message``)
        after each unit of work and at least every two seconds, perhaps in another thread. An
        exception that it raises ends the collection; what was done is stored.

    Returns
    -------
    Run
        The stored contributions.

    Raises
    ------
    PlanError
        If the sizes, samples or points do not fit the data.
    EngineError
        If the model does not fit the data or metric, or some fits failed; the rest is stored.
    StoreError
        If ``to`` holds another run, or cannot be written.

    Examples
    --------
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> apiece.collect(load_demo()[0], sizes=(20, 40), samples=3, random_state=0, progress=False)
    <Run in memory: logistic on 369 points, log_loss, 2,030 of 2,030 contributions>
    """
    request = dict(locals())
    from joblib import effective_n_jobs

    if not isinstance(dataset, Dataset):
        raise DataError(
            f"dataset is a {type(dataset).__name__}: expected an apiece.Dataset. Make one, for "
            "example with Dataset.from_pandas(frame, target='label') or Dataset.from_arrays(X, y)."
        )
    if candidates is not None:
        dataset = dataset.with_candidates(candidates)
    rotates = _rotates(scoring, dataset)
    valued = positions(points, dataset)
    found = groups_of(dataset, groups, valued)
    choose = choose_engine if found is None else choose_group_engine
    chosen, reason = choose(dataset, model=model, metric=metric, engine=engine)
    store, pool = store_of(to), pool_of(backend, n_jobs)
    known = store.manifest if store.has_run() else None
    ends = sizes
    if ends is None:
        ends = default_sizes(
            dataset, found, group_size=group_size, rotates=rotates, is_quick=chosen.is_quick
        )
    if engine == "auto" and samples is None and type(chosen) is RefitEngine:
        if known is not None and known.engine.name == ReuseEngine.name:
            chosen, reason = choose(dataset, model=model, metric=metric, engine="reuse")
        elif known is None:
            both = (int(np.min(ends)), int(np.max(ends)))
            chosen, reason = choose_by_pilot(chosen, valued, both, rotates=rotates)
        if isinstance(chosen, RefitEngine) and trainings is not None:
            samples, trainings = max(1, trainings // (len(valued) + 1)), None
    is_reuse = isinstance(chosen, ReuseEngine)
    refuse_trainings(trainings, chosen, has_groups=found is not None)
    if until is not None:
        request |= {"engine": chosen.name if isinstance(engine, str) else engine, "to": store}
        request |= {"samples": samples, "trainings": trainings}
        counted = "trainings" if is_reuse else "samples"
        return _until(request, counted, as_criterion(until), f"{chosen.name} ({reason})")
    if is_reuse:
        samples = DEFAULT if trainings is None else trainings
    wanted = Design.of(
        ends,
        name=design or ("log-uniform" if rotates and np.size(ends) < 3 else "uniform"),
        samples=100 if samples is None else samples,
        n_sizes=n_sizes,
        share=share,
    )
    n_valued = 1 if is_reuse else len(valued)
    check_request(
        dataset,
        n_valued=n_valued,
        samples=wanted.samples,
        is_new=known is None,
        is_quick=chosen.is_quick,
    )
    if known is not None and known.samples > wanted.samples:
        wanted = replace(wanted, samples=known.samples)  # a run grows, and never shrinks
    seed = seed_from(known.seed if known and random_state is None else random_state)
    drawn: dict[str, Any] = {
        "n_pool": dataset.n_pool,
        "seed": seed,
        "strata": dataset.y if dataset.is_classification else None,
        "class_names": None if dataset.classes is None else dataset.classes.tolist(),
        "rotates": rotates,
    }
    plan: DrawnPlan | GroupPlan | TrainingPlan
    if is_reuse:
        plan = plan_trainings(wanted, dataset, valued, seed=seed, rotates=rotates)
        chosen = scored_in_turns(chosen) if rotates else chosen
        table = point_table(dataset, plan, chosen)
    elif found is None:
        plan = make_plan(wanted, points=valued, **drawn)
        table = point_table(dataset, plan, chosen)
    else:
        plan = make_group_plan(wanted, **found._asdict(), group_size=group_size, **drawn)
        table = group_table(dataset, plan, found.names)
    if known is None:
        warn_if_random(chosen, plan)
    is_kept = to is not None
    is_timed = is_kept and known is None
    rows = rows_per_unit(chosen, plan) if is_timed else chosen.rows_per_shard
    manifest = describe(dataset, chosen, plan, rows_per_unit=rows)
    if not chosen.is_exact:
        oracle, _ = choose_engine(dataset, model=model, metric=metric)
        measured = manifest.engine.to_json() | compare(chosen, oracle, plan)
        manifest = replace(manifest, engine=EngineRecord.from_json(measured))
    unit = "trainings" if is_reuse else "contributions"
    with tracking(progress, on_progress, title="collecting", unit=unit) as tracker:
        low, high = wanted.k_min, wanted.k_max
        tracker.say(f"engine: {chosen.name} ({reason})")
        what = (
            f"{plan.n_contributions:,} {unit} {'for' if is_reuse else 'of'} {len(plan.points):,} "
        )
        what += "points" if found is None else "groups"
        sets = ", training sets" if is_reuse else f" from {len(plan):,} training sets"
        tracker.say(f"plan: {what}{sets} of {low:,} to {high:,} points, seed {seed}")
        if known is None and tracker.is_followed and backend is None:
            n_workers = effective_n_jobs(n_jobs or 1)
            seconds = expected_seconds(chosen, plan) / n_workers
            tracker.say(f"estimate: about {clock(seconds)} with {n_workers} worker(s)")
        try:
            start_run(
                store,
                manifest,
                table,
                engine=chosen,
                plan=plan,
                tracker=tracker,
                is_probed=is_kept,
            )
        except StoreError:
            if known is None and random_state is None and store.has_run():
                return collect(**request)  # another collector has just started it, with its seed
            raise
        run_plan(chosen, plan, store, pool=pool, tracker=tracker)
        if anchor:
            add_anchor(store, chosen, seed, wanted.k_max, rotates=rotates)
    run = Run(store)
    progress_made = run.progress()
    if store.layout.n_tasks == len(plan) and not progress_made.is_complete:
        raise StoreError(
            f"{progress_made.n_shards:,} of {progress_made.n_shards_planned:,} shards are in "
            f"{store}: expected all of them. Something has removed files; collect again with the "
            "same settings to replace them."
        )
    _warn_of_weak_fits(progress_made.notes)
    return run


def _until(request: dict[str, Any], unit: str, criterion: Criterion, engine: str) -> Run:
    """Collect in rounds until a criterion is met.

    Parameters
    ----------
    request
        What `collect` was called with, its engine and store decided.
    unit
        What is counted: ``samples`` or ``trainings``, of which the request names the most.
    criterion
        When to stop.
    engine
        Which engine it is and why, for people.
    """
    store, options = request["to"], {"until": None, "progress": None, "on_progress": None}
    stored = store.manifest.samples if store.has_run() else 0
    rounds = list(targets(unit, request[unit] or MOST[unit], stored))
    shown = request["progress"], request["on_progress"]
    with tracking(*shown, title="collecting", unit=unit) as tracker:
        tracker.say(f"engine: {engine}")
        return collect_in_rounds(
            lambda size: collect(**request | options | {unit: size}),
            criterion,
            rounds,
            unit,
            tracker,
        )


def _rotates(scoring: Scoring, dataset: Dataset) -> bool:
    """Tell whether scoring rows rotate."""
    one_of("scoring", scoring, ("auto", "fixed", "rotating"))
    has_rows = len(dataset.y_val) > 0
    if scoring == "fixed" and not has_rows:
        raise PlanError(
            "scoring='fixed' is asked for, but the dataset has no validation rows: expected some. "
            "Pass X_val and y_val (--validation), or scoring='rotating' (--scoring rotating)."
        )
    return scoring == "rotating" or not has_rows


def _warn_of_weak_fits(notes: dict[str, int]) -> None:
    if notes.get("unconverged"):
        of = f" of {notes['fits']:,}" if notes.get("fits") else ""
        warnings.warn(
            f"{notes['unconverged']:,}{of} fits stopped before convergence, which "
            "adds noise to their contributions. Raise max_iter, or scale the features.",
            ApieceWarning,
            stacklevel=3,
        )
    if notes.get("uncertified"):
        warnings.warn(
            f"{notes['uncertified']:,} contributions could not be computed to the stated error and "
            "are left out: fits did not reach the optimum of the model. Scale the features, or "
            "penalise the model more (such as a smaller C).",
            ApieceWarning,
            stacklevel=3,
        )
