"""Common steps of estimators: checks, provenance, units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from apiece._base.typing import BoolArray, FloatArray, IntArray, Places
from apiece.errors import FitError
from apiece.laws.provenance import provenance
from apiece.records import Contributions, Moments, Table

LARGEST: Final = 1e150


def check(contributions: Table) -> None:
    """Refuse a table from which nothing can be fitted, and say why."""
    if not len(contributions):
        raise FitError(
            "there are no contributions: expected at least three for a point. "
            "Collect some first, or look whether the run has finished a task."
        )
    for part in contributions.parts():
        _check_rows(part)
    smallest = contributions.k_range[0]
    if smallest < 1:
        raise FitError(
            f"a contribution has k={smallest}: expected cardinalities of at least 1. "
            "Drop those rows with contributions.where(contributions.k >= 1)."
        )


def _check_rows(part: Contributions) -> None:
    bad = ~np.isfinite(part.delta)
    if bad.any():
        raise FitError(
            f"{int(bad.sum()):,} of {len(bad):,} contributions are not finite, the first in row "
            f"{int(np.argmax(bad))}: expected numbers. Drop them with "
            "contributions.where(np.isfinite(contributions.delta))."
        )
    largest = float(np.abs(part.delta).max(initial=0.0))
    if largest > LARGEST:
        raise FitError(
            f"a contribution is as large as {largest:.3g}: expected at most {LARGEST:g}, the range "
            "in which squares can be summed. Change the units with contributions.scaled."
        )


def evenly_spread_points(contributions: Table, most: int) -> Places:
    """Return up to ``most`` points, evenly spread, whose contributions say something."""
    usable = np.flatnonzero((contributions.counts() >= 3) & contributions.nonzero())
    return Places(usable[:: 1 + max(len(usable) - 1, 0) // most])


def attributes(contributions: Table, estimator: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance of laws: attributes of the contributions and of the estimator."""
    return {**contributions.attrs, **provenance(estimator, settings)}


def all_zero(moments: Moments) -> BoolArray:
    """Return which points have no contribution other than zero."""
    return np.asarray(((moments.mean == 0) & (moments.m2 == 0)).all(axis=1))


def exponents(moments: Moments) -> IntArray:
    """Return for each point the power of two that its contributions are of the order of.

    Dividing by it brings any units to the order of one without a rounding error.
    """
    size = np.abs(moments.mean) + np.sqrt(moments.m2)
    _, exponent = np.frexp(size.max(axis=1, initial=0.0))
    return np.asarray(exponent, dtype=np.int64)


def rescaled(moments: Moments, exponent: IntArray) -> Moments:
    """Return the moments with each point's contributions divided by two to its ``exponent``."""
    power = exponent[:, None]
    return replace(
        moments, mean=np.ldexp(moments.mean, -power), m2=np.ldexp(moments.m2, -2 * power)
    )


def centred_log(k: FloatArray, n: FloatArray, k_ref: float) -> FloatArray:
    r"""Return $\log(k / k_\mathrm{ref})$, and 0 in the padding (``n = 0``)."""
    return np.where(n > 0, np.log(k / k_ref), 0.0)


def in_memory_only(what: str) -> FitError:
    """Build the error for what cannot be fitted to contributions that are streamed."""
    return FitError(
        f"{what} needs all contributions in memory: expected bayes, likelihood, log_ols or auto, "
        "without features, where memory= is set. Leave memory (--memory) out, or choose one of "
        "those."
    )
