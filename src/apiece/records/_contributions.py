"""A table of contributions in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from apiece._base.arrow import ArrowTable
from apiece._base.html import facts_html
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray, Places, PointIds
from apiece.records._moments import Moments
from apiece.records._scope import in_words, scope_of

if TYPE_CHECKING:
    import pandas as pd

_ROWS: Final = ("task", "k", "point", "delta", "loss", "control", "active", "weight", "chance")


@dataclass(frozen=True, eq=False)
class Theory:
    """Terms of the theory of each point at some sizes; estimators learn their weights.

    Parameters
    ----------
    sizes
        Cardinalities, rising, shape ``(n_sizes,)``.
    terms
        The expected contribution in units of the surrogate's loss, then quantities that
        corrections are made of, shape ``(n_points, n_sizes, n_terms)``; no term where theory
        predicts nothing.
    row_noise
        Covariance over sizes that the choice of the table's rows gives to the first term, shape
        ``(n_points, n_sizes, n_sizes)``; None where it is not known.

    Examples
    --------
    >>> theory = Theory(np.array([100.0, 1000.0]), np.ones((3, 2, 6)))
    >>> theory.of(np.array([0, 2])).terms.shape
    (2, 2, 6)
    """

    sizes: FloatArray
    terms: FloatArray
    row_noise: FloatArray | None = None

    def of(self, points: Places) -> Theory:
        """Return the terms of some points."""
        noise = None if self.row_noise is None else self.row_noise[points]
        return replace(self, terms=self.terms[points], row_noise=noise)

    def scaled(self, factor: float) -> Theory:
        """Return the terms in other units of the loss."""
        noise = None if self.row_noise is None else self.row_noise * factor**2
        return replace(self, terms=self.terms * factor, row_noise=noise)


@dataclass(frozen=True, eq=False)
class Contributions(ArrowTable):
    """A table of contributions: one row for each task and point.

    Parameters
    ----------
    task, k, point
        Index of the task, cardinality of its ``D``, and the point as a place in ``ids``;
        each of shape ``(n_rows,)``.
    delta
        The contributions, in units of the loss, shape ``(n_rows,)``.
    loss
        Loss of the model trained on ``D`` alone, shape ``(n_rows,)``; nan where unknown.
    ids
        The points' names, shape ``(n_points,)``.
    attrs
        Provenance of the rows: dataset, model, metric, design, seed.
    control
        Prediction of each contribution by first-order theory, less its mean over draws, up to a
        factor, shape ``(n_rows,)``; None if results are for the given scoring rows.
    active
        The blocks of rows that each task drew from, as bits, shape ``(n_rows,)``; None if results
        are for the given scoring rows.
    weight
        Number of contributions that each row counts for, shape ``(n_rows,)``; None for one.
    chance
        That the task valued the point, see `Stage`, shape ``(n_rows,)``; None for one.
    theory
        Terms of the theory of each point; None if unknown.

    Examples
    --------
    >>> table = Contributions.from_arrays(point=[0, 1, 0], k=[10, 10, 20], delta=[0.1, -0.2, 0.05])
    >>> table.counts(), table.k_range
    (array([2, 1]), (10, 20))
    >>> table
    <Contributions: 3 of 2 points, 10 to 20 training points>
    >>> table.table().query("point == 0")["delta"].tolist()
    [0.1, 0.05]
    >>> table.sizes(), table.nonzero()
    ((array([10, 20]), array([2, 1])), array([ True,  True]))
    >>> table.where(table.delta > 0).scaled(10).delta
    array([1. , 0.5])
    >>> len(Contributions.concat([table, table.between(15, 30)]))
    4
    >>> table.moments().mean
    array([[ 0.1 ,  0.05],
           [-0.2 ,  0.  ]])
    >>> [len(part) for part in table.parts()], [rows for rows, _ in table.blocks(n_rows=2)]
    ([3], [slice(0, 1, None), slice(1, 2, None)])
    """

    task: IntArray
    k: IntArray
    point: Places
    delta: FloatArray
    loss: FloatArray
    ids: PointIds
    attrs: dict[str, Any] = field(default_factory=dict)
    control: FloatArray | None = None
    active: IntArray | None = None
    weight: FloatArray | None = None
    chance: FloatArray | None = None
    theory: Theory | None = None

    def __repr__(self) -> str:
        low, high = self.k_range if len(self.k) else (0, 0)
        return (
            f"<Contributions: {len(self.k):,} of {len(self.ids):,} points, {low:,} to {high:,} "
            "training points>"
        )

    def _repr_html_(self) -> str:
        facts: list[tuple[str, object]] = [
            ("contributions", f"{len(self.k):,}"),
            ("points", f"{len(self.ids):,}"),
        ]
        if len(self.k):
            low, high = self.k_range
            facts.append(("sizes", f"{low:,} to {high:,}"))
        facts += [(name, self.attrs[name]) for name in ("model", "metric") if name in self.attrs]
        scope = in_words(scope_of(self.attrs))
        return facts_html("Contributions", [*facts, *([("results are", scope)] if scope else [])])

    @classmethod
    def from_arrays(
        cls,
        *,
        point: npt.ArrayLike,
        k: npt.ArrayLike,
        delta: npt.ArrayLike,
        task: npt.ArrayLike | None = None,
        loss: npt.ArrayLike | None = None,
        ids: npt.ArrayLike | None = None,
        attrs: dict[str, Any] | None = None,
    ) -> Contributions:
        """Build a table from columns; without ``task`` every row is a separate task.

        Examples
        --------
        >>> Contributions.from_arrays(point=[0, 1], k=[10, 10], delta=[0.1, -0.2]).n_points
        2
        """
        point_ = np.asarray(point, dtype=np.int64)
        n_rows = len(point_)
        names = (
            np.arange(point_.max(initial=-1) + 1, dtype=np.int64)
            if ids is None
            else np.asarray(ids)
        )
        columns: dict[str, Any] = {
            "k": np.asarray(k, dtype=np.int64),
            "delta": np.asarray(delta, dtype=np.float64),
            "task": np.arange(n_rows) if task is None else np.asarray(task, dtype=np.int64),
            "loss": np.full(n_rows, np.nan) if loss is None else np.asarray(loss, dtype=np.float64),
        }
        for name, column in columns.items():
            if column.shape != (n_rows,):
                raise ValueError(
                    f"{name} has shape {column.shape}: expected ({n_rows},), one entry for each "
                    "entry of point. Pass columns of one length."
                )
        if n_rows and not (point_.min() >= 0 and point_.max() < len(names)):
            raise ValueError(
                f"point reaches from {point_.min()} to {point_.max()}: expected places in the "
                f"{len(names)} ids. Pass ids for every point."
            )
        return cls(point=Places(point_), ids=PointIds(names), attrs=dict(attrs or {}), **columns)

    @classmethod
    def concat(cls, parts: Iterable[Contributions]) -> Contributions:
        """Join tables that share their ids, in order."""
        tables = list(parts)
        first = tables[0]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(table, name) for table in tables])
            for name in _ROWS
            if getattr(first, name) is not None
        }
        return cls(ids=first.ids, attrs=first.attrs, theory=first.theory, **columns)

    def __len__(self) -> int:
        return len(self.delta)

    @property
    def n_points(self) -> int:
        """How many points the table is about, sampled or not."""
        return len(self.ids)

    @property
    def k_range(self) -> tuple[int, int]:
        """The smallest and the largest cardinality sampled."""
        return (int(self.k.min()), int(self.k.max())) if len(self) else (1, 1)

    def counts(self) -> IntArray:
        """Count the contributions of each point, shape ``(n_points,)``."""
        return np.asarray(np.bincount(self.point, minlength=self.n_points), dtype=np.int64)

    def nonzero(self) -> BoolArray:
        """Return which points have a contribution other than zero, shape ``(n_points,)``."""
        is_there = np.zeros(self.n_points, dtype=bool)
        is_there[self.point[self.delta != 0]] = True
        return is_there

    def sizes(self) -> tuple[IntArray, IntArray]:
        """Return the distinct cardinalities, rising, and how often each occurs."""
        sizes, counts = np.unique(self.k, return_counts=True)
        return sizes, counts

    def of(self, points: Places) -> Contributions:
        """Return only the rows of some points, with their ids.

        Examples
        --------
        >>> table = Contributions.from_arrays(point=[0, 1, 2], k=[9, 9, 9], delta=[0.1, 0.2, 0.3])
        >>> table.of(np.array([2, 0])).table()["delta"].tolist()
        [0.1, 0.3]
        """
        place = np.full(self.n_points, -1)
        place[points] = np.arange(len(points))
        kept = self.where(place[self.point] >= 0)
        theory = None if self.theory is None else self.theory.of(points)
        point = Places(place[kept.point])
        return replace(kept, point=point, ids=PointIds(self.ids[points]), theory=theory)

    def between(self, low: int, high: int) -> Contributions:
        """Return only the rows at cardinalities from ``low`` to ``high``."""
        return self.where((self.k >= low) & (self.k <= high))

    def parts(self) -> Iterator[Contributions]:
        """Yield the whole table, because it is in memory."""
        yield self

    def losses(self) -> Moments:
        """Summarise the known losses $L(f_D)$, one for each task, by cardinality: one row.

        Examples
        --------
        >>> table = Contributions.from_arrays(
        ...     task=[0, 0, 1], point=[0, 1, 0], k=[9, 9, 9], delta=[0, 0, 0], loss=[1, 1, 2]
        ... )
        >>> table.losses().mean, table.losses().n
        (array([[1.5]]), array([[2.]]))
        """
        known = np.flatnonzero(np.isfinite(self.loss))
        _, first = np.unique(self.task[known], return_index=True)
        rows = known[first]
        return Contributions.from_arrays(
            point=np.zeros(len(rows)), k=self.k[rows], delta=self.loss[rows], ids=["all"]
        ).moments()

    def scaled(self, factor: float) -> Contributions:
        """Return the same table in other units: every contribution and loss times ``factor``."""
        theory = None if self.theory is None else self.theory.scaled(factor)
        return replace(self, delta=self.delta * factor, loss=self.loss * factor, theory=theory)

    def where(self, keep: npt.NDArray[np.bool_]) -> Contributions:
        """Return the rows for which ``keep`` is true, with the same ids."""
        columns: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[keep]
            for name in _ROWS
        }
        return replace(self, **columns)

    def by_chance(self) -> Contributions:
        """Return the table with rows that count as if every task had valued all points.

        For sums over points: a row counts one over the chance that it had to be drawn.

        Examples
        --------
        >>> table = Contributions.from_arrays(point=[0, 1], k=[9, 9], delta=[0.1, 0.2])
        >>> replace(table, chance=np.array([1.0, 0.125])).by_chance().weight
        array([1., 8.])
        """
        if self.chance is None:
            return self
        weight = 1.0 if self.weight is None else self.weight
        return replace(self, weight=np.asarray(weight / self.chance), chance=None)

    def table(self) -> pd.DataFrame:
        """Return the rows as pandas: ``task``, ``k``, ``point`` (its id), ``delta``, ``loss``."""
        import pandas as pd

        return pd.DataFrame(
            {
                "task": self.task,
                "k": self.k,
                "point": self.ids[self.point],
                "delta": self.delta,
                "loss": self.loss,
            }
        )

    def moments(self) -> Moments:
        r"""Summarise each point's contributions at each cardinality.

        For point $i$ and cardinality $k$ with contributions $\Delta_1, \ldots, \Delta_n$:
        ``n`` = $n$, ``mean`` = $\bar\Delta$ and ``m2`` = $\sum_j (\Delta_j - \bar\Delta)^2$,
        all of them weighted where rows have a ``weight``.
        """
        order = np.lexsort((self.k, self.point))
        point, k, delta = self.point[order], self.k[order], self.delta[order]
        is_first = np.ones(len(point), dtype=bool)
        is_first[1:] = (point[1:] != point[:-1]) | (k[1:] != k[:-1])
        starts = np.flatnonzero(is_first)
        count = np.diff(np.append(starts, len(point)))
        weight = np.ones(len(point)) if self.weight is None else self.weight[order]

        def total(values: FloatArray) -> FloatArray:
            return np.add.reduceat(values, starts) if len(starts) else np.empty(0)

        n = total(weight)
        mean = total(weight * delta) / n
        m2 = total(weight * (delta - np.repeat(mean, count)) ** 2)

        row = point[starts]
        sizes_of = np.bincount(row, minlength=self.n_points)
        column = np.arange(len(row)) - np.repeat(np.cumsum(sizes_of) - sizes_of, sizes_of)
        shape = (self.n_points, int(sizes_of.max(initial=0)))

        def spread(values: AnyArray, empty: float) -> FloatArray:
            dense = np.full(shape, empty)
            dense[row, column] = values
            return dense

        counts = None if self.weight is None else self.counts().astype(np.float64)
        columns = spread(k[starts], 1.0), spread(n, 0.0), spread(mean, 0.0), spread(m2, 0.0)
        return Moments(*columns, counts)

    def blocks(self, n_rows: int) -> Iterator[tuple[slice, Moments]]:
        """Yield the moments in blocks of points whose tables stay below ``n_rows`` entries."""
        moments = self.moments()
        step = max(1, n_rows // max(1, moments.k.shape[1]))
        for start in range(0, len(moments), step):
            rows = slice(start, start + step)
            yield rows, moments.block(rows)


def blocks_of(parts: Iterable[Contributions], n_rows: int) -> Iterator[tuple[slice, Moments]]:
    """Yield the moments of parts of consecutive points, in blocks as `Contributions.blocks` does.

    Examples
    --------
    >>> part = Contributions.from_arrays(point=[0, 1], k=[1, 1], delta=[0.1, 0.2])
    >>> [rows for rows, _ in blocks_of([part, part], 1)]
    [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    start = 0
    for part in parts:
        for rows, moments in part.blocks(n_rows):
            yield slice(start + rows.start, start + rows.start + len(moments)), moments
        start += part.n_points
