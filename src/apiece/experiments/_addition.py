r"""Adding points: do those selected for a size help most at that size?

As in the experiment of the paper: laws of candidates outside the pool are fitted once; then every
selection $S$ joins the same random training sets $D$ of $k$ points from the pool, and the gain
$L(f_D) - L(f_{D \cup S})$ is measured on test rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import apiece
from apiece._base.progress import tracking
from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset
from apiece.estimators import DEFAULT_METHOD
from apiece.experiments._result import Experiment
from apiece.experiments._trial import Trial, moved_outside
from apiece.laws import Laws
from apiece.store import Run
from apiece.uses import make_rules


def addition(
    dataset: Dataset,
    *,
    take: int = 20,
    at: Sequence[int] = (100, 1000),
    repeats: int = 200,
    quotas: Mapping[Any, int] | str | None = None,
    also: Sequence[str] = (),
    redundancy: bool = True,
    random_state: RandomState = 0,
    progress: bool | None = None,
    **settings: Any,
) -> Experiment:
    """Add selected candidates to random training sets of several sizes.

    Parameters
    ----------
    dataset
        Pool and validation rows, half of which are kept for testing; its own candidates, or some
        random points of the pool, are what is selected from.
    take
        How many points each selection adds.
    at
        Sizes of the training sets. Each is also a selection of its own, ``scaling <size>``.
    repeats
        Training sets for each size.
    quotas
        ``balanced`` for equally many points of each class in every selection, or how many of each,
        as in `apiece.select`; by default the best, of whatever class.
    also
        Further methods to fit laws by; what they select is named after them, ``bayes <size>``.
    redundancy
        Whether ``aware`` takes part, whose picks are valued together.
    random_state
        Seed of everything.
    progress
        As in `apiece.collect`.
    **settings
        ``n_candidates``, how many points of the pool become candidates if the dataset has none
        (1,000); ``samples``, contributions a candidate that laws and Shapley values are estimated
        from (200); ``method`` of the laws; ``model``, ``metric`` and ``n_jobs`` as in
        `apiece.collect`; ``run``, contributions of the dataset's candidates that were collected
        before, instead of new ones; ``test``, features and targets of the rows to test on, instead
        of half of the validation rows.

    Returns
    -------
    Experiment
        By ``at``: methods ``scaling <size>``, ``aware``, ``shapley``, ``random``; measures ``gain``
        and ``accuracy``. ``before`` in its samples is the accuracy before anything is added (minus
        the loss for regression).
    """
    sizes = sorted({int(size) for size in at})
    market = Market.of(dataset, sizes, seed_from(random_state), progress, **settings)
    laws = market.laws
    rules = make_rules(
        take=take,
        quotas=quotas,
        costs=None,
        budget=None,
        ids=laws.ids,
        labels=market.trial.dataset.points_y[market.trial.dataset.n_pool :],
        is_known=laws.has_law,
    )
    values = apiece.value(market.run, source="samples")["value"]
    named = {"scaling": laws} | {name: apiece.fit(market.run, method=name) for name in also}
    fixed = {
        f"{name} {size}": rules.pick(each.mean(float(size)))
        for name, each in named.items()
        for size in sizes
    }
    fixed["shapley"] = rules.pick(values.to_numpy())
    rows: list[dict[str, Any]] = []
    with tracking(progress, title="testing", unit="trials") as tracker:
        tracker.start(len(sizes) * repeats, 0)
        for size in sizes:
            chosen = dict(fixed)
            if redundancy:
                chosen["aware"] = market.aware(size, take=take, quotas=quotas)
            for repeat, subset, rng in market.draws(size, repeats):
                chosen["random"] = rules.pick(rng.random(laws.n_points))
                rows += [
                    {"repeat": repeat, "at": size, "method": name, **gained}
                    for name, gained in market.gains(subset, chosen)
                ]
                tracker.advance(1)
    return Experiment(
        "addition", _frame(rows), "at", market.trial.measures, {"take": take, **market.settings}
    )


def acquire(
    dataset: Dataset,
    *,
    at: int = 100,
    budget: float = 100.0,
    costs: Any = None,
    steps: int = 5,
    repeats: int = 50,
    redundancy: bool = True,
    random_state: RandomState = 0,
    progress: bool | None = None,
    **settings: Any,
) -> Experiment:
    """Buy candidates up to a budget, and watch the model improve as it is spent.

    Parameters
    ----------
    dataset, repeats, redundancy, random_state, progress, **settings
        As in `addition`.
    at
        Size of the training set before anything is bought.
    budget
        What may be spent; a candidate costs 1 unless ``costs`` says otherwise.
    costs
        Cost of every candidate, by id or in their order.
    steps
        At how many shares of the budget to measure.

    Returns
    -------
    Experiment
        By ``spent``: methods ``scaling``, ``aware``, ``shapley``, ``random``; measures ``gain`` and
        ``accuracy``.
    """
    market = Market.of(dataset, [int(at)], seed_from(random_state), progress, **settings)
    laws = market.laws
    rules = make_rules(
        take=None,
        quotas=None,
        costs=np.ones(laws.n_points) if costs is None else costs,
        budget=budget,
        ids=laws.ids,
        labels=None,
        is_known=laws.has_law,
    )
    values = apiece.value(market.run, source="samples")["value"].to_numpy()
    chosen = {"scaling": rules.pick(laws.mean(float(at))), "shapley": rules.pick(values)}
    if redundancy:
        chosen["aware"] = market.aware(at, costs=rules.cost, budget=budget)
    rows: list[dict[str, Any]] = []
    with tracking(progress, title="testing", unit="trials") as tracker:
        tracker.start(repeats, 0)
        for repeat, subset, rng in market.draws(at, repeats):
            chosen["random"] = rules.pick(rng.random(laws.n_points) * rules.cost)
            for share in budget * np.arange(1, steps + 1) / steps:
                bought = {
                    name: order[np.cumsum(rules.cost[order]) <= share * (1 + 1e-9)]
                    for name, order in chosen.items()
                }
                rows += [
                    {"repeat": repeat, "spent": float(share), "method": name, **gained}
                    for name, gained in market.gains(subset, bought)
                ]
            tracker.advance(1)
    told = {"at": at, "budget": budget, **market.settings}
    return Experiment("acquire", _frame(rows), "spent", market.trial.measures, told)


@dataclass(frozen=True, eq=False)
class Market:
    """Candidates with their laws, and a pool whose training sets they may join."""

    trial: Trial
    run: Run
    laws: Laws
    settings: dict[str, Any]

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        sizes: list[int],
        seed: int,
        progress: bool | None,
        *,
        n_candidates: int = 1000,
        samples: int = 200,
        method: str = DEFAULT_METHOD,
        model: Any = "auto",
        metric: Any = None,
        n_jobs: int = 1,
        run: Run | None = None,
        test: tuple[FloatArray, AnyArray] | None = None,
    ) -> Market:
        """Value the candidates at sizes around those that are asked for."""
        if not dataset.n_candidates:
            dataset = moved_outside(dataset, n_candidates, seed)
        trial = Trial.of(dataset, model=model, metric=metric, seed=seed, test=test)
        low, high = sizes[0], sizes[-1]
        run = (
            run
            if run is not None
            else apiece.collect(
                trial.dataset,
                points=[],
                # A law needs sizes that differ, on both sides of the one that is asked for.
                sizes=(low, high)
                if high > low
                else (max(1, low // 2), min(2 * low, dataset.n_pool)),
                samples=samples,
                model=model,
                metric=metric,
                random_state=seed,
                n_jobs=n_jobs,
                progress=progress,
            )
        )
        told = {"samples": samples, "method": method, "seed": seed}
        return cls(trial, run, apiece.fit(run, method=method), told)

    def aware(self, at: int, **asked: Any) -> IntArray:
        """Pick candidates that are valued together."""
        picks = apiece.select(
            self.laws,
            at=at,
            redundancy="aware",
            dataset=self.trial.dataset,
            model=self.trial.model.estimator,
            metric=self.trial.metric,
            random_state=self.trial.seed,
            **asked,
        )
        return np.array([self.laws.position(point) for point in picks.index], dtype=np.int64)

    def draws(self, size: int, repeats: int) -> Iterator[tuple[int, IntArray, np.random.Generator]]:
        """Yield training sets of the pool, each with a generator of its own."""
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


def _frame(rows: list[dict[str, Any]]) -> Any:
    import pandas as pd

    return pd.DataFrame(rows)
