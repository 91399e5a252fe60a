r"""What models of the sampled sizes make of each point.

A contribution at size $k$ depends on what a model trained on $k$ points gets wrong at the point,
not on what one trained on everything still does. So linear models are trained on random subsets of
the sampled sizes, and each point is told the mean of those that have not seen it. The penalty, and
whether features are standardised or as they came, are those with the least loss on unseen points:
they come closest to the learner whose contributions these are, which nobody need name.
"""

from __future__ import annotations

from itertools import product
from typing import Final, NamedTuple

import numpy as np

from apiece._rng import stream
from apiece._typing import AnyArray, FloatArray
from apiece.estimators._reader import Reader, loss, penalties, probabilities, trained

_TRIALS: Final = 4  # subsets for each choice
_SUBSETS: Final = 24  # and for each size
_LEAST: Final = 1e-6  # probability


class Told(NamedTuple):
    """What models of each size say of the points, and the features that they see."""

    outputs: list[FloatArray]  # as `Reader.inputs` takes them, (n, c)
    x: FloatArray  # features and a constant, (n, d + 1)


def told_by_models(
    reader: Reader, X: FloatArray, y: AnyArray, n_own: int, sizes: list[int]
) -> Told:
    """Train models on random subsets, and let them speak of the points they have not seen.

    Parameters
    ----------
    reader
        Units of features and targets.
    X, y
        Features, shape ``(n_all, d)``, and class codes or quantities, shape ``(n_all,)``.
    n_own
        How many of the points, from the first, are to be spoken of.
    sizes
        Sizes of the subsets; at most half of the points are taken.
    """
    goal = y if reader.classes is not None else (y - reader.target[0]) / reader.target[1]
    views = (reader.standard(X), np.column_stack([X, np.ones(len(X))]))
    sizes = [max(1, min(size, len(X) // 2)) for size in sizes]

    def output(x: FloatArray, penalty: float, size: int, times: int) -> FloatArray:
        rng, total, count = stream(0), np.zeros((n_own, reader.coef.shape[1])), np.zeros(n_own)
        for _ in range(times):
            rows = rng.choice(len(x), size, replace=False)
            is_new = ~np.isin(np.arange(n_own), rows)
            told = x[:n_own][is_new] @ trained(x[rows], goal[rows], penalty, reader)
            total[is_new] += told if reader.classes is None else probabilities(told)
            count[is_new] += 1
        mean = total / np.maximum(count, 1)[:, None]
        return mean if reader.classes is None else np.log(np.maximum(mean, _LEAST))

    with np.errstate(over="ignore", invalid="ignore"):  # features as they came may be huge
        choices = [
            (loss(output(x, penalty, sizes[-1], _TRIALS), goal[:n_own], reader), j, penalty)
            for (j, x), penalty in product(enumerate(views), penalties(reader))
        ]
    _, best, penalty = min(choice for choice in choices if np.isfinite(choice[0]))
    x = views[best]
    return Told([output(x, penalty, size, _SUBSETS) for size in sizes], x[:n_own])
