"""Stores: where shards go. A folder keeps them for good, memory for as long as the process lives.

A folder looks like this, and every file in it is readable without apiece::

    manifest.json              dataset, model, metric, design, seed, versions
    points.parquet             position, id, label, role (pool or candidate), valued
    shards/shard-00000000.parquet
    anchor.json                losses of models trained on nearly all rows
    laws.parquet               once laws have been fitted
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apiece._base.files import read_table
from apiece.errors import StoreError
from apiece.records import Anchor
from apiece.store._layout import Layout, Unit
from apiece.store._manifest import Manifest, encode_manifest, read_manifest, refuse_mismatch
from apiece.store._places import Disk, locked, place_of
from apiece.store._shards import Footer, Shard, decode_footer, decode_shard, encode_shard

if TYPE_CHECKING:
    import pandas as pd

_ANCHOR = "anchor.json"
_SHARD_NAME = re.compile(r"shard-(\d{8,})\.parquet")


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

    def keep_anchor(self, anchor: Anchor) -> None:  # noqa: B027
        """Keep an anchor; a store that does not is complete without."""

    @property
    def layout(self) -> Layout:
        """How tasks are grouped into shards."""
        return self.manifest.layout

    @property
    def path(self) -> Path | None:
        """The folder of the run, or None if it is not one on this machine's disks."""
        return None

    def mark(self, token: str) -> None:  # noqa: B027
        """Leave a mark by which a copy of this object, in another process, knows the place again.

        The default is for stores that other processes cannot reach: it does nothing.
        """

    def is_marked(self, token: str) -> bool:
        """Whether the mark is visible from here; if so, workers write shards themselves."""
        return False

    def unmark(self, token: str) -> None:  # noqa: B027
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
    if wanted.layout.n_tasks <= stored.layout.n_tasks:
        return None
    return replace(
        stored,
        samples=wanted.samples,
        n_contributions=wanted.n_contributions,
        layout=replace(stored.layout, n_tasks=wanted.layout.n_tasks),
    )


class MemoryStore(Store):
    """Shards in a dictionary, for as long as the process lives; safe for several threads.

    Parameters
    ----------
    manifest, points
        As for `start`; leave them out to hand an empty store to ``collect(to=...)``.

    Examples
    --------
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> store = MemoryStore()
    >>> _ = apiece.collect(load_demo()[0], to=store, sizes=(20, 40), samples=3, progress=False)
    >>> store.manifest.engine.name
    'logistic'
    """

    def __init__(
        self, manifest: Manifest | None = None, points: pd.DataFrame | None = None
    ) -> None:
        self._manifest = manifest
        self._points = points
        self._shards: dict[int, Shard] = {}
        self._anchor: Anchor | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def __str__(self) -> str:
        return "memory"

    @property
    def manifest(self) -> Manifest:
        """What the run is about."""
        if self._manifest is None:
            raise StoreError(
                "this store holds no run yet: expected one that was started. Pass it to "
                "collect(..., to=store) first."
            )
        return self._manifest

    @property
    def points(self) -> pd.DataFrame:
        """The points by position: ``id``, ``label``, ``role``, ``valued``."""
        assert self._points is not None, self.manifest  # a run has both
        return self._points

    def has_run(self) -> bool:
        """Whether a run has been started here."""
        return self._manifest is not None

    def start(self, manifest: Manifest, points: pd.DataFrame) -> None:
        """Start a run, or accept the request as `extend` does."""
        with self._lock:
            if self._manifest is None:
                self._manifest, self._points = manifest, points
                return
        self.extend(manifest)

    def extend(self, manifest: Manifest) -> None:
        """Accept a manifest that asks for as many or more samples of the same contributions."""
        with self._lock:
            stored = self.manifest
            self._manifest = grown_manifest("this run", stored, manifest) or stored

    def write(self, shard: Shard) -> None:
        """Keep a shard, unless the one that is there holds as much."""
        with self._lock:
            known = self._shards.get(shard.index)
            if known is None or shard.footer.holds_more_than(known.footer):
                self._shards[shard.index] = shard

    @property
    def anchor(self) -> Anchor | None:
        """Losses of models trained on nearly all rows; None before `keep_anchor`."""
        return self._anchor

    def keep_anchor(self, anchor: Anchor) -> None:
        """Keep an anchor."""
        self._anchor = anchor

    def indices(self) -> list[int]:
        """Return the indices of the shards that are there, rising."""
        with self._lock:
            return sorted(self._shards)

    def footer(self, index: int) -> Footer:
        """Return the description of a shard."""
        return self.read(index).footer

    def read(self, index: int) -> Shard:
        """Return a shard."""
        if index not in self._shards:
            raise FileNotFoundError(f"shard {index} is not in memory")
        return self._shards[index]


