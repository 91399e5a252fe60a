"""Names for the arrays that packages exchange, and for the three ways to number points.

A point has a *position* among the rows of pool and candidates (tasks, shards), a *place* among the
valued points (rows of contributions and laws), and an *id* (tables for people). Each has its type,
and mypy accepts none of them for another: positions are an `IntArray`; places and ids are not.
"""

from __future__ import annotations

from typing import Annotated, Any, NewType, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]

Positions = NewType("Positions", npt.NDArray[np.int64])
Place = NewType("Place", int)
Places = NewType("Places", npt.NDArray[np.integer[Any]])
PointIds = NewType("PointIds", npt.NDArray[np.generic])

# A parameter of a public function that is a whole number of at least 1
Count: TypeAlias = Annotated[int, range(1, 2**31)]
