"""File systems of runs: a folder on a disk, or a prefix in an object store.

Both guarantee that a written file appears whole or not at all. On a disk a temporary file is
written and renamed; object stores guarantee it themselves.
"""

from __future__ import annotations

import random
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from apiece._base.files import make_folder, write_whole
from apiece._base.optional import optional
from apiece.errors import StoreError

# A scheme has two letters or more: C:/ is a folder of Windows. Paths keep one slash of two.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+(?:::[A-Za-z][A-Za-z0-9+.-]*)*:?):(?:(/+)(.*))?")
_SECRET = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:/{1,2}[^/@:\s]*):[^/@\s]*(?=@)")
_STALE_SECONDS = 3600.0
_LOCK_SECONDS = 30.0  # a lock is held for one read and one write


class FileSystem(Protocol):
    """Files by name; a name may begin with one folder, ``shards/...``."""

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; FileNotFoundError if it does not exist."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading some parts of it."""
        ...

    def write(self, name: str, data: bytes, *, replace: bool = True) -> bool:
        """Write a file whole; with ``replace=False`` an existing file is kept: returns False."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        ...

    def names(self, folder: str = "") -> list[str]:
        """Return the names at the top, or in a folder, without that folder's."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def remove_stale(self) -> None:
        """Remove old temporary files of killed processes."""
        ...


@dataclass(frozen=True)
class LocalFolder:
    """A folder."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        return (self.path / name).read_bytes()

    def open(self, name: str) -> BinaryIO:
        """Open a file."""
        return open(self.path / name, "rb")

    def write(self, name: str, data: bytes, *, replace: bool = True) -> bool:
        """Write a temporary file, flush, and rename."""
        file = self.path / name
        if not file.parent.is_dir():
            make_folder(file.parent)
        return write_whole(file, data, replace=replace)

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.path / name).exists()

    def names(self, folder: str = "") -> list[str]:
        """Return the names in the folder."""
        where = self.path / folder
        return [entry.name for entry in where.iterdir()] if where.is_dir() else []

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self.path / name).unlink(missing_ok=True)

    def remove_stale(self) -> None:
        """Remove temporary files that are an hour old."""
        oldest = time.time() - _STALE_SECONDS
        for file in [*self.path.glob(".*.tmp"), *self.path.glob("shards/.*.tmp")]:
            with suppress(OSError):  # another collector was faster, or it is not ours to remove
                if file.stat().st_mtime < oldest:
                    file.unlink()


@dataclass(frozen=True)
class ObjectStore:
    """A prefix in an object store, through fsspec, which handles credentials."""

    uri: str

    def __str__(self) -> str:
        return redacted(self.uri)

    __repr__ = __str__

    @cached_property
    def _files(self) -> Any:
        """The file system, made in each process."""
        fsspec = optional("fsspec", extra="remote", purpose="Object stores")
        try:
            return fsspec.core.url_to_fs(self.uri, use_listings_cache=False)[0]
        except (ImportError, ValueError, TypeError, OSError) as error:
            raise StoreError(
                f"{self} cannot be opened ({redacted(str(error))}): expected an address that "
                "fsspec knows, such as s3://bucket/run, and the library for it. Install that "
                "library, or point `to` (--to) at a folder."
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        return {"uri": self.uri}

    def read(self, name: str) -> bytes:
        """Return the bytes of an object."""
        with _explained(f"read {self._at(name)}"):
            return bytes(self._files.cat_file(self._at(name)))

    def open(self, name: str) -> BinaryIO:
        """Open an object, of which ranges are read."""
        with _explained(f"read {self._at(name)}"):
            file: BinaryIO = self._files.open(self._at(name), "rb")
            return file

    def write(self, name: str, data: bytes, *, replace: bool = True) -> bool:
        """Put an object; the store refuses a second one, where it can."""
        with _explained(f"write {self._at(name)}"):
            if replace:
                self._files.pipe_file(self._at(name), data)
                return True
            if self.has(name):
                return False
            try:
                self._files.pipe_file(self._at(name), data, mode="create")
            except FileExistsError:
                return False
            return True

    def has(self, name: str) -> bool:
        """Whether there is such an object."""
        with _explained(f"read {self._at(name)}"):
            return bool(self._files.exists(self._at(name)))

    def names(self, folder: str = "") -> list[str]:
        """Return the names below the prefix."""
        with _explained(f"list {self._at(folder)}"):
            try:
                listed = self._files.ls(self._at(folder), detail=False)
            except FileNotFoundError:
                return []
        return [str(name).rstrip("/").rpartition("/")[2] for name in listed]

    def remove(self, name: str) -> None:
        """Remove an object."""
        with suppress(FileNotFoundError), _explained(f"remove {self._at(name)}"):
            self._files.rm_file(self._at(name))

    def remove_stale(self) -> None:
        """Remove marks and locks of killed collectors; nothing is ever half-written."""
        oldest = time.time() - _STALE_SECONDS
        with suppress(Exception):  # a store that cannot be listed says so when it is used
            for entry in self._files.ls(self._at(""), detail=True):
                name = str(entry["name"]).rpartition("/")[2]
                written = entry.get("LastModified") or entry.get("created") or entry.get("mtime")
                if isinstance(written, datetime):
                    written = written.timestamp()
                is_old = isinstance(written, int | float) and written < oldest
                if is_old and name.startswith(".") and name.endswith(".tmp"):
                    self.remove(name)

    def _at(self, name: str) -> str:
        return f"{self.uri}/{name}".rstrip("/")


@contextmanager
def locked(files: FileSystem, name: str) -> Iterator[None]:
    """Hold a lock for a ``with`` block; every process that works on these files respects it.

    The lock is a file that only one process can create. A lock that is half a minute old belongs to
    a killed process, and is removed.
    """
    file, token = f".{name}.lock.tmp", secrets.token_bytes(8)
    holder, since = b"", time.monotonic()
    while not files.write(file, token, replace=False):
        with suppress(FileNotFoundError):  # released a moment ago
            present = files.read(file)
            if present != holder:
                holder, since = present, time.monotonic()
            elif time.monotonic() > since + _LOCK_SECONDS:
                files.remove(file)
        time.sleep(random.uniform(0.01, 0.05))
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            if files.read(file) == token:
                files.remove(file)


class _explained:
    """Turn any error of an object store's library into one that says what was tried."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        is_absent = isinstance(error, FileNotFoundError) and not self.what.startswith("write")
        if not isinstance(error, Exception) or isinstance(error, StoreError) or is_absent:
            return
        raise StoreError(
            f"cannot {redacted(self.what)} ({type(error).__name__}: {redacted(str(error))}). What "
            "was stored before is untouched. Check the address and the credentials, then repeat "
            "the command: it continues where it stopped."
        ) from error


