r"""What trainings respond: a loss for each, and how hard each row is to predict.

Where rows take turns in scoring, the rows that score a training are those outside its training set
$D$. A row that is hard to predict raises the loss whenever it is not in $D$, and would look as if
it helped. So each row's loss is centred by that row's mean over trainings, as a line in $\log k$:

$$y_t = \frac{1}{|V_t|} \sum_{v \in V_t} \bigl(\ell_t(v) - e_v(k_t)\bigr), \qquad
  e_v(k) = e_{v0} + e_{v1} \log(k / k_0).$$

No row then scores itself into its own value, and which rows happen to score adds no noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from apiece._base.typing import FloatArray, Places, PointIds
from apiece.records import Contributions, Trainings

_SWEEPS: Final = 4  # between rows and trainings; the two depend little on each other
_STEADY: Final = 10.0  # losses of a row that its line in log k is worth before data


@dataclass(frozen=True, eq=False)
class Responses:
    """What trainings respond.

    Parameters
    ----------
    loss
        Loss of each training, free of which rows scored it, shape ``(n_trainings,)``.
    hardness
        Mean loss of each point where it was not trained on, less the mean over points, shape
        ``(n_points,)``; nan for points that never scored.
    """

    loss: FloatArray
    hardness: FloatArray

    @classmethod
    def of(cls, trainings: Trainings) -> Responses:
        """Compute them from the losses of rows."""
        scored, values = trainings.scored, trainings.row_loss.astype(np.float64)
        n, many = trainings.n_points, len(trainings)
        seen = np.bincount(scored.position, minlength=n)
        if not len(values):
            return cls(trainings.loss, np.full(n, np.nan))
        owner, position = scored.owner, scored.position
        log_k = np.log(trainings.k)
        x = (log_k - log_k.mean())[owner]
        is_scoring = trainings.is_pool[position]
        n_scoring = np.maximum(np.bincount(owner[is_scoring], minlength=many), 1)
        sx, sxx = (np.bincount(position, power, minlength=n) for power in (x, x * x))
        spread = sxx - sx**2 / np.maximum(seen, 1)
        steady = spread + _STEADY * float(np.var(log_k)) + 1e-12
        counts = trainings.is_pool & (seen > 0)
        loss = np.bincount(owner, values, minlength=many) / np.maximum(scored.length, 1)
        for _ in range(_SWEEPS):
            rest = values - loss[owner]
            level = np.bincount(position, rest, minlength=n) / np.maximum(seen, 1)
            moment = np.bincount(position, rest * x, minlength=n)
            slope = (moment - level * sx) / steady
            level -= slope * sx / np.maximum(seen, 1)
            level -= level[counts].mean()  # the mean over rows belongs to the loss
            slope -= slope[counts].mean()
            centred = values - level[position] - slope[position] * x
            loss = np.bincount(owner, centred * is_scoring, minlength=many) / n_scoring
        hardness = np.where(seen > 0, level, np.nan)
        return cls(loss if trainings.rotates else trainings.loss, hardness)


def plain_contributions(trainings: Trainings) -> Contributions:
    r"""Return a contribution of each point to each training that holds it, by itself very noisy.

    $$\Delta_t(z) = \bar y(k) - y_t + \bar\psi_{k-1}, \qquad z \in D_t,$$

    with the mean response $\bar y$ to training sets without $z$ of that size and its fall
    $\bar\psi$. Its mean over trainings is $\psi_{k-1}(z)$.

    Examples
    --------
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> data, _ = load_demo()
    >>> run = apiece.collect(data, engine="reuse", sizes=(20, 40), trainings=20, progress=False)
    >>> plain_contributions(run.trainings()).n_points
    369
    """
    y = Responses.of(trainings).loss
    k = trainings.k.astype(np.float64)
    design = _curve(k, k)
    weights, *_ = np.linalg.lstsq(design, y, rcond=None)
    fall = (_curve(k - 1, k) - design) @ weights
    share = k / trainings.n_points
    delta = (design @ weights - y) / (1 - share) + fall
    place = np.full(trainings.n_points, -1)
    valued = np.flatnonzero(trainings.is_valued)
    place[valued] = np.arange(len(valued))
    owner, point = trainings.trained.owner, place[trainings.trained.position]
    keep = point >= 0
    owner, point = owner[keep], point[keep]
    return Contributions(
        task=trainings.task[owner],
        k=np.maximum(trainings.k[owner] - 1, 1),
        point=Places(point),
        delta=delta[owner],
        loss=trainings.loss[owner],
        ids=PointIds(trainings.ids[valued]),
        attrs=trainings.attrs,
    )


def _curve(k: FloatArray, sampled: FloatArray) -> FloatArray:
    """Return the terms of the mean loss over sizes, as many as the sampled sizes determine."""
    x = k / np.exp(np.log(sampled).mean())
    n_terms = min(3, len(np.unique(sampled)))
    return np.stack([np.ones_like(x), np.log(x), 1 / x], axis=1)[:, :n_terms]
