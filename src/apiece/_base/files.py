"""Files that appear whole or not at all, and the words for a disk that refuses."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apiece.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa

_REASONS = {
    errno.ENOSPC: ("the disk is full", "Free some space"),
    errno.EDQUOT: ("the disk quota is used up", "Free some space"),
    errno.EACCES: ("permission is denied", "Change the permissions, or choose another folder"),
    errno.EPERM: ("permission is denied", "Change the permissions, or choose another folder"),
    errno.EROFS: ("the disk is read-only", "Choose another folder"),
    errno.ENOTDIR: ("a part of the path is a file", "Choose another folder"),
    errno.EEXIST: ("a file of that name is in the way", "Choose another folder"),
    errno.EISDIR: ("a folder of that name is in the way", "Choose another name"),
}

# What network disks and FAT answer when asked for hard links, or to flush a folder.
_NO_SUCH_SKILL = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def cannot_write(path: Path, error: OSError) -> StoreError:
    """Build the error for a path that could not be written."""
    why, remedy = _REASONS.get(error.errno or 0, (str(error), "Choose another folder"))
    return StoreError(
        f"cannot write {path}: {why}. What was stored before is untouched. {remedy}, then repeat "
        "the command: it continues where it stopped."
    )


@contextmanager
def writing_scratch(n_bytes: int) -> Iterator[None]:
    """Name the folder for temporary files if it cannot take ``n_bytes`` bytes."""
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
        if not is_full and "temporary directory" not in str(error):
            raise
        where = tempfile.tempdir or "the folder for them"
        why = _REASONS[error.errno][0] if is_full and error.errno else error.strerror
        raise StoreError(
            f"cannot write temporary files in {where}: {why}. Expected room for about "
            f"{n_bytes / 1e6:,.1f} MB. Stored results are intact. Make room, or set TMPDIR to a "
            "folder with more of it."
        ) from error


def write_whole(path: Path, data: bytes, *, replace: bool = True) -> bool:
    """Write ``data`` to ``path`` so that a reader sees all of it or nothing.

    A temporary file is written, flushed to the disk and renamed. With ``replace=False`` an existing
    file is kept and False is returned. If another process deletes the temporary file as stale
    (clock skew), the write is retried once.
    """
    try:
        return _write_whole(path, data, replace=replace)
    except FileNotFoundError as error:
        if not path.parent.is_dir():
            raise cannot_write(path, error) from error
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        return _write_whole(path, data, replace=replace)
    except OSError as error:
        raise cannot_write(path, error) from error


def _write_whole(path: Path, data: bytes, *, replace: bool) -> bool:
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                os.replace(temporary, path)
            else:
                _link(temporary, path)
            _flush_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError:
        return False
    return True


def _link(temporary: Path, path: Path) -> None:
    """Give a file its name unless that is taken.

    On a disk without hard links this looks first and then renames, so that of two processes at the
    same instant the second one wins.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_SUCH_SKILL:
            raise
        if path.exists():
            raise FileExistsError(error.errno, "the name is taken", str(path)) from None
        os.replace(temporary, path)


def read_table(source: Any, **settings: Any) -> pa.Table:
    """Read a Parquet file or buffer without pyarrow's thread pools.

    Processes that had used them (``pyarrow.parquet.read_table`` does, even with
    ``use_threads=False``) ended in ``std::terminate`` now and then: 3 of 40 with pyarrow 26.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, pre_buffer=False, **settings) as file:
        return file.read(use_threads=False)


def read_footer(source: Any) -> tuple[int, dict[bytes, bytes]]:
    """Return the number of rows of a Parquet file and its metadata, without reading a column."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, pre_buffer=False) as file:
        return file.metadata.num_rows, file.metadata.metadata or {}


def make_folder(path: Path) -> None:
    """Make a folder and its parents, or say why it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error


def _flush_folder(path: Path) -> None:
    """Make a rename durable, where the system lets folders be flushed."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SUCH_SKILL:
            raise
    finally:
        os.close(handle)


def check_schema(source: object, version: int, known: int, remedy: str) -> None:
    """Raise a clear error for a file of another schema version; ``remedy`` is for an older one."""
    if version != known:
        raise StoreError(
            f"{source} has schema version {version}: expected {known}, the one that this apiece "
            f"reads. {'Upgrade apiece.' if version > known else remedy}"
        )