def file_system(where: str | Path) -> LocalFolder | ObjectStore:
    """Return the file system that a path or an address such as ``s3://bucket/run`` means.

    >>> str(file_system("s3://bucket/run")), str(file_system(Path("s3:/bucket/run/")))
    ('s3://bucket/run', 's3://bucket/run')
    """
    address = _URI.fullmatch(str(where))
    if address is None:
        return LocalFolder(Path(where).absolute())  # workers may run in another folder
    scheme, slashes, rest = address[1].lower(), address[2], (address[3] or "").rstrip("/")
    is_local, problem = scheme in ("file", "local"), ""
    if ":" in scheme:
        problem = "chains several file systems"
    elif is_local and slashes == "//":
        problem = f"names the machine {rest.partition('/')[0]!r}"
    elif not rest and not (is_local and slashes):
        problem = "names no place"
    if problem:
        shown = redacted(f"{scheme}:{'/' if scheme.endswith(':') else '//'}{rest}")
        raise StoreError(
            f"{shown} {problem}: expected a folder, file:///folder, or a plain address such as "
            "s3://bucket/run. Point `to` (--to) at one; a folder of such a name needs its full "
            "path."
        )
    return LocalFolder(Path("/" + rest)) if is_local else ObjectStore(f"{scheme}://{rest}")


def redacted(text: str) -> str:
    """Return a text in which the passwords of addresses are hidden.

    >>> redacted("sftp://me:secret@host/run")
    'sftp://me:***@host/run'
    """
    return _SECRET.sub(r"\1:***", text)
