"""A job for all worker processes of this machine: its arrays in one file that each of them maps.

Large arrays are written once and are in memory once, for any number of workers; a worker reads the
parts that a unit of work needs. Only the rest, a few kilobytes, is sent with every unit.
"""

from __future__ import annotations

import mmap
import os
import pickle
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import NamedTuple

from apiece._base.files import writing_scratch
from apiece.collection._work import Job

_LARGE = 1 << 16  # bytes from which on an array goes to the file
_ALIGNED = 64
_STALE_SECONDS = 3600.0


class Shared(NamedTuple):
    """Where a job is: the file of its arrays, their places in it, and all the rest."""

    file: str
    places: tuple[tuple[int, int], ...]
    rest: bytes


@contextmanager
def shared(job: Job) -> Iterator[Shared]:
    """Put a job where workers find it, for as long as the block lasts.

    The file is in the folder for temporary ones (``TMPDIR``), readable by this user alone.
    """
    try:
        from cloudpickle import dumps
    except ImportError:  # joblib has brought its own until 1.5
        from joblib.externals.cloudpickle import dumps

    arrays: list[memoryview] = []

    def keep_apart(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _LARGE:
            arrays.append(raw)
        return raw.nbytes < _LARGE

    rest = dumps(job, protocol=5, buffer_callback=keep_apart)
    remove_abandoned()
    prefix = f"apiece-{os.getpid()}-"
    with ExitStack() as stack:
        with writing_scratch(sum(array.nbytes for array in arrays)):
            made = TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
            file = Path(stack.enter_context(made)) / "arrays"
            places = _write(file, arrays)
        yield Shared(str(file), places, rest)


def _write(file: Path, arrays: list[memoryview]) -> tuple[tuple[int, int], ...]:
    """Write arrays one after another; return where each begins and ends."""
    places = []
    with open(file, "wb") as out:
        out.write(bytes(_ALIGNED))
        for array in arrays:
            out.seek(-out.tell() % _ALIGNED, 1)
            places.append((out.tell(), out.tell() + array.nbytes))
            out.write(array)
    return tuple(places)


@lru_cache(maxsize=1)
def opened(payload: Shared) -> Job:
    """Return the job in a worker; its arrays are those of the file, and cannot be written."""
    with open(payload.file, "rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    job: Job = pickle.loads(
        payload.rest, buffers=[whole[start:end] for start, end in payload.places]
    )
    _folders.append(Path(payload.file).parent)
    return job


def remove_abandoned() -> None:
    """Remove files of collectors that were killed together with their workers, an hour ago."""
    oldest = time.time() - _STALE_SECONDS
    for folder in Path(gettempdir()).glob("apiece-*-*"):
        process = folder.name.split("-")[1]
        with suppress(OSError):
            if folder.stat().st_uid == os.getuid() and folder.stat().st_mtime < oldest:
                is_alive = process.isdigit() and Path(f"/proc/{process}").exists()
                if Path("/proc/self").exists() and not is_alive:
                    shutil.rmtree(folder, ignore_errors=True)


_folders: list[Path] = []


def sweep() -> None:
    """Remove what a killed collector left, from a worker that outlives it for a moment."""
    for folder in _folders:
        shutil.rmtree(folder, ignore_errors=True)
