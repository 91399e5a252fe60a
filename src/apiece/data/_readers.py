"""Reading files: csv, tsv and JSON lines (also gzipped), Parquet, Arrow, and npz without pickle.

Each reader either returns what the file holds or says in plain words what is wrong with it.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype

from apiece._base.check import nearest, some
from apiece._base.files import read_table as parquet_table
from apiece._base.machine import total_memory
from apiece._base.text import first_line
from apiece._base.typing import AnyArray
from apiece.data._options import FilePath
from apiece.data._pictures import pixels
from apiece.errors import DataError

Format = Literal["csv", "lines", "parquet", "arrow", "npz"]
_FORMATS: Final[dict[str, Format]] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".tsv.gz": "csv",
    ".jsonl": "lines",
    ".jsonl.gz": "lines",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".npz": "npz",
}
_FOR_TABLES: Final = (
    *("target", "text", "ids", "sample_weight", "drop", "categorical", "text_features"),
)
_HEAD: Final = 65_536  # bytes in which a binary file gives itself away
# Before 3.1 pandas read numbers fast but off by a bit; since then exactly, and without an option.
_IS_EXACT: Final = tuple(int(part) for part in pd.__version__.split(".")[:2]) >= (3, 1)
_EXACT: Final[dict[str, Any]] = {} if _IS_EXACT else {"float_precision": "round_trip"}


def format_of(path: FilePath) -> Format:
    """Return the format of a file by the suffix of its name.

    >>> format_of("reviews.csv.gz")
    'csv'
    """
    name = Path(path).name.lower()
    for suffix, file_format in _FORMATS.items():
        if name.endswith(suffix):
            return file_format
    raise DataError(
        f"{str(path)!r} has the suffix {Path(path).suffix!r}: expected one of "
        f"{', '.join(_FORMATS)}. Convert the file (a spreadsheet saves as 'CSV UTF-8'), or read it "
        "yourself and pass it to Dataset.from_pandas or Dataset.from_arrays."
    )


def options_for_arrays(path: FilePath, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that make sense for an npz file; refuse those that are for tables."""
    kept = dict(options)
    for name in _FOR_TABLES:
        value = kept.pop(name, None)
        if value not in (None, (), [], "") and (name, value) != ("text_features", 128):
            raise DataError(
                f"{name}={value!r} says nothing about {str(path)!r}, which holds arrays: expected "
                "options for arrays, whose targets are y, whose names are ids and whose weights "
                f"are sample_weight. Leave {name}= (--{name.replace('_', '-')}) out."
            )
    return kept


def read_table(path: FilePath) -> pd.DataFrame:
    """Read the table in a file, by its suffix."""
    readers = {"csv": read_csv, "lines": read_lines, "parquet": read_parquet, "arrow": read_arrow}
    read = readers.get(format_of(path))
    if read is None:
        raise DataError(
            f"{str(path)!r} holds arrays: expected a table, such as .csv, next to a table. Save "
            "those rows as a table with the same columns."
        )
    return read(path)


def read_csv(path: FilePath) -> pd.DataFrame:
    """Read text with a header, gzipped or not: cells between commas, tabs, ``;`` or ``|``."""
    file = existing(path)
    separator = _separator(_beginning(file))
    try:
        with warnings.catch_warnings():
            # Rows longer than the header would otherwise lose cells, or shift them.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            head = pd.read_csv(file, sep=separator, header=None, nrows=1, dtype=str)
            frame: pd.DataFrame = pd.read_csv(
                file, sep=separator, index_col=False, low_memory=False, **_EXACT
            )
    except pd.errors.EmptyDataError:
        raise _empty(file) from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{str(file)!r} is not UTF-8 text ({error.reason}): expected "
            "a table of text with a header. Save it as UTF-8 ('CSV UTF-8' in Excel), or read it "
            "with pandas.read_csv(path, encoding='cp1252'), or whatever its encoding is, and pass "
            "it to Dataset.from_pandas."
        ) from error
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        said = " ".join(str(error).replace("Error tokenizing data. C error: ", "").split())
        if "out of memory" in said:
            raise MemoryError(said) from error
        raise DataError(
            f"{str(file)!r} has rows that do not fit its header ({said.rstrip('.')}): expected as "
            "many cells in every row as names in the header. Quote cells that hold the separator, "
            "and fix the rows."
        ) from error
    except MemoryError:  # no fault of the file
        raise
    except Exception as error:  # such as a gzip file that breaks off
        raise DataError(
            f"{str(file)!r} cannot be read as a table ({first_line(error)}): expected text with a "
            "header. Write it again, or check that it was copied completely."
        ) from error
    _check_header(file, head.iloc[0].dropna().tolist())
    if not len(frame):
        raise DataError(
            f"{str(file)!r} holds a header and no rows: expected one row for each point. Check "
            "that the export was complete."
        )
    return _with_points(frame) if separator == ";" else frame


