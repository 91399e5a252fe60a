"""From arrays as people hold them to the columns of `Laws`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from apiece._base.check import one_of, unknown_name
from apiece._base.typing import FloatArray
from apiece.errors import DataError
from apiece.laws._family import Family
from apiece.laws.blend import Blend
from apiece.laws.power import Power
from apiece.laws.ridge import Ridge
from apiece.laws.series import Series
from apiece.laws.status import FitStatus, statuses

FAMILIES: Final = ("power", "series")
NUMBERS: Final = ("sigma", "beta", "r2", "r2_variance")
_OTHERS: Final = ("n_samples", "status", "ids", "labels", "cov", "df", "attrs", "diagnostics")


def named_family(name: str, parameters: tuple[str, ...] | None = None) -> Family:
    """Return the family of that name, with the terms that its parameters name.

    >>> named_family("series", ("a2", "a4"))
    Series(terms=(2, 4))
    """
    if name in ("ridge", "blend"):
        if parameters is None:
            raise DataError(
                f"family={name!r} does not say its shifts: expected a family with them. Pass for "
                "example family=Ridge(shifts=(0, 100, 1000))."
            )
        if name == "ridge":
            return Ridge(_numbers(parameters, "b"))
        return Blend(Ridge((0, *_numbers(parameters, "b"))))
    one_of("family", name, FAMILIES)
    if name == "power":
        return Power()
    return Series() if parameters is None else Series(_numbers(parameters, "a"))


def _numbers(parameters: tuple[str, ...], letter: str) -> tuple[int, ...]:
    """Return the numbers of the parameters with that letter."""
    return tuple(int(word[1:]) for word in parameters if word.startswith(letter))


def family_for(
    family: str | Family,
    params: npt.ArrayLike | None,
    *,
    c: npt.ArrayLike | None,
    alpha: npt.ArrayLike | None,
) -> tuple[Family, FloatArray]:
    """Return the family and its parameters as one matrix, from either way of giving them."""
    chosen = named_family(family) if isinstance(family, str) else family
    if params is None and chosen.name == "power" and c is not None and alpha is not None:
        pair = np.broadcast_arrays(np.asarray(c, np.float64), np.asarray(alpha, np.float64))
        matrix = np.stack([np.atleast_1d(column) for column in pair], axis=1)
    elif params is not None and c is None and alpha is None:
        matrix = np.array(params, dtype=np.float64)
    else:
        raise DataError(
            f"laws of family {chosen.name!r} cannot be built from these arguments: expected c and "
            "alpha for power laws, or params for any family. Pass one or the other."
        )
    p = len(chosen.parameters)
    if matrix.ndim != 2 or matrix.shape[1] != p:
        raise DataError(
            f"params has shape {matrix.shape}: expected (n_points, {p}) for the parameters "
            f"{', '.join(chosen.parameters)}. For fewer terms pass a family such as "
            "family=Series(terms=(2, 4))."
        )
    return chosen, matrix


def from_columns(params: FloatArray, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every other field of `Laws`: the columns given, and what stands for the rest."""
    n = len(params)
    for name in given:
        if name not in NUMBERS + _OTHERS:
            raise unknown_name("column of laws,", name, NUMBERS + _OTHERS)
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
