"""The paper's datasets as their makers publish them, read from files without running anything.

The CIFAR-10 batches are Python pickles, which could run code when they are opened. Here they are
read by an unpickler that knows plain arrays, bytes, lists and dictionaries, and refuses all else.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.errors import DataError

ADULT_COLUMNS: Final = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
    *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
    *("hours-per-week", "native-country", "income"),
)
_ADULT_NUMBERS: Final = (
    *("age", "fnlwgt", "education-num"),
    *("capital-gain", "capital-loss", "hours-per-week"),
)
_MISSING: Final = -999.0  # how MiniBooNE marks an event whose reconstruction failed
_HARMLESS: Final = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


class Rows(NamedTuple):
    """What a file holds: features, texts or images by row, and the label of each."""

    X: Any
    y: AnyArray


def read_miniboone(path: Path) -> Rows:
    """Read ``MiniBooNE_PID.txt``: counts of signal and background, then one event per line.

    Events whose 50 variables are all -999 failed to be reconstructed, and are left out.
    """
    with _words(path).open() as file:
        head = file.readline().split()
        try:
            n_signal, n_background = (int(word) for word in head)
        except ValueError:
            raise _broken(path, f"a first line {' '.join(head)[:40]!r}", "two counts") from None
        X = _numbers(path, file)
    if len(X) != n_signal + n_background:
        raise _broken(path, f"{len(X):,} events", f"{n_signal + n_background:,}, as line 1 says")
    y = np.repeat(np.array([1, 0], dtype=np.int64), [n_signal, n_background])
    is_whole = ~(X == _MISSING).all(axis=1)
    return Rows(X[is_whole], y[is_whole])


def read_adult(folder: Path) -> Rows:
    """Read ``adult.data``, and ``adult.test`` if it is there: 6 numbers and one-hot categories.

    A missing value ``?`` is a separate category. Label 1 is an income above 50,000 dollars.
    """
    import pandas as pd

    parts = []
    for name in ("adult.data", "adult.test"):
        if (folder / name).is_file():
            parts.append(
                pd.read_csv(
                    folder / name,
                    names=list(ADULT_COLUMNS),
                    comment="|",
                    skipinitialspace=True,
                    na_filter=False,
                )
            )
    table = pd.concat(parts, ignore_index=True)
    label = table.pop("income").astype(str).str.rstrip(".")
    if not set(label) <= {">50K", "<=50K"}:
        odd = min(set(label) - {">50K", "<=50K"})
        raise _broken(folder / "adult.data", f"the income {odd!r}", ">50K or <=50K in column 15")
    numbers = list(_ADULT_NUMBERS)
    try:
        known = table[numbers].astype(np.float64)
    except ValueError as error:
        raise _broken(folder / "adult.data", str(error), "numbers in 6 columns") from None
    kinds = pd.get_dummies(table.drop(columns=numbers), prefix_sep="=").astype(np.float64)
    X = np.concatenate([known.to_numpy(), kinds.to_numpy()], axis=1)
    return Rows(X, (label == ">50K").to_numpy().astype(np.int64))


def read_cifar10(folder: Path) -> Rows:
    """Read the batches of ``cifar-10-batches-py``: images ``(n, 32, 32, 3)`` and labels 0 to 9."""
    images, labels = [], []
    for path in sorted(folder.glob("data_batch_[1-5]")):
        batch = _plain_pickle(path)
        try:
            pixels = np.asarray(batch[b"data"], dtype=np.uint8).reshape(-1, 3, 32, 32)
            labels.append(np.asarray(batch[b"labels"], dtype=np.int64))
        except (KeyError, TypeError, ValueError):
            raise _broken(path, "no images", "b'data' and b'labels' of a CIFAR batch") from None
        images.append(pixels.transpose(0, 2, 3, 1))
    return Rows(np.concatenate(images), np.concatenate(labels))


def read_imdb_folder(folder: Path) -> Rows:
    """Read ``aclImdb``: one file per review, in train and test, pos and neg. 1 is positive."""
    texts: list[str] = []
    labels: list[int] = []
    for label, word in enumerate(("neg", "pos")):
        for part in ("train", "test"):
            for path in sorted((folder / part / word).glob("*.txt")):
                texts.append(path.read_text(encoding="utf-8"))
                labels.append(label)
    if len(set(labels)) < 2:
        raise _broken(folder, "no reviews of one kind", "train/pos/*.txt and train/neg/*.txt")
    return Rows(texts, np.array(labels, dtype=np.int64))


def read_imdb_table(path: Path) -> Rows:
    """Read a table of reviews with columns ``review`` and ``sentiment`` (positive, negative)."""
    import pandas as pd

    table = pd.read_csv(path)
    if not {"review", "sentiment"} <= set(table):
        raise _broken(path, f"columns {', '.join(map(str, table))}", "review and sentiment")
    odd = set(table["sentiment"]) - {"positive", "negative"}
    if odd:
        raise _broken(path, f"the sentiment {min(map(str, odd))!r}", "positive or negative")
    is_positive = (table["sentiment"] == "positive").to_numpy()
    return Rows(table["review"].astype(str).tolist(), is_positive.astype(np.int64))


def read_arrays(path: Path) -> Rows:
    """Read a prepared ``.npz`` with ``X`` and ``y``; no pickled objects."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return Rows(file["X"].astype(np.float64), file["y"].astype(np.int64))
    except (KeyError, ValueError, OSError) as error:
        raise _broken(path, str(error), "arrays X (rows x features) and y") from None


class _PlainUnpickler(pickle.Unpickler):
    """Reads arrays, bytes, numbers, lists and dictionaries; refuses everything else."""

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        """Return a harmless constructor, or refuse."""
        if (module, name) not in _HARMLESS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        home = module.replace("numpy.core", "numpy._core")
        try:
            result: type = getattr(import_module(home), name)
        except ImportError:  # NumPy 1 has the old name alone
            result = getattr(import_module(module), name)
        return result


def _plain_pickle(path: Path) -> Any:
    try:
        return _PlainUnpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError) as error:
        raise _broken(path, f"no plain data ({error})", "arrays, lists and bytes alone") from None


def _numbers(path: Path, file: Any) -> FloatArray:
    import pandas as pd

    try:
        table = pd.read_csv(file, sep=r"\s+", header=None, dtype=np.float64)
    except ValueError as error:
        raise _broken(path, str(error), "numbers in columns") from None
    return table.to_numpy()


def _words(path: Path) -> Path:
    if path.stat().st_size == 0:
        raise _broken(path, "nothing", "a file with rows")
    return path


def _broken(path: Path, content: str, expected: str) -> DataError:
    return DataError(
        f"{path} holds {content}: expected {expected}. Download it again, and unpack it whole."
    )
