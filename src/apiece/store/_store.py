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
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from apiece._files import make_folder, read_table, write_whole
from apiece.errors import StoreError
from apiece.store._layout import Layout
from apiece.store._manifest import Manifest, encode_manifest, read_manifest, refuse_mismatch
from apiece.store._shards import Footer, Shard, decode, decode_footer, encode

if TYPE_CHECKING:
    import pandas as pd

_SHARD_NAME = re.compile(r"shard-(\d{8,})\.parquet")
_STALE_SECONDS = 3600.0


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
    path
        The folder of the run, which must hold a manifest; `create` makes one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()  # workers may stand in another folder
        self.manifest = read_manifest(path)

    @classmethod
    def create(cls, path: Path, manifest: Manifest, points: pd.DataFrame) -> FolderStore:
        """Start a run, or open the one that is there if it is about the same contributions.

        Raises
        ------
        StoreError
            If the folder holds another run or something else, or cannot be written.
        """
        if not (path / "manifest.json").exists():
            if path.is_dir() and any(not _is_ours(entry.name) for entry in path.iterdir()):
                raise StoreError(
                    f"{path} holds files that are not a run: expected a new or empty folder. "
                    "Point `to` (--to) at another folder."
                )
            make_folder(path / "shards")
            table = _encode_points(points)
            write_whole(path / "points.parquet", table)
            signed = {**manifest, "files": {"points.parquet": _digest(table)}}
            write_whole(path / "manifest.json", encode_manifest(signed), replace=False)
        store = cls(path)
        store.extend(manifest)
        store._sweep()
        return store

    @property
    def points(self) -> pd.DataFrame:
        """The points by position: ``id``, ``label``, ``role``, ``valued``."""
        file = self.path / "points.parquet"
        try:
            data = file.read_bytes()
            known = self.manifest.get("files", {}).get("points.parquet")
            if known not in (None, _digest(data)):
                raise ValueError("its contents do not match the digest in the manifest")
            table: pd.DataFrame = read_table(io.BytesIO(data)).to_pandas(use_threads=False)
            return table.set_index("position")
        except Exception as error:  # whatever the reader of a broken file raises
            raise StoreError(
                f"{file} cannot be read ({error}): expected the table of points that collect "
                "wrote. Restore it from a copy, or collect into a new folder."
            ) from error

    def extend(self, manifest: Manifest) -> None:
        """Accept a manifest that asks for more samples of the same contributions."""
        grown = self._accept(self.path, manifest)
        if grown is not None:
            write_whole(self.path / "manifest.json", encode_manifest(grown))
            self.manifest = grown

    def write(self, shard: Shard) -> None:
        """Keep a shard, in place of any earlier one of its index."""
        write_whole(self._file(shard.index), encode(shard))

    def has(self, index: int) -> bool:
        """Whether a file for that shard is there."""
        return self._file(index).exists()

    def indices(self) -> list[int]:
        """The indices of the shards that are there, rising."""
        within = len(self.layout)  # a stray file beyond is none of ours
        return sorted(index for index, _ in self._files() if index < within)

    def read(self, index: int) -> Shard:
        """Return a shard, checked against its digest.

        Raises
        ------
        StoreError
            If the file is truncated, altered, or belongs elsewhere.
        """
        shard = decode(self._file(index))
        self._check_place(index, shard.footer)
        return shard

    def footer(self, index: int) -> Footer:
        """Return what a shard tells of itself, without reading it.

        Raises
        ------
        StoreError
            If the file is truncated, or belongs elsewhere.
        """
        footer = decode_footer(self._file(index))
        self._check_place(index, footer)
        return footer

    def _check_place(self, index: int, footer: Footer) -> None:
        if footer.index != index:
            raise StoreError(
                f"{self._file(index)} holds shard {footer.index}: expected shard {index}. Collect "
                "again with the same settings: that shard alone is computed anew."
            )

    def mark(self, token: str) -> None:
        """Leave a mark by which other processes can tell that they see this very folder."""
        write_whole(self._mark(token), b"")

    def is_marked(self, token: str) -> bool:
        """Whether the mark is seen from here."""
        return self._mark(token).exists()

    def unmark(self, token: str) -> None:
        """Take the mark away."""
        self._mark(token).unlink(missing_ok=True)

    def _mark(self, token: str) -> Path:
        return self.path / f".{token}.mark.tmp"  # swept like anything half-written

    def _file(self, index: int) -> Path:
        return self.path / "shards" / f"shard-{index:08d}.parquet"

    def _files(self) -> Iterator[tuple[int, Path]]:
        for file in (self.path / "shards").glob("shard-*.parquet"):
            if found := _SHARD_NAME.fullmatch(file.name):
                yield int(found[1]), file

    def _sweep(self) -> None:
        """Remove what collectors that were killed left half-written, once it is surely dead."""
        oldest = time.time() - _STALE_SECONDS
        for file in [*self.path.glob(".*.tmp"), *self.path.glob("shards/.*.tmp")]:
            try:
                if file.stat().st_mtime < oldest:
                    file.unlink()
            except OSError:
                continue  # another collector was faster, or the file is not ours to remove


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
