"""Choice of an estimator: the one that predicts held-out sizes best is fitted to all data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from apiece.errors import FitError
from apiece.estimators._estimator import Estimator, Features
from apiece.estimators.backtest import CANDIDATES, backtest
from apiece.laws import FitStatus, Laws
from apiece.records import Table


@dataclass(frozen=True)
class Auto(Estimator):
    r"""Choose method and family by a backtest, then fit all contributions.

    The first candidate, `Bayes` with the blend of series and ridge laws, is kept unless another is
    clearly better at the largest sizes: ridge laws alone, a series, or power laws. Power laws win
    where contributions fall as $1/k^2$ and many were sampled. ``laws.reach`` is the largest
    size that the backtest covers. Points that none of all these describes are marked
    ``UNDESCRIBED``; they keep their law. Where too little was collected for a backtest, the first
    candidate is fitted.

    Parameters
    ----------
    candidates
        Estimators to choose from.
    hold_out
        Share of the contributions that the backtest holds out; by default all beyond the largest
        size over 2.5.

    Examples
    --------
    >>> from apiece import synthetic
    >>> truth = synthetic.random_laws(20, random_state=0)
    >>> laws = Auto().fit(synthetic.sample(truth, samples=30, random_state=0))
    >>> laws.attrs["chosen_by"]
    'auto'
    """

    candidates: tuple[Estimator, ...] = CANDIDATES
    hold_out: float | None = None

    name: ClassVar[str] = "auto"
    streams: ClassVar[bool] = True

    def judged(self, laws: Laws) -> Estimator:
        """Return the candidate that was chosen."""
        found = laws.diagnostics.get("backtest", {})
        return self.candidates[int(found.get("best", 0))]

    def fit_table(self, contributions: Table, features: Features | None = None) -> Laws:
        """Backtest the candidates, fit the best one.

        Returns
        -------
        Laws
            Those of the chosen estimator, with ``attrs["chosen_by"] = "auto"``; ``laws.backtest()``
            shows the scores of every candidate.
        """
        try:
            outcome = backtest(contributions, candidates=self.candidates, hold_out=self.hold_out)
        except FitError as error:
            if not len(contributions):
                raise
            laws = self.candidates[0].fit(contributions)
            return replace(laws, attrs=laws.attrs | {"chosen_by": f"auto: {error}"})
        laws = self.candidates[outcome.best].fit(contributions)
        status = laws.status.copy()
        is_open = np.isin(status, (FitStatus.OK, FitStatus.AT_BOUND))
        status[outcome.undescribed & is_open] = FitStatus.UNDESCRIBED
        return replace(
            laws,
            status=status,
            attrs=laws.attrs | {"chosen_by": "auto"},
            diagnostics=laws.diagnostics | {"backtest": outcome.describe()},
        )
