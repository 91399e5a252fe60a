"""Contributions that need not fit into memory, in blocks of points for fits.

Shards are ordered by task; fits need all contributions of a point. So every shard is read once and
its rows are distributed to scratch files, one per block of consecutive points; a block then fits
into memory. The time is proportional to the number of contributions and does not depend on the
memory. Within a block the rows are in the order of `Run.contributions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

import numpy as np

from apiece._base.files import writing_scratch
from apiece._base.typing import AnyArray, BoolArray, IntArray, Places, PointIds
from apiece.records import Contributions, Moments, Theory, blocks_of

_ROW: Final = np.dtype(
    [
        *(("task", "<i4"), ("k", "<i4"), ("point", "<i4"), ("delta", "<f8"), ("loss", "<f8")),
        *(("control", "<f8"), ("active", "<i4"), ("chance", "<f8")),
    ]
)
_PLAIN: Final = ("task", "k", "point", "delta", "loss")
_BYTES_PER_ROW: Final = 200  # memory of a row, with its moments and the sort
_MOST_BLOCKS: Final = 500  # scratch files open at once


class Losses:
    """The losses of tasks, gathered from shards; a task may be split among shards in a row."""

    def __init__(self) -> None:
        self.moments = Moments.joined([])
        self._last = -1

    def add(self, columns: dict[str, AnyArray]) -> None:
        """Take in the tasks that begin in a shard."""
        rows = np.flatnonzero(columns["task"] > self._last)
        if len(rows):
            begun: dict[str, Any] = {name: columns[name][rows] for name in _PLAIN}
            losses = Contributions(**begun, ids=PointIds(np.empty(0))).losses()
            self.moments = Moments.joined([self.moments, losses])
            self._last = int(begun["task"].max())


class Streamed:
    """The contributions of a run, distributed to scratch files by point; a context manager.

    Parameters
    ----------
    shards
        Columns of every shard in the order of tasks, with ``point`` a place among ``ids``.
    ids
        The points' names, shape ``(n_points,)``.
    attrs
        Where the rows came from.
    n_rows
        Approximate number of contributions.
    memory
        Bytes that a block may take.
    has_control
        Whether contributions are about the population; only then ``control`` and ``active`` are
        kept.
    has_chance
        Whether some contributions had a ``chance`` below one to be drawn.
    theory
        What theory predicts for each point, or None.

    Examples
    --------
    >>> columns = {name: np.zeros(2, dtype=int) for name in ("task", "point")}
    >>> columns |= {"k": np.array([9, 9]), "delta": np.array([0.1, 0.2]), "loss": np.zeros(2)}
    >>> with Streamed([columns], ids=np.array(["a"]), attrs={}, n_rows=2, memory=10**6) as table:
    ...     table.counts()
    array([2])
    """

    def __init__(
        self,
        shards: Iterable[dict[str, AnyArray]],
        *,
        ids: PointIds,
        attrs: dict[str, Any],
        n_rows: int,
        memory: int,
        has_control: bool = False,
        has_chance: bool = False,
        theory: Theory | None = None,
    ) -> None:
        self.ids, self.attrs, self.theory = ids, attrs, theory
        self._has_control, self._has_chance = has_control, has_chance
        n_blocks = -(-n_rows * _BYTES_PER_ROW // max(memory, 1))
        n_blocks = min(max(n_blocks, 1), max(len(ids), 1), _MOST_BLOCKS)
        self._borders = np.linspace(0, len(ids), n_blocks + 1).astype(np.int64)
        self._span: tuple[int, int] | None = None
        self._losses = Losses()
        self._forget()
        with writing_scratch(n_rows * _ROW.itemsize):
            self._scratch = TemporaryDirectory(prefix="apiece-")
            try:
                self._deal(shards)
            except BaseException:
                self._scratch.cleanup()
                raise

    def _deal(self, shards: Iterable[dict[str, AnyArray]]) -> None:
        with ExitStack() as stack:
            files = [stack.enter_context(open(file, "wb")) for file in self._files]
            for columns in shards:
                rows = np.empty(len(columns["delta"]), dtype=_ROW)
                for name in _ROW.names or ():
                    rows[name] = columns.get(name, 0)
                self._losses.add(columns)
                self._count(rows)
                block = np.searchsorted(self._borders, rows["point"], side="right") - 1
                for index in np.unique(block):
                    files[index].write(rows[block == index])  # `tofile` hides full disks

    def _forget(self) -> None:
        self._counts = np.zeros(len(self.ids), dtype=np.int64)
        self._nonzero = np.zeros(len(self.ids), dtype=bool)
        self._sizes: dict[int, int] = {}

    def _count(self, rows: AnyArray) -> None:
        first = int(rows["point"].min(initial=len(self.ids)))
        counts = np.bincount(rows["point"] - first)  # from the first of this shard
        self._counts[first : first + len(counts)] += counts
        self._nonzero[rows["point"][rows["delta"] != 0]] = True
        for k, count in zip(*np.unique(rows["k"], return_counts=True), strict=True):
            self._sizes[int(k)] = self._sizes.get(int(k), 0) + int(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.cleanup()

    def __len__(self) -> int:
        return int(self._counts.sum())

    @property
    def n_points(self) -> int:
        """How many points the table is about, sampled or not."""
        return len(self.ids)

    @property
    def k_range(self) -> tuple[int, int]:
        """The smallest and the largest cardinality sampled."""
        return (min(self._sizes), max(self._sizes)) if self._sizes else (1, 1)

    def counts(self) -> IntArray:
        """Count the contributions of each point, shape ``(n_points,)``."""
        return self._counts

    def nonzero(self) -> BoolArray:
        """Return which points have a contribution other than zero, shape ``(n_points,)``."""
        return self._nonzero

    def sizes(self) -> tuple[IntArray, IntArray]:
        """Return the distinct cardinalities, rising, and how often each occurs."""
        sizes = sorted(self._sizes)
        return np.array(sizes), np.array([self._sizes[k] for k in sizes])

    def of(self, points: Places) -> Contributions:
        """Return the rows of some points alone, and their ids."""
        place = np.full(self.n_points, -1)
        place[points] = np.arange(len(points))
        parts = [rows[place[rows["point"]] >= 0] for rows in map(self._read, self._files)]
        rows = np.concatenate(parts)
        rows = rows[np.argsort(rows["task"], kind="stable")]
        return self._table(rows, place[rows["point"]], points)

    def losses(self) -> Moments:
        """Summarise the known losses $L(f_D)$, one for each task, by cardinality: one row."""
        moments = self._losses.moments
        return moments if self._span is None else moments.sizes(*self._span)

    def between(self, low: int, high: int) -> Streamed:
        """Return the rows at cardinalities from ``low`` to ``high`` alone, from the same files."""
        part = copy(self)
        part._span = (low, high)
        part._forget()
        for file in part._files:
            part._count(part._read(file))
        return part

    def parts(self) -> Iterator[Contributions]:
        """Yield the rows of consecutive points, one block after another."""
        for start, end, file in zip(self._borders, self._borders[1:], self._files, strict=False):
            rows = self._read(file)
            places = Places(np.arange(start, end))
            yield self._table(rows, rows["point"].astype(np.int64) - start, places)

    def blocks(self, n_rows: int) -> Iterator[tuple[slice, Moments]]:
        """Yield the moments in blocks of points whose tables stay below ``n_rows`` entries."""
        return blocks_of(self.parts(), n_rows)

    @property
    def _files(self) -> list[Path]:
        folder = Path(self._scratch.name)
        return [folder / str(index) for index in range(len(self._borders) - 1)]

    def _table(self, rows: AnyArray, point: IntArray, places: Places) -> Contributions:
        return Contributions(
            task=rows["task"].astype(np.int64),
            k=rows["k"].astype(np.int64),
            point=Places(point),
            delta=rows["delta"].copy(),
            loss=rows["loss"].copy(),
            ids=PointIds(self.ids[places]),
            attrs=self.attrs,
            control=rows["control"].copy() if self._has_control else None,
            active=rows["active"].astype(np.int64) if self._has_control else None,
            chance=rows["chance"].copy() if self._has_chance else None,
            theory=None if self.theory is None else self.theory.of(places),
        )

    def _read(self, file: Path) -> AnyArray:
        rows = np.fromfile(file, dtype=_ROW)
        if self._span is None:
            return rows
        low, high = self._span
        return rows[(rows["k"] >= low) & (rows["k"] <= high)]
