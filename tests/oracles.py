"""Slow and obvious references."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone


def refit_deltas(dataset, task, estimator, loss):
    """Train with and without each point of the task, the way a user would write it."""

    def loss_of(rows, extra=None):
        X, y = dataset.X[rows], dataset.y[rows]
        if extra is not None:
            X = np.vstack([X, dataset.features(np.array([extra]))])
            y = np.append(y, dataset.targets(np.array([extra])))
        return loss(clone(estimator).fit(X, y))

    base = loss_of(task.subset)
    return base, np.array([base - loss_of(task.subset, point) for point in task.points])
