"""Rows with what belongs to them, and how they are split into the pool and the scoring rows."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data._rows import Rows, take_rows
from apiece.data._split import carve


class Part(NamedTuple):
    """Some rows: features, targets (class codes or quantities), and what else they came with."""

    rows: Rows
    y: AnyArray
    ids: AnyArray | None = None
    groups: AnyArray | None = None
    weight: FloatArray | None = None

    def take(self, positions: IntArray) -> Part:
        """Return the rows at some positions."""
        taken = [None if each is None else take_rows(each, positions) for each in self]
        return Part(*taken)  # type: ignore[arg-type]


def set_aside(
    part: Part, validation: object, *, classes: AnyArray | None, seed: int
) -> tuple[Part, Part, dict[str, Any]]:
    """Split rows into the pool and the rows to score on. Nothing else sets rows aside.

    Parameters
    ----------
    part
        All rows.
    validation
        How many to set aside, as in `Dataset.from_arrays`; None or 0 for none.
    classes
        The labels behind the class codes; None for regression.
    seed
        The same seed sets the same rows aside.

    Returns
    -------
    tuple of Part, Part and dict
        The pool, the scoring rows, and what was done, ready for JSON.
    """
    if validation is None or (isinstance(validation, numbers.Real) and validation == 0):
        return part, part.take(np.empty(0, dtype=np.int64)), {"carved": 0}
    codes = None if classes is None else part.y
    pool, rest = carve(len(part.y), validation, seed=seed, codes=codes, classes=classes)
    return part.take(pool), part.take(rest), {"carved": len(rest), "seed": seed}
