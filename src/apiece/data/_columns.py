"""What each column of a table is: a number, a yes or no, a category, a text or an embedding.

The dtype decides, or the caller (``text=``, ``categorical=``). Columns that would silently make bad
features are refused: numbers with words among them, dates, nested values other than lists of
numbers, saved row numbers, and strings that almost never repeat.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import pandas as pd
from pandas.api import types

from apiece._base.check import nearest, some
from apiece._base.text import in_shell
from apiece.data._options import Names
from apiece.errors import ApieceWarning, DataError

Role = Literal["numeric", "boolean", "categorical", "embedding", "text"]
_MANY: Final = 50  # distinct strings above which a column that rarely repeats is no category
_DISTINCT: Final = 0.9  # share of distinct strings above which a column rarely repeats
_TOLD: Final = 5  # columns of which an error says what is wrong with them
_FEW: Final = 50  # rows, of which a feature may count up by chance
_DATES: Final = {"date", "datetime", "datetime64", "time", "timedelta", "timedelta64", "period"}

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}\b")


@dataclass(frozen=True)
class Roles:
    """The columns that become features, by what they are, each in the table's order.

    ``embedding`` maps columns of lists of numbers to the length of these lists.
    """

    numeric: tuple[str, ...] = ()
    boolean: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    embedding: Mapping[str, int] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that become features."""
        return (*self.numeric, *self.boolean, *self.categorical, *self.text, *self.embedding)


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what, so that further rows are read the same way.

    Parameters
    ----------
    target, ids, groups, weight
        The columns of targets, ids, names of groups and sample weights; None for absent ones.
    features
        The columns that become features.
    roles
        What these are, for the default preprocessing; None if the user's transformer or model gets
        the columns as they are.
    dropped
        Columns that are left out.
    impute
        Whether missing cells are allowed.
    """

    target: str
    ids: str | None
    groups: str | None
    weight: str | None
    features: tuple[str, ...]
    roles: Roles | None
    dropped: tuple[str, ...]
    impute: bool


def decide_columns(
    table: pd.DataFrame, options: Mapping[str, Names | None], *, impute: bool, is_auto: bool
) -> Columns:
    """Say which columns of a table are what.

    Parameters
    ----------
    table
        The table, all rows, with strings as column names.
    options
        Option of `Dataset.from_pandas` that names columns, such as ``"target"``, to its value.
    impute
        Whether missing cells are allowed.
    is_auto
        Whether the default preprocessing makes the features.
    """
    named = {option: as_names(names) for option, names in options.items()}
    check_names(table, named)
    for option in ("target", "ids", "groups", "sample_weight"):
        if len(named[option]) > 1:
            raise DataError(
                f"{option}= names {len(named[option])} columns, {some(named[option])}: expected "
                f"a single one. Join them into one column first, or pass one of them "
                f"(--{option.replace('_', '-')})."
            )
    for option in ("text", "categorical"):
        if named[option] and not is_auto:
            raise DataError(
                f"{option}={list(named[option])!r} and preprocess= are both given: expected one of "
                f"them, since {option}= is for the default preprocessing. Leave {option}= out, or "
                "preprocess=."
            )
    single = ("target", "ids", "groups", "sample_weight")
    one = {option: next(iter(named[option]), None) for option in single}
    skip = tuple(name for option in (*single, "drop") for name in named[option])
    roles = None
    if is_auto:
        roles = decide_roles(table, text=named["text"], categorical=named["categorical"], skip=skip)
    features = tuple(name for name in table.columns if name not in skip)
    if not features:
        raise _no_features(table)
    _warn_of_row_numbers(table, features)
    return Columns(
        target=str(one["target"]),
        ids=one["ids"],
        groups=one["groups"],
        weight=one["sample_weight"],
        features=features,
        roles=roles,
        dropped=named["drop"],
        impute=impute,
    )


def _warn_of_row_numbers(table: pd.DataFrame, features: tuple[str, ...]) -> None:
    """Warn of a feature that counts the rows, as a saved index does."""
    count = np.arange(len(table))
    for name in features if len(table) > _FEW else ():
        column = table[name]
        is_whole = types.is_integer_dtype(column.dtype) and not column.hasnans
        if is_whole and (column.to_numpy() - column.iloc[0] == count).all():
            warnings.warn(
                f"column {name!r} counts the rows and is used as a feature. If it is a row number, "
                f"let it name the points (ids={name!r}, --ids {in_shell(name)}) or drop it "
                f"(drop=[{name!r}], --drop {in_shell(name)}).",
                ApieceWarning,
                stacklevel=4,
            )


def as_names(names: Names | None) -> tuple[str, ...]:
    """Return one column name or several as a tuple.

    >>> as_names("age"), as_names(None)
    (('age',), ())
    """
    if names is None:
        return ()
    return tuple(map(str, names)) if types.is_list_like(names) else (str(names),)


def check_names(table: pd.DataFrame, named: Mapping[str, tuple[str, ...]]) -> None:
    """Raise an error for a column that is not there, or that is given two roles.

    Parameters
    ----------
    table
        The table, with strings as column names.
    named
        Option, such as ``"target"``, to the columns that it names.
    """
    role_of: dict[str, str] = {}
    for option, names in named.items():
        for name in names:
            if name not in table.columns:
                raise _unknown_column(option, name, list(table.columns))
            if name in role_of and role_of[name] != option:
                raise DataError(
                    f"column {name!r} is named by {role_of[name]}= and by {option}=: expected one "
                    f"role for each column. Take it out of one of them (--{role_of[name]}, "
                    f"--{option})."
                )
            role_of[name] = option


def decide_roles(
    table: pd.DataFrame,
    *,
    text: tuple[str, ...],
    categorical: tuple[str, ...],
    skip: tuple[str, ...],
) -> Roles:
    """Say what every column outside ``skip`` is.

    Parameters
    ----------
    table
        The table, all rows.
    text, categorical
        Columns declared by the caller.
    skip
        Columns that are no features: the target, the ids, those to drop.
    """
    by_role: dict[Role, list[str]] = {
        role: [] for role in ("numeric", "boolean", "categorical", "embedding", "text")
    }
    wrong: list[DataError] = []
    for name in table.columns:
        if name in skip:
            continue
        try:
            by_role[_role_given(table[name], name, text, categorical)].append(name)
        except DataError as error:
            wrong.append(error)
    if wrong:
        raise _all_of(wrong)
    roles = Roles(
        numeric=tuple(by_role["numeric"]),
        boolean=tuple(by_role["boolean"]),
        categorical=tuple(by_role["categorical"]),
        text=tuple(by_role["text"]),
        embedding={name: len(table[name].dropna().iloc[0]) for name in by_role["embedding"]},
    )
    if not roles.columns:
        raise _no_features(table)
    return roles


def _role_given(
    column: pd.Series, name: str, text: tuple[str, ...], categorical: tuple[str, ...]
) -> Role:
    if name not in text:
        return "categorical" if name in categorical else _role(column, name)
    if types.is_numeric_dtype(column.dtype):
        raise DataError(
            f"column {name!r} holds numbers ({column.dtype}): expected texts. Leave it out of "
            "text= (--text), or turn it into strings first."
        )
    return "text"


def _all_of(wrong: list[DataError]) -> DataError:
    """Return one error for all columns that cannot be features, so that each is met once."""
    if len(wrong) == 1:
        return wrong[0]
    more = [f"{len(wrong) - _TOLD:,} more columns are like these."] if len(wrong) > _TOLD else []
    lines = "\n".join([*map(str, wrong[:_TOLD]), *more])
    return DataError(f"{len(wrong):,} columns cannot be features:\n{lines}")


def _no_features(table: pd.DataFrame) -> DataError:
    return DataError(
        f"no column is left for features: those of the table, {some(list(table.columns))}, are the "
        "target, ids or dropped. Expected at least one feature. Drop fewer columns, or pass a "
        "table with features."
    )


def _role(column: pd.Series, name: str) -> Role:
    dtype = column.dtype
    if re.fullmatch(r"Unnamed: \d+", name):
        raise DataError(
            f"column {name!r} has no name in the header, as saved row numbers have: expected "
            f"named features. Drop it (drop=[{name!r}], --drop {in_shell(name)}), use it to name "
            f"the points (ids={name!r}, --ids {in_shell(name)}), or give it a name."
        )
    if isinstance(dtype, pd.CategoricalDtype):
        return "categorical"
    if types.is_bool_dtype(dtype):
        return "boolean"
    inferred = types.infer_dtype(column, skipna=True)
    if inferred in _DATES or types.is_datetime64_any_dtype(dtype):
        raise _dates(name, dtype)
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return "numeric"
    if inferred == "boolean":
        return "boolean"
    return _role_of_objects(column.dropna(), name, inferred)


def _role_of_objects(present: pd.Series, name: str, inferred: str) -> Role:
    """Say what a column of Python objects or strings is; ``present`` are its values."""
    if inferred != "string" and any(not types.is_scalar(value) for value in present):
        if _are_vectors(present):
            return "embedding"
        raise _nested(present, name)
    if inferred in {"bytes", "complex", "interval"}:
        raise _nested(present, name)
    if not len(present):
        return "numeric"
    share_of_numbers = float(pd.to_numeric(present, errors="coerce").notna().mean())
    if 0.5 <= share_of_numbers < 1 or (share_of_numbers == 1 and inferred != "string"):
        return "numeric"
    n_distinct = present.nunique()
    if n_distinct > _MANY and n_distinct >= _DISTINCT * len(present):
        first = str(present.iloc[0])[:40]
        if _DATE.match(first):
            raise _dates(name, f"such as {first!r}")
        word = in_shell(name)
        as_numbers = ", make it numeric" if share_of_numbers == 1 else ""
        raise DataError(
            f"column {name!r} holds {n_distinct:,} distinct strings in {len(present):,} rows, such "
            f"as {first!r}: expected categories that repeat. If it is text, "
            f"pass text={name!r} (--text {word}); if it names the rows, ids={name!r} (--ids "
            f"{word}); otherwise leave it out with drop=[{name!r}] (--drop {word}){as_numbers}, or "
            f"insist with categorical=[{name!r}] (--categorical {word})."
        )
    return "categorical"


def _dates(name: str, which: object) -> DataError:
    return DataError(
        f"column {name!r} holds dates or times ({which}): expected numbers, booleans, categories "
        f"or text. Drop it (drop=[{name!r}], --drop {in_shell(name)}), or turn it into a number "
        "first, such as days since a fixed date."
    )


def _are_vectors(present: pd.Series) -> bool:
    """Return whether all values are lists of numbers of one length."""
    shapes = {
        np.shape(value) if isinstance(value, list | tuple | np.ndarray) else () for value in present
    }
    if len(shapes) != 1 or len(shape := shapes.pop()) != 1 or not shape[0]:
        return False
    return all(np.asarray(value).dtype.kind in "biuf" for value in present)


def _nested(present: pd.Series, name: str) -> DataError:
    bad = next((value for value in present if not types.is_scalar(value)), present.iloc[0])
    return DataError(
        f"column {name!r} holds values such as {str(bad)[:40]!r} ({type(bad).__name__}): expected "
        "numbers, booleans, categories, text, or lists of as many numbers in every row. Drop it "
        f"(drop=[{name!r}], --drop {in_shell(name)}), or spread it over columns of numbers."
    )


def _unknown_column(option: str, name: str, columns: list[str]) -> DataError:
    close = nearest(name, columns)
    offered = close if close is not None else columns[0]
    value = f"[{offered!r}]" if option in {"drop", "categorical"} else repr(offered)
    return DataError(
        f"{option} column {name!r} is not in the table: expected one of its columns, "
        f"{some(columns, most=12)}. "
        + (f"Did you mean {option}={value} (--{option} {offered})?" if close else "Name one.")
    )
