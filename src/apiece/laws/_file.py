"""The file format of laws: one Parquet file, readable by pandas, DuckDB or Spark as it is.

One row for each point: ``point``, ``label`` (if known), the parameters by name, ``sigma``,
``beta``, ``r2``, ``r2_variance``, ``n_samples``, ``status`` (a word) and the upper triangle of
``cov`` as ``cov_<coordinate>_<coordinate>``, with its degrees of freedom ``df`` (if known).
Everything else is one JSON object under the key ``apiece.laws`` of the schema's metadata, with a
``schema_version`` and a digest of everything. Pages carry checksums.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._base.files import check_schema, read_table, write_whole
from apiece._base.text import first_line
from apiece._base.typing import AnyArray, FloatArray
from apiece.errors import StoreError
from apiece.laws._build import NUMBERS
from apiece.laws._family import Family
from apiece.laws._words import family_from_json
from apiece.laws.status import FitStatus, statuses

if TYPE_CHECKING:
    from apiece.laws._laws import Laws

SCHEMA_VERSION: Final = 2
_KEY: Final = b"apiece.laws"
_UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, RecursionError)


def save(laws: Laws, path: str | os.PathLike[str]) -> None:
    """Write a temporary file, flush, fsync, then replace: the file is whole or absent."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {"point": _arrow(laws.ids, "ids")}
    if laws.labels is not None:
        columns["label"] = _arrow(laws.labels, "labels")
    columns |= {name: laws.params[:, j] for j, name in enumerate(laws.family.parameters)}
    columns |= {name: getattr(laws, name) for name in NUMBERS}
    columns |= {"n_samples": laws.n_samples}
    columns |= {"status": [FitStatus(member).name for member in laws.status]}
    if laws.cov is not None:
        columns |= {name: laws.cov[:, a, b] for name, a, b in _triangle(laws.family)}
    if laws.df is not None:
        columns["df"] = laws.df
    meta = {
        "schema_version": SCHEMA_VERSION,
        "family": laws.family.to_json(),
        "k_range": list(laws.k_range),
        "dtypes": {"point": laws.ids.dtype.str}
        | ({} if laws.labels is None else {"label": laws.labels.dtype.str}),
        "has_cov": laws.cov is not None,
        "attrs": laws.attrs,
        "diagnostics": laws.diagnostics,
    }
    table = pa.table(columns)
    meta["digest"] = _digest(table, meta)
    table = table.replace_schema_metadata({_KEY: json.dumps(meta)})

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True)
    write_whole(Path(path), bytes(sink.getvalue()))


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the fields of `Laws`; a missing, damaged or foreign file says so."""
    import pyarrow as pa

    source = Path(path)
    if not source.is_file():
        raise StoreError(
            f"there are no laws at {source}: expected a file that laws.save wrote. "
            "Check the path, or fit and save first."
        )
    try:
        with open(source, "rb") as file:
            table = read_table(file, page_checksum_verification=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(
            f"{source} cannot be read ({first_line(error)}): expected a whole Parquet "
            "file. Restore it from a copy, or fit again."
        ) from error
    text = (table.schema.metadata or {}).get(_KEY)
    if text is None:
        raise StoreError(
            f"{source} holds no laws: it is a Parquet file of {', '.join(table.column_names[:5])}, "
            "expected one that laws.save wrote. Check the path."
        )
    try:
        meta = json.loads(text)
        check_schema(
            source, meta["schema_version"], SCHEMA_VERSION, "Fit again, and save the laws."
        )
        if meta.get("digest", "") != _digest(table, meta) and "digest" in meta:
            raise ValueError("its contents do not match its digest")
        return _fields(table, meta)
    except _UNREADABLE as error:
        raise StoreError(
            f"{source} is damaged ({error!r}): expected the columns and the description that "
            "laws.save writes. Restore it from a copy, or fit again."
        ) from error


def _digest(table: Any, meta: dict[str, Any]) -> str:
    """Return a digest of all columns and of the description, but for the digest in it."""
    described = {key: value for key, value in meta.items() if key != "digest"}
    digest = hashlib.blake2b(json.dumps(described, sort_keys=True).encode(), digest_size=16)
    for name in table.column_names:
        column = table.column(name)
        digest.update(f"{name} {column.type} {column.null_count}".encode())
        values = column.to_numpy()
        if values.dtype == object:
            digest.update("\0".join(map(str, values.tolist())).encode())
        else:
            digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _fields(table: Any, meta: dict[str, Any]) -> dict[str, Any]:
    """Turn the table and its description back into the fields of `Laws`."""
    family = family_from_json(meta["family"])
    n, p = table.num_rows, len(family.parameters)

    def numbers(name: str) -> FloatArray:
        return np.array(table.column(name).to_numpy(), dtype=np.float64)

    cov = np.empty((n, p, p)) if meta["has_cov"] else None
    if cov is not None:
        for name, a, b in _triangle(family):
            cov[:, a, b] = cov[:, b, a] = numbers(name)
    named = {name: _numpy(table.column(name), dtype) for name, dtype in meta["dtypes"].items()}
    params = [numbers(name) for name in family.parameters]
    return {
        "family": family,
        "params": np.stack(params, axis=1),
        "cov": cov,
        "df": numbers("df") if "df" in table.column_names else None,
        **{name: numbers(name) for name in NUMBERS},
        "n_samples": np.array(table.column("n_samples").to_numpy(), dtype=np.int64),
        "status": statuses(FitStatus[word] for word in table.column("status").to_pylist()),
        "ids": named["point"],
        "labels": named.get("label"),
        "k_range": tuple(meta["k_range"]),
        "attrs": meta["attrs"],
        "diagnostics": meta["diagnostics"],
    }


def _triangle(family: Family) -> list[tuple[str, int, int]]:
    """Name the entries of the upper triangle of a covariance."""
    words = family.coordinates
    return [
        (f"cov_{words[a]}_{words[b]}", a, b)
        for a in range(len(words))
        for b in range(a, len(words))
    ]


def _arrow(values: AnyArray, what: str) -> Any:
    """Return ids or labels as an Arrow array."""
    import pyarrow as pa

    try:
        return pa.array(values.tolist() if values.dtype == object else values)
    except (pa.ArrowException, TypeError) as error:
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise StoreError(
            f"{what} of types {', '.join(kinds)} cannot be written: expected all text or all "
            "numbers. Convert them first, for example with .astype(str)."
        ) from error


def _numpy(column: Any, dtype: str) -> AnyArray:
    """Return an Arrow column as the NumPy array that it was."""
    array = np.empty(len(column), dtype=np.dtype(dtype))
    array[:] = column.to_pylist()
    return array
