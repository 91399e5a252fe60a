r"""Distances of points from the decision boundary, and their relation to the laws.

Between class $a$ and $b$ of a linear classifier, a point $x$ of class $a$ lies at the distance

$$\frac{(w_a - w_b)^\top x + b_a - b_b}{|w_a - w_b|}$$

from the boundary: positive on the side of class $a$. The paper finds that points near the boundary
decay more slowly, with a smaller $\alpha$.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from apiece._base.rng import RandomState
from apiece._base.typing import FloatArray, IntArray
from apiece.data import Dataset
from apiece.errors import DataError
from apiece.laws import Laws
from apiece.uses._agreement import agreement

if TYPE_CHECKING:
    import pandas as pd

_TINY = 1e-300


def boundary(dataset: Dataset, *, model: Any = "logistic") -> pd.DataFrame:
    """Measure how far every point lies from the decision boundary of a model fitted to the pool.

    Parameters
    ----------
    dataset
        Points with classes.
    model
        As in `collect`.

    Returns
    -------
    pandas.DataFrame
        Indexed by id: ``label``; ``distance`` to the nearest boundary of its class in the units of
        the features, for linear models (nan for others); ``margin``, the log of the probability of
        its class over that of the likeliest other (nan without probabilities). Both are positive
        if the model predicts the label of the point.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> list(boundary(load_demo()[0]))
    ['label', 'distance', 'margin']
    """
    import pandas as pd

    from apiece.engines import resolve_model

    if not dataset.is_classification:
        raise DataError(
            "a regression has no decision boundary: expected a dataset with classes. "
            "Pass one, or kind='classification' when reading the data."
        )
    result = resolve_model(
        model, kind=dataset.kind, n_features=dataset.n_features, n_classes=dataset.n_classes
    )
    fitted = result.seeded(0).fit(dataset.X, dataset.y)
    X, y = dataset.points_X, np.asarray(dataset.points_y)
    margin = np.full(len(X), np.nan)
    if result.has_proba:
        margin = _nearest(np.log(np.maximum(fitted.predict_proba(X), _TINY)), y)
    distance = np.full(len(X), np.nan)
    if hasattr(fitted, "coef_") and hasattr(fitted, "intercept_"):
        distance = _distance(X, y, np.atleast_2d(fitted.coef_), np.atleast_1d(fitted.intercept_))
    return pd.DataFrame(
        {"label": dataset.labels(), "distance": distance, "margin": margin},
        index=pd.Index(dataset.ids, name="point"),
    )


def boundary_relation(
    laws: Laws,
    dataset: Dataset,
    *,
    model: Any = "logistic",
    level: float = 0.9,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    r"""Correlate the laws with how far points lie from the decision boundary.

    Parameters
    ----------
    laws
        Laws of the dataset's points; power laws for ``alpha`` and ``log_abs_c``.
    dataset, model
        As in `boundary`.
    level
        Coverage of the interval, by bootstrap over points.
    random_state
        Seed of the bootstrap.

    Returns
    -------
    pandas.DataFrame
        Columns ``quantity`` (``alpha``, ``log_abs_c`` and ``psi`` at the geometric mean of the
        sampled sizes), ``label`` (``all``, then each class), ``measure`` (``pearson`` or
        ``spearman`` with the absolute distance, or with the absolute margin if the model is not
        linear), ``agreement``, ``low``, ``high``, ``n``.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> data, _ = load_demo()
    >>> noise = np.random.default_rng(0).normal(size=(2, data.n_points))
    >>> laws = Laws.from_arrays(c=noise[0], alpha=1 + 0.1 * noise[1], ids=data.ids)
    >>> boundary_relation(laws, data)["quantity"].unique().tolist()
    ['alpha', 'log_abs_c', 'psi']
    """
    import pandas as pd

    dataset.check_is(laws.provenance.dataset)
    table = boundary(dataset, model=model)
    table.index = table.index.astype(str)
    table = table.loc[laws.ids.astype(str)]
    column = "distance" if table["distance"].notna().any() else "margin"
    far = np.abs(table[column].to_numpy())
    quantities = {"psi": laws.mean(laws.k_ref)}
    scale, decay = laws.family.scale, laws.family.decay
    if scale is not None:
        with np.errstate(divide="ignore"):
            log_scale = np.log(np.abs(laws.parameter(scale)))
        quantities = {f"log_abs_{scale}": log_scale, **quantities}
    if decay is not None:
        quantities = {decay: laws.parameter(decay), **quantities}
    label = table["label"].to_numpy()
    groups = {"all": np.ones(len(far), dtype=bool)}
    groups |= {str(name): label == name for name in pd.unique(label)}
    parts = []
    for name, values in quantities.items():
        for group, members in groups.items():
            related = agreement(
                far[members], values[members], level=level, random_state=random_state
            )
            parts.append(
                related.loc[["pearson", "spearman"]]
                .reset_index()
                .assign(quantity=name, label=group)
            )
    order = ["quantity", "label", "measure", "agreement", "low", "high", "n"]
    return pd.concat(parts, ignore_index=True)[order]


def _nearest(score: FloatArray, y: IntArray) -> FloatArray:
    """Return by how much the true class exceeds the best other, shape ``(n,)``."""
    rows = np.arange(len(y))
    others = score.copy()
    others[rows, y] = -np.inf
    return np.asarray(score[rows, y] - others.max(axis=1))


def _distance(X: FloatArray, y: IntArray, w: FloatArray, b: FloatArray) -> FloatArray:
    """Return the signed distance to the nearest boundary of the true class, shape ``(n,)``."""
    if len(w) == 1:  # two classes share one hyperplane
        w, b = np.vstack([np.zeros_like(w), w]), np.append(0.0, b)
    nearest = np.full(len(y), np.inf)
    for other in range(len(w)):
        rows = np.flatnonzero(y != other)
        normal, offset = w[y[rows]] - w[other], b[y[rows]] - b[other]
        length = np.maximum(np.linalg.norm(normal, axis=1), _TINY)
        signed = (np.einsum("ij,ij->i", normal, X[rows]) + offset) / length
        nearest[rows] = np.minimum(nearest[rows], signed)
    return nearest
