"""Use laws: values, picks, advice, agreement between models."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from apiece._base.check import one_of
from apiece._base.progress import OnProgress, tracking
from apiece._base.rng import RandomState, seed_from
from apiece.data import Dataset, read_again
from apiece.engines import EngineName, is_model_name, resolve_model
from apiece.errors import ApieceError, ApieceWarning, PlanError
from apiece.estimators import opened, refuse_groups
from apiece.laws import Laws
from apiece.losses import LOSSES, resolve_loss
from apiece.records import Contributions, marked
from apiece.store import Run, laws_of
from apiece.uses._advice import Advice
from apiece.uses._advise import advice_for
from apiece.uses._agreement import agreement
from apiece.uses._at_hand import picks_at_hand
from apiece.uses._kinds import Kind, Semivalue, Weighting, as_semivalue
from apiece.uses._rules import Quotas
from apiece.uses._samples import value_samples
from apiece.uses._select import picks_from_laws
from apiece.uses._value import values_of_laws

if TYPE_CHECKING:
    import pandas as pd

Redundancy = Literal["auto", "aware", "none"]
Source = Literal["law", "samples"]


def value(
    laws: Laws | Run | Contributions,
    *,
    kind: Kind | Semivalue = "shapley",
    sizes: tuple[int, int] | None = None,
    n: int | None = None,
    a: float = 16.0,
    b: float = 1.0,
    weights: Weighting | None = None,
    source: Source = "law",
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
        Fitted laws, or a run, whose laws are those of `Run.laws`.
    kind
        ``shapley`` (Distributional Shapley: the mean over ``sizes``), ``data-shapley``,
        ``beta-shapley``, ``banzhaf`` or ``loo`` (leave-one-out) in a game of ``n`` points, or
        ``weights``; or a `Semivalue`. The kinds of a game also weigh sizes below the sampled ones,
        where a law is extrapolated; pass ``sizes`` to keep to some.
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
        group entered, and ``per_row``, the value of one. From a run of engine ``reuse`` also
        ``unseen_loss``, the mean loss of the point for models that were not trained on it: sort by
        it to look for wrong labels.

    Examples
    --------
    >>> import apiece
    >>> laws = apiece.Laws.from_arrays(c=[0.5, -0.2], alpha=[1.0, 0.5], ids=["a", "b"])
    >>> apiece.value(laws, sizes=(100, 200))["value"].round(4).to_dict()
    {'a': 0.0035, 'b': -0.0166}
    """
    one_of("source", source, ("law", "samples"))
    attrs = laws.provenance() if isinstance(laws, Run) else laws.attrs
    semivalue = as_semivalue(kind, a=a, b=b, weights=weights)
    if n is not None and not semivalue.needs_n:
        raise PlanError(
            f"n={n} is given for kind={semivalue.name!r}, which averages over sizes and plays no "
            "game of n points: expected no n. Leave n (--n) out, pass sizes (--sizes), or choose "
            "kind='data-shapley'."
        )
    options: dict[str, Any] = {
        "kind": semivalue,
        "sizes": sizes,
        "n": attrs.get("n_pool") if n is None and semivalue.needs_n else n,
        "level": level,
        "top": top,
        "random_state": random_state,
    }
    if source == "law":
        found = _per_row(values_of_laws(laws_of(laws, memory), **options), attrs)
        if isinstance(laws, Run) and laws.has_trainings:
            trainings = laws.trainings()
            if trainings.row_loss.any():  # a loss that has no rows has none to show
                found["unseen_loss"] = trainings.unseen_loss()
        return marked(found, attrs)
    if isinstance(laws, Laws):
        raise PlanError(
            "source='samples' is asked of laws, which hold none: expected a run, or its "
            "contributions. Pass the run, or source='law'."
        )
    if isinstance(laws, Run):
        valued = laws.points[laws.points["valued"]]
        # A group is never inside D either: its training sets are drawn without it.
        options["is_candidate"] = (valued["role"] != "pool").to_numpy()
    with opened(laws, memory) as table:
        return marked(_per_row(value_samples(table, **options), attrs), attrs)