def _separator(head: bytes) -> str:
    r"""Return the mark that separates the names of a header; a comma if there is a single name.

    >>> _separator(b'a;"b, c";d\n1;2,5;3\n')
    ';'
    """
    first = head.lstrip().partition(b"\n")[0].decode("utf-8", errors="replace")
    names = re.sub(r'"[^"]*"', "", first)
    return max(",\t;|", key=names.count)


def _with_points(frame: pd.DataFrame) -> pd.DataFrame:
    """Read cells such as 2,5 as numbers: programs that write ``;`` between cells often do so."""
    for name in frame.columns[[is_string_dtype(dtype) for dtype in frame.dtypes]]:
        with suppress(ValueError):  # a column of words
            frame[name] = frame[name].str.replace(",", ".").astype(np.float64)
    return frame


def read_parquet(path: FilePath) -> pd.DataFrame:
    """Read a Parquet file; an index that was saved with a name becomes a column."""
    return _read_whole(
        path, "Parquet", lambda file: parquet_table(file).to_pandas(use_threads=False)
    )


def read_arrow(path: FilePath) -> pd.DataFrame:
    """Read an Arrow file, which Feather files are, too."""

    def read(file: Path) -> pd.DataFrame:
        import pyarrow as pa

        with pa.OSFile(str(file)) as opened:
            frame: pd.DataFrame = pa.ipc.open_file(opened).read_all().to_pandas(use_threads=False)
            return frame

    return _read_whole(path, "Arrow", read)


def read_lines(path: FilePath) -> pd.DataFrame:
    """Read JSON lines, an object for each row; its numbers and strings stay what they are."""

    def read(file: Path) -> pd.DataFrame:
        is_gzipped = file.suffix.lower() == ".gz"
        with gzip.open(file, "rb") if is_gzipped else file.open("rb") as lines:
            rows = [json.loads(line) for line in lines if line.strip()]
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("some lines are no objects")
        return pd.DataFrame(rows)

    return _read_whole(path, "JSON lines", read)


