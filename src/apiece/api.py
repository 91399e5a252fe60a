"""The verbs: collect contributions, fit laws, use them. The command line says the same words."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from apiece import campaign, decisions, estimators, selection, valuation
from apiece._check import one_of
from apiece._progress import reporter
from apiece._rng import RandomState, seed_from
from apiece.data import Dataset, FilePath, groups_of, read_again
from apiece.engine import METRICS, MODELS, Metric, choose_engine, choose_group_engine
from apiece.errors import ApieceError, ApieceWarning, PlanError
from apiece.laws import Laws
from apiece.records import Contributions, Table, marked
from apiece.report import find as find_for_report
from apiece.report import serve as serve_report
from apiece.report import write as write_report
from apiece.sampling import Design, DrawnPlan, GroupPlan, make_group_plan, make_plan
from apiece.store import FolderStore, MemoryStore, Run

if TYPE_CHECKING:
    import pandas as pd

    from apiece.estimators import Aggregate

DEFAULT_METHOD = "bayes"


def collect(
    dataset: Dataset,
    *,
    model: Any = "logistic",
    sizes: Sequence[int] | None = None,
    samples: int = 100,
    metric: str | Metric | Callable[[Any, Any], float] | None = None,
    design: str = "uniform",
    n_sizes: int = 10,
    engine: str = "auto",
    points: npt.ArrayLike | None = None,
    candidates: Any = None,
    groups: Any = None,
    group_size: int | None = None,
    share: int | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    backend: str | None = None,
    to: str | Path | None = None,
    progress: bool | None = None,
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
        A name (``logistic``, ``linear``, ``ridge``, ``mlp``, ``svm``, ``knn``, ``tree``,
        ``forest``, ``boosting``) or any scikit-learn classifier or regressor, pipelines included.
    sizes
        ``(k_min, k_max)``, or a list of sizes for a grid of just these. By default up to half of
        the pool, at most 1,000, and down to a tenth of that.
    samples
        Contributions that every valued point gets at least, over all sizes together.
    metric
        ``log_loss`` (default for classification), ``softmax_of_proba``, ``brier``, ``zero_one``,
        ``hinge`` (for models with decision values), ``squared_error`` (default for regression),
        ``absolute_error``, or a callable ``(y_true, prediction) -> loss``.
    design
        ``uniform``, ``grid`` (``n_sizes`` sizes evenly spaced in log k) or ``log-uniform``.
    n_sizes
        How many sizes a grid over a range has.
    engine
        ``auto`` picks the fastest exact engine for the model; ``refit`` trains the model anew for
        every contribution; ``first-order`` approximates by influence functions, which the run and
        every result from it then say, with the correlation with exact contributions.
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
        A cluster instead: ``dask://host:port`` (its scheduler), or ``ray``. Nor on this.
    to
        Folder of the run, or its address in an object store (``s3://bucket/run``, or any other
        that fsspec knows); None keeps it in memory.
    progress
        True for a bar on standard error, False for silence, None for a bar on a terminal.

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
    """
    if candidates is not None:
        dataset = dataset.with_candidates(candidates)
    valued = campaign.positions(points, dataset)
    found = groups_of(dataset, groups, valued)
    choose = choose_engine if found is None else choose_group_engine
    chosen, reason = choose(dataset, model=model, metric=metric, engine=engine)
    wanted = Design.of(
        campaign.default_sizes(dataset, None if group_size else found) if sizes is None else sizes,
        name=design,
        samples=samples,
        n_sizes=n_sizes,
        share=share,
    )
    stored = campaign.stored(to)
    if stored is not None and stored["samples"] > wanted.samples:
        wanted = replace(wanted, samples=stored["samples"])  # a run grows, and never shrinks
    seed = seed_from(stored["seed"] if stored and random_state is None else random_state)
    drawn: dict[str, Any] = {
        "n_pool": dataset.n_pool,
        "seed": seed,
        "strata": dataset.y if dataset.is_classification else None,
        "class_names": None if dataset.classes is None else dataset.classes.tolist(),
    }
    plan: DrawnPlan | GroupPlan
    if found is None:
        plan = make_plan(wanted, points=valued, **drawn)
        table = campaign.point_table(dataset, plan)
    else:
        plan = make_group_plan(wanted, **found._asdict(), group_size=group_size, **drawn)
        table = campaign.group_table(dataset, plan, found.names)
    manifest = campaign.describe(dataset, chosen, plan)
    if not chosen.is_exact:
        oracle, _ = choose_engine(dataset, model=model, metric=metric)
        manifest["engine"] |= campaign.compare(chosen, oracle, plan)
    store = MemoryStore(manifest, table) if to is None else FolderStore.create(to, manifest, table)
    with reporter(progress) as hears:
        low, high = wanted.k_min, wanted.k_max
        hears.say(f"engine: {chosen.name} ({reason})")
        hears.say(
            f"plan: {plan.n_contributions:,} contributions of {len(plan.points):,} "
            f"{'points' if found is None else 'groups'} from {len(plan):,} training sets of "
            f"{low:,} to {high:,} points, seed {seed}"
        )
        campaign.collect(chosen, plan, store, n_jobs=n_jobs, backend=backend, reporter=hears)
    run = Run(store)
    _warn_of_weak_fits(run)
    return run