def compare(
    first: Laws | Run | Contributions | pd.DataFrame | pd.Series,
    second: Laws | Run | Contributions | pd.DataFrame | pd.Series,
    *,
    kind: Kind | Semivalue = "shapley",
    sizes: tuple[int, int] | None = None,
    n: int | None = None,
    a: float = 16.0,
    b: float = 1.0,
    weights: Weighting | None = None,
    source: Source = "law",
    top: int | None = None,
    level: float = 0.9,
    random_state: RandomState = 0,
    memory: int | str | None = None,
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
    kind, sizes, n, a, b, weights, source, memory
        How laws and runs are valued, as in `value`.

    Returns
    -------
    DataFrame
        Rows ``pearson``, ``spearman``, ``kendall`` and ``top`` (share of the best points in
        common); columns ``agreement``, ``low``, ``high``, ``n``.

    Examples
    --------
    >>> import apiece
    >>> laws = apiece.Laws.from_arrays(c=np.arange(1.0, 30.0), alpha=np.linspace(0.5, 1.5, 29))
    >>> first = apiece.value(laws, sizes=(100, 200))
    >>> round(float(apiece.compare(first, first)["agreement"].min()), 6)
    1.0
    """

    def valued(given: Laws | Run | Contributions | pd.DataFrame | pd.Series) -> Any:
        if not isinstance(given, Laws | Run | Contributions):
            return given
        return value(
            given,
            kind=kind,
            sizes=sizes,
            n=n,
            a=a,
            b=b,
            weights=weights,
            source=source,
            memory=memory,
        )

    one, two = valued(first), valued(second)
    return agreement(one, two, top=top, level=level, random_state=random_state)


def select(
    laws: Laws | Run | Dataset,
    *,
    take: int | None = None,
    at: float | None = None,
    have: Any = None,
    until: float | None = None,
    quotas: Quotas | None = None,
    costs: Any = None,
    budget: float | None = None,
    redundancy: Redundancy | None = "auto",
    dataset: Dataset | None = None,
    model: Any = None,
    metric: Any = None,
    engine: EngineName = "auto",
    draws: int = 20,
    shortlist: int | None = None,
    level: float = 0.9,
    random_state: RandomState = 0,
    memory: int | str | None = None,
    progress: bool | None = None,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    r"""Select the points to add: those with the largest expected contribution $\psi_k$.

    Parameters
    ----------
    laws
        Fitted laws, or a run, whose laws are those of `Run.laws`; with ``have`` also a dataset.
    take
        How many points.
    at
        The size $k$ of the training set they would join, a random set of that size; by default the
        size of the pool (``laws.k_pool``). Beyond ``laws.reach`` a warning says that gains are not
        known.
    have
        Ids of the points that are in the training set already. Others are then picked for what they
        add to exactly these, together; laws only screen them. It needs the data. Scored by the
        validation set, or without one by the points that are not held, in turns.
    until
        The size it will grow to: points are then ranked by their mean contribution on the way.
    quotas
        ``{label: how many}``, or ``"balanced"`` to split ``take`` evenly among the classes.
    costs, budget
        Cost of every point, by id or in the order of the laws, and what may be spent.
    redundancy
        ``"aware"`` values every pick together with those before it, so that near-duplicates, and
        points that overshoot together, are not bought together; it needs the data. ``"none"``
        ranks points one by one. ``"auto"`` is aware where the data is given or can be read again,
        the engine is quick (linear, logistic, knn) and the pool is large enough.
    dataset
        The data that the run was collected from; None reads that of a run again, if it is in the
        file where it was.
    level
        Coverage of the interval.
    random_state
        Seed of what is drawn for ``p_best`` and ``redundancy``.
    model, metric, engine
        What values picks together, as in `collect`; by default those of the run.
    draws
        Training sets for each pick, where picks are valued together.
    shortlist
        How many of the best single points are valued together; 10 for each pick by default.
    memory
        What a run's contributions may take at once, such as ``"2GB"``, see `fit`.
    progress
        True for a bar on standard error, False for none, None for a bar on a terminal or in a
        notebook if the work takes more than two seconds.
    on_progress
        Called with a `ProgressEvent` as the work goes on, as in `collect`.

    Returns
    -------
    DataFrame
        Indexed by point id, best first: ``rank``, ``value`` (expected gain in units of the loss),
        ``low``, ``high``, ``p_best`` (probability that the point belongs among the picks), and
        ``label``, ``cost``, ``alone``, ``status`` (beyond ``laws.reach``) where they apply. With
        ``have`` no ``p_best``, but ``gain``, ``gain_low`` and ``gain_high``: what the pick and all
        above it gain together on rows not seen, measured on rows that had no part in choosing.

    Examples
    --------
    >>> import apiece
    >>> dataset, _ = apiece.data.load_demo()
    >>> picks = apiece.select(dataset, take=3, have=dataset.ids[:100])
    >>> len(picks), bool(picks.index.isin(dataset.ids[:100]).any())
    (3, False)
    """
    if have is not None:
        _refuse_sizes(at, until)
        with tracking(progress, on_progress, title="selecting", unit="picks"):
            return _select_at_hand(
                laws,
                dataset,
                memory,
                have=have,
                take=take,
                quotas=quotas,
                costs=costs,
                budget=budget,
                model=model,
                metric=metric,
                engine=engine,
                shortlist=shortlist,
                level=level,
                seed=seed_from(random_state),
            )
    if isinstance(laws, Dataset):
        raise PlanError(
            "nothing says which training set the points would join: expected a run or laws, or "
            "the ids of its rows. Pass a run, or have=ids (--have ids.csv)."
        )
    with tracking(progress, on_progress, title="selecting", unit="picks"):
        known = laws_of(laws, memory)
        if redundancy == "aware":
            refuse_groups(known.attrs, "redundancy")
        if dataset is None and isinstance(laws, Run) and redundancy in ("auto", "aware"):
            dataset = data_of(laws)
        picks = picks_from_laws(
            known,
            take=take,
            at=at,
            until=until,
            quotas=quotas,
            costs=costs,
            budget=budget,
            redundancy=redundancy,
            dataset=dataset,
            model=model,
            metric=metric,
            engine=engine,
            draws=draws,
            shortlist=shortlist,
            level=level,
            random_state=random_state,
        )
    return marked(picks, known.attrs)


def _refuse_sizes(at: float | None, until: float | None) -> None:
    for name, given in (("at", at), ("until", until)):
        if given is not None:
            raise PlanError(
                f"have names the training set, so its size is known, and {name}={given} is given "
                f"too: expected one of them. Leave {name} (--{name}) out."
            )


def _select_at_hand(
    laws: Laws | Run | Dataset, dataset: Dataset | None, memory: Any, *, have: Any, **settings: Any
) -> pd.DataFrame:
    if isinstance(laws, Dataset):
        settings["model"] = "auto" if settings["model"] is None else settings["model"]
        return picks_at_hand(laws, have, **settings)
    known = laws_of(laws, memory)
    refuse_groups(known.attrs, "have")
    if dataset is None:
        if not isinstance(laws, Run):
            raise PlanError(
                "have values points on top of rows that are held, which needs the data: expected "
                "the dataset that the laws come from. Pass dataset=."
            )
        dataset = _data_again(laws, "have")
    dataset.check_is(known.attrs.get("dataset"))
    settings["model"] = _named("model", settings["model"], known.attrs, is_model_name)
    settings["metric"] = _named("metric", settings["metric"], known.attrs, LOSSES.__contains__)
    return marked(picks_at_hand(dataset, have, laws=known, **settings), known.attrs)


def data_of(run: Run) -> Dataset | None:
    """Read the data of a run again, or return None if it is not in the file where it was.

    Examples
    --------
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> data, _ = load_demo()
    >>> run = apiece.collect(data, sizes=(20, 40), samples=3, progress=False)
    >>> data_of(run).fingerprint == data.fingerprint
    True
    """
    data = run.manifest.dataset
    try:
        return read_again(data.source, data.fingerprint)
    except ApieceError as error:
        if data.source:
            warnings.warn(
                f"the data of the run cannot be read again, so points are ranked one by one: "
                f"{error}",
                ApieceWarning,
                stacklevel=3,
            )
        return None


def advise(
    data: Run | Dataset,
    *,
    dataset: Dataset | None = None,
    model: Any = None,
    metric: Any = None,
    level: float = 0.9,
    random_state: RandomState = 0,
    progress: bool | None = None,
    on_progress: OnProgress | None = None,
) -> Advice:
    """Advise which rows to relabel, drop or check, and measure what following it does.

    The advice is about all rows together, and its effect is measured by refitting the model on
    rows changed as advised, and scoring it on rows that had no part in choosing. Where nothing is
    measured to help, every row is kept.

    Parameters
    ----------
    data
        A run, or a dataset. Every row is judged; only validation rows without ids are trusted.
    dataset
        The data that the run was collected from; None reads it again from the file where it was.
    model, metric
        What is refitted and measured: by default those of the run, or ``"auto"`` and the log loss
        (squared error for quantities).
    level
        Coverage of the intervals.
    random_state
        Seed of the folds and of the models.
    progress
        True for a bar on standard error, False for none, None for a bar on a terminal or in a
        notebook if the work takes more than two seconds.
    on_progress
        Called with a `ProgressEvent` as the work goes on, as in `collect`.

    Returns
    -------
    Advice
        ``advice.table()`` has a row for each id, ``advice.effect`` what following it does.

    Examples
    --------
    >>> import numpy as np
    >>> import apiece
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> X = rng.normal(size=(400, 4)) + 2.2 * y[:, None]
    >>> y[:40] = 1 - y[:40]  # wrong labels
    >>> advice = apiece.advise(apiece.Dataset.from_arrays(X, y))
    >>> advice["advice"][:40].value_counts().idxmax()
    'relabel'
    """
    if isinstance(data, Run):
        known = data.provenance()
        model = _named("model", model, known, is_model_name)
        metric = _named("metric", metric, known, LOSSES.__contains__)
        dataset = _data_again(data, "advice") if dataset is None else dataset
        dataset.check_is(known.get("dataset"))
    elif isinstance(data, Dataset):
        dataset = data
    else:
        raise PlanError(
            f"advice is asked about {type(data).__name__}, which holds no rows: expected a run or "
            "a dataset. Pass the run, or apiece.Dataset.from_csv(...)."
        )
    resolved = resolve_model(
        "auto" if model is None else model,
        kind=dataset.kind,
        n_features=dataset.n_features,
        n_classes=dataset.n_classes,
    )
    loss = resolve_loss(metric, kind=dataset.kind, has_proba=resolved.has_proba)
    with tracking(progress, on_progress, title="advising", unit="folds"):
        return advice_for(dataset, resolved, loss, level=level, seed=seed_from(random_state))


def _data_again(run: Run, what: str) -> Dataset:
    data = run.manifest.dataset
    try:
        return read_again(data.source, data.fingerprint)
    except ApieceError as error:
        raise PlanError(
            f"{what} needs the rows of the run, which cannot be read again: {error} Pass them as "
            "dataset= (--data)."
        ) from error


def _per_row(table: pd.DataFrame, attrs: dict[str, Any]) -> pd.DataFrame:
    """Add the value of one row, where the points are groups."""
    groups = attrs.get("groups")
    if groups is None:
        return table
    rows = np.array([groups[str(name)] for name in table.index])
    return table.assign(rows=rows, per_row=table["value"] / rows)


def _named(what: str, given: Any, attrs: dict[str, Any], is_known: Callable[[str], bool]) -> Any:
    """Return the model or metric that is given, or that of the run, which a name can tell."""
    if given is not None:
        return given
    found = attrs.get(what)
    if isinstance(found, str) and not is_known(found):
        raise PlanError(
            f"the run used the {what} {found!r}, which has no name that could be looked up: "
            f"expected the same {what} again. Pass {what}= (--{what})."
        )
    return found