def _read_whole(path: FilePath, what: str, read: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
    file = existing(path)
    try:
        frame = read(file)
    except MemoryError:  # no fault of the file
        raise
    except Exception as error:  # a file, and what pandas noted in it, may be broken in any way
        raise DataError(
            f"{str(file)!r} cannot be read as {what} ({first_line(error)}): expected a whole "
            f"{what} file. Write it again, or check that it was copied completely."
        ) from error
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    if not len(frame):
        raise DataError(
            f"{str(file)!r} holds columns and no rows: expected one row for each point. Check "
            "that the export was complete."
        )
    return frame


def read_npz(path: FilePath) -> dict[str, AnyArray]:
    """Read the arrays of an npz file; pickles are refused.

    It has ``y`` and ``X``, or ``images`` whose pixels then are ``X``.
    """
    file = existing(path)
    if not zipfile.is_zipfile(file):
        raise DataError(
            f"{str(file)!r} is not an npz archive, or only part of one: expected a file written "
            "by np.savez. Write it again with np.savez(path, X=X, y=y)."
        )
    arrays: dict[str, AnyArray] = {}
    key = ""
    try:
        _check_room(file)
        with open(file, "rb") as bytes_, np.load(bytes_, allow_pickle=False) as archive:
            for key in archive.files:
                arrays[key] = archive[key]
    except (DataError, MemoryError):  # the second is no fault of the file
        raise
    except Exception as error:  # an archive may be broken in any way
        if "allow_pickle" in str(error):
            raise DataError(
                f"array {key!r} of {str(file)!r} holds Python objects: expected plain numbers or "
                "strings, since unpickling a file can run any code. Save it again with a plain "
                f"dtype, such as {key}.astype(str)."
            ) from error
        raise DataError(
            f"array {key!r} of {str(file)!r} is damaged ({first_line(error)}): expected a file "
            "written by np.savez. Write it again, or check that it was copied completely."
        ) from error
    if "images" in arrays and "X" not in arrays:
        arrays["X"] = pixels(arrays["images"], f"array 'images' of {str(file)!r}")
    for key in ("X", "y"):
        if key not in arrays:
            close = nearest(key, arrays)
            hint = f"Rename {close!r} to {key!r}" if close else "Write it again"
            raise DataError(
                f"{str(file)!r} has no array {key!r}, only {some(arrays)}: expected X (features) "
                f"and y (targets). {hint}, as in np.savez(path, X=X, y=y)."
            )
    return arrays


def _check_room(file: Path) -> None:
    """Refuse an npz file whose arrays cannot fit in memory, before any of them is unpacked."""
    claimed = 0
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            n_bytes = _claimed(archive, member)
            if n_bytes > member.file_size:
                raise DataError(
                    f"array {member.filename.removesuffix('.npy')!r} of {str(file)!r} is damaged: "
                    f"its header says {n_bytes:,} bytes, and it has {member.file_size:,}. Expected "
                    "a file written by np.savez. Write it again."
                )
            claimed += member.file_size
    memory = total_memory()
    if memory is not None and claimed > memory:
        raise DataError(
            f"the arrays of {str(file)!r} take {claimed / 1e9:,.1f} GB unpacked, and this machine "
            f"has {memory / 1e9:,.1f} GB of memory: expected arrays that fit. Save fewer rows or "
            "features, or use a machine with more memory."
        )


def _claimed(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Return how many bytes an array has by its header; 0 if that cannot be read."""
    form = np.lib.format
    try:
        with archive.open(member) as opened:
            version = form.read_magic(opened)
            read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
            shape, _, dtype = read(opened)
    except Exception:  # an archive may be broken in any way; reading it says how
        return 0
    return math.prod(shape) * dtype.itemsize


def existing(path: FilePath) -> Path:
    """Return the path of a file that is there and not empty, or offer the nearest name."""
    file = Path(path)
    if file.is_dir():
        raise DataError(
            f"{str(file)!r} is a folder: expected a file ({', '.join(_FORMATS)}). Name one of the "
            "files in it."
        )
    if not file.exists():
        names = [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []
        close = nearest(file.name, names)
        hint = f"Did you mean {str(file.parent / close)!r}?" if close else "Check the path."
        raise DataError(f"there is no file {str(file)!r}: expected a file of rows. {hint}")
    if file.stat().st_size == 0:
        raise _empty(file)
    return file


def _beginning(file: Path) -> bytes:
    """Return the first bytes of a text; refuse a binary file, or one that is falsely named .gz."""
    is_gzipped = file.suffix.lower() == ".gz"
    try:
        with gzip.open(file, "rb") if is_gzipped else file.open("rb") as opened:
            head = opened.read(_HEAD)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{str(file)!r} cannot be read ({first_line(error)}): expected a readable "
            f"{'gzip' if is_gzipped else 'text'} file. Write it again, or check that it was "
            "copied completely."
        ) from error
    if b"\0" in head:
        raise DataError(
            f"{str(file)!r} holds NUL bytes (first at byte {head.index(0):,}), as binary or UTF-16 "
            "files do: expected a table of UTF-8 text. Save it as UTF-8 csv; for Parquet or NumPy "
            "files use the suffix .parquet or .npz."
        )
    return head


def _check_header(file: Path, names: list[str]) -> None:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise duplicate_columns(doubled, str(file))


def duplicate_columns(doubled: list[str], where: str) -> DataError:
    """Build the error for column names that occur more than once."""
    return DataError(
        f"{where} has more than one column named {some(doubled)}: expected every column name "
        "once. Rename or remove the others."
    )


def _empty(file: Path) -> DataError:
    return DataError(
        f"{str(file)!r} is empty: expected a file of rows. Check that the export was complete."
    )
