"""The valuation of data as a scikit-learn estimator: ``DataValuer(model).fit(X, y).values_``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils.validation import validate_data

from apiece._base.rng import RandomState
from apiece.collection import collect
from apiece.data import Dataset
from apiece.losses import LossLike
from apiece.uses import value


class DataValuer(BaseEstimator):  # type: ignore[misc]  # no stubs
    """Value every training row for a model: fit ``X, y``, then read ``values_``.

    Parameters
    ----------
    model
        A scikit-learn classifier or regressor, pipelines included, or a name as in
        `apiece.collect`. None for logistic regression (classes) or ridge regression (quantities)
        on standardised features.
    metric, sizes, samples, trainings, engine, random_state, n_jobs, to
        As in `apiece.collect`.
    method
        How laws are fitted, as in `apiece.fit`; None for the default.
    semivalue
        What a value is: a name or a `Semivalue`, as ``kind`` in `apiece.value`.
    level
        Coverage of the intervals in ``table_``.
    validation
        How many rows to set aside to score on, as in `Dataset.from_arrays`. None (default) sets
        nothing aside: rows take turns in scoring, and every row is valued.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,)
        Value of every row, in units of the loss; positive helps. nan for rows that were set aside
        by ``validation``.
    table_ : DataFrame
        ``value``, ``low``, ``high`` and ``stderr`` of the valued rows, indexed like a frame ``X``,
        or by row number.
    laws_ : Laws
        The scaling laws of the valued rows.
    run_ : Run
        The contributions they were fitted to.
    dataset_ : Dataset
        The data as it was read.
    n_features_in_ : int
        How many columns ``X`` had.
    feature_names_in_ : ndarray
        Their names, if ``X`` was a frame with strings as column names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> valuer = DataValuer(samples=10, random_state=0).fit(X, y)
    >>> valuer.values_.shape
    (569,)
    """

    def __init__(
        self,
        model: Any = None,
        *,
        metric: LossLike = None,
        sizes: Sequence[int] | None = None,
        samples: int | None = None,
        trainings: int | None = None,
        method: Any = None,
        semivalue: Any = "shapley",
        level: float = 0.9,
        validation: float | None = None,
        engine: Any = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        to: str | Path | None = None,
    ) -> None:
        self.model = model
        self.metric = metric
        self.sizes = sizes
        self.samples = samples
        self.trainings = trainings
        self.method = method
        self.semivalue = semivalue
        self.level = level
        self.validation = validation
        self.engine = engine
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.to = to

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
    ) -> DataValuer:
        """Value the rows of ``X``.

        Parameters
        ----------
        X
            Features, shape ``(n_samples, n_features)``. A frame may have columns of words if the
            model is a pipeline that encodes them, or None.
        y
            Labels or quantities, shape ``(n_samples,)``.
        sample_weight
            Weights of the rows in training, shape ``(n_samples,)``.
        X_val, y_val
            Rows to score on; left out, the rows of ``X`` and ``y`` take turns in scoring.
        """
        self.dataset_ = self._read(X, y, sample_weight, X_val, y_val)
        n_rows = self.dataset_.n_pool + (self.dataset_.n_validation if X_val is None else 0)
        self.run_ = collect(
            self.dataset_,
            model="auto" if self.model is None else self.model,
            metric=self.metric,
            sizes=self.sizes,
            samples=self.samples,
            trainings=self.trainings,
            engine=self.engine,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            to=self.to,
            progress=False,
        )
        self.laws_ = self.run_.laws(self.method)
        table = value(self.laws_, kind=self.semivalue, level=self.level)
        rows = table.index.to_numpy()
        self.values_ = np.full(n_rows, np.nan)
        self.values_[rows] = table["value"]
        self.table_ = table.set_axis(X.index[rows]) if isinstance(X, pd.DataFrame) else table
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> Dataset:
        """Return the rows as a dataset whose ids are row numbers."""
        is_named = self.model is None or isinstance(self.model, str)
        is_frame = isinstance(X, pd.DataFrame)
        has_words = is_frame and not all(is_numeric_dtype(dtype) for dtype in X.dtypes)
        keeps_frame = is_frame and not is_named and (has_words or hasattr(self.model, "steps"))
        if has_words or keeps_frame:
            validate_data(self, X, skip_check_array=True)
        else:
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_min_samples=3,
                y_numeric=False,
            )
        options: dict[str, Any] = {
            "validation": self.validation,
            "kind": self._kind(),
            "random_state": 0 if self.random_state is None else self.random_state,
        }
        if has_words and is_named:
            frame = X.reset_index(drop=True).assign(**{"": np.asarray(y)})
            given = None if X_val is None else X_val.assign(**{"": np.asarray(y_val)})
            weights = {} if sample_weight is None else {" ": sample_weight}
            if given is not None:
                options["validation"] = given
            return Dataset.from_pandas(
                frame.assign(**weights),
                target="",
                sample_weight=" " if weights else None,
                **options,
            )
        return Dataset.from_arrays(
            X,
            y,
            X_val=X_val,
            y_val=y_val,
            ids=np.arange(X.shape[0]),
            sample_weight=sample_weight,
            preprocess=None if keeps_frame else "auto",
            standardize=is_named,
            **options,
        )

    def _kind(self) -> Any:
        """Return the kind of data that a model of the user is for; None to decide from ``y``."""
        if self.model is None or isinstance(self.model, str):
            return None
        if is_classifier(self.model):
            return "classification"
        return "regression" if is_regressor(self.model) else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.non_deterministic = False
        return tags
