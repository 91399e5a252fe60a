"""The datasets of the paper and two similar ones: where they come from and how they are read.

Each is read from the folder of data, in the form in which it is published or as a prepared
``NAME.npz``, and split as in the paper: 1,000 random rows score, class by class; the rest is the
pool. Tables are standardised over the pool; embeddings are reduced to 256 principal components.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from apiece._base.check import one_of
from apiece._base.files import make_folder, write_whole
from apiece._base.rng import stream
from apiece._base.typing import FloatArray
from apiece.data import Dataset
from apiece.errors import DataError
from apiece.papers import _embed, _formats
from apiece.papers._formats import Rows

VALIDATION: Final = 1000
_MOST_EMBEDDED: Final = 20_000  # rows: embedding all 50,000 takes hours without a GPU


@dataclass(frozen=True)
class Source:
    """A dataset, how it is published, and how it is read.

    Parameters
    ----------
    name
        Its name here, and that of its prepared file.
    title
        Its name for people.
    files
        Files or folders that may hold it, each with its reader; the first that exists is read.
    where
        What to download, from where.
    is_table
        Whether its features are measured quantities, which are standardised.
    embed
        What turns texts or images into features.
    """

    name: str
    title: str
    files: tuple[tuple[str, Callable[[Path], Rows]], ...]
    where: str
    is_table: bool = True
    embed: Callable[[Any, Path], FloatArray] | None = None

    def find(self, data: Path) -> tuple[Path, Callable[[Path], Rows]] | None:
        """Return what to read, and by what; a prepared file comes first."""
        prepared: tuple[str, Callable[[Path], Rows]] = (f"{self.name}.npz", _formats.read_arrays)
        for name, reader in (prepared, *self.files):
            if (data / name).exists():
                return (data / name, reader)
        return None

    def missing(self, data: Path) -> DataError:
        """Build the error that says what to download where."""
        names = " or ".join(name for name, _ in self.files)
        return DataError(
            f"{data} holds no {self.title}: expected {names or 'a file'}, or a prepared "
            f"{self.name}.npz with X and y. {self.where} and put it there."
        )


def _read_adult(path: Path) -> Rows:
    return _formats.read_adult(path.parent)


SOURCES: Final = {
    source.name: source
    for source in (
        Source(
            "miniboone",
            "MiniBooNE",
            (("MiniBooNE_PID.txt", _formats.read_miniboone),),
            "Download MiniBooNE_PID.txt from the UCI repository (dataset 199, MiniBooNE particle "
            "identification)",
        ),
        Source(
            "cifar10",
            "CIFAR-10",
            (("cifar-10-batches-py", _formats.read_cifar10),),
            "Download cifar-10-python.tar.gz from www.cs.toronto.edu/~kriz/cifar.html, unpack it",
            is_table=False,
            embed=_embed.embed_images,
        ),
        Source(
            "imdb",
            "IMDB",
            (
                ("aclImdb", _formats.read_imdb_folder),
                ("IMDB Dataset.csv", _formats.read_imdb_table),
            ),
            "Download aclImdb_v1.tar.gz from ai.stanford.edu/~amaas/data/sentiment, unpack it",
            is_table=False,
            embed=_embed.embed_texts,
        ),
        Source(
            "adult",
            "adult",
            (("adult.data", _read_adult),),
            "Download adult.data (and adult.test) from the UCI repository (dataset 2, Adult)",
        ),
        Source("higgs", "HIGGS", (), "Prepare it from the UCI repository (dataset 280, HIGGS)"),
        Source(
            "magic",
            "MAGIC",
            (),
            "Prepare it from the UCI repository (dataset 159, MAGIC telescope)",
        ),
    )
}
SYNTHETIC: Final = "synthetic"


def at_hand(data: Path) -> tuple[str, ...]:
    """Return the names of the datasets that the folder holds.

    Raises
    ------
    DataError
        If it holds none.
    """
    present = tuple(name for name, source in SOURCES.items() if source.find(data))
    if not present:
        listed = "".join(
            f"\n  {source.title}: {source.where.lower()[:1]}{source.where[1:]}"
            for source in SOURCES.values()
            if source.files
        )
        raise DataError(
            f"{data} holds none of the datasets: expected the files of at least one. Put there, in "
            f"their published form or as a prepared NAME.npz with X and y:{listed}"
        )
    return present


def load(name: str, data: Path, *, cache: Path) -> Dataset:
    """Read a dataset, and split it as in the paper.

    Parameters
    ----------
    name
        One of `SOURCES`, or ``synthetic``.
    data
        Folder of the files.
    cache
        Folder where embeddings are cached, because they take long.
    """
    if name == SYNTHETIC:
        return synthetic()
    source = SOURCES[one_of("dataset", name, SOURCES)]
    source_file = source.find(data)
    if source_file is None:
        raise source.missing(data)
    path, reader = source_file
    kept = cache / f"{name}.npz"
    if source.embed is None or reader is _formats.read_arrays:
        rows = reader(path)
    elif kept.is_file():
        rows = _formats.read_arrays(kept)
    else:
        rows = _embedded(reader(path), source.embed, data)
        _keep(rows, kept)
    return Dataset.from_arrays(
        rows.X,
        rows.y,
        validation=min(VALIDATION, len(rows.y) // 5),
        standardize=source.is_table,
        random_state=0,
    )


def synthetic() -> Dataset:
    """Return two overlapping clouds of points in eight dimensions, for tests of the code."""
    rng = stream(0)
    y = np.repeat([0, 1], 300)
    X = rng.standard_normal((600, 8)) + 0.6 * np.where(y, 1.0, -1.0)[:, None] * np.eye(8)[:3].sum(0)
    return Dataset.from_arrays(X, y, validation=150, random_state=0)


def _embedded(rows: Rows, embed: Callable[[object, Path], FloatArray], data: Path) -> Rows:
    """Embed texts or images; a random sample if there are too many."""
    rows_kept = np.sort(stream(0).permutation(len(rows.y))[:_MOST_EMBEDDED])
    raw = [rows.X[row] for row in rows_kept] if isinstance(rows.X, list) else rows.X[rows_kept]
    return Rows(_embed.principal_components(embed(raw, data)), rows.y[rows_kept])


def _keep(rows: Rows, path: Path) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, X=rows.X, y=rows.y)
    make_folder(path.parent)
    write_whole(path, buffer.getvalue())
