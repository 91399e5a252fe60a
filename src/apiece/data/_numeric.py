r"""Numbers as a model wants them: complete, and standardised if asked for.

A feature $x$ becomes $(x - \mu)/s$ with the mean $\mu$ and the standard deviation $s$ of the pool's
rows alone, as scikit-learn's ``StandardScaler`` has them; a constant feature keeps $s = 1$. Missing
values become the pool's median first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from apiece._base.check import some
from apiece._base.typing import AnyArray, BoolArray, FloatArray
from apiece.errors import DataError

_BLOCK: Final = 65_536  # rows at a time, so that temporaries stay small


@dataclass(frozen=True)
class NumericEncoder:
    """Medians, means and scales of the pool, one for each feature.

    Parameters
    ----------
    fill
        What a missing value becomes, shape ``(n_features,)``; None leaves no room for any.
    mean, scale
        Subtracted from and divided into every feature, shape ``(n_features,)``; None to leave
        the numbers as they are.
    """

    fill: FloatArray | None = None
    mean: FloatArray | None = None
    scale: FloatArray | None = None

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        names: Sequence[str],
        *,
        standardize: bool,
        impute: bool,
        is_boolean: BoolArray | None = None,
    ) -> NumericEncoder:
        """Learn from the pool's rows ``X``, shape ``(n_pool, n_features)``.

        Features marked in ``is_boolean``, shape ``(n_features,)``, are filled with the more
        frequent of 0 and 1 and never standardised.
        """
        flags = np.zeros(X.shape[1], dtype=bool) if is_boolean is None else is_boolean
        fill = _medians(X, names) if impute else None
        if fill is not None:
            fill[flags] = np.floor(fill[flags])
        if not standardize:
            return cls(fill=fill)
        mean, scale = _moments(X, fill, names)
        mean[flags], scale[flags] = 0.0, 1.0
        return cls(fill, mean, scale)

    def encode(self, X: FloatArray) -> FloatArray:
        """Encode rows in place and return them, shape ``(n_rows, n_features)``."""
        if self.fill is not None:
            _fill(X, self.fill)
        if self.mean is not None and self.scale is not None:
            for start in range(0, len(X), _BLOCK):
                block = X[start : start + _BLOCK]
                block -= self.mean
                block /= self.scale
        X += 0.0  # -0.0 becomes 0.0, so that equal features have equal bytes
        return X


def check_numbers(
    X: AnyArray, names: Sequence[str], *, where: str, impute: bool, is_table: bool
) -> None:
    """Raise an error that names the features with infinite or missing values.

    Parameters
    ----------
    X
        Numbers of any dtype, shape ``(n_rows, n_features)``.
    names
        The features' names, shape ``(n_features,)``.
    where
        What to call the rows in messages, such as ``"the validation rows"``.
    impute
        Whether missing values are welcome.
    is_table
        Whether the rows come from a table, whose columns can be dropped.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if X.dtype.kind != "f" or np.isfinite(X.sum(dtype=np.float64)):
            return
    _complain(np.isinf(X).sum(axis=0), names, where, "infinite", is_table)
    if not impute:
        _complain(np.isnan(X).sum(axis=0), names, where, "missing", is_table)


def missing_error(counts: dict[str, int], where: str) -> DataError:
    """Build the error for missing values: ``counts`` of them by column of a table."""
    return _error(counts, where, "missing", is_table=True)


def _complain(
    counts: AnyArray, names: Sequence[str], where: str, what: str, is_table: bool
) -> None:
    if counts.any():
        by_name = {names[j]: int(counts[j]) for j in np.flatnonzero(counts).tolist()}
        raise _error(by_name, where, what, is_table=is_table)


def _error(counts: dict[str, int], where: str, what: str, *, is_table: bool) -> DataError:
    listed = ", ".join(f"{name!r} ({count:,})" for name, count in list(counts.items())[:5])
    more = f" and {len(counts) - 5:,} more" if len(counts) > 5 else ""
    column, first = "column" if is_table else "feature", next(iter(counts))
    remedies = ["mend them"]
    if what == "missing":
        remedies.append("pass impute=True (--impute) to fill them from the pool")
    if is_table:
        remedies.append(f"drop the column (drop=[{first!r}], --drop {first})")
    wanted = "a value in every cell" if what == "missing" else "finite numbers"
    return DataError(
        f"{where} hold {what} values in {column} {listed}{more}: expected {wanted}. "
        f"M{', or '.join(remedies)[1:]}."
    )


def _medians(X: FloatArray, names: Sequence[str]) -> FloatArray:
    has_gaps = np.isnan(X).any(axis=0)
    is_empty = np.isnan(X).all(axis=0)
    if is_empty.any():
        empty = [names[j] for j in np.flatnonzero(is_empty).tolist()]
        raise DataError(
            f"{some(empty)} has no value at all in the pool: expected at least one to impute from. "
            f"Leave it out (drop=[{empty[0]!r}] or --drop {empty[0]} for a table), or fill it in."
        )
    fill = np.empty(X.shape[1])
    fill[has_gaps] = np.nanmedian(X[:, has_gaps], axis=0)
    for j in np.flatnonzero(~has_gaps):
        fill[j] = np.median(X[:, j])
    return fill


def _moments(
    X: FloatArray, fill: FloatArray | None, names: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Return mean and scale of every feature; the scale of a constant one is 1."""
    n_rows, n_features = X.shape
    mean, variance = np.zeros(n_features), np.zeros(n_features)

    def blocks() -> list[slice]:
        return [slice(start, start + _BLOCK) for start in range(0, n_rows, _BLOCK)]

    def whole(rows: slice) -> FloatArray:
        return X[rows] if fill is None else _fill(X[rows].copy(), fill)

    with np.errstate(over="ignore", invalid="ignore"):
        for rows in blocks():
            mean += whole(rows).sum(axis=0)
        mean /= n_rows
        for rows in blocks():
            centred = whole(rows) - mean
            variance += np.einsum("ij,ij->j", centred, centred)
        variance /= n_rows
    too_large = np.flatnonzero(~np.isfinite(variance))
    if len(too_large):
        j = too_large[0]
        raise DataError(
            f"{names[j]!r} reaches {np.nanmax(np.abs(X[:, j])):.3g}, too large to standardise: "
            "expected numbers whose squares are finite. Rescale it, or pass standardize=False "
            "(--raw)."
        )
    # Rounding in the mean alone leaves a variance of this order (scikit-learn's bound).
    eps = np.finfo(np.float64).eps
    is_constant = variance <= n_rows * eps * variance + (n_rows * mean * eps) ** 2
    return mean, np.where(is_constant, 1.0, np.sqrt(variance))


def _fill(X: FloatArray, fill: FloatArray) -> FloatArray:
    np.copyto(X, fill, where=np.isnan(X))
    return X
