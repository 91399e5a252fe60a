"""How good a model is on rows that it has not seen, in everyday measures, and what it predicts.

Rows are split into five folds; a model that was trained on the other four predicts each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._base.arrow import ArrowTable
from apiece._base.progress import OnProgress, track, tracking
from apiece._base.rng import RandomState, seed_from
from apiece._base.typing import AnyArray, FloatArray
from apiece.data import Dataset, join_rows, take_rows
from apiece.engines import Model, resolve_model, weight_option
from apiece.errors import PlanError
from apiece.uses._outside import folds_of, predict
from apiece.uses._plausible import roughly

if TYPE_CHECKING:
    import pandas as pd

_FOLDS: Final = 5
_WORDS: Final = {
    "accuracy": "accuracy",
    "f1": "F1",
    "roc_auc": "ROC AUC",
    "log_loss": "log loss",
    "r2": "R²",
    "rmse": "RMSE",
}


@dataclass(frozen=True, repr=False)
class Quality(ArrowTable):
    """How good a model is on rows that it has not seen.

    Parameters
    ----------
    model
        Its name.
    metrics
        ``accuracy``, ``f1`` (of the last class; the mean over classes if there are more than two),
        ``roc_auc`` and ``log_loss`` for classes; ``r2`` and ``rmse`` (in units of the target) for
        quantities. A model without probabilities has the first two alone.
    outside
        Probabilities of the classes, shape ``(n_rows, n_classes)``, or predictions, shape
        ``(n_rows,)``: pool, candidates, then validation rows.
    target
        Class codes or values, shape ``(n_rows,)``.
    ids
        Ids of the points, which come first, and of validation rows that have one.
    classes
        Names of the classes; None for quantities.

    Examples
    --------
    >>> values = np.array([1.0, 2.0])
    >>> print(Quality("ridge", {"r2": 0.5}, values, values, values, None).headline())
    ridge, on rows it has not seen: R² 0.500
    """

    model: str
    metrics: dict[str, float]
    outside: FloatArray
    target: AnyArray
    ids: AnyArray
    classes: AnyArray | None

    def table(self) -> pd.DataFrame:
        """Return what is predicted for every row with an id.

        Returns
        -------
        pandas.DataFrame
            Indexed by id. For classes ``predicted`` and ``probability``, that of the given label;
            for quantities ``predicted`` and ``residual``, the target less the prediction.
        """
        import pandas as pd

        n = len(self.ids)
        index = pd.Index(self.ids, name="point")
        found, target = self.outside[:n], self.target[:n]
        if self.classes is None:
            return pd.DataFrame({"predicted": found, "residual": target - found}, index=index)
        columns = {
            "predicted": self.classes[found.argmax(axis=1)],
            "probability": found[np.arange(n), target],
        }
        return pd.DataFrame(columns, index=index)

    def headline(self) -> str:
        """Return one sentence: the model and its measures."""
        said = ", ".join(f"{name} {text}" for name, text in self.words())
        return f"{self.model}, on rows it has not seen: {said}"

    def words(self) -> list[tuple[str, str]]:
        """Return the measures as words and numbers for people."""
        return [(_WORDS[name], _number(name, value)) for name, value in self.metrics.items()]

    def __repr__(self) -> str:
        return f"Quality({self.headline()})"


def quality(
    dataset: Dataset,
    model: Any = "auto",
    *,
    random_state: RandomState = 0,
    progress: bool | None = None,
    on_progress: OnProgress | None = None,
) -> Quality:
    """Measure how good a model is on rows that it has not seen.

    Parameters
    ----------
    dataset
        The data. Validation rows are used like all others.
    model
        A name or an estimator, as in `collect`.
    random_state
        Seed of the folds and of the model.
    progress, on_progress
        As in `collect`.

    Returns
    -------
    Quality
        Measures in ``metrics``; predictions by row in ``table()``.

    Examples
    --------
    >>> import numpy as np
    >>> import apiece
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> X = rng.normal(size=(200, 3)) + 2.0 * y[:, None]
    >>> found = quality(apiece.Dataset.from_arrays(X, y, validation=0))
    >>> round(found.metrics["accuracy"], 2)
    0.96
    """
    if not isinstance(dataset, Dataset):
        raise PlanError(
            f"the quality of a model is asked on a {type(dataset).__name__}: expected a dataset. "
            "Pass for example apiece.Dataset.from_csv(...)."
        )
    resolved = resolve_model(
        model,
        kind=dataset.kind,
        n_features=dataset.n_features,
        n_classes=dataset.n_classes,
    )
    target = np.concatenate([dataset.points_y, dataset.y_val])
    with tracking(progress, on_progress, title="measuring the model", unit="folds"):
        outside = _outside(dataset, resolved, target, seed_from(random_state))
    more = dataset.ids_val
    ids = dataset.ids if more is None else np.array([*dataset.ids, *more], dtype=object)
    metrics = measures_of(target, outside, dataset.n_classes)
    if dataset.n_classes and not resolved.has_proba:  # labels alone have neither
        metrics = {name: metrics[name] for name in ("accuracy", "f1")}
    return Quality(resolved.name, metrics, outside, target, ids, dataset.classes)


def measures_of(target: AnyArray, found: FloatArray, n_classes: int) -> dict[str, float]:
    """Return everyday measures of predictions: probabilities of classes, or quantities."""
    return _of_classes(target, found) if n_classes else _of_values(target, found)


def _outside(dataset: Dataset, model: Model, target: AnyArray, seed: int) -> FloatArray:
    rows = join_rows(dataset.rows, dataset.rows_val) if dataset.n_validation else dataset.rows
    weight = dataset.sample_weight
    if weight is not None:
        weight = np.concatenate([weight, np.ones(dataset.n_validation)])
    n_classes = dataset.n_classes
    found = np.zeros((len(target), n_classes) if n_classes else len(target))
    fold = folds_of(target, _FOLDS, seed)
    for number in track(range(_FOLDS)):
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        fitted = roughly(model.seeded(seed))
        options = {} if weight is None else {weight_option(fitted): weight[train]}
        fitted.fit(take_rows(rows, train), target[train], **options)
        found[test] = predict(fitted, take_rows(rows, test), n_classes)
    return found


def _of_classes(target: AnyArray, proba: FloatArray) -> dict[str, float]:
    from sklearn.metrics import f1_score, roc_auc_score

    label, n_classes = proba.argmax(axis=1), proba.shape[1]
    each = range(n_classes)
    f1 = f1_score(target, label, labels=[*each], average=None, zero_division=0)
    area = [
        roc_auc_score(target == code, proba[:, code])
        for code in (each if n_classes > 2 else [1])
        if 0 < (target == code).sum() < len(target)
    ]
    own = np.clip(proba[np.arange(len(target)), target], 1e-15, 1.0)
    return {
        "accuracy": float((label == target).mean()),
        "f1": float(f1[-1] if n_classes == 2 else f1.mean()),
        "roc_auc": float(np.mean(area)) if area else float("nan"),
        "log_loss": float(-np.log(own).mean()),
    }


def _of_values(target: AnyArray, found: FloatArray) -> dict[str, float]:
    square = float(((target - found) ** 2).mean())
    spread = float(np.var(target))
    return {
        "r2": 1 - square / spread if spread > 0 else float("nan"),
        "rmse": float(np.sqrt(square)),
    }


def _number(name: str, value: float) -> str:
    if name == "accuracy":
        return f"{100 * value:.1f} %"
    if name == "rmse":
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:.3f}"
