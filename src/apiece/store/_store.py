"""Stores: where shards go. A folder keeps them for good, memory for as long as the process lives.

A folder looks like this, and every file in it is readable without apiece::

    manifest.json              dataset, model, metric, design, seed, versions
    points.parquet             position, id, label, role (pool or candidate), valued
    shards/shard-00000000.parquet
    laws.parquet               once laws have been fitted
"""

from __future__ import annotations

import hashlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from apiece._base.files import read_table
from apiece.errors import StoreError
from apiece.store._layout import Layout
from apiece.store._manifest import Manifest, encode_manifest, read_manifest, refuse_mismatch
from apiece.store._places import Disk, place_of
from apiece.store._shards import Footer, Shard, decode, decode_footer, encode

if TYPE_CHECKING:
    import pandas as pd

_SHARD_NAME = re.compile(r"shard-(\d{8,})\.parquet")


class Store(Protocol):
    """What every store promises: a shard that was written is there, whole, until replaced."""

    @property
    def manifest(self) -> Manifest:
        """What the run is about."""
        ...

    @property
    def points(self) -> pd.DataFrame:
        """The points by position: ``id``, ``label``, ``role``, ``valued``."""
        ...

    @property
    def layout(self) -> Layout:
        """How tasks are grouped into shards."""
        ...

    def extend(self, manifest: Manifest) -> None:
        """Accept a manifest that asks for more samples of the same contributions."""
        ...

    def write(self, shard: Shard) -> None:
        """Keep a shard, in place of any earlier one of its index."""
        ...

    def has(self, index: int) -> bool:
        """Whether a shard of that index is there."""
        ...

    def indices(self) -> list[int]:
        """The indices of the shards that are there, rising."""
        ...

    def footer(self, index: int) -> Footer:
        """Return what a shard tells of itself, without reading it."""
        ...

    def read(self, index: int) -> Shard:
        """Return a shard, checked."""
        ...


class _Described:
    """The part that both stores share: a manifest, and the layout written in it."""

    manifest: Manifest

    @property
    def layout(self) -> Layout:
        """How tasks are grouped into shards."""
        return Layout(**self.manifest["layout"])

    def _accept(self, where: object, manifest: Manifest) -> Manifest | None:
        """Return the manifest to keep from now on, or None if the present one covers it."""
        refuse_mismatch(where, self.manifest, manifest)
        if manifest["layout"]["n_tasks"] <= self.manifest["layout"]["n_tasks"]:
            return None
        layout = {**self.manifest["layout"], "n_tasks": manifest["layout"]["n_tasks"]}
        grown = {key: manifest[key] for key in ("samples", "n_contributions")}
        return {**self.manifest, **grown, "layout": layout}


class MemoryStore(_Described):
    """Shards in a dictionary."""

    def __init__(self, manifest: Manifest, points: pd.DataFrame) -> None:
        self.manifest = manifest
        self.points = points
        self._shards: dict[int, Shard] = {}

    def extend(self, manifest: Manifest) -> None:
        """Accept a manifest that asks for more samples of the same contributions."""
        self.manifest = self._accept("this run", manifest) or self.manifest

    def write(self, shard: Shard) -> None:
        """Keep a shard, in place of any earlier one of its index."""
        self._shards[shard.index] = shard

    def has(self, index: int) -> bool:
        """Whether a shard of that index is there."""
        return index in self._shards

    def indices(self) -> list[int]:
        """The indices of the shards that are there, rising."""
        return sorted(self._shards)

    def footer(self, index: int) -> Footer:
        """Return what a shard tells of itself."""
        return self._shards[index].footer

    def read(self, index: int) -> Shard:
        """Return a shard."""
        return self._shards[index]


