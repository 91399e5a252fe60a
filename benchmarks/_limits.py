"""What finders of wrong targets can reach that know more than anybody who has the table alone.

Two finders of wrong labels know the share of wrong labels and mix the same kinds of models:

- *ideal* has models of thousands of other rows with right labels, so nearly $P(y | x)$;
- *own size* has models of the rows of the table with their given labels, each row judged by models
  that have not seen it, and scales their probabilities by the right labels.

Both change the labels above several thresholds, and as many of each label as are expected to be
wrong; the best of that by the loss on test rows counts. So what is missed by *ideal* no finder can
gain, and what is missed by *own size* needs more rows than the table has, or better models of them.
For quantities *ideal* knows the distribution of errors around models of other rows with right
values, and drops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde, norm
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge

from apiece.uses._outside import folds_of, forest_of_halves, mixed, predict
from apiece.uses._plausible import mixture_weights
from apiece.uses._wrong import _calibrated, _Rows

MOST = 6_000  # other rows that ideal models are trained on
FEW = 3  # classes up to which all kinds of models are tried
THRESHOLDS = (0.3, 0.5, 0.7, 0.9)
FREEDOMS = (1.0, 0.03, 0.001)  # of logistic regression: ``C``

Score = Callable[..., tuple[float, float]]


def ideal_proba(X, others, n_classes: int):
    """Return probabilities of the classes by models of other rows with right labels."""
    kinds = [LogisticRegression(max_iter=1_000), RandomForestClassifier(100, random_state=0)]
    if n_classes <= FEW:
        kinds.append(HistGradientBoostingClassifier(random_state=0, early_stopping=False))
    X_more, y_more = (each[-MOST:] for each in others)
    last = np.arange(len(y_more)) % 4 == 0  # a quarter says how to mix
    apart, found = [], []
    for kind in kinds:
        fitted = kind.fit(X_more[~last], y_more[~last])
        apart.append(predict(fitted, X_more[last], n_classes))
        found.append(predict(fitted, X, n_classes))
    weights = mixture_weights(np.stack(apart)[:, np.arange(last.sum()), y_more[last]])
    return np.einsum("m,mnc->nc", weights, np.stack(found))


def own_probas(X, noisy, truth, n_classes: int, seed: int) -> Iterator[Any]:
    """Yield probabilities by kinds of models of the table that have not seen the row."""
    fold = folds_of(noisy, 5, seed)
    kinds = []
    for freedom in FREEDOMS:
        found = np.zeros((len(noisy), n_classes))
        for number in range(5):
            train, test = fold != number, fold == number
            model = LogisticRegression(C=freedom, max_iter=1_000).fit(X[train], noisy[train])
            found[test] = predict(model, X[test], n_classes)
        kinds.append(found)
    kinds.append(forest_of_halves(X, noisy, np.ones(len(noisy), dtype=bool), n_classes, seed))
    together = mixed(np.stack(kinds), noisy)
    for proba in (together, *kinds) if n_classes <= FEW else (together,):
        rows = _Rows.of(proba, truth, np.ones(len(truth), dtype=bool))
        yield np.exp(rows.log_right(_calibrated(rows, 0.0).x))


def relabelled(proba, noisy, share: float) -> Iterator[Any]:
    """Yield labels with those changed that are wrong more probably than thresholds."""
    rows, n_classes = np.arange(len(noisy)), proba.shape[1]
    other = share / (n_classes - 1) * np.maximum(proba, 1e-6)
    other[rows, noisy] = 0.0
    right = (1 - share) * np.maximum(proba[rows, noisy], 1e-6)
    wrong, to = other.sum(axis=1) / (other.sum(axis=1) + right), other.argmax(axis=1)
    for threshold in THRESHOLDS:
        yield np.where(wrong > threshold, to, noisy)
    is_new = np.zeros(len(noisy), dtype=bool)
    for code in np.unique(noisy):
        mine = np.flatnonzero(noisy == code)
        most = np.argsort(-wrong[mine], kind="stable")[: round(2 / 3 * wrong[mine].sum())]
        is_new[mine[most]] = True
    yield np.where(is_new, to, noisy)


def best_labels(probas: Iterable[Any], noisy, share: float, score: Score) -> tuple[float, float]:
    """Return loss and accuracy of the best relabelling; ``score`` takes rows and labels."""
    everyone = np.ones(len(noisy), dtype=bool)
    return _best(score(everyone, y) for proba in probas for y in relabelled(proba, noisy, share))


def best_values(X, noisy, others, share: float, score: Score, *, is_noise: bool):
    """Return loss and R2 of the best way to drop wrong values."""
    X_more, y_more = (each[-MOST:] for each in others)
    last = np.arange(len(y_more)) % 4 == 0
    apart, found = [], []
    for kind in (Ridge(), RandomForestRegressor(100, max_features=1 / 3, random_state=0)):
        fitted = kind.fit(X_more[~last], y_more[~last])
        apart.append(fitted.predict(X_more[last]))
        found.append(fitted.predict(X))
    of_more, of_table = np.mean(apart, axis=0), np.mean(found, axis=0)
    error = y_more[last] - of_more
    right = gaussian_kde(error)(noisy - of_table)
    if is_noise:
        stray = norm.pdf(noisy - of_table, scale=np.hypot(error.std(), 2 * y_more.std()))
    else:
        stray = gaussian_kde(y_more)(noisy)
    wrong = share * stray / np.maximum(share * stray + (1 - share) * right, 1e-300)
    return _best(score(wrong <= threshold, noisy) for threshold in THRESHOLDS)


def _best(scores: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the score with the lowest loss."""
    return min((each for each in scores if np.isfinite(each[0])), default=(np.nan, np.nan))
