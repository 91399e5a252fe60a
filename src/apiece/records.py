r"""The nouns that cross walls: a task, its outcome, a plan of tasks, a table of contributions.

A *task* is one draw of a training set $D$ of $k$ points. It yields one *contribution*

$$\Delta(z, D) = L(f_D) - L(f_{D \cup z})$$

for every valued point $z$ that is not in $D$: positive when the point helps, in units of the loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from apiece._typing import AnyArray, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Task:
    """One draw of a training set, and the points to value against it.

    Parameters
    ----------
    index
        Place of the task in its plan; with the run's seed it decides everything random.
    subset
        Positions in the pool that make up ``D``, shape ``(k,)``.
    points
        Positions to value, none of them in ``subset``; positions from the pool's size upwards
        are candidates.
    seed
        Seed of the models trained in this task, the same with and without the added point.
    rows
        Where groups are valued: the positions that join ``D`` together, for each of ``points``,
        which then are positions among the groups. None where every point is its own row.
    """

    index: int
    subset: IntArray
    points: IntArray
    seed: int
    rows: tuple[IntArray, ...] | None = None

    @property
    def cardinality(self) -> int:
        """How many training points ``D`` holds."""
        return len(self.subset)

    def part(self, which: IntArray) -> Task:
        """Return the task with some of its points, by their places in ``points``."""
        rows = None if self.rows is None else tuple(self.rows[place] for place in which)
        return replace(self, points=self.points[which], rows=rows)


@dataclass(frozen=True)
class Outcome:
    """What an engine computed for one task.

    Parameters
    ----------
    loss
        The loss of the model trained on ``D`` alone.
    delta
        Contribution of every point of the task, in its order, shape ``(n_points,)``.
    certificate
        The largest remaining error that the engine can vouch for, such as a Newton decrement;
        nan where training is taken as it is.
    notes
        Counts worth telling, such as how many fits stopped before convergence.
    """

    loss: float
    delta: FloatArray
    certificate: float = float("nan")
    notes: dict[str, int] = field(default_factory=dict)


def caveat(attrs: Mapping[str, Any]) -> str | None:
    """Return what must be said beside any result from approximate contributions, or None.

    Parameters
    ----------
    attrs
        Where the result comes from; ``attrs["engine"]`` describes the engine.

    >>> caveat({"engine": {"name": "first-order", "is_exact": False, "correlation": 0.973}})
    'approximate: engine first-order, correlation 0.973 with exact contributions'
    """
    engine = attrs.get("engine") or {}
    if engine.get("is_exact", True):
        return None
    known = engine.get("correlation")
    measured = "not measured" if known is None else f"{known:.3f} with exact contributions"
    return f"approximate: engine {engine['name']}, correlation {measured}"


def marked(table: pd.DataFrame, attrs: Mapping[str, Any]) -> pd.DataFrame:
    """Mark a table of points that rests on approximate contributions, by a column of its own.

    ``table.attrs["caveat"]`` then holds the words.
    """
    weakness = caveat(attrs)
    if weakness:
        table["approximate"] = True
        table.attrs["caveat"] = weakness
    return table


class Plan(Protocol):
    """A fixed sequence of tasks; the same settings and seed give the same plan."""

    def __len__(self) -> int:
        """Return the number of tasks."""
        ...

    def __getitem__(self, index: int) -> Task:
        """Draw the task of that index."""
        ...

    @property
    def points_per_task(self) -> int:
        """The most points that one task values."""
        ...

    @property
    def n_contributions(self) -> int:
        """How many contributions all tasks yield together."""
        ...


@dataclass(frozen=True)
class Moments:
    """Count, mean and spread of the contributions of each point at each cardinality.

    Rows are points; each row lists that point's distinct cardinalities in rising order, padded
    with ``n = 0`` (and ``k = 1``). They are sufficient for every Gaussian likelihood.

    Parameters
    ----------
    k, n, mean, m2
        Cardinality, number of contributions, their mean, and the sum of their squared deviations
        from it; all of shape ``(n_points, n_sizes)``.
    """

    k: FloatArray
    n: FloatArray
    mean: FloatArray
    m2: FloatArray

    def __len__(self) -> int:
        return len(self.k)

    def block(self, rows: slice | IntArray) -> Moments:
        """Return the moments of some of the points."""
        return Moments(self.k[rows], self.n[rows], self.mean[rows], self.m2[rows])

    def sizes(self, low: int, high: int) -> Moments:
        """Return the moments of one row at the cardinalities from ``low`` to ``high``."""
        keep = (self.k[0] >= low) & (self.k[0] <= high)
        return Moments(self.k[:, keep], self.n[:, keep], self.mean[:, keep], self.m2[:, keep])

    @classmethod
    def joined(cls, parts: Iterable[Moments]) -> Moments:
        r"""Return the moments of all contributions together, from one row for each part of them.

        At each size $n = \sum_j n_j$, $\bar\Delta = \sum_j n_j \bar\Delta_j / n$ and
        $M = \sum_j M_j + \sum_j n_j (\bar\Delta_j - \bar\Delta)^2$.
        """
        rows = [np.concatenate([part.k, part.n, part.mean, part.m2]) for part in parts]
        k, n, mean, m2 = np.concatenate([np.empty((4, 0)), *rows], axis=1)
        sizes, place = np.unique(k, return_inverse=True)

        def total(values: FloatArray) -> FloatArray:
            return np.bincount(place, values).astype(np.float64)

        middle = total(n * mean) / total(n)
        spread = total(m2 + n * (mean - middle[place]) ** 2)
        return cls(sizes[None], total(n)[None], middle[None], spread[None])


class Trained(Protocol):
    """What knows the losses of the models that were trained."""

    @property
    def attrs(self) -> dict[str, Any]:
        """Where the losses came from."""
        ...

    def losses(self) -> Moments:
        """Summarise the known losses $L(f_D)$, one for each task, by cardinality: one row."""
        ...


class Table(Trained, Protocol):
    """What a fit needs of contributions, whether they are in memory or streamed from a disk."""

    @property
    def ids(self) -> AnyArray:
        """The points' names, shape ``(n_points,)``."""
        ...

    @property
    def n_points(self) -> int:
        """How many points the table is about."""
        ...

    @property
    def k_range(self) -> tuple[int, int]:
        """The smallest and the largest cardinality sampled."""
        ...

    def __len__(self) -> int:
        """Return the number of contributions."""
        ...

    def counts(self) -> IntArray:
        """Count the contributions of each point, shape ``(n_points,)``."""
        ...

    def nonzero(self) -> BoolArray:
        """Tell which points have a contribution other than zero, shape ``(n_points,)``."""
        ...

    def sizes(self) -> tuple[IntArray, IntArray]:
        """Return the distinct cardinalities, rising, and how often each occurs."""
        ...

    def of(self, points: IntArray) -> Contributions:
        """Return the rows of some points alone, and their ids."""
        ...

    def between(self, low: int, high: int) -> Table:
        """Return the rows at cardinalities from ``low`` to ``high`` alone."""
        ...

    def parts(self) -> Iterator[Contributions]:
        """Yield the rows of consecutive points, as many as memory allows at once."""
        ...

    def blocks(self, n_rows: int) -> Iterator[tuple[slice, Moments]]:
        """Yield the moments in blocks of points whose tables stay below ``n_rows`` entries."""
        ...