class FolderStore(_Described):
    """Shards as Parquet files in a folder; safe against kills and against a second collector.

    Parameters
    ----------
    where
        The folder of the run, or its address in an object store (``s3://bucket/run``); it must
        hold a manifest, and `create` makes one.
    """

    def __init__(self, where: str | Path) -> None:
        self.place = place_of(where)
        self.manifest = read_manifest(self.place)

    @property
    def path(self) -> Path | None:
        """The folder, or None in an object store."""
        return self.place.path if isinstance(self.place, Disk) else None

    @classmethod
    def create(cls, where: str | Path, manifest: Manifest, points: pd.DataFrame) -> FolderStore:
        """Start a run, or open the one that is there if it is about the same contributions.

        Raises
        ------
        StoreError
            If the folder holds another run or something else, or cannot be written.
        """
        place = place_of(where)
        names = place.names()  # listed first: what another collector adds follows its manifest
        is_new = not place.has("manifest.json")
        if is_new and any(not _is_ours(name) for name in names):
            raise StoreError(
                f"{place} holds files that are not a run: expected a new or empty folder. "
                "Point `to` (--to) at another folder."
            )
        is_whole = not is_new and place.has("points.parquet")
        table = b"" if is_whole else _encode_points(points)
        if is_new:
            signed = {**manifest, "files": {"points.parquet": _digest(table)}}
            place.write("manifest.json", encode_manifest(signed), replace=False)
        store = cls(where)
        store.extend(manifest)  # refuses another run, before anything of it is touched
        if not is_whole:
            place.write("points.parquet", table)
        place.sweep()
        return store

    @property
    def points(self) -> pd.DataFrame:
        """The points by position: ``id``, ``label``, ``role``, ``valued``."""
        try:
            data = self.place.read("points.parquet")
            known = self.manifest.get("files", {}).get("points.parquet")
            if known not in (None, _digest(data)):
                raise ValueError("its contents do not match the digest in the manifest")
            table: pd.DataFrame = read_table(io.BytesIO(data)).to_pandas(use_threads=False)
            return table.set_index("position")
        except Exception as error:  # whatever the reader of a broken file raises
            raise StoreError(
                f"{self.place}/points.parquet cannot be read ({error}): expected the table of "
                "points that collect wrote. Remove it and collect again with the same settings: "
                "it is written anew, and nothing else is computed again."
            ) from error

    def extend(self, manifest: Manifest) -> None:
        """Accept a manifest that asks for more samples of the same contributions."""
        grown = self._accept(self.place, manifest)
        if grown is not None:
            self.place.write("manifest.json", encode_manifest(grown))
            self.manifest = grown

    def write(self, shard: Shard) -> None:
        """Keep a shard, in place of any earlier one of its index."""
        self.place.write(_name(shard.index), encode(shard))

    def has(self, index: int) -> bool:
        """Whether a file for that shard is there."""
        return self.place.has(_name(index))

    def indices(self) -> list[int]:
        """The indices of the shards that are there, rising."""
        within = len(self.layout)  # a stray file beyond is none of ours
        names = (_SHARD_NAME.fullmatch(name) for name in self.place.names("shards"))
        return sorted(int(name[1]) for name in names if name and int(name[1]) < within)

    def read(self, index: int) -> Shard:
        """Return a shard, checked against its digest.

        Raises
        ------
        StoreError
            If the file is truncated, altered, or belongs elsewhere.
        """
        shard = decode(self.place.read(_name(index)), self._where(index))
        self._check_place(index, shard.footer)
        return shard

    def footer(self, index: int) -> Footer:
        """Return what a shard tells of itself, without reading it.

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
        """Leave a mark by which other processes can tell that they see this very folder."""
        self.place.write(_mark(token), b"")

    def is_marked(self, token: str) -> bool:
        """Whether the mark is seen from here."""
        try:
            return self.place.has(_mark(token))
        except StoreError:
            return False  # out of reach

    def unmark(self, token: str) -> None:
        """Take the mark away."""
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
    return name in ("shards", "points.parquet") or name.endswith(".tmp")


def _encode_points(points: pd.DataFrame) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = points.reset_index(names="position")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pandas(flat, preserve_index=False, nthreads=1), sink)
    return bytes(sink.getvalue())
