"""What a store of shards guarantees, whatever it keeps them in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from apiece.errors import StoreError
from apiece.records import Anchor
from apiece.store._layout import Layout, Unit
from apiece.store._manifest import Manifest, refuse_mismatch
from apiece.store._shards import Footer, Shard

if TYPE_CHECKING:
    import pandas as pd


class Store(ABC):
    """Where the shards of one run are kept, by the index of their unit of work.

    `collect` accepts a store as ``to``. The base class states what any store must guarantee; the
    tests of `apiece.testing.StoreContract` check it.

    **Durability.** A shard that `write` has accepted is there, whole, until a shard that holds more
    takes its place. A reader sees all of a shard or none of it.

    **Several writers.** Any number of collectors, in threads, processes or on other machines, may
    write to one run at the same time. The contributions of a unit depend on the plan alone, so
    two shards of one unit never contradict each other; they differ only in how much they hold:

    - the unit at the end of a plan grows when the run is extended,
    - a collector may have failed at tasks that another one can compute.

    A shard is therefore replaced only by one that holds more (`Footer.holds_more_than`), or if it
    is damaged. Comparing and replacing are one step for all writers.

    **Growing.** `extend` only ever raises the number of samples. It compares with the manifest that
    is stored at that moment, in one step for all collectors, so that of several requests the
    largest is kept. A store object keeps the manifest that it last read: after another process
    has extended the run, `manifest`, `layout` and `indices` describe the run as it was before, and
    a shard may hold more tasks than they say.

    **Listing.** `indices` may miss a shard that is being written while the store is listed, and
    may name one whose contents are damaged; `read` notices damage.

    Examples
    --------
    >>> from apiece.store import MemoryStore
    >>> isinstance(MemoryStore(), Store)
    True
    """

    @property
    @abstractmethod
    def manifest(self) -> Manifest:
        """What the run is about, as last read by this object; StoreError before `start`."""

    @property
    @abstractmethod
    def points(self) -> pd.DataFrame:
        """The points by position: ``id``, ``label``, ``role``, ``valued``."""

    @abstractmethod
    def has_run(self) -> bool:
        """Whether a run has been started here."""

    @abstractmethod
    def start(self, manifest: Manifest, points: pd.DataFrame) -> None:
        """Start a run; if there is one, accept the request as `extend` does.

        Of several collectors that start at once, one manifest is kept, and all use it.

        Raises
        ------
        StoreError
            If the run that is there is about other contributions.
        """

    @abstractmethod
    def extend(self, manifest: Manifest) -> None:
        """Accept a manifest that asks for as many or more samples of the same contributions.

        Raises
        ------
        StoreError
            If it is about other contributions.
        """

    @abstractmethod
    def write(self, shard: Shard) -> None:
        """Keep a shard, unless the one that is there is whole and holds as much.

        Raises
        ------
        StoreError
            If it cannot be kept; what was there before is untouched.
        """

    @abstractmethod
    def indices(self) -> list[int]:
        """Return the indices of the shards that are there, rising."""

    @abstractmethod
    def footer(self, index: int) -> Footer:
        """Return the description of a shard, without reading its contributions.

        Raises
        ------
        StoreError
            If the shard is truncated; damage within may go unnoticed.
        FileNotFoundError
            If there is none.
        """

    @abstractmethod
    def read(self, index: int) -> Shard:
        """Return a shard, checked.

        Raises
        ------
        StoreError
            If the shard is damaged.
        FileNotFoundError
            If there is none.
        """

    @property
    def anchor(self) -> Anchor | None:
        """Losses of models trained on nearly all rows; None if this store does not keep them."""
        return None

    def keep_anchor(self, anchor: Anchor) -> None:  # noqa: B027  # optional: nothing to do by default
        """Keep an anchor; a store that does not is complete without."""

    @property
    def layout(self) -> Layout:
        """How tasks are grouped into shards."""
        return self.manifest.layout

    @property
    def path(self) -> Path | None:
        """The folder of the run, or None if it is not one on this machine's disks."""
        return None

    def mark(self, token: str) -> None:  # noqa: B027  # optional: nothing to do by default
        """Leave a mark by which a copy of this object, in another process, knows the place again.

        The default is for stores that other processes cannot reach: it does nothing.
        """

    def is_marked(self, token: str) -> bool:
        """Whether the mark is visible from here; if so, workers write shards themselves."""
        return False

    def unmark(self, token: str) -> None:  # noqa: B027  # optional: nothing to do by default
        """Remove the mark."""

    def is_complete(self, unit: Unit) -> bool:
        """Whether a shard is there that holds all of a unit of work, by its footer."""
        try:
            return self.footer(unit.index).completes(unit)
        except (StoreError, FileNotFoundError):
            return False


def grown_manifest(where: object, stored: Manifest, wanted: Manifest) -> Manifest | None:
    """Return the manifest for both requests together, or None if the stored one suffices.

    Raises
    ------
    StoreError
        If they are about different contributions.

    Examples
    --------
    >>> from apiece.testing import StoreContract
    >>> stored, wanted = (StoreContract.manifest(None, n_tasks) for n_tasks in (4, 6))
    >>> grown_manifest("a run", stored, wanted).samples
    6
    """
    refuse_mismatch(where, stored, wanted)
    before = stored.stages or []
    has_all_stages = (wanted.stages or [])[: len(before)] == before
    if wanted.layout.n_tasks <= stored.layout.n_tasks or not has_all_stages:
        return None
    return replace(
        stored,
        samples=wanted.samples,
        n_contributions=wanted.n_contributions,
        stages=wanted.stages,
        layout=replace(stored.layout, n_tasks=wanted.layout.n_tasks),
    )
