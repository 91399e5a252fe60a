r"""Poisson regression, exactly: every joining point solved from the fit on D.

``PoissonRegressor`` minimises, with margins $m = X\theta$ and the logarithmic link,

$$\frac1k \sum_{i \in D} \bigl(e^{m_i} - y_i m_i\bigr) + \tfrac{\alpha}{2} |w|^2 .$$

Times $k$ the penalty is $k\alpha$, and a point that joins makes it $(k + 1)\alpha$. So D is fitted
twice, with either penalty: the first fit has the loss on D, and points join the second.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from apiece._base.typing import AnyArray, BoolArray, FloatArray
from apiece.data import Dataset
from apiece.engines._base import Engine
from apiece.engines._glm import Fitted, GLMEngine
from apiece.engines._glm_fit import GLMFit, fit_base
from apiece.engines._link import LOG
from apiece.engines._models import Model
from apiece.engines._refit import RefitEngine
from apiece.losses import Loss
from apiece.records import Task

_MOST_FEATURES = 5_000  # beyond, the Hessian of a single fit takes longer than refits do


class PoissonEngine(GLMEngine):
    """Contributions under Poisson regression with an L2 penalty.

    Examples
    --------
    >>> from apiece.engines import choose_engine
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> data = Dataset.from_arrays(X, np.arange(40.0) % 3, kind="regression")
    >>> choose_engine(data, model="poisson")[0].name
    'poisson'
    """

    name: ClassVar[str] = "poisson"
    is_quick: ClassVar[bool] = True
    made_for: ClassVar[tuple[str, ...]] = ("PoissonRegressor",)

    @classmethod
    def supports(cls, dataset: Dataset, model: Model, metric: Loss) -> str | None:
        """Return None if the engine computes what refitting would, or the reason why not."""
        from sklearn.linear_model import PoissonRegressor

        if type(model.estimator) is not PoissonRegressor:
            return f"{model.name} is not PoissonRegressor"
        if dataset.kind != "regression":
            return "the data is not a regression"
        if dataset.targets(np.arange(dataset.n_points)).min() < 0:
            return "some targets are negative"
        if dataset.n_features > _MOST_FEATURES:
            return f"{dataset.n_features:,} features are more than {_MOST_FEATURES:,}"
        if not 0 <= model.estimator.alpha < np.inf:
            return f"alpha is {model.estimator.alpha}"
        return None

    def _fit(self, task: Task, *more: int) -> Fitted | None:
        X, y = self._rows(task, more)
        first = self._optimum(X, y, len(y))
        second = None if first is None else self._optimum(X, y, len(y) + 1, first.theta)
        if first is None or second is None:
            return None
        fitted, joining = self._join(first), self._join(second)

        def solve(x: FloatArray, y: AnyArray) -> tuple[FloatArray, FloatArray, BoolArray]:
            delta, left, is_good = joining.solve(x, y)
            return delta + (fitted.loss - joining.loss), left, is_good

        return replace(fitted, solve=solve)

    def _optimum(
        self, X: FloatArray, y: FloatArray, n: int, start: FloatArray | None = None
    ) -> GLMFit | None:
        """Fit with the penalty of ``n`` points, by default from the best constant."""
        if not y.any():
            return None  # the optimum is at infinity
        if start is None:
            start = np.zeros(X.shape[1])
            if self.model.estimator.fit_intercept:
                start[-1] = np.log(y.mean())
        penalty = n * self.model.estimator.alpha * self._is_penalised
        return fit_base(X, y, penalty, 1.0, start, link=LOG)

    def refit_engine(self) -> Engine:
        """Return refits by a solver that converges."""
        model = self.model.with_settings(solver="newton-cholesky", tol=1e-12, max_iter=1_000)
        return RefitEngine(self.dataset, model, self.metric)
