r"""What asymptotic theory says a point contributes, to hold measured laws against.

Let $\theta^*$ minimise the mean training loss $\ell$ over the pool, $V$ be its Hessian there, and
$L$ the loss on the validation set. For M-estimators (Covert et al., ICML 2024, appendix)

$$\Delta(z, D) = \frac{1}{k}\,\nabla L(\theta^*)^\top V^{-1} \nabla\ell(\theta^*; z)
  + O_P(k^{-3/2}),$$

and for least squares on normal data, if $\nabla L(\theta^*) = 0$,

$$\mathbb{E}[\Delta(z, D)]
  = \frac{(2\sigma^2 - \epsilon^2)\,x^\top \Sigma^{-1} x}{k^2} + o(k^{-2}),$$

with $\sigma^2$ the variance of the noise, $\epsilon$ that of the point itself, and $\Sigma$ the
second moments of the features. These are the first terms $a_2$ and $a_4$ of a series law; a finite
validation set has $\nabla L(\theta^*) \neq 0$, so $a_2$ wins in the end. Without a validation set
$L$ is the loss on the population that the pool stands for; $\theta^*$ minimises it, so $a_2 = 0$.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apiece._base.typing import FloatArray
from apiece.data import Dataset
from apiece.errors import DataError
from apiece.records import scoped

if TYPE_CHECKING:
    import pandas as pd


def theory(dataset: Dataset, *, fit_intercept: bool = True) -> pd.DataFrame:
    r"""Predict the leading terms of every point's law from the pool as a whole.

    The model is least squares with the squared error for a regression, and logistic regression with
    the log loss (and C = 1, whose part in the optimum fades as $1/k$) for two classes.

    Parameters
    ----------
    dataset
        Points, and the validation set if there is one; the pool stands for the population, so it
        should be large.
    fit_intercept
        Whether the model has an intercept.

    Returns
    -------
    pandas.DataFrame
        Indexed by id: ``residual`` of the point at $\theta^*$ (target less prediction),
        ``leverage`` $x^\top V^{-1} x$, ``a2`` (the coefficient of $1/k$) and, for a regression,
        ``a4`` (that of $1/k^2$), in units of the loss.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> list(theory(load_demo()[0]))
    ['residual', 'leverage', 'a2']
    """
    import pandas as pd

    if dataset.n_classes > 2:
        raise DataError(
            f"theory is for two classes or a regression, not for {dataset.n_classes} classes. "
            "Pass a dataset with one of them."
        )
    n_pool = dataset.n_pool
    X, V = dataset.points_X, dataset.X_val
    if fit_intercept:
        X, V = (np.column_stack([rows, np.ones(len(rows))]) for rows in (X, V))
    y, y_val = dataset.points_y.astype(np.float64), dataset.y_val.astype(np.float64)
    if dataset.is_classification:
        theta, penalty = _logistic(X[:n_pool], y[:n_pool], fit_intercept)
        mu, mu_val = (1 / (1 + np.exp(-rows @ theta)) for rows in (X, V))
        curvature = (mu * (1 - mu))[:n_pool]
        scale = 1.0
    else:
        theta = np.asarray(np.linalg.lstsq(X[:n_pool], y[:n_pool], rcond=None)[0], np.float64)
        penalty = np.zeros(X.shape[1])
        mu, mu_val = X @ theta, V @ theta
        curvature = np.full(n_pool, 2.0)
        scale = 2.0
    residual = y - mu
    hessian = ((X[:n_pool] * curvature[:, None]).T @ X[:n_pool] + np.diag(penalty)) / n_pool
    slope = -scale * V.T @ (y_val - mu_val) / max(1, len(V))
    direction = np.linalg.solve(hessian, X.T).T  # V^-1 x of every point
    leverage = np.einsum("ij,ij->i", X, direction)
    columns = {
        "residual": residual,
        "leverage": leverage,
        "a2": 0.0 - scale * residual * (direction @ slope),
    }
    if not dataset.is_classification:
        variance = (residual[:n_pool] ** 2).sum() / max(1, n_pool - X.shape[1])
        columns["a4"] = (2 * variance - residual**2) * scale * leverage  # Sigma^-1 is 2 V^-1
    table = pd.DataFrame(columns, index=pd.Index(dataset.ids, name="point"))
    return scoped(table, dataset.scope)


def _logistic(X: FloatArray, y: FloatArray, fit_intercept: bool) -> tuple[FloatArray, FloatArray]:
    """Fit two classes as ``logistic`` does; return its parameters and what each is penalised by."""
    from sklearn.linear_model import LogisticRegression

    n_features = X.shape[1] - fit_intercept
    model = LogisticRegression(
        fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-10, max_iter=1000
    ).fit(X[:, :n_features], y)
    theta = np.append(model.coef_[0], model.intercept_[:fit_intercept])
    return theta, (np.arange(len(theta)) < n_features).astype(np.float64)
