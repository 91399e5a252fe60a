"""Collect contributions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from apiece._base.progress import OnProgress
from apiece._base.rng import RandomState
from apiece.collection._design import DesignName
from apiece.collection._growth import Collection
from apiece.collection._question import Question, Scoring
from apiece.collection._request import store_of
from apiece.collection._rounds import collect_in_rounds
from apiece.collection._trainings import DEFAULT
from apiece.collection.pools import Pool, pool_of
from apiece.collection.until import Criterion, as_criterion
from apiece.data import Dataset
from apiece.engines import Engine, EngineChoice, is_described, surrogate_of
from apiece.errors import PlanError
from apiece.losses import LossLike, resolve_loss
from apiece.store import Run, Store

USUAL = {"samples": 100, "trainings": DEFAULT}


def collect(
    dataset: Dataset,
    *,
    model: Any = "auto",
    sizes: Sequence[int] | None = None,
    samples: int | None = None,
    metric: LossLike = None,
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
    ``samples`` to extend it; with fewer it continues as planned.

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
        ``refit`` trains the model again for every contribution. ``reuse`` trains it once for each
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
        How many points of a group enter at once, drawn again for every training set; None for all.
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
        aside. ``fixed``: the dataset's validation set scores every task, and results are for these
        rows. ``sample``: it scores every task as a sample of the population that results are then
        for (logistic, ridge and linear regression with their usual loss). ``auto`` (default):
        rotating without a validation set, fixed with one.
    anchor
        Whether to end with models trained on nearly all rows (one, or eight folds where scoring
        rows rotate), whose loss anchors the law of the loss, see `aggregate`.
    trainings
        How many models engine ``reuse`` trains, instead of ``samples``; 2,000 by default.
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
    began = time.monotonic()
    from joblib import effective_n_jobs

    criterion = None if until is None else as_criterion(until)
    if candidates is not None and isinstance(dataset, Dataset):
        dataset = dataset.with_candidates(candidates)
    question = Question.of(
        dataset,
        model=model,
        metric=metric,
        sizes=sizes,
        points=points,
        scoring=scoring,
        groups=groups,
        group_size=group_size,
    )
    store = store_of(to)
    begun = store.manifest.engine.name if store.has_run() else None
    chosen, reason = question.answered_by(engine, samples, begun)
    if scoring == "sample":
        _check_sample(chosen, has_groups=question.groups is not None)
    amount = question.amount(engine, chosen, samples, trainings)
    collection = Collection(
        dataset,
        chosen,
        store,
        pool_of(backend, n_jobs),
        valued=question.valued,
        groups=question.groups,
        ends=question.ends(chosen),
        design=design,
        n_sizes=n_sizes,
        share=share,
        group_size=group_size,
        random_state=random_state,
        rotates=question.rotates,
        is_sample=scoring == "sample",
        anchor=anchor,
        is_kept=to is not None,
        n_workers=None if backend else effective_n_jobs(n_jobs or 1),
        oracle=None if chosen.is_exact else question.engine("auto")[0],
        reason=reason,
    )
    shown = progress, on_progress
    if criterion is not None:
        return collect_in_rounds(collection, criterion, amount, shown, began=began)
    return collection.grow(USUAL[collection.unit] if amount is None else amount, shown)


def _check_sample(engine: Engine, *, has_groups: bool) -> None:
    """Raise a clear error where theory cannot say what the validation rows are a sample of."""
    dataset, model = engine.dataset, engine.model
    usual = resolve_loss(None, kind=dataset.kind, has_proba=model.has_proba)
    is_usual = type(engine.metric) is type(usual)
    fits = is_described(model) and is_usual and surrogate_of(dataset, model).is_available
    if has_groups or not fits or engine.gives_trainings:
        raise PlanError(
            f"scoring='sample' is asked for {'groups' if has_groups else model.name} and "
            f"{engine.metric.name}: expected points, logistic, ridge or linear regression on "
            f"numbers, and {usual.name}. Pass scoring='fixed' (--scoring fixed) for results about "
            "the given rows, or leave out the validation set to let all rows take turns."
        )
