r"""Why a point is worth what it is: what is predicted for it, and which rows it helps and harms.

By how much a point *i* changes the loss of a scoring row *j* is approximated to first order by a
linear model of the features. With residuals $r = y - p$ of predictions that were made without the
row, and the Hessian $H_c$ of class *c*,

$$E_{ij} = \sum_c r_{ic}\,r_{jc}\,x_i^\top H_c^{-1} x_j,$$

positive where the row is predicted better with the point (twice that for squared errors, with one
"class"). The mean of $E_{ij}$ over the rows of a slice says for whom a point is good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._base.check import some
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset
from apiece.errors import DataError
from apiece.laws import Laws
from apiece.reporting._details import Details, find
from apiece.uses import Quality

if TYPE_CHECKING:
    import pandas as pd

EACH: Final = 3  # rows listed that a point helps most, and that it harms most
_MOST_ROWS: Final = 4_000  # scoring rows that are looked at
_MOST_POINTS: Final = 10_000  # points whose rows are listed, the most influential first
_DIRECTIONS: Final = 64
_CHUNK: Final = 500
_MOST_SLICES: Final = 12
_QUARTERS: Final = 4
_SNIPPET: Final = 200
_NONE: Final = np.iinfo(np.uint32).max


def why(
    laws: Laws,
    dataset: Dataset,
    quality: Quality,
    rows: pd.DataFrame | None,
    slices: Any = None,
    text: str | None = None,
) -> Details:
    """Return predictions, the rows that each point helps and harms most, and effects by slice.

    Parameters
    ----------
    laws
        The laws that the page shows.
    dataset, quality
        The data, and what a model predicts for rows that it has not seen.
    rows
        What people know of the rows, by id as text.
    slices
        A column of ``rows``, or a series or mapping from ids; None for the classes.
    text
        The column of ``rows`` that says what a row is.
    """
    places = find(dataset, laws)
    linear = _Linear.of(dataset, quality)
    n_points, n_rows = dataset.n_points, len(quality.target)
    scoring = np.arange(n_points, n_rows) if dataset.n_validation else np.arange(n_points)
    description: dict[str, Any] = {}
    arrays: dict[str, AnyArray] = _predictions(quality, places)
    codes, names, title = slices_of(dataset, quality, rows, slices)
    if len(names) > 1:
        arrays["slice_effect"] = linear.by_slice(places, scoring, codes[scoring], len(names))
        counts = np.bincount(codes[scoring][codes[scoring] >= 0], minlength=len(names))
        description["slices"] = {"by": title, "names": names, "counts": counts.tolist()}
    chosen = _spread_out(scoring, _MOST_ROWS)
    found = linear.extremes(places, chosen, np.abs(np.nan_to_num(laws.mean(laws.k_ref))))
    reference, others = _references(found.rows, places, n_rows)
    arrays["why_row"], arrays["why_effect"] = reference, found.effect.astype(np.float32)
    description["why"] = {"each": EACH, "rows": _described(others, dataset, quality, rows, text)}
    description["classes"] = None if dataset.classes is None else list(map(str, dataset.classes))
    return Details(description, arrays)


def _predictions(quality: Quality, places: IntArray) -> dict[str, AnyArray]:
    found, target = quality.outside[places], quality.target[places]
    if quality.classes is None:
        return {"predicted_value": found.astype(np.float64)}
    label = found.argmax(axis=1)
    return {
        "predicted": label.astype(np.uint16),
        "predicted_p": found.max(axis=1).astype(np.float32),
        "own_p": found[np.arange(len(target)), target].astype(np.float32),
    }


@dataclass(frozen=True)
class _Extremes:
    """Rows that each point helps most, then those that it harms most, -1 for none."""

    rows: IntArray  # (n_points, 2 * EACH)
    effect: FloatArray


@dataclass(frozen=True)
class _Linear:
    """Residuals, features and inverse Hessians of a linear model of all rows."""

    X: FloatArray  # (n, p)
    residual: FloatArray  # (n, c)
    inverse: FloatArray  # (c, p, p)
    factor: float

    @classmethod
    def of(cls, dataset: Dataset, quality: Quality) -> _Linear:
        X = _reduced(np.concatenate([dataset.points_X, dataset.X_val]))
        n, n_classes = len(X), dataset.n_classes
        if n_classes:
            p = np.clip(quality.outside, 1e-6, 1 - 1e-6)
            residual = np.eye(n_classes)[quality.target] - p
            weight = p * (1 - p)
        else:
            residual = (quality.target - quality.outside)[:, None]
            weight = np.ones((n, 1))
        ridge = np.eye(X.shape[1])
        inverse = np.stack([np.linalg.inv((X * w[:, None]).T @ X + ridge) for w in weight.T])
        return cls(X, residual, inverse, 1.0 if n_classes else 2.0)

    def by_slice(self, places: IntArray, scoring: IntArray, codes: IntArray, n: int) -> FloatArray:
        """Return the mean effect on the rows of each slice, shape ``(n_points, n_slices)``."""
        is_in = codes[:, None] == np.arange(n)
        share = is_in / np.maximum(is_in.sum(axis=0), 1)
        total = np.zeros((len(places), n))
        for c, inverse in enumerate(self.inverse):
            mean = share.T @ (self.residual[scoring, c, None] * self.X[scoring])  # (n_slices, p)
            total += self.residual[places, c, None] * (self.X[places] @ (inverse @ mean.T))
        return (self.factor * total).astype(np.float32)

    def extremes(self, places: IntArray, scoring: IntArray, importance: FloatArray) -> _Extremes:
        """Return the rows with the largest effects of the most important points."""
        shape = (len(places), 2 * EACH)
        rows, effects = np.full(shape, -1, dtype=np.int64), np.zeros(shape)
        if len(scoring) < 2 * EACH + 1:
            return _Extremes(rows, effects)
        right = [
            self.residual[scoring, c, None] * self.X[scoring] for c in range(len(self.inverse))
        ]
        listed = np.argsort(-importance, kind="stable")[:_MOST_POINTS]
        for start in range(0, len(listed), _CHUNK):
            part = listed[start : start + _CHUNK]
            at = places[part]
            effect = np.zeros((len(part), len(scoring)))
            for c, inverse in enumerate(self.inverse):
                effect += (self.residual[at, c, None] * (self.X[at] @ inverse)) @ right[c].T
            effect[at[:, None] == scoring] = 0.0  # its own row
            for sign, columns in ((-1, slice(0, EACH)), (1, slice(EACH, 2 * EACH))):
                best = np.argpartition(sign * effect, EACH, axis=1)[:, :EACH]
                found = np.take_along_axis(effect, best, axis=1)
                order = np.argsort(sign * found, axis=1)
                best = np.take_along_axis(best, order, axis=1)
                found = np.take_along_axis(found, order, axis=1)
                is_real = sign * found < 0
                rows[part, columns] = np.where(is_real, scoring[best], -1)
                effects[part, columns] = np.where(is_real, self.factor * found, 0.0)
        return _Extremes(rows, effects)


def _reduced(X: FloatArray) -> FloatArray:
    """Standardise features, keep the directions of largest variance, and add a constant."""
    X = np.nan_to_num(np.asarray(X, dtype=np.float64))
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    X = np.clip(X, -10, 10)  # one wild cell must not explain everything
    if X.shape[1] > _DIRECTIONS:
        from sklearn.utils.extmath import randomized_svd

        u, s, _ = randomized_svd(X, _DIRECTIONS, n_iter=2, random_state=0)
        X = u * s
    return np.column_stack([X, np.ones(len(X))])


def slices_of(
    dataset: Dataset, quality: Quality, rows: pd.DataFrame | None, slices: Any
) -> tuple[IntArray, list[str], str]:
    """Return the slice of every row (-1 for none), names of slices, and what they are by."""
    ids = [str(name) for name in quality.ids]
    n = len(quality.target)
    if slices is None:
        if dataset.classes is None or len(dataset.classes) > _MOST_SLICES:
            return np.full(n, -1), [], ""
        return quality.target.astype(np.int64), list(map(str, dataset.classes)), "class"
    if isinstance(slices, str):
        if rows is None or slices not in rows.columns:
            known = "none" if rows is None else some(rows.columns.tolist())
            raise DataError(
                f"slices={slices!r} is not a column of the rows: expected one of {known}. Pass the "
                "name of a column (--slices), or a series or mapping from ids."
            )
        title, given = slices, rows[slices]
    else:
        title, given = str(getattr(slices, "name", None) or "slice"), slices
    by_id: Mapping[str, Any] = {str(key): item for key, item in given.items()}
    cells = [by_id.get(name) for name in ids] + [None] * (n - len(ids))
    return (*_cut(cells), title)


def _cut(cells: list[Any]) -> tuple[IntArray, list[str]]:
    """Return codes and names: the most frequent words, or quarters of numbers."""
    import pandas as pd

    column = pd.Series(cells, dtype=object)
    numbers = pd.to_numeric(column, errors="coerce")
    is_number = numbers.notna().sum() == column.notna().sum() and column.nunique() > _MOST_SLICES
    if is_number and column.notna().any():
        parts = pd.qcut(numbers, _QUARTERS, duplicates="drop")
        names = [f"{part.left:.4g} to {part.right:.4g}" for part in parts.cat.categories]
        return parts.cat.codes.to_numpy().astype(np.int64), names
    words = column.dropna().astype(str)
    names = words.value_counts().index[:_MOST_SLICES].tolist()
    place = {name: code for code, name in enumerate(names)}
    codes = [place.get(str(cell), -1) if pd.notna(cell) else -1 for cell in cells]
    return np.array(codes, dtype=np.int64), names


def _spread_out(rows: IntArray, most: int) -> IntArray:
    """Return at most ``most`` rows, evenly spread."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _references(rows: IntArray, places: IntArray, n_rows: int) -> tuple[AnyArray, IntArray]:
    """Return rows as numbers of laws, and beyond these of other rows; and the other rows."""
    number = np.full(n_rows, -1, dtype=np.int64)
    number[places] = np.arange(len(places))
    used = np.unique(rows[rows >= 0])
    others = used[number[used] < 0]
    number[others] = len(places) + np.arange(len(others))
    found = np.where(rows >= 0, number[rows], _NONE)
    return found.astype(np.uint32), others


def _described(
    others: IntArray, dataset: Dataset, quality: Quality, rows: Any, text: str | None
) -> dict[str, list[str]]:
    """Return ids, labels and texts of rows that are no points of the page."""
    ids = [str(quality.ids[i]) if i < len(quality.ids) else f"scoring row {i}" for i in others]
    target = quality.target[others]
    labels = (
        [f"{value:.6g}" for value in target]
        if dataset.classes is None
        else [str(dataset.classes[code]) for code in target]
    )
    texts = [""] * len(ids)
    if rows is not None and text is not None:
        known = rows[text]
        texts = [str(known.get(name, ""))[:_SNIPPET] for name in ids]
    return {"ids": ids, "labels": labels, "texts": texts}
