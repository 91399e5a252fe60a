"""What has been found after a round of work: what criteria of `apiece.until` look at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from apiece._base.typing import BoolArray, FloatArray
from apiece.laws import Laws
from apiece.store import Run

LEVEL: Final = 0.9  # of intervals
_SIZES: Final = 15  # that are compared
_LEARNERS: Final = 512  # trainings


@dataclass(frozen=True, eq=False)
class Round:
    """What a criterion can look at after a round.

    Parameters
    ----------
    run
        What has been collected.
    elapsed
        Seconds since the collection began.
    expected
        Seconds that the next round is expected to take.
    before
        The round before, or None.
    n_tasks
        How many tasks the run had, if it has grown since; None for all that it has.
    """

    run: Run
    elapsed: float
    expected: float = 0.0
    before: Round | None = None
    n_tasks: int | None = None

    @cached_property
    def laws(self) -> Laws:
        """The laws of the run as it was after this round."""
        return _quick_laws(self.run, self.n_tasks)

    def look(self) -> None:
        """Fit the laws now, since the run will grow."""
        self.laws  # noqa: B018  # a cached property

    def at(self, elapsed: float, expected: float) -> Round:
        """Return the same round at another time."""
        now = replace(self, elapsed=elapsed, expected=expected)
        if "laws" in self.__dict__:
            now.__dict__["laws"] = self.laws
        return now

    def size(self, at: float | None = None) -> float:
        """Return the size that a criterion looks at: by default the middle of the sampled ones."""
        return self.laws.k_ref if at is None else at

    def mean(self, at: float | None = None) -> FloatArray:
        """Return expected contributions at a size, nan as zero."""
        return np.nan_to_num(self.laws.mean(self.size(at)))

    def has_sign(self, at: float | None = None) -> BoolArray:
        """Return which points have an interval at a size that does not hold zero."""
        low, high = self.laws.interval(self.size(at), level=LEVEL)
        return np.asarray((low > 0) | (high < 0))

    def telling(self, at: float | None = None) -> float | None:
        r"""Return the sampled size whose contributions say most about the one of a criterion.

        With the covariance $C$ of a point's parameters, the gradient $g_k$ of its law and the noise
        $s_k^2$, one more contribution at size $k$ lowers the variance at $k_0$ by

        $$\frac{(g_{k_0}^\top C\,g_k)^2}{g_k^\top C\,g_k + s_k^2}.$$

        The mean over points decides. For trainings, whose noise points share, ``at`` itself.
        """
        laws = self.laws
        if self.run.has_trainings or laws.cov is None:
            return at
        sizes = np.geomspace(*laws.k_range, _SIZES)
        ends = np.array([self.size(at), *sizes])
        slope = laws.family.gradient(laws.params, ends, laws.k_ref)
        shared = np.einsum("nkp,npq,nq->nk", slope, laws.cov, slope[:, 0])[:, 1:]
        own = np.einsum("nkp,npq,nkq->nk", slope, laws.cov, slope)[:, 1:]
        noise = laws.sigma[:, None] ** 2 * sizes ** -laws.beta[:, None]
        gain = np.nan_to_num(shared**2 / (own + noise)).mean(axis=0)
        return float(sizes[gain.argmax()]) if gain.any() else at


def _quick_laws(run: Run, n_tasks: int | None = None) -> Laws:
    """Fit the laws of a run, or of its first tasks, without checking how far they reach.

    For trainings, what is the same for all points is learned from a part of them.
    """
    from apiece.estimators import METHODS, Reuse, default_method

    if run.has_trainings:
        trainings = run.trainings() if n_tasks is None else run.trainings().first(n_tasks)
        return Reuse().fit_trainings(trainings, n_learners=_LEARNERS)
    estimator = METHODS[default_method(run)]()
    if n_tasks is None:
        return estimator.fit(run)
    table = run.contributions()
    return estimator.fit(table.where(table.task < n_tasks))
