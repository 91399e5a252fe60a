"""One door for all files: the suffix decides, and options that make no sense are refused."""

from __future__ import annotations

from typing import Any, Final

from apiece.data._dataset import Dataset
from apiece.data._options import FilePath
from apiece.data._readers import existing, format_of
from apiece.errors import DataError

_FOR_TABLES: Final = ("target", "text", "ids", "drop", "categorical", "text_features")


def dataset_from_file(
    path: FilePath, *, target: str | None, standardize: bool | None, options: dict[str, Any]
) -> Dataset:
    """Make the dataset of `Dataset.from_file`."""
    found = format_of(existing(path))
    if found == "npz":
        given = {"target": target, **options}
        for name in _FOR_TABLES:
            value = given.pop(name, None)
            is_default = (
                value is None
                or value in ((), [], "")
                or (name, value)
                == (
                    "text_features",
                    128,
                )
            )
            if not is_default:
                raise DataError(
                    f"{name}={value!r} says nothing about {str(path)!r}, which holds arrays: "
                    "expected options for arrays, whose targets are y and whose names are ids. "
                    f"Leave {name}= (--{name.replace('_', '-')}) out."
                )
        return Dataset.from_npz(path, standardize=bool(standardize), **given)
    if target is None:
        raise DataError(
            f"{str(path)!r} is a table and no target is given: expected the name of the column to "
            "predict. Pass for example target='label' (--target label)."
        )
    from_table = Dataset.from_parquet if found == "parquet" else Dataset.from_csv
    scaled = True if standardize is None else standardize
    return from_table(path, target=target, standardize=scaled, **options)