def fit(
    run: Run | Contributions,
    *,
    method: str = DEFAULT_METHOD,
    dataset: Dataset | None = None,
    memory: int | str | None = None,
    **settings: Any,
) -> Laws:
    r"""Fit one law per point: its mean contribution $\psi_k$ with noise $\sigma^2 / k^\beta$.

    Parameters
    ----------
    run
        A run, or a table of contributions.
    method
        ``bayes`` (a population of laws learned from all points; right from ten contributions a
        point; series laws unless ``family="power"``), ``likelihood`` (the paper's maximum
        likelihood, each point alone), ``log_ols`` (a line through the log of the mean at each
        size; wants many contributions a size), ``amortized`` (a network that predicts laws from
        features; needs ``dataset``, or ``X`` and ``y``, and torch), or ``auto`` (whichever method
        and family foretells the largest sizes best).
    dataset
        The dataset of the run, for methods that learn from features.
    memory
        What contributions may take at once, such as ``"2GB"``, for a run that does not fit into
        memory: they are streamed from its folder and fitted block by block, to the same laws (all
        methods but ``amortized`` and ``bayes`` with features). None reads all of them.
    **settings
        Settings of the estimator, such as ``family="series"`` ($\psi_k = a/k + b/k^{1.5} + d/k^2$)
        or ``family="power"`` ($\psi_k = c/k^\alpha$); ``backtest=True`` to learn how well the
        laws foretell sizes held out (`laws.backtest()`); ``on_failure="raise"`` to stop at a
        point without a law.

    Returns
    -------
    Laws
        Parameters with uncertainty, and a status for every point.
    """
    with _table(run, memory) as table:
        laws = _fit(table, method, dataset, settings)
    return replace(laws, labels=run.labels) if isinstance(run, Run) else laws


def aggregate(run: Run | Contributions) -> Aggregate:
    r"""Fit how the loss falls with size for the dataset as a whole.

    $$\mathbb{E}_{|D|=k}[L(f_D)] = \epsilon + b\,k^{-\lambda}$$

    Parameters
    ----------
    run
        A run, or a table of contributions with losses.

    Returns
    -------
    Aggregate
        ``eps``, ``b``, ``lam``, with ``mean(k)``, ``interval(k)`` and ``table()``.
    """
    return estimators.fit_aggregate(run)


