"""Protocols of contributions for fits, in memory or on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from apiece._base.typing import AnyArray, BoolArray, IntArray, Places, PointIds
from apiece.records._moments import Moments

if TYPE_CHECKING:
    from apiece.records._contributions import Contributions
    from apiece.records._trainings import Trainings


class Trained(Protocol):
    """Something with the losses of trained models."""

    @property
    def attrs(self) -> dict[str, Any]:
        """Where the losses came from."""
        ...

    def losses(self) -> Moments:
        """Summarise the known losses $L(f_D)$, one for each task, by cardinality: one row."""
        ...


class Table(Trained, Protocol):
    """Contributions for a fit, in memory or streamed from a disk."""

    @property
    def ids(self) -> PointIds:
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
        """Return which points have a contribution other than zero, shape ``(n_points,)``."""
        ...

    def sizes(self) -> tuple[IntArray, IntArray]:
        """Return the distinct cardinalities, rising, and how often each occurs."""
        ...

    def of(self, points: Places) -> Contributions:
        """Return only the rows of some points, with their ids."""
        ...

    def between(self, low: int, high: int) -> Table:
        """Return only the rows at cardinalities from ``low`` to ``high``."""
        ...

    def parts(self) -> Iterator[Contributions]:
        """Yield the rows of consecutive points, as many as memory allows at once."""
        ...

    def blocks(self, n_rows: int) -> Iterator[tuple[slice, Moments]]:
        """Yield the moments in blocks of points whose tables stay below ``n_rows`` entries."""
        ...


@runtime_checkable
class Stored(Protocol):
    """Stored contributions, such as a run, which are opened for reading."""

    @property
    def labels(self) -> AnyArray:
        """The labels of the valued points, shape ``(n_points,)``."""
        ...

    @property
    def attrs(self) -> dict[str, Any]:
        """Where the contributions came from."""
        ...

    def opened(self, memory: int | str | None = None) -> AbstractContextManager[Table]:
        """Return every contribution for a ``with`` block, streamed if memory is bounded."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return which contributions are there now, in a form that a file can keep."""
        ...


@runtime_checkable
class StoredTrainings(Protocol):
    """A run that may hold trainings in place of contributions."""

    @property
    def has_trainings(self) -> bool:
        """Whether it holds trainings."""
        ...

    def trainings(self) -> Trainings:
        """Return every stored training, in order."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return what is there now, in a form that a file can keep."""
        ...
