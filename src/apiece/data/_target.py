"""What is predicted: classes or a quantity, and the labels as codes.

Strings, booleans and categories are classes. Numbers with fractions are a quantity; whole numbers
are classes when few of them are distinct. ``kind=`` overrides the guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from pandas.api import types

from apiece._base.check import some, unknown_name
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data._options import Kind
from apiece.errors import DataError

_KINDS: Final = ("classification", "regression")
_FEW: Final = 20  # distinct whole numbers that are classes in any case


@dataclass(frozen=True)
class Target:
    """The target of every row, ready for a model.

    Parameters
    ----------
    kind
        ``"classification"`` or ``"regression"``.
    values
        Class codes (int64, positions in ``classes``) or quantities (float64), shape ``(n_rows,)``.
    classes
        The distinct labels in rising order, shape ``(n_classes,)``; None for regression.
    name
        What to call the target.
    """

    kind: Kind
    values: AnyArray
    classes: AnyArray | None
    name: str = "target"

    def encode(self, values: pd.Series, where: str) -> AnyArray:
        """Return class codes or quantities of further rows, shape ``(n_rows,)``.

        ``where`` is what to call the rows in messages, such as ``"the candidates"``.
        """
        series = _complete(values, self.name, where=where)
        if self.classes is None:
            return quantities(series, self.name)
        codes, labels = _distinct(series)
        # Python compares 1, 1.0 and True as equal, which is what a second file's dtype needs.
        code_of = {label: code for code, label in enumerate(self.classes.tolist())}
        code_of_label = [code_of.get(label, -1) for label in labels.tolist()]
        unseen = [
            label for label, code in zip(labels.tolist(), code_of_label, strict=True) if code < 0
        ]
        if unseen:
            raise DataError(
                f"{where} hold the label {some(unseen)} of target {self.name!r}: expected labels "
                f"among the pool's classes, {some(self.classes.tolist(), most=12)}. Remove those "
                "rows, fix their labels, or add rows of that class to the pool."
            )
        return np.array(code_of_label, dtype=np.int64)[codes]


def read_target(values: pd.Series, *, kind: str | None, name: str) -> Target:
    """Decide what the target is and encode it.

    Parameters
    ----------
    values
        Labels or quantities, shape ``(n_rows,)``.
    kind
        ``"classification"``, ``"regression"``, or None to decide from the values.
    name
        What to call the target in messages.
    """
    if kind is not None and kind not in _KINDS:
        raise unknown_name("kind", kind, _KINDS, DataError)
    series = _complete(values, name, where="the table")
    decided = infer_kind(series) if kind is None else kind
    if decided == "regression":
        numbers = quantities(series, name)
        if len(numbers) and (numbers == numbers[0]).all():
            raise _constant(name, float(numbers[0]), len(numbers))
        return Target("regression", numbers, None, name)
    codes, labels = _distinct(series)
    classes, order = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise _constant(name, classes[0].item(), len(series))
    if kind is None and len(classes) == len(series) > _FEW:
        raise DataError(
            f"target {name!r} has another label in each of its {len(series):,} rows, such as "
            f"{classes[0].item()!r}: expected classes that rows share. Pick another target; if "
            "this one is a quantity, make it numeric and pass kind='regression' (--task "
            "regression)."
        )
    return Target("classification", order.astype(np.int64)[codes], classes, name)


def _constant(name: str, value: object, n_rows: int) -> DataError:
    where = "in the only row" if n_rows == 1 else f"in all {n_rows:,} rows"
    return DataError(
        f"target {name!r} is {value!r} {where}: expected at least two classes, or a quantity that "
        "differs between rows. Pick another target, or check that the table was exported "
        "completely."
    )


def infer_kind(series: pd.Series) -> Kind:
    """Return ``"classification"`` or ``"regression"`` for complete values.

    >>> infer_kind(pd.Series([0, 1, 1])), infer_kind(pd.Series([0.5, 1.0, 2.0]))
    ('classification', 'regression')
    """
    if not _is_number(series):
        return "classification"
    n_distinct = series.nunique()
    if types.is_float_dtype(series.dtype):
        few_and_whole = n_distinct <= _FEW and _is_whole(series.to_numpy(dtype=np.float64))
        return "classification" if few_and_whole else "regression"
    return "classification" if n_distinct <= max(_FEW, len(series) ** 0.5) else "regression"


def quantities(series: pd.Series, name: str) -> FloatArray:
    """Return the target of a regression as float64, shape ``(n_rows,)``."""
    if not _is_number(series) and not types.is_bool_dtype(series.dtype):
        raise DataError(
            f"target {name!r} holds {series.iloc[0]!r}, which is not a number: expected numbers "
            "alone for a regression. Turn the target into numbers, or pass kind='classification' "
            "(--task classification)."
        )
    # Adding zero turns -0.0 into 0.0, so that equal targets have equal bytes.
    return series.to_numpy(dtype=np.float64) + 0.0


def _complete(values: pd.Series, name: str, *, where: str) -> pd.Series:
    """Return the target with plain dtypes, or say which rows have none that can be used."""
    series = values.infer_objects()
    if types.infer_dtype(series, skipna=True) == "decimal":
        series = pd.to_numeric(series)
    missing = np.flatnonzero(series.isna().to_numpy())
    if len(missing):
        raise DataError(
            f"target {name!r} is missing on {len(missing):,} of {len(series):,} rows of {where}, "
            f"first at row {series.index[missing[0]]}: expected a label on every row. Remove those "
            "rows or fill in their labels; targets are never imputed."
        )
    if types.is_datetime64_any_dtype(series.dtype) or types.is_timedelta64_dtype(series.dtype):
        raise DataError(
            f"target {name!r} holds dates or times ({series.dtype}): expected classes or numbers. "
            "Turn it into a number first, such as days since a fixed date."
        )
    if types.is_float_dtype(series.dtype) and not isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(np.float64)
        infinite = np.flatnonzero(np.isinf(series.to_numpy()))
        if len(infinite):
            raise DataError(
                f"target {name!r} is infinite on {len(infinite):,} rows of {where}, first at row "
                f"{series.index[infinite[0]]}: expected finite numbers. Remove or fix those rows."
            )
    return series


def _is_number(series: pd.Series) -> bool:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype) or types.is_bool_dtype(dtype):
        return False
    return types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype)


def _distinct(series: pd.Series) -> tuple[IntArray, AnyArray]:
    """Return positions in the distinct labels, shape ``(n_rows,)``, and those labels."""
    codes, uniques = pd.factorize(series)
    labels = pd.Series(np.asarray(uniques)).infer_objects()
    if types.is_bool_dtype(labels.dtype):
        return codes.astype(np.int64), labels.to_numpy(dtype=bool)
    if types.is_numeric_dtype(labels.dtype):
        numbers = labels.to_numpy()
        plain = np.int64 if _is_whole(numbers) else np.float64
        return codes.astype(np.int64), numbers.astype(plain)
    return codes.astype(np.int64), np.array([str(label) for label in labels.tolist()])


def _is_whole(numbers: AnyArray) -> bool:
    return bool((np.floor(numbers) == numbers).all() and (np.abs(numbers) < 2.0**53).all())