@dataclass(frozen=True, eq=False)
class Contributions:
    """A table of contributions: one row for each task and point.

    Parameters
    ----------
    task, k, point
        Index of the task, cardinality of its ``D``, and the point as a position in ``ids``;
        each of shape ``(n_rows,)``.
    delta
        The contributions, in units of the loss, shape ``(n_rows,)``.
    loss
        Loss of the model trained on ``D`` alone, shape ``(n_rows,)``; nan where unknown.
    ids
        The points' names, shape ``(n_points,)``.
    attrs
        Where the rows came from: dataset, model, metric, design, seed.
    """

    task: IntArray
    k: IntArray
    point: IntArray
    delta: FloatArray
    loss: FloatArray
    ids: AnyArray
    attrs: dict[str, Any] = field(default_factory=dict)

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
        """Build a table from columns; without ``task`` every row is a task of its own.

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
                f"point reaches from {point_.min()} to {point_.max()}: expected positions in the "
                f"{len(names)} ids. Pass ids for every point."
            )
        return cls(point=point_, ids=names, attrs=dict(attrs or {}), **columns)

    @classmethod
    def concat(cls, parts: Iterable[Contributions]) -> Contributions:
        """Join tables that share their ids, in order."""
        tables = list(parts)
        first = tables[0]
        columns = {
            name: np.concatenate([getattr(table, name) for table in tables])
            for name in ("task", "k", "point", "delta", "loss")
        }
        return cls(ids=first.ids, attrs=first.attrs, **columns)

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
        """Tell which points have a contribution other than zero, shape ``(n_points,)``."""
        is_there = np.zeros(self.n_points, dtype=bool)
        is_there[self.point[self.delta != 0]] = True
        return is_there

    def sizes(self) -> tuple[IntArray, IntArray]:
        """Return the distinct cardinalities, rising, and how often each occurs."""
        sizes, counts = np.unique(self.k, return_counts=True)
        return sizes, counts

    def of(self, points: IntArray) -> Contributions:
        """Return the rows of some points alone, and their ids.

        >>> table = Contributions.from_arrays(point=[0, 1, 2], k=[9, 9, 9], delta=[0.1, 0.2, 0.3])
        >>> table.of(np.array([2, 0])).table()["delta"].tolist()
        [0.1, 0.3]
        """
        place = np.full(self.n_points, -1)
        place[points] = np.arange(len(points))
        found = self.where(place[self.point] >= 0)
        return replace(found, point=place[found.point], ids=self.ids[points])

    def between(self, low: int, high: int) -> Contributions:
        """Return the rows at cardinalities from ``low`` to ``high`` alone."""
        return self.where((self.k >= low) & (self.k <= high))

    def parts(self) -> Iterator[Contributions]:
        """Yield the rows of all points at once, since they are in memory."""
        yield self

    def losses(self) -> Moments:
        """Summarise the known losses $L(f_D)$, one for each task, by cardinality: one row.

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
        return Contributions(
            task=self.task,
            k=self.k,
            point=self.point,
            delta=self.delta * factor,
            loss=self.loss * factor,
            ids=self.ids,
            attrs=self.attrs,
        )

    def where(self, keep: npt.NDArray[np.bool_]) -> Contributions:
        """Return the rows for which ``keep`` is true, with the same ids."""
        return Contributions(
            task=self.task[keep],
            k=self.k[keep],
            point=self.point[keep],
            delta=self.delta[keep],
            loss=self.loss[keep],
            ids=self.ids,
            attrs=self.attrs,
        )

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
        ``n`` = $n$, ``mean`` = $\bar\Delta$ and ``m2`` = $\sum_j (\Delta_j - \bar\Delta)^2$.
        """
        order = np.lexsort((self.k, self.point))
        point, k, delta = self.point[order], self.k[order], self.delta[order]
        is_first = np.ones(len(point), dtype=bool)
        is_first[1:] = (point[1:] != point[:-1]) | (k[1:] != k[:-1])
        starts = np.flatnonzero(is_first)
        n = np.diff(np.append(starts, len(point))).astype(np.float64)
        mean = np.add.reduceat(delta, starts) / n if len(starts) else np.empty(0)
        residual = delta - np.repeat(mean, n.astype(np.int64))
        m2 = np.add.reduceat(residual**2, starts) if len(starts) else np.empty(0)

        row = point[starts]
        sizes_of = np.bincount(row, minlength=self.n_points)
        column = np.arange(len(row)) - np.repeat(np.cumsum(sizes_of) - sizes_of, sizes_of)
        shape = (self.n_points, int(sizes_of.max(initial=0)))

        def spread(values: AnyArray, empty: float) -> FloatArray:
            dense = np.full(shape, empty)
            dense[row, column] = values
            return dense

        return Moments(spread(k[starts], 1.0), spread(n, 0.0), spread(mean, 0.0), spread(m2, 0.0))

    def blocks(self, n_rows: int) -> Iterator[tuple[slice, Moments]]:
        """Yield the moments in blocks of points whose tables stay below ``n_rows`` entries."""
        moments = self.moments()
        step = max(1, n_rows // max(1, moments.k.shape[1]))
        for start in range(0, len(moments), step):
            rows = slice(start, start + step)
            yield rows, moments.block(rows)