def value(
    laws: Laws | Run | Contributions,
    *,
    kind: str = "shapley",
    sizes: tuple[int, int] | None = None,
    n: int | None = None,
    a: float = 16.0,
    b: float = 1.0,
    weights: valuation.Weighting | None = None,
    source: str = "law",
    level: float = 0.9,
    top: int | None = None,
    random_state: RandomState = 0,
    memory: int | str | None = None,
) -> pd.DataFrame:
    r"""Value every point: a weighted sum of its expected contributions over sizes.

    $$v_i = \sum_k w_k\,\psi_k$$

    Parameters
    ----------
    laws
        Fitted laws, or a run to which they are fitted first.
    kind
        ``shapley`` (Distributional Shapley: the mean over ``sizes``), ``data-shapley``,
        ``beta-shapley``, ``banzhaf`` or ``loo`` (leave-one-out) in a game of ``n`` points, or
        ``weights``. The kinds of a game also weigh sizes below the sampled ones, where a law is
        extrapolated; pass ``sizes`` to keep to some.
    sizes
        ``(k_min, k_max)``, both included; by default the sampled range for ``shapley``, and all
        sizes from 0 to n - 1 for the kinds of a game.
    n
        Points of the game, the one that is valued included; by default the size of the pool.
    a, b
        Shape of Beta Shapley; $a > b$ favours small sizes, $a = b = 1$ is Data Shapley.
    weights
        Weights of your own: ``{k: weight}``, or a function of an array of sizes.
    source
        ``law``, or ``samples`` for the Monte Carlo mean of a run's contributions, no law between.
    level
        Coverage of the interval.
    top
        Also rank the points and give the probability that each is among the ``top`` best.
    random_state
        Seed of the draws behind the ranks.
    memory
        What a run's contributions may take at once, such as ``"2GB"``, see `fit`.

    Returns
    -------
    DataFrame
        Indexed by point id: ``value``, ``low``, ``high``, ``stderr``, in units of the loss;
        positive helps. With ``top`` also ``rank`` (1 is best), ``rank_low``, ``rank_high`` and
        ``p_top``; from samples also ``n_samples``; of groups also ``rows``, with how many of them a
        group entered, and ``per_row``, the value of one.
    """
    one_of("source", source, ("law", "samples"))
    attrs = laws.provenance() if isinstance(laws, Run) else laws.attrs
    options: dict[str, Any] = {
        "kind": kind,
        "sizes": sizes,
        "n": attrs.get("n_pool") if n is None and kind in valuation.OF_A_GAME else n,
        "a": a,
        "b": b,
        "weights": weights,
        "level": level,
        "top": top,
        "random_state": random_state,
    }
    if source == "law":
        return marked(_per_row(valuation.value(_laws(laws, memory), **options), attrs), attrs)
    if isinstance(laws, Laws):
        raise PlanError(
            "source='samples' is asked of laws, which hold none: expected a run, or its "
            "contributions. Pass the run, or source='law'."
        )
    if isinstance(laws, Run):
        valued = laws.points[laws.points["valued"]]
        # A group is never inside D either: its training sets are drawn without it.
        options["is_candidate"] = (valued["role"] != "pool").to_numpy()
    with _table(laws, memory) as table:
        return marked(_per_row(valuation.value_samples(table, **options), attrs), attrs)


def compare(
    first: Any,
    second: Any,
    *,
    top: int | None = None,
    level: float = 0.9,
    random_state: RandomState = 0,
    **settings: Any,
) -> pd.DataFrame:
    r"""Compare two valuations of the same points: how well do they agree?

    Parameters
    ----------
    first, second
        Each a table with a column ``value``, a series, laws or a run; the last two are valued by
        `value` first. Points are matched by id.
    top
        How many of the best points to compare as sets; a tenth of them by default.
    level
        Coverage of the bootstrap interval over points.
    random_state
        Seed of the bootstrap.
    **settings
        Options of `value`, such as ``kind`` and ``sizes``.

    Returns
    -------
    DataFrame
        Rows ``pearson``, ``spearman``, ``kendall`` and ``top`` (share of the best points in
        common); columns ``agreement``, ``low``, ``high``, ``n``.
    """
    one, two = (
        value(given, **settings) if isinstance(given, Laws | Run | Contributions) else given
        for given in (first, second)
    )
    return valuation.agreement(one, two, top=top, level=level, random_state=random_state)


def select(
    laws: Laws | Run,
    *,
    take: int | None = None,
    at: float,
    until: float | None = None,
    quotas: selection.Quotas | None = None,
    costs: Any = None,
    budget: float | None = None,
    redundancy: str | None = "auto",
    dataset: Dataset | None = None,
    level: float = 0.9,
    random_state: RandomState = 0,
    **settings: Any,
) -> pd.DataFrame:
    r"""Select the points to add: those with the largest expected contribution $\psi_k$.

    Parameters
    ----------
    laws
        Fitted laws, or a run to which they are fitted first.
    take
        How many points.
    at
        The size $k$ of the training set they would join.
    until
        The size it will grow to: points are then ranked by their mean contribution on the way.
    quotas
        ``{label: how many}``, or ``"balanced"`` to split ``take`` evenly among the classes.
    costs, budget
        Cost of every point, by id or in the order of the laws, and what may be spent.
    redundancy
        ``"aware"`` values every pick together with those before it, so that near-duplicates, and
        points that overshoot together, are not bought together; it needs the data. ``"none"``
        ranks points one by one. ``"auto"`` is aware where the data is at hand, the engine is
        quick (linear, logistic, knn) and the pool is large enough.
    dataset
        The data that the run was collected from; None reads that of a run again, if it is in the
        file where it was.
    level
        Coverage of the interval.
    random_state
        Seed of what is drawn for ``p_best`` and ``redundancy``.
    **settings
        For ``redundancy``: ``model``, ``metric`` and ``engine`` as in `collect`, ``draws`` and
        ``shortlist``; see `apiece.selection.select`.

    Returns
    -------
    DataFrame
        Indexed by point id, best first: ``rank``, ``value`` (expected gain in units of the loss),
        ``low``, ``high``, ``p_best`` (probability that the point belongs among the picks), and
        ``label``, ``cost``, ``alone`` where they apply.
    """
    known = _laws(laws)
    if redundancy == "aware":
        _refuse_groups(known.attrs, "redundancy")
    if dataset is None and isinstance(laws, Run) and redundancy in ("auto", "aware"):
        dataset = data_of(laws)
    picks = selection.select(
        known,
        take=take,
        at=at,
        until=until,
        quotas=quotas,
        costs=costs,
        budget=budget,
        redundancy=redundancy,
        dataset=dataset,
        level=level,
        random_state=random_state,
        **settings,
    )
    return marked(picks, known.attrs)


