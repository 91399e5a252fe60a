"""Columns of `Laws` from arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypedDict

import numpy as np
import numpy.typing as npt

from apiece._base.check import unknown_name
from apiece._base.typing import AnyArray, FloatArray
from apiece.errors import DataError
from apiece.laws._family import Family, FamilyLike
from apiece.laws._words import resolve_family
from apiece.laws.status import FitStatus, statuses


class OptionalColumns(TypedDict, total=False):
    """Fields of `Laws` that may be left out; shapes are those of `Laws`, or numbers for all."""

    sigma: npt.ArrayLike
    beta: npt.ArrayLike
    r2: npt.ArrayLike
    r2_variance: npt.ArrayLike
    n_samples: npt.ArrayLike
    status: Sequence[FitStatus] | AnyArray
    ids: npt.ArrayLike
    labels: npt.ArrayLike | None
    cov: npt.ArrayLike | None
    df: npt.ArrayLike | None
    attrs: dict[str, Any]
    diagnostics: dict[str, Any]


NUMBERS: Final = ("sigma", "beta", "r2", "r2_variance")


def family_for(
    family: FamilyLike,
    params: npt.ArrayLike | None,
    *,
    c: npt.ArrayLike | None,
    alpha: npt.ArrayLike | None,
) -> tuple[Family, FloatArray]:
    """Return the family and its parameters as one matrix."""
    resolved = resolve_family(family)
    names = resolved.parameters
    if params is None and names == ("c", "alpha") and c is not None and alpha is not None:
        pair = np.broadcast_arrays(np.asarray(c, np.float64), np.asarray(alpha, np.float64))
        matrix = np.stack([np.atleast_1d(column) for column in pair], axis=1)
    elif params is not None and c is None and alpha is None:
        matrix = np.array(params, dtype=np.float64)
    else:
        raise DataError(
            f"laws of family {resolved.name!r} cannot be built from these arguments: expected c "
            "and alpha for power laws, or params for any family. Pass one or the other."
        )
    if matrix.ndim != 2 or matrix.shape[1] != len(names):
        raise DataError(
            f"params has shape {matrix.shape}: expected (n_points, {len(names)}) for the "
            f"parameters {', '.join(names)}. For fewer terms pass a family such as "
            "family=Series(terms=(2, 4))."
        )
    return resolved, matrix


def from_columns(params: FloatArray, given: OptionalColumns) -> dict[str, Any]:
    """Return every other field of `Laws`: the given columns, and defaults for the rest."""
    n = len(params)
    for name in given:
        if name not in OptionalColumns.__annotations__:
            raise unknown_name("column of laws,", name, OptionalColumns.__annotations__)
    has_law = np.asarray(np.isfinite(params).all(axis=1))
    fields: dict[str, Any] = {
        "ids": np.arange(n),
        "n_samples": np.zeros(n, dtype=np.int64),
        "status": [FitStatus.OK if known else FitStatus.TOO_FEW for known in has_law],
        "labels": None,
        "cov": None,
        "df": None,
        "attrs": {},
        "diagnostics": {},
        **dict.fromkeys(NUMBERS, np.nan),
        **given,
    }
    for name in NUMBERS:
        fields[name] = np.array(np.broadcast_to(np.asarray(fields[name], np.float64), n))
    fields["n_samples"] = np.array(np.broadcast_to(fields["n_samples"], n), dtype=np.int64)
    fields["status"] = statuses(FitStatus(member) for member in fields["status"])
    fields["ids"] = np.asarray(fields["ids"])
    fields["labels"] = None if fields["labels"] is None else np.asarray(fields["labels"])
    fields["cov"] = None if fields["cov"] is None else np.asarray(fields["cov"], np.float64)
    if fields["df"] is not None:
        fields["df"] = np.array(np.broadcast_to(np.asarray(fields["df"], np.float64), n))
    return fields
