"""Groups: sets of points that enter together, such as a source, a class, a batch or a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, IntArray
from apiece.errors import DataError

if TYPE_CHECKING:
    from apiece.data._points import PointSet


class Groups(NamedTuple):
    """Groups in the order of their names, and the positions of the points of each, rising.

    Examples
    --------
    >>> Groups(np.array(["a", "b"]), (np.array([0, 2]), np.array([1]))).names.tolist()
    ['a', 'b']
    """

    names: AnyArray
    rows: tuple[IntArray, ...]


def as_groups(values: Any, n_rows: int, *, what: str) -> AnyArray:
    """Return the name of every row's group as a string, empty for none; shape ``(n_rows,)``.

    Parameters
    ----------
    values
        Names of any type; missing ones belong to no group.
    n_rows
        How many there must be.
    what
        What to call them in messages, such as ``"groups"``.

    Examples
    --------
    >>> as_groups([1.0, None, 2.0], 3, what="groups").tolist()
    ['1', '', '2']
    """
    import pandas as pd

    from apiece.data._ids import as_series

    if np.ndim(values) != 1 or len(values) != n_rows:
        raise DataError(
            f"{what} has shape {np.shape(values)}, the data has {n_rows:,} rows: expected the name "
            "of one group for each row. Pass as many names as rows."
        )
    series = as_series(values, what)
    is_float = series.dtype.kind == "f"
    names = [
        "" if pd.isna(name) else str(int(name)) if is_float and name == int(name) else str(name)
        for name in series.tolist()
    ]
    return np.array(names, dtype=np.str_)


def groups_of(dataset: PointSet, groups: Any, positions: IntArray) -> Groups | None:
    """Return the groups of the points at some positions; None if points go one by one.

    Parameters
    ----------
    dataset
        The points.
    groups
        As in `apiece.collect`.
    positions
        The valued points, rising. Points without a group are left out.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> dataset, _ = load_demo()
    >>> half = ["a", "b"] * dataset.n_points
    >>> groups_of(dataset, half[: dataset.n_points], np.arange(4)).rows
    (array([0, 2]), array([1, 3]))
    """
    import pandas as pd

    if groups is False or (groups is None and dataset.groups is None):
        return None
    if isinstance(groups, Mapping | pd.Series):
        by_id = {str(key): name for key, name in groups.items()}
        groups = pd.Series([by_id.get(str(name)) for name in dataset.ids.tolist()], dtype=object)
    if groups is None or groups is True:
        groups = np.full(dataset.n_points, "") if dataset.groups is None else dataset.groups
    held = as_groups(groups, dataset.n_points, what="groups")[positions]
    names, code = np.unique(held, return_inverse=True)
    order = np.argsort(code, kind="stable")
    parts = np.split(positions[order], np.cumsum(np.bincount(code))[:-1])
    rows = tuple(part for name, part in zip(names, parts, strict=True) if name)
    if not rows:
        raise DataError(
            "no point that is to be valued belongs to a group: expected names of groups. Name "
            "them with groups= (--groups), or pass groups=False to value points one by one."
        )
    return Groups(names[names != ""], rows)