def data_of(run: Run) -> Dataset | None:
    """Read the data of a run again, or return None if it is not in the file where it was."""
    data = run.manifest["dataset"]
    try:
        return read_again(data.get("source"), data["fingerprint"])
    except ApieceError:
        return None


def advise(
    run: Run | Laws,
    laws: Laws | None = None,
    *,
    dataset: Dataset | None = None,
    at: int | None = None,
    level: float = 0.9,
    best: float = 0.1,
    draws: int = 20,
    model: Any = None,
    metric: Any = None,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Advise what to do with every point: keep, drop, relabel, or find more like it.

    Parameters
    ----------
    run
        A run, or laws.
    laws
        Laws fitted to the run; fitted now if left out.
    dataset
        The data that the run was collected from: ``relabel`` is then advised where models that
        have not seen a point are sure of another label.
    at
        Size of the dataset; the largest that was sampled by default.
    level
        The probability from which on a decision is made; below it a point is ``uncertain``.
    best
        Share of the points that count as the best, of which more are wanted.
    draws
        Training sets on which labels are tried.
    model, metric
        As given to `collect`, if they were not names.
    random_state
        Seed of these training sets.

    Returns
    -------
    DataFrame
        Indexed by point id: ``advice`` (``keep``, ``drop``, ``relabel``, ``more like this`` or
        ``uncertain``), ``probability`` that it is right, ``reason`` in words, ``value`` at the size
        in units of the loss (positive helps) and, with ``dataset``, ``relabel_to`` and the
        ``gain`` of a contribution from it.
    """
    known = _laws(run) if laws is None else laws
    size = known.k_range[1] if at is None else at
    options: dict[str, Any] = {"at": size, "level": level, "best": best}
    table = decisions.advise(known, **options)
    if dataset is not None and dataset.is_classification:
        _refuse_groups(known.attrs, "relabelling")
        dataset.check_is(known.attrs.get("dataset"))
        plausible = decisions.plausibility(dataset, random_state=random_state)
        # Laws that were stored name points in words, and data perhaps in numbers.
        named = plausible.set_axis(plausible.index.astype(str)).loc[table.index.astype(str)]
        suspects = decisions.doubted(named.set_axis(table.index))
        found = decisions.relabel(
            dataset,
            suspects.index,
            to=suspects["likeliest"],
            at=size,
            draws=draws,
            model=_named("model", model, known.attrs, MODELS),
            metric=_named("metric", metric, known.attrs, METRICS),
            random_state=random_state,
        )
        found["p_likeliest"] = suspects["p_likeliest"]
        table = decisions.advise(known, **options, relabelled=found)
    return marked(table, known.attrs)


def report(
    run: Run | Contributions,
    laws: Laws | None = None,
    *,
    to: str | Path = "report.html",
    dataset: Dataset | None = None,
    rows: pd.DataFrame | FilePath | None = None,
    ids: str | None = None,
    images: Any = None,
    advice: pd.DataFrame | bool = True,
    aggregate: Aggregate | bool = True,
    title: str | None = None,
    level: float = 0.9,
    memory: int | str | None = None,
) -> Path:
    """Write an interactive report: one HTML file that opens in any browser, without a network.

    Parameters
    ----------
    run
        A run, or a table of contributions.
    laws
        Its laws; None fits them first.
    to
        The file to write.
    dataset
        The dataset that was collected from: its features are shown for each point, decide which
        points are near each other, and doubtful labels are tried against others. None reads it
        again from the file that the run names, if that is still there.
    rows
        What people know of the points, such as their texts: a table with one row a point, or the
        csv, tsv or Parquet file that holds it. None for those of the run's own file.
    ids
        The column of ``rows`` that holds the ids; None for its index, in a file the row numbers.
    images
        Pictures of the points, in the order of ``laws.ids`` or as a mapping from ids: arrays of
        shape ``(height, width)`` or ``(height, width, channels)``, ``uint8`` or from 0 to 1.
    advice
        What to do with each point: a table indexed by id with ``advice``, and perhaps ``reason``
        and ``probability``. True for what `advise` says at the largest sampled size, where labels
        are tried if that takes seconds; False for none.
    aggregate
        The law of the loss itself, drawn through the mean losses; True for what `aggregate`
        finds, False for none.
    title
        Title of the report.
    level
        Coverage of the intervals.
    memory
        What a run's contributions may take at once, such as ``"2GB"``, see `fit`.

    Returns
    -------
    Path
        The file.
    """
    known = fit(run, memory=memory) if laws is None else laws
    found = find_for_report(
        run,
        known,
        advise,
        dataset=dataset,
        rows=rows,
        ids=ids,
        advice=advice,
        aggregate=aggregate,
    )
    shown: dict[str, Any] = {"images": images, "title": title, "level": level, **found}
    return write_report(run, known, to, memory=memory, **shown)


def serve(
    run: str | Path,
    *,
    ready: Callable[[str], None],
    port: int = 0,
    method: str = DEFAULT_METHOD,
    images: Any = None,
    title: str | None = None,
    level: float = 0.9,
    memory: int | str | None = None,
    **options: Any,
) -> None:
    """Serve the report of a stored run on this machine until interrupted, following its growth.

    Parameters
    ----------
    run
        Folder of the run; it may be under way.
    ready
        Hears the address once it answers.
    port
        Port to listen on, 0 for any free one.
    method
        How laws are fitted, as in `fit`.
    images, title, level, memory, **options
        As in `report`; labels are not tried, since laws change all the time.
    """

    def fitted(opened: Run, table: Table) -> Laws:
        return replace(_fit(table, method, None, {}), labels=opened.labels)

    def found(opened: Run, laws: Laws) -> dict[str, Any]:
        options_found = find_for_report(opened, laws, advise, relabel=False, **options)
        return {"images": images, "title": title, "level": level, **options_found}

    one_of("method", method, estimators.METHODS)
    serve_report(Path(run), fitted, port=port, ready=ready, find=found, memory=memory)


def _fit(table: Table, method: str, dataset: Dataset | None, settings: dict[str, Any]) -> Laws:
    if dataset is not None and method in estimators.METHODS and estimators.features_of(method):
        settings = {**_features(table, dataset), **settings}
    return estimators.fit(table, method=method, **settings)


def _per_row(table: pd.DataFrame, attrs: dict[str, Any]) -> pd.DataFrame:
    """Add the value of one row, where the points are groups."""
    groups = attrs.get("groups")
    if groups is None:
        return table
    rows = np.array([groups[str(name)] for name in table.index])
    return table.assign(rows=rows, per_row=table["value"] / rows)


def _refuse_groups(attrs: dict[str, Any], what: str) -> None:
    if attrs.get("groups") is not None:
        raise PlanError(
            f"{what} is about single points, and these are laws of groups: expected a run that "
            "values points. Collect one with groups=False, or leave dataset out."
        )


def _table(run: Run | Contributions, memory: int | str | None) -> AbstractContextManager[Table]:
    return run.table(memory) if isinstance(run, Run) else nullcontext(run)


def _laws(laws: Laws | Run | Contributions, memory: int | str | None = None) -> Laws:
    return laws if isinstance(laws, Laws) else fit(laws, memory=memory)


def _named(what: str, given: Any, attrs: dict[str, Any], known: Collection[str]) -> Any:
    """Return the model or metric that is given, or that of the run, which a name can tell."""
    found = attrs.get(what) if given is None else given
    if isinstance(found, str) and found not in known:
        raise PlanError(
            f"the run used the {what} {found!r}, which has no name that could be looked up: "
            f"expected the same {what} again. Pass {what}=."
        )
    return "logistic" if found is None and what == "model" else found


def _features(contributions: Table, dataset: Dataset) -> dict[str, Any]:
    """Return features and labels of the valued points, and of the rest of the pool."""
    dataset.check_is(contributions.attrs.get("dataset"))
    _refuse_groups(contributions.attrs, "learning from features")
    valued = dataset.positions(contributions.ids)
    labels = dataset.labels()
    rest = np.setdiff1d(np.arange(dataset.n_points), valued)
    return {
        "X": dataset.features(valued),
        "y": labels[valued],
        "more": (dataset.features(rest), labels[rest]),
        "kind": dataset.kind,
    }


def _warn_of_weak_fits(run: Run) -> None:
    notes = run.progress().notes
    if notes.get("unconverged"):
        warnings.warn(
            f"{notes['unconverged']:,} of {notes['fits']:,} fits stopped before convergence, which "
            "adds noise to their contributions. Raise max_iter, or scale the features.",
            ApieceWarning,
            stacklevel=3,
        )
