"""Rows with what belongs to them, and how they are split into the pool and the scoring rows."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data._rows import Rows, take_rows
from apiece.data._split import carve
from apiece.data._target import Target


class Part(NamedTuple):
    """Some rows: features, targets (class codes or quantities), and what else they came with."""

    rows: Rows
    y: AnyArray
    ids: AnyArray | None = None
    groups: AnyArray | None = None
    weight: FloatArray | None = None

    def take(self, positions: IntArray) -> Part:
        """Return the rows at some positions."""
        taken: list[Any] = [None if each is None else take_rows(each, positions) for each in self]
        return Part(*taken)


class PoolAndScoring(NamedTuple):
    """The pool, the rows to score on, and how these came about, ready for JSON."""

    pool: Part
    scoring: Part
    done: dict[str, Any]


def set_aside(
    part: Part, validation: object, *, classes: AnyArray | None, seed: int
) -> PoolAndScoring:
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
    """
    if validation is None or (isinstance(validation, numbers.Real) and validation == 0):
        return PoolAndScoring(part, part.take(np.empty(0, dtype=np.int64)), {"carved": 0})
    codes = None if classes is None else part.y
    pool, rest = carve(len(part.y), validation, seed=seed, codes=codes, classes=classes)
    return PoolAndScoring(part.take(pool), part.take(rest), {"carved": len(rest), "seed": seed})


def fields_of_parts(
    split: PoolAndScoring, rows: Rows, target: Target, transformer: Any, names: Sequence[str]
) -> dict[str, Any]:
    """Return fields of a dataset: features ``rows`` of a pool, and scoring rows as they were read.

    ``transformer`` made the features of the pool out of columns with these ``names``.
    """
    from apiece.data._preprocess import feature_names, transform

    pool, scoring, _ = split
    rows_val = take_rows(rows, slice(0))
    if len(scoring.y):
        rows_val = transform(transformer, scoring.rows, "the validation rows")
    return {
        "rows": rows,
        "points_y": pool.y,
        "n_pool": len(pool.y),
        "rows_val": rows_val,
        "y_val": scoring.y,
        "ids": pool.ids,
        "kind": target.kind,
        "classes": target.classes,
        "feature_names": feature_names(transformer, rows, names),
        "target_name": target.name,
        "ids_val": scoring.ids,
        "transformer": transformer,
        "groups": pool.groups,
        "sample_weight": pool.weight,
    }
