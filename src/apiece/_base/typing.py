"""Names for the arrays that packages exchange, and for the three ways to number points.

A point has a *position* among the rows of pool and candidates (tasks, shards), a *place* among the
valued points (rows of contributions and laws), and an *id* (tables for people). Each has its
type, so mypy finds a position that is used as a place.
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
Places = NewType("Places", npt.NDArray[np.int64])

PointIds = NewType("PointIds", npt.NDArray[Any])

Count: TypeAlias = Annotated[int, range(1, 2**31)]
