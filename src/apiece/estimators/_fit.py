"""Fit laws to contributions."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from apiece.errors import PlanError
from apiece.estimators._registry import DEFAULT_METHOD, METHODS, features_of, fit
from apiece.estimators.aggregate import Aggregate, fit_aggregate
from apiece.laws import Laws
from apiece.records import Contributions, Table

if TYPE_CHECKING:
    from apiece.data import Dataset
    from apiece.store import Run


def fit_run(
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
        or ``family="power"`` ($\psi_k = c/k^\alpha$; for ``bayes`` also ``"ridge"``,
        $\sum_j b_j/(k + \kappa_j)$, and ``"blend"``, a mean of series and ridge laws);
        ``backtest=True`` to learn how well the laws foretell sizes held out (`laws.backtest()`);
        ``on_failure="raise"`` to stop at a point without a law.

    Returns
    -------
    Laws
        Parameters with uncertainty, and a status for every point.
    """
    with table_of(run, memory) as table:
        laws = fit_table(table, method, dataset, settings)
    return laws if isinstance(run, Contributions) else replace(laws, labels=run.labels)


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
    return fit_aggregate(run)


def fit_table(table: Table, method: str, dataset: Dataset | None, settings: dict[str, Any]) -> Laws:
    """Fit laws to a table of contributions, with features for the methods that read them."""
    if dataset is not None and method in METHODS and features_of(method):
        settings = {**_features(table, dataset), **settings}
    return fit(table, method=method, **settings)


def table_of(run: Run | Contributions, memory: int | str | None) -> AbstractContextManager[Table]:
    """Return the contributions of a run, streamed if their memory is bounded."""
    return nullcontext(run) if isinstance(run, Contributions) else run.table(memory)


def laws_of(laws: Laws | Run | Contributions, memory: int | str | None = None) -> Laws:
    """Return laws, fitted now if there are none yet."""
    return laws if isinstance(laws, Laws) else fit_run(laws, memory=memory)


def _features(contributions: Table, dataset: Dataset) -> dict[str, Any]:
    """Return features and labels of the valued points, and of the rest of the pool."""
    dataset.check_is(contributions.attrs.get("dataset"))
    refuse_groups(contributions.attrs, "learning from features")
    valued = dataset.positions(contributions.ids)
    labels = dataset.labels()
    rest = np.setdiff1d(np.arange(dataset.n_points), valued)
    return {
        "X": dataset.features(valued),
        "y": labels[valued],
        "more": (dataset.features(rest), labels[rest]),
        "kind": dataset.kind,
    }


def refuse_groups(attrs: dict[str, Any], what: str) -> None:
    """Raise where points are groups, and ``what`` is about single rows."""
    if attrs.get("groups") is not None:
        raise PlanError(
            f"{what} is about single points, and these are laws of groups: expected a run that "
            "values points. Collect one with groups=False, or leave dataset out."
        )