class FolderStore(Store):
    """Shards as Parquet files in a folder; safe against kills and with several collectors.

    Parameters
    ----------
    where
        The folder of the run, or its address in an object store (``s3://bucket/run``). It may
        be empty: then `start` begins a run.

    Examples
    --------
    >>> import tempfile
    >>> FolderStore(tempfile.mkdtemp()).has_run()
    False
    """

    def __init__(self, where: str | Path) -> None:
        self.place = place_of(where)
        self._manifest: Manifest | None = None

    def __str__(self) -> str:
        return str(self.place)

    @classmethod
    def create(cls, where: str | Path, manifest: Manifest, points: pd.DataFrame) -> FolderStore:
        """Start a run, or open the one that is there if it is about the same contributions."""
        store = cls(where)
        store.start(manifest, points)
        return store

    @property
    def manifest(self) -> Manifest:
        """What the run is about, as this object last read it."""
        if self._manifest is None:
            self._manifest = read_manifest(self.place)
        return self._manifest

    @property
    def path(self) -> Path | None:
        """The folder, or None in an object store."""
        return self.place.path if isinstance(self.place, Disk) else None

    def has_run(self) -> bool:
        """Whether a run has been started here."""
        return self.place.has("manifest.json")

    def start(self, manifest: Manifest, points: pd.DataFrame) -> None:
        """Start a run, or open the one that is there if it is about the same contributions.

        Raises
        ------
        StoreError
            If the folder holds another run or something else, or cannot be written.
        """
        place = self.place
        names = place.names()  # listed first: what another collector adds follows its manifest
        is_new = not self.has_run()
        if is_new and any(not _is_ours(name) for name in names):
            raise StoreError(
                f"{place} holds files that are not a run: expected a new or empty folder. "
                "Point `to` (--to) at another folder."
            )
        is_whole = not is_new and place.has("points.parquet")
        table = b"" if is_whole else _encode_points(points)
        if is_new:
            signed = replace(manifest, files={"points.parquet": _digest(table)})
            place.write("manifest.json", encode_manifest(signed), replace=False)
        self.extend(manifest)  # refuses another run, before anything of it is touched
        if not is_whole:
            place.write("points.parquet", table)
        place.sweep()

    @property
    def points(self) -> pd.DataFrame:
        """The points by position: ``id``, ``label``, ``role``, ``valued``."""
        try:
            data = self.place.read("points.parquet")
            known = self.manifest.files.get("points.parquet")
            if known not in (None, _digest(data)):
                raise ValueError("its contents do not match the digest in the manifest")
            table: pd.DataFrame = read_table(io.BytesIO(data)).to_pandas(use_threads=False)
            return table.set_index("position")
        except MemoryError:  # no fault of the file
            raise
        except Exception as error:  # reading a broken file may raise anything
            raise StoreError(
                f"{self.place}/points.parquet cannot be read ({error}): expected the table of "
                "points that collect wrote. Remove it and collect again with the same settings: "
                "it is written anew, and nothing else is computed again."
            ) from error

    def extend(self, manifest: Manifest) -> None:
        """Accept a manifest that asks for as many or more samples of the same contributions."""
        self._manifest = read_manifest(self.place)
        if grown_manifest(self.place, self._manifest, manifest) is None:
            return
        with locked(self.place, "manifest"):  # another collector may be extending it, too
            stored = read_manifest(self.place)
            grown = grown_manifest(self.place, stored, manifest)
            if grown is not None:
                self.place.write("manifest.json", encode_manifest(grown))
            self._manifest = grown or stored

    def write(self, shard: Shard) -> None:
        """Keep a shard, unless the one that is there is whole and holds as much."""
        name, data = _name(shard.index), encode_shard(shard)
        if self.place.write(name, data, replace=False):
            return
        with locked(self.place, f"shard-{shard.index}"):
            try:
                is_better = shard.footer.holds_more_than(self.read(shard.index).footer)
            except (StoreError, FileNotFoundError):  # damaged, or removed a moment ago
                is_better = True
            if is_better:
                self.place.write(name, data)

    @property
    def anchor(self) -> Anchor | None:
        """Losses of models trained on nearly all rows; None if there are none, or not readable."""
        if not self.place.has(_ANCHOR):
            return None
        try:
            return Anchor.from_json(json.loads(self.place.read(_ANCHOR)))
        except (ValueError, TypeError, KeyError):
            return None  # it is measured again

    def keep_anchor(self, anchor: Anchor) -> None:
        """Write ``anchor.json``, whole or not at all."""
        self.place.write(_ANCHOR, json.dumps(anchor.to_json()).encode("utf-8"))

    def indices(self) -> list[int]:
        """Return the indices of the shards that are there, rising."""
        within = len(self.layout)  # further files belong to a larger request of another collector
        names = (_SHARD_NAME.fullmatch(name) for name in self.place.names("shards"))
        return sorted(int(name[1]) for name in names if name and int(name[1]) < within)

    def read(self, index: int) -> Shard:
        """Return a shard, checked against its digest.

        Raises
        ------
        StoreError
            If the file is truncated, altered, or belongs elsewhere.
        """
        shard = decode_shard(self.place.read(_name(index)), self._where(index))
        self._check_place(index, shard.footer)
        return shard

    def footer(self, index: int) -> Footer:
        """Return the description of a shard, without reading its contributions.

        Raises
        ------
        StoreError
            If the file is truncated, or belongs elsewhere.
        """
        with self.place.open(_name(index)) as file:
            footer = decode_footer(file, self._where(index))
        self._check_place(index, footer)
        return footer

    def _check_place(self, index: int, footer: Footer) -> None:
        if footer.index != index:
            raise StoreError(
                f"{self._where(index)} holds shard {footer.index}: expected shard {index}. Collect "
                "again with the same settings: that shard alone is computed anew."
            )

    def mark(self, token: str) -> None:
        """Leave a mark by which other processes know that they see this very folder."""
        try:
            self.place.write(_mark(token), b"")
        except Exception:  # such as a full disk, once the file was there
            with suppress(OSError, StoreError):
                self.unmark(token)
            raise

    def is_marked(self, token: str) -> bool:
        """Whether the mark is visible from here."""
        try:
            return self.place.has(_mark(token))
        except StoreError:
            return False  # out of reach

    def unmark(self, token: str) -> None:
        """Remove the mark."""
        self.place.remove(_mark(token))

    def _where(self, index: int) -> str:
        return f"{self.place}/{_name(index)}"


def _name(index: int) -> str:
    return f"shards/shard-{index:08d}.parquet"


def _mark(token: str) -> str:
    return f".{token}.mark.tmp"  # swept like anything half-written


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _is_ours(name: str) -> bool:
    return name in ("shards", "points.parquet", _ANCHOR) or name.endswith(".tmp")


def _encode_points(points: pd.DataFrame) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = points.reset_index(names="position")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pandas(flat, preserve_index=False, nthreads=1), sink)
    return bytes(sink.getvalue())
