r"""Groups through any engine: the loss of its fit on D, less that of its fit on D and the group.

$$\Delta(G, D) = L(f_D) - L(f_{D \cup G})$$

Every engine fits D to convergence, or as a refit would, before it values points; without any points
to value that is all it does. So each engine adds a group as a whole, as exactly as it fits, and
with the same seed, folds and initial weights.

Where the fit on D shortens the way, it is used. With $g$ rows $W$ in the coordinates of the linear
engine, whose normal matrix is the identity, and their residuals $r$ (Woodbury),

$$\theta_G = \theta + T W^\top (I + W W^\top)^{-1} r,$$

and Newton's method for two classes starts from the parameters on D.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from apiece._base.typing import IntArray
from apiece.data import Dataset
from apiece.engines import _linear
from apiece.engines._choose import Engine, choose_engine
from apiece.engines._linear import LinearEngine
from apiece.engines._logistic import LogisticEngine
from apiece.engines._logistic_fit import fit_base
from apiece.engines._models import Model
from apiece.errors import ModelError
from apiece.losses import Loss
from apiece.records import Outcome, Task

_NOBODY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class GroupEngine:
    """Values groups by what an engine's fit gains from them.

    Parameters
    ----------
    engine
        Fits training sets; its pool holds all points, since candidates join them too.
    """

    rows_per_shard: ClassVar[int] = 512

    engine: Engine

    @property
    def name(self) -> str:
        """The word that chooses the engine that fits."""
        return self.engine.name

    @property
    def is_exact(self) -> bool:
        """Whether contributions equal those of a converged refit."""
        return self.engine.is_exact

    @property
    def model(self) -> Model:
        """What is trained."""
        return self.engine.model

    @property
    def metric(self) -> Loss:
        """The loss on the validation set."""
        return self.engine.metric

    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every group of the task.

        Raises
        ------
        EngineError
            As the engine does, if a fit fails.
        """
        joining = task.rows or ()
        found = None
        if isinstance(self.engine, LinearEngine):
            found = _update_linear(self.engine, task, joining)
        elif isinstance(self.engine, LogisticEngine):
            found = _warm_logistic(self.engine, task, joining)
        return self._fit_anew(task, joining) if found is None else found

    def _fit_anew(self, task: Task, joining: tuple[IntArray, ...]) -> Outcome:
        subsets = [task.subset, *(np.concatenate([task.subset, rows]) for rows in joining)]
        fits = [self.engine.run(Task(task.index, subset, _NOBODY, task.seed)) for subset in subsets]
        notes: dict[str, int] = {}
        for fit in fits:
            for name, count in fit.notes.items():
                notes[name] = notes.get(name, 0) + count
        loss = np.array([fit.loss for fit in fits])
        certificate = float(np.fmax.reduce([fit.certificate for fit in fits]))
        return Outcome(float(loss[0]), loss[0] - loss[1:], certificate, notes | {"fits": len(fits)})


@np.errstate(all="ignore")
def _update_linear(
    engine: LinearEngine, task: Task, joining: tuple[IntArray, ...]
) -> Outcome | None:
    """Add groups by updates of rank g; None where a direction of D may be dropped or kept."""
    data = engine.dataset
    X, y = data.X.take(task.subset, axis=0), data.y[task.subset]
    fit = _linear._fit(X, y, engine.model.estimator)
    if fit is None or fit.n_inside < fit.basis.shape[1]:
        return None
    rows, _, centre = engine._validation
    theta, basis = fit.seen_from(centre)
    residual = data.y_val - fit.y_centre - rows @ theta
    pair = engine._pair(residual)
    loss = engine._loss(*pair)
    delta = np.empty(len(joining))
    for place, group in enumerate(joining):
        own = _linear._augment(data.features(group), fit.centre, len(fit.theta))
        longest2 = fit.longest**2 + float((own**2).sum())
        if fit.cutoff**2 * longest2 > fit.shortest**2:
            return None
        w = own @ fit.basis
        gap = (data.targets(group) - fit.y_centre) - own @ fit.theta
        step = cho_solve(cho_factor(np.eye(len(w)) + w @ w.T), gap, check_finite=False)
        change = rows @ (basis @ (w.T @ step))
        delta[place] = engine._fall(*pair, change[None])[0]
    if not np.isfinite(loss + delta.sum()):
        return None
    return Outcome(loss, delta, fit.error, {"refits": 0, "fits": 1})


def _warm_logistic(
    engine: LogisticEngine, task: Task, joining: tuple[IntArray, ...]
) -> Outcome | None:
    """Add groups by Newton's method from the fit on D; None beyond two classes, or if it fails."""
    data = engine.dataset
    y = data.y[task.subset]
    if data.n_classes != 2 or len(np.unique(y)) < 2:
        return None
    X = engine._design(data.X[task.subset])
    base = fit_base(X, y.astype(np.float64), engine._penalty, engine._C)
    if base is None:
        return None
    fits = [base]
    for group in joining:
        more = np.concatenate([X, engine._design(data.features(group))])
        labels = np.concatenate([y, data.targets(group)]).astype(np.float64)
        fit = fit_base(more, labels, engine._penalty, engine._C, start=base.theta)
        if fit is None:
            return None
        fits.append(fit)
    margins = np.stack([fit.theta for fit in fits]) @ engine._validation[0].T
    loss = engine.metric.of_margins(data.y_val, margins)
    worst = max(fit.decrement for fit in fits)
    return Outcome(float(loss[0]), loss[0] - loss[1:], worst, {"refits": 0, "fits": len(fits)})


def choose_group_engine(
    dataset: Dataset,
    *,
    model: Any = "auto",
    metric: str | Loss | Callable[[Any, Any], float] | None = None,
    engine: str = "auto",
) -> tuple[GroupEngine, str]:
    """Return the engine that values groups, and the reason in words; as `choose_engine`.

    Raises
    ------
    ModelError
        Also for an approximate engine, which knows single points alone.
    """
    everyone = replace(dataset, n_pool=dataset.n_points)
    chosen, reason = choose_engine(everyone, model=model, metric=metric, engine=engine)
    if not chosen.is_exact:
        raise ModelError(
            f"engine {chosen.name!r} approximates single points, and groups are to be valued: "
            "expected an exact engine. Pass engine='auto' (--engine auto)."
        )
    return GroupEngine(chosen), reason
