r"""Adding points: do those selected for a size help most at that size?

As in the experiment of the paper: laws of candidates outside the pool are fitted once; then every
selection $S$ joins the same random training sets $D$ of $k$ points from the pool, and the gain
$L(f_D) - L(f_{D \cup S})$ is measured on test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict, Unpack

import numpy as np
import pandas as pd

import apiece
from apiece._base.check import one_of
from apiece._base.progress import tracking
from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.collection import largest_size
from apiece.data import Dataset
from apiece.errors import PlanError
from apiece.estimators import DEFAULT_METHOD, MethodName
from apiece.experiments._result import Experiment
from apiece.experiments._trial import Trial, moved_outside
from apiece.laws import Laws
from apiece.losses import LossLike
from apiece.store import Run
from apiece.uses import Limits, Rules, baselines, make_rules

RIVALS = ("have", "influence", "margin", "k-center", "largest-size-mean")


class CandidateSettings(TypedDict, total=False):
    """Further settings of experiments with candidates; see `addition`."""

    n_candidates: int | None
    samples: int
    method: MethodName
    model: Any
    metric: LossLike
    n_jobs: int
    run: Run | None
    test: tuple[FloatArray, AnyArray] | None


_DEFAULTS: Final[CandidateSettings] = {
    "n_candidates": None,
    "samples": 200,
    "method": DEFAULT_METHOD,
    "model": "auto",
    "metric": None,
    "n_jobs": 1,
    "run": None,
    "test": None,
}


def addition(
    dataset: Dataset,
    *,
    take: int = 20,
    at: Sequence[int] | None = None,
    repeats: int = 200,
    quotas: Mapping[Any, int] | str | None = None,
    also: Sequence[MethodName] = (),
    rivals: Sequence[str] = (),
    redundancy: bool = True,
    random_state: RandomState = 0,
    progress: bool | None = None,
    **settings: Unpack[CandidateSettings],
) -> Experiment:
    """Add selected candidates to random training sets of several sizes.

    Parameters
    ----------
    dataset
        The data. Half of its validation rows, or without any a fifth of its rows, are kept for
        testing. Points are selected from its candidates, or from random points of the pool if it
        has none.
    take
        How many points each selection adds.
    at
        Sizes of the training sets; 100 and 1,000, or the largest that a smaller table has and a
        tenth of it. Each also gives a selection, ``scaling <size>``.
    repeats
        Training sets for each size.
    quotas
        ``balanced`` for equally many points of each class in every selection, or how many of each,
        as in `apiece.select`; by default the best points of any class.
    also
        Further methods to fit laws by; their selections are named after them, ``bayes <size>``.
    rivals
        Selections made again for every training set, which they know: ``have`` (`apiece.select`
        with the training set as ``have``), ``influence``, ``margin`` and ``k-center``; and
        ``largest-size-mean``, see `apiece.uses.baselines`.
    redundancy
        Whether to include ``aware``, whose picks are valued together.
    random_state
        Seed of everything.
    progress
        As in `apiece.collect`.
    **settings
        ``n_candidates``, how many points of the pool become candidates if the dataset has none
        (1,000, or half of a smaller pool); ``samples``, contributions per candidate for laws and
        Shapley values (200); ``method`` of the laws; ``model``, ``metric`` and ``n_jobs`` as in
        `apiece.collect`; ``run``, contributions of the dataset's candidates that were
        collected before; ``test``, features and targets of the rows to test on, instead of rows of
        the dataset.

    Returns
    -------
    Experiment
        By ``at``: methods ``scaling <size>``, ``aware``, ``shapley``, ``random``; measures ``gain``
        and ``accuracy``. ``before`` in its samples is the accuracy before the addition (minus the
        loss for regression).

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.experiments import addition
    >>> data, _ = load_demo(flipped=0)
    >>> result = addition(
    ...     data, take=5, at=(30, 60), repeats=2, n_candidates=40, samples=10, redundancy=False,
    ...     progress=False,
    ... )
    >>> result.table().loc[30].index.tolist()
    ['scaling 30', 'scaling 60', 'shapley', 'random']
    """
    sizes = None if at is None else sorted({int(size) for size in at})
    pool = CandidatePool.of(
        dataset, sizes, (100, 1000), seed_from(random_state), progress, settings
    )
    laws, sizes = pool.laws, pool.sizes
    rules = make_rules(
        Limits(take, quotas),
        ids=laws.ids,
        labels=pool.trial.dataset.points_y[pool.trial.dataset.n_pool :],
        is_known=laws.has_law,
    )
    values = apiece.value(pool.run, source="samples")["value"]
    named = {"scaling": laws} | {name: apiece.fit(pool.run, method=name) for name in also}
    fixed = {
        f"{name} {size}": rules.pick(each.mean(float(size)))
        for name, each in named.items()
        for size in sizes
    }
    fixed["shapley"] = rules.pick(values.to_numpy())
    for name in rivals:
        one_of("rival", name, RIVALS)
    if "largest-size-mean" in rivals:
        fixed["largest-size-mean"] = rules.pick(
            baselines.largest_size_mean(pool.run)["value"].to_numpy()
        )
    rows: list[dict[str, Any]] = []
    with tracking(progress, title="testing", unit="trials") as tracker:
        tracker.start(len(sizes) * repeats, 0)
        for size in sizes:
            chosen = dict(fixed)
            if redundancy:
                chosen["aware"] = pool.aware(size, take=take, quotas=quotas)
            for repeat, subset, rng in pool.draws(size, repeats):
                chosen["random"] = rules.pick(rng.random(laws.n_points))
                chosen |= pool.knowing(subset, rivals, rules, quotas)
                rows += [
                    {"repeat": repeat, "at": size, "method": name, **gained}
                    for name, gained in pool.gains(subset, chosen)
                ]
                tracker.advance(1)
    return Experiment(
        "addition", pd.DataFrame(rows), "at", pool.trial.measures, {"take": take, **pool.settings}
    )


def acquire(
    dataset: Dataset,
    *,
    at: int | None = None,
    budget: float = 100.0,
    costs: Any = None,
    steps: int = 5,
    repeats: int = 50,
    redundancy: bool = True,
    random_state: RandomState = 0,
    progress: bool | None = None,
    **settings: Unpack[CandidateSettings],
) -> Experiment:
    """Buy candidates up to a budget, and measure the model as the budget is spent.

    Parameters
    ----------
    dataset, repeats, redundancy, random_state, progress, **settings
        As in `addition`.
    at
        Size of the training set before anything is bought; 100, or half of the largest that a
        smaller table has.
    budget
        Largest total cost; a candidate costs 1 unless ``costs`` says otherwise.
    costs
        Cost of every candidate, by id or in their order.
    steps
        Number of shares of the budget at which to measure.

    Returns
    -------
    Experiment
        By ``spent``: methods ``scaling``, ``aware``, ``shapley``, ``random``; measures ``gain`` and
        ``accuracy``.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.experiments import acquire
    >>> data, _ = load_demo(flipped=0)
    >>> result = acquire(
    ...     data, at=30, budget=10, steps=2, repeats=2, n_candidates=40, samples=10,
    ...     redundancy=False, progress=False,
    ... )
    >>> result.by, sorted(set(result.samples["spent"]))
    ('spent', [5.0, 10.0])
    """
    sizes = None if at is None else [int(at)]
    pool = CandidatePool.of(dataset, sizes, (100,), seed_from(random_state), progress, settings)
    laws, (at,) = pool.laws, pool.sizes
    costs = np.ones(laws.n_points) if costs is None else costs
    rules = make_rules(
        Limits(costs=costs, budget=budget), ids=laws.ids, labels=None, is_known=laws.has_law
    )
    values = apiece.value(pool.run, source="samples")["value"].to_numpy()
    chosen = {"scaling": rules.pick(laws.mean(float(at))), "shapley": rules.pick(values)}
    if redundancy:
        chosen["aware"] = pool.aware(at, costs=rules.cost, budget=budget)
    rows: list[dict[str, Any]] = []
    with tracking(progress, title="testing", unit="trials") as tracker:
        tracker.start(repeats, 0)
        for repeat, subset, rng in pool.draws(at, repeats):
            chosen["random"] = rules.pick(rng.random(laws.n_points) * rules.cost)
            for share in budget * np.arange(1, steps + 1) / steps:
                bought = {
                    name: order[np.cumsum(rules.cost[order]) <= share * (1 + 1e-9)]
                    for name, order in chosen.items()
                }
                rows += [
                    {"repeat": repeat, "spent": float(share), "method": name, **gained}
                    for name, gained in pool.gains(subset, bought)
                ]
            tracker.advance(1)
    attrs = {"at": at, "budget": budget, **pool.settings}
    return Experiment("acquire", pd.DataFrame(rows), "spent", pool.trial.measures, attrs)


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """Candidates with their laws, and a pool whose training sets they may join."""

    trial: Trial
    run: Run
    laws: Laws
    sizes: list[int]
    settings: dict[str, Any]

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        sizes: list[int] | None,
        usual: tuple[int, ...],
        seed: int,
        progress: bool | None,
        settings: CandidateSettings,
    ) -> CandidatePool:
        """Value the candidates at sizes around those requested, or the usual ones if they fit."""
        how: CandidateSettings = {**_DEFAULTS, **settings}
        if not dataset.n_candidates:
            dataset = moved_outside(dataset, how["n_candidates"], seed)
        trained = {"model": how["model"], "metric": how["metric"]}
        trial = Trial.of(dataset, seed=seed, test=how["test"], **trained)
        data = trial.dataset
        most = data.n_pool
        if not data.n_validation:
            most = largest_size(data.n_pool, max(1, data.n_classes))
        if sizes is None:
            smaller = [most // 10, most] if len(usual) > 1 else [most // 2]
            sizes = list(usual) if usual[-1] <= most else [max(1, size) for size in smaller]
        low, high = sizes[0], sizes[-1]
        if high > most:
            needed = -(-dataset.n_pool * high // most)
            raise PlanError(
                f"at={high} (--at) does not fit: of {dataset.n_pool + data.n_candidates:,} rows, "
                f"{data.n_candidates:,} are candidates, others test or score, and {most:,} are "
                f"left to train on. Expected 1 to {most}. Lower at (--at) or n_candidates "
                f"(--n-candidates), or pass about {needed + data.n_candidates:,} rows."
            )
        if high == low:  # a law needs different sizes, on both sides of the requested one
            low, high = max(1, low // 2), min(2 * low, most)
        run = how["run"] or apiece.collect(
            data,
            points=[],
            sizes=(low, high),
            samples=how["samples"],
            random_state=seed,
            n_jobs=how["n_jobs"],
            progress=progress,
            **trained,
        )
        attrs = {"samples": how["samples"], "method": how["method"], "seed": seed}
        return cls(trial, run, apiece.fit(run, method=how["method"]), sizes, attrs)

    def aware(self, at: int, **options: Any) -> IntArray:
        """Pick candidates that are valued together."""
        picks = apiece.select(
            self.laws,
            at=at,
            redundancy="aware",
            dataset=self.trial.dataset,
            model=self.trial.model.estimator,
            metric=self.trial.metric,
            random_state=self.trial.seed,
            **options,
        )
        return np.array([self.laws.place(point) for point in picks.index], dtype=np.int64)

    def knowing(
        self, subset: IntArray, rivals: Sequence[str], rules: Rules, quotas: Any
    ) -> dict[str, IntArray]:
        """Return the candidates that methods pick which know the training set."""
        data = self.trial.dataset
        trained = {"model": self.trial.model.estimator}
        outside = np.arange(data.n_pool, data.n_points)
        here = data.with_points(np.concatenate([subset, outside]), n_pool=len(subset))
        known: dict[str, Callable[[], Any]] = {
            "influence": lambda: baselines.influence(here, metric=self.trial.metric, **trained),
            "margin": lambda: baselines.margin(here, **trained),
            "k-center": lambda: baselines.k_center(here),
        }
        result = {
            name: rules.pick(known[name]()["value"].to_numpy()[len(subset) :])
            for name in rivals
            if name in known
        }
        if "have" in rivals:
            picks = apiece.select(
                self.laws,
                take=rules.take,
                quotas=quotas,
                have=data.ids[subset],
                dataset=data,
                metric=self.trial.metric,
                random_state=self.trial.seed,
                progress=False,
                **trained,
            )
            result["have"] = np.array([self.laws.place(point) for point in picks.index])
        return result

    def draws(self, size: int, repeats: int) -> Iterator[tuple[int, IntArray, np.random.Generator]]:
        """Yield training sets of the pool, each with a separate random generator."""
        plan = self.trial.draws(size, repeats)
        for repeat in range(repeats):
            yield repeat, plan[repeat].subset, stream(self.trial.seed, 4, size, repeat)

    def gains(
        self, subset: IntArray, chosen: dict[str, IntArray]
    ) -> Iterator[tuple[str, dict[str, float]]]:
        """Yield by how much each choice of candidates improves the model trained on the subset."""
        before = self.trial.score(subset)
        outside = self.trial.dataset.n_pool
        for name, rows in chosen.items():
            after = self.trial.score(np.concatenate([subset, outside + rows]))
            rises = dict(zip(self.trial.measures, (after - before).tolist(), strict=True))
            yield name, {**rises, "before": float(before[-1])}
