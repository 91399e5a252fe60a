"""`FolderStore`: shards as files in a folder or an object store.

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
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from apiece._base.files import read_table
from apiece.errors import StoreError
from apiece.records import Anchor
from apiece.store._filesystem import LocalFolder, file_system, locked
from apiece.store._manifest import Manifest, encode_manifest, read_manifest
from apiece.store._shards import Footer, Shard, decode_footer, decode_shard, encode_shard
from apiece.store._store import Store, grown_manifest

if TYPE_CHECKING:
    import pandas as pd

_ANCHOR = "anchor.json"
_SHARD_NAME = re.compile(r"shard-(\d{8,})\.parquet")


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
        self.files = file_system(where)
        self._manifest: Manifest | None = None

    def __str__(self) -> str:
        return str(self.files)

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
            self._manifest = read_manifest(self.files)
        return self._manifest

    @property
    def path(self) -> Path | None:
        """The folder, or None in an object store."""
        return self.files.path if isinstance(self.files, LocalFolder) else None

    def has_run(self) -> bool:
        """Whether a run has been started here."""
        return self.files.has("manifest.json")

    def start(self, manifest: Manifest, points: pd.DataFrame) -> None:
        """Start a run, or open the one that is there if it is about the same contributions.

        Raises
        ------
        StoreError
            If the folder holds another run or something else, or cannot be written.
        """
        files = self.files
        names = files.names()  # listed first: what another collector adds follows its manifest
        is_new = not self.has_run()
        if is_new and any(not _is_ours(name) for name in names):
            raise StoreError(
                f"{files} holds files that are not a run: expected a new or empty folder. "
                "Point `to` (--to) at another folder."
            )
        is_whole = not is_new and files.has("points.parquet")
        table = b"" if is_whole else _encode_points(points)
        if is_new:
            signed = replace(manifest, files={"points.parquet": _digest(table)})
            files.write("manifest.json", encode_manifest(signed), replace=False)
        self.extend(manifest)  # refuses another run, before anything of it is touched
        if not is_whole:
            files.write("points.parquet", table)
        files.remove_stale()

    @property
    def points(self) -> pd.DataFrame:
        """The points by position: ``id``, ``label``, ``role``, ``valued``."""
        try:
            data = self.files.read("points.parquet")
            known = self.manifest.files.get("points.parquet")
            if known not in (None, _digest(data)):
                raise ValueError("its contents do not match the digest in the manifest")
            table: pd.DataFrame = read_table(io.BytesIO(data)).to_pandas(use_threads=False)
            return table.set_index("position")
        except MemoryError:  # no fault of the file
            raise
        except Exception as error:  # reading a broken file may raise anything
            raise StoreError(
                f"{self.files}/points.parquet cannot be read ({error}): expected the table of "
                "points that collect wrote. Remove it and collect again with the same settings: "
                "it is written again, and nothing else is computed."
            ) from error

    def extend(self, manifest: Manifest) -> None:
        """Accept a manifest that asks for as many or more samples of the same contributions."""
        self._manifest = read_manifest(self.files)
        if grown_manifest(self.files, self._manifest, manifest) is None:
            return
        with locked(self.files, "manifest"):  # another collector may be extending it, too
            stored = read_manifest(self.files)
            grown = grown_manifest(self.files, stored, manifest)
            if grown is not None:
                self.files.write("manifest.json", encode_manifest(grown))
            self._manifest = grown or stored

    def write(self, shard: Shard) -> None:
        """Keep a shard, unless the one that is there is whole and holds as much."""
        name, data = _name(shard.index), encode_shard(shard)
        if self.files.write(name, data, replace=False):
            return
        with locked(self.files, f"shard-{shard.index}"):
            try:
                is_better = shard.footer.holds_more_than(self.read(shard.index).footer)
            except (StoreError, FileNotFoundError):  # damaged, or removed a moment ago
                is_better = True
            if is_better:
                self.files.write(name, data)

    @property
    def anchor(self) -> Anchor | None:
        """Losses of models trained on nearly all rows; None if there are none, or not readable."""
        if not self.files.has(_ANCHOR):
            return None
        try:
            return Anchor.from_json(json.loads(self.files.read(_ANCHOR)))
        except (ValueError, TypeError, KeyError):
            return None  # it is measured again

    def keep_anchor(self, anchor: Anchor) -> None:
        """Write ``anchor.json``, whole or not at all."""
        self.files.write(_ANCHOR, json.dumps(anchor.to_json()).encode("utf-8"))

    def indices(self) -> list[int]:
        """Return the indices of the shards that are there, rising."""
        within = len(self.layout)  # further files belong to a larger request of another collector
        names = (_SHARD_NAME.fullmatch(name) for name in self.files.names("shards"))
        return sorted(int(name[1]) for name in names if name and int(name[1]) < within)

    def read(self, index: int) -> Shard:
        """Return a shard, checked against its digest.

        Raises
        ------
        StoreError
            If the file is truncated, altered, or belongs elsewhere.
        """
        shard = decode_shard(self.files.read(_name(index)), self._where(index))
        self._check_index(index, shard.footer)
        return shard

    def footer(self, index: int) -> Footer:
        """Return the description of a shard, without reading its contributions.

        Raises
        ------
        StoreError
            If the file is truncated, or belongs elsewhere.
        """
        with self.files.open(_name(index)) as file:
            footer = decode_footer(file, self._where(index))
        self._check_index(index, footer)
        return footer

    def _check_index(self, index: int, footer: Footer) -> None:
        if footer.index != index:
            raise StoreError(
                f"{self._where(index)} holds shard {footer.index}: expected shard {index}. Collect "
                "again with the same settings: that shard alone is computed again."
            )

    def mark(self, token: str) -> None:
        """Leave a mark by which other processes know that they see this very folder."""
        try:
            self.files.write(_mark(token), b"")
        except Exception:  # such as a full disk, once the file was there
            with suppress(OSError, StoreError):
                self.unmark(token)
            raise

    def is_marked(self, token: str) -> bool:
        """Whether the mark is visible from here."""
        try:
            return self.files.has(_mark(token))
        except StoreError:
            return False  # out of reach

    def unmark(self, token: str) -> None:
        """Remove the mark."""
        self.files.remove(_mark(token))

    def _where(self, index: int) -> str:
        return f"{self.files}/{_name(index)}"


def _name(index: int) -> str:
    return f"shards/shard-{index:08d}.parquet"


def _mark(token: str) -> str:
    return f".{token}.mark.tmp"  # removed like anything half-written


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
