"""The estimators by name, and the verb that picks one."""

from __future__ import annotations

from dataclasses import fields, replace
from inspect import signature
from typing import Any, Final, Literal, Protocol

import numpy as np

from apiece._base.check import one_of, some, unknown_name
from apiece.errors import FitError
from apiece.estimators._common import in_memory_only
from apiece.estimators.amortized import Amortized
from apiece.estimators.auto import Auto
from apiece.estimators.backtest import CANDIDATES, POWER_LAWS
from apiece.estimators.backtest import backtest as run_backtest
from apiece.estimators.bayes import Bayes
from apiece.estimators.likelihood import Likelihood
from apiece.estimators.log_ols import LogOLS
from apiece.laws import FitStatus, Laws
from apiece.records import Contributions, Table


class Estimator(Protocol):
    """Anything that turns contributions into laws; settings are fixed, results are new."""

    def fit(self, contributions: Contributions) -> Laws:
        """Fit one law for each point of ``contributions.ids``, in that order."""
        ...


METHODS: Final[dict[str, type[Any]]] = {
    "amortized": Amortized,
    "auto": Auto,
    "bayes": Bayes,
    "likelihood": Likelihood,
    "log_ols": LogOLS,
}

DEFAULT_METHOD: Final = "bayes"

STREAMING: Final = ("auto", "bayes", "likelihood", "log_ols")  # what needs no table in memory


def fit(
    contributions: Table,
    method: str = DEFAULT_METHOD,
    *,
    on_failure: Literal["mark", "raise"] = "mark",
    backtest: bool = False,
    **settings: Any,
) -> Laws:
    """Fit one law for each point.

    Parameters
    ----------
    contributions
        Table of contributions.
    method
        A name in ``METHODS``.
    on_failure
        ``"mark"`` notes in ``laws.status`` how each point went; ``"raise"`` stops with a
        `FitError` if the contributions of some point do not determine its law.
    backtest
        Whether to add what `laws.backtest()` tells: how well this estimator, and the candidates of
        ``auto``, foretell the largest sizes from the others.
    **settings
        Settings of the estimator, such as ``family="power"`` for ``bayes``; for methods that
        learn from features also ``X``, ``y`` and ``more``, see `Amortized.fit`.

    Examples
    --------
    >>> table = Contributions.from_arrays(
    ...     point=[0, 0, 0, 0], k=[10, 20, 40, 80], delta=[0.8, 0.4, 0.2, 0.1]
    ... )
    >>> fit(table, method="log_ols").alpha.round(6)
    array([1.])
    """
    one_of("method", method, METHODS)
    one_of("on_failure", on_failure, ("mark", "raise"))
    data = {name: settings.pop(name) for name in features_of(method) if name in settings}
    known = [setting.name for setting in fields(METHODS[method])]
    for name in settings:
        if name not in known:
            raise unknown_name(f"setting of {method},", name, [*known, *features_of(method)])
    estimator = METHODS[method](**settings)
    if not isinstance(contributions, Contributions) and method not in STREAMING:
        raise in_memory_only(method)
    laws: Laws = estimator.fit(contributions, **data)
    if backtest and "backtest" not in laws.diagnostics:
        own = () if data else (estimator,)  # with features it would have seen what is held out
        outcome = run_backtest(contributions, candidates=own, also=(*CANDIDATES, *POWER_LAWS))
        laws = replace(laws, diagnostics=laws.diagnostics | {"backtest": outcome.describe()})
    if on_failure == "raise":
        _stop_at_failures(laws)
    return laws


def features_of(method: str) -> list[str]:
    """Return the names of the data that a method's ``fit`` takes beside contributions.

    >>> features_of("amortized"), features_of("likelihood")
    (['X', 'y', 'more'], [])
    """
    return list(signature(METHODS[method].fit).parameters)[2:]


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
