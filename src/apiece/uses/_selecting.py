"""The verb `select`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from apiece._base.progress import OnProgress, tracking
from apiece._base.rng import RandomState, seed_from
from apiece.data import Dataset
from apiece.engines import EngineName
from apiece.errors import PlanError
from apiece.estimators import refuse_groups
from apiece.laws import Laws
from apiece.losses import LossLike
from apiece.records import marked
from apiece.store import Run, laws_of
from apiece.uses._at_hand import picks_at_hand
from apiece.uses._rules import Limits, Quotas
from apiece.uses._run_data import data_again, data_of, trained_by
from apiece.uses._select import JointSettings, picks_from_laws

if TYPE_CHECKING:
    import pandas as pd

Redundancy = Literal["auto", "aware", "none"]


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
    metric: LossLike = None,
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
    progress, on_progress
        As in `collect`.

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
    limits = Limits(take, quotas, costs, budget)
    joint = JointSettings(redundancy, dataset, model, metric, engine, draws, shortlist)
    seed = seed_from(random_state)
    if have is not None:
        _refuse_sizes(at, until)
        with tracking(progress, on_progress, title="selecting", unit="picks"):
            known = None if isinstance(laws, Dataset) else laws_of(laws, memory)
            joint = _for_held_rows(laws, known, joint)
            picks = picks_at_hand(have, limits, joint, laws=known, level=level, seed=seed)
        return picks if known is None else marked(picks, known.attrs)
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
            joint = joint._replace(dataset=data_of(laws))
        picks = picks_from_laws(known, limits, joint, at=at, until=until, level=level, seed=seed)
    return marked(picks, known.attrs)


def _refuse_sizes(at: float | None, until: float | None) -> None:
    for name, given in (("at", at), ("until", until)):
        if given is not None:
            raise PlanError(
                f"have names the training set, so its size is known, and {name}={given} is given "
                f"too: expected one of them. Leave {name} (--{name}) out."
            )


def _for_held_rows(
    laws: Laws | Run | Dataset, known: Laws | None, joint: JointSettings
) -> JointSettings:
    """Complete what is trained on top of rows that are held: data, model and metric."""
    if isinstance(laws, Dataset):
        return joint._replace(dataset=laws, model="auto" if joint.model is None else joint.model)
    assert known is not None  # laws and runs have them
    refuse_groups(known.attrs, "have")
    dataset = joint.dataset
    if dataset is None:
        if not isinstance(laws, Run):
            raise PlanError(
                "have values points on top of rows that are held, which needs the data: expected "
                "the dataset that the laws come from. Pass dataset=."
            )
        dataset = data_again(laws, "have")
    dataset.check_is(known.attrs.get("dataset"))
    model, metric = trained_by(joint.model, joint.metric, known.attrs)
    return joint._replace(dataset=dataset, model=model, metric=metric)
