"""The verbs: fit a law to every point, or one to the dataset as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from apiece._base.check import one_of, some
from apiece._base.progress import OnProgress, tracking
from apiece.errors import FitError
from apiece.estimators._beyond import checked
from apiece.estimators._estimator import Estimator, opened
from apiece.estimators._registry import MethodName, as_estimator, default_method
from apiece.estimators.aggregate import Aggregate, fit_aggregate
from apiece.estimators.backtest import ALSO, CANDIDATES
from apiece.estimators.backtest import backtest as run_backtest
from apiece.laws import FamilyLike, FitStatus, Laws
from apiece.records import Contributions, Stored, Table

if TYPE_CHECKING:
    from apiece.data import Dataset
    from apiece.store import Run

OnFailure = Literal["mark", "raise"]


def fit(
    run: Stored | Table,
    method: MethodName | Estimator | None = None,
    *,
    family: FamilyLike | None = None,
    dataset: Dataset | None = None,
    X: npt.ArrayLike | None = None,
    y: npt.ArrayLike | None = None,
    memory: int | str | None = None,
    backtest: bool = False,
    on_failure: OnFailure = "mark",
    progress: bool | None = None,
    on_progress: OnProgress | None = None,
) -> Laws:
    r"""Fit one law per point: its mean contribution $\psi_k$ with noise $\sigma^2 / k^\beta$.

    Parameters
    ----------
    run
        A run, or a table of contributions.
    method
        ``bayes`` (a population of laws learned from all points; needs about ten contributions per
        point), ``likelihood`` (the paper's maximum likelihood, each point alone), ``log_ols`` (a
        line through the log of the mean at each size; needs many contributions per size),
        ``amortized`` (a network that predicts laws from features; needs ``dataset``, or ``X`` and
        ``y``, and torch), or ``auto`` (whichever method and family predicts the largest sizes
        best), or ``reuse`` (for runs of trainings, see `collect`). None is ``reuse`` for runs of
        trainings and ``bayes`` for others. Or an estimator with settings, such as
        ``Likelihood(prior_sd=None)``; see `apiece.estimators`.
    family
        The family of laws: ``"series"`` ($\psi_k = a/k + b/k^{1.5} + d/k^2$) or some of its terms,
        such as ``"series24"``; ``"power"`` ($\psi_k = c/k^\alpha$); for ``bayes`` also
        ``"ridge"`` ($\sum_j b_j/(k + \kappa_j)$) and ``"blend"`` (a mean of series and ridge
        laws). None for the method's default.
    dataset
        The dataset of the run, for methods that learn from features.
    X, y
        Features and labels of the valued points, in the order of their ids, instead of ``dataset``.
    memory
        What contributions may take at once, such as ``"2GB"``, for a run that does not fit into
        memory. They are streamed from its folder and fitted block by block, to the same laws (all
        methods but ``amortized`` and ``bayes`` with features). None reads all of them.
    backtest
        Whether to add what `laws.backtest()` returns: how well this estimator, and the candidates
        of ``auto``, predict the largest sizes from the others.
    on_failure
        ``"mark"`` notes in ``laws.status`` how each point went; ``"raise"`` stops with a
        `FitError` if the contributions of some point do not determine its law.
    progress, on_progress
        As in `collect`.

    Returns
    -------
    Laws
        Parameters with uncertainty, and a status for every point. ``laws.reach`` is the largest
        size that a backtest covers (held-out sizes, for up to 1,000 points), beyond which
        the status of a size is "not known". Laws of a run remember which
        contributions they were fitted to; `Run.laws` returns stored laws while these are the same.

    Examples
    --------
    >>> table = Contributions.from_arrays(
    ...     point=[0, 0, 0, 0], k=[10, 20, 40, 80], delta=[0.8, 0.4, 0.2, 0.1]
    ... )
    >>> fit(table, method="log_ols").alpha.round(6)
    array([1.])
    """
    word = default_method(run) if method is None else method
    estimator = as_estimator(word, family=family)
    one_of("on_failure", on_failure, ("mark", "raise"))
    with tracking(progress, on_progress, title="fitting", unit="steps"):
        laws = estimator.fit(run, X, y, dataset=dataset, memory=memory)
        laws = checked(laws, estimator, run, memory)
        if backtest and not laws.has_backtest:
            laws = _backtested(laws, estimator, run, memory, (dataset, X, y))
    if on_failure == "raise":
        _stop_at_failures(laws)
    return laws


def _backtested(
    laws: Laws,
    estimator: Estimator,
    run: Stored | Table,
    memory: int | str | None,
    features: tuple[Any, ...],
) -> Laws:
    """Return laws with what `laws.backtest()` returns."""
    has_features = estimator.takes_features and any(given is not None for given in features)
    # With features an estimator would have seen what is held out.
    candidates = () if has_features or estimator.needs_trainings else (estimator,)
    with opened(run, memory) as table:
        outcome = run_backtest(table, candidates=candidates, also=(*CANDIDATES, *ALSO))
    return replace(laws, diagnostics=laws.diagnostics | {"backtest": outcome.describe()})


def aggregate(run: Run | Contributions, *, lowest: float | None = None) -> Aggregate:
    r"""Fit how the loss falls with size for the dataset as a whole.

    $$\mathbb{E}_{|D|=k}[L(f_D)] = \epsilon + b\,k^{-\lambda}$$

    Parameters
    ----------
    run
        A run, or a table of contributions with losses. A run also has losses of models trained on
        nearly all rows (``run.anchor``), which anchor the law.
    lowest
        The smallest loss that is possible; by default that of the metric (0 for all built-in
        ones), and none for a metric of your own.

    Returns
    -------
    Aggregate
        ``eps``, ``b``, ``lam``, with ``mean(k)``, ``interval(k)`` and ``table()``.

    Examples
    --------
    >>> k = np.repeat([50, 100, 200, 400], 5)
    >>> losses = 0.2 + 3 / k + 1e-3 * np.random.default_rng(0).normal(size=20)
    >>> table = Contributions.from_arrays(point=np.zeros(20), k=k, delta=np.zeros(20), loss=losses)
    >>> float(aggregate(table, lowest=0).mean(400).round(2))
    0.21
    """
    return fit_aggregate(run, lowest=lowest)


def _stop_at_failures(laws: Laws) -> None:
    """Raise an error that names the first points whose laws are not determined."""
    failed = np.flatnonzero([FitStatus(member).is_failure for member in laws.status])
    if len(failed):
        raise FitError(
            f"{len(failed):,} of {laws.n_points:,} points have no determined law, among them "
            f"{some(laws.ids[failed].tolist())} ({laws.status[failed[0]]}): expected at least "
            "three contributions at two sizes or more for every point. Collect more samples, or "
            'fit with on_failure="mark" and read laws.status.'
        )
