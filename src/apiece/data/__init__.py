"""From files and arrays to a `Dataset`: points with ids, a validation set and a fingerprint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiece.data._dataset import Dataset
from apiece.data._demo import load_demo, read_again
from apiece.data._groups import Groups, groups_of
from apiece.data._options import FilePath
from apiece.data._pictures import pictures_of
from apiece.data._rows import guarded, join_rows, take_rows
from apiece.data._summary import small_data

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Dataset",
    "FilePath",
    "Groups",
    "groups_of",
    "guarded",
    "join_rows",
    "load_demo",
    "pictures_of",
    "read_again",
    "read_table",
    "small_data",
    "take_rows",
]


def read_table(path: FilePath) -> pd.DataFrame:
    r"""Read a csv, tsv or Parquet file as it is, by its suffix.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("x,label\n1.5,yes\n")
    >>> read_table(path).to_dict("records")
    [{'x': 1.5, 'label': 'yes'}]
    """
    from apiece.data import _readers

    return _readers.read_table(path)
