"""The law of the loss: does its interval hold the loss at the pool's size, and beyond?

    python benchmarks/loss_law.py --data DIR [--sets magic,pol] [--rows 1500] [--draws 3]

A user's table of 1,500 rows is collected with rotating scoring rows, and with a fifth of the rows
as a validation set. The truth at a size is the mean loss of models trained on other rows of the
same data: scored on further rows, or on the user's validation set. DIR holds files such as
magic.npz with X and y; synthetic sets need none. Settings were chosen on the sets in `CHOSEN_ON`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import apiece
from _results import Results
from apiece.engines import resolve_model
from apiece.losses import resolve_loss

CHOSEN_ON = ("spambase", "california_housing", "logits", "friedman", "adult", "imdb")
APART = ("magic", "electricity", "pol", "miniboone", "blobs", "sparse")
COLUMNS = {
    "set": "{}",
    "part": "{}",
    "scoring": "{}",
    "sizes up to": "{:,}",
    "size": "{}",
    "coverage of 90 %": "{:.2f}",
    "width over loss": "{:.2f}",
    "error over loss": "{:.3f}",
    "negative": "{}",
}


class Rows(NamedTuple):
    """Features and targets."""

    X: np.ndarray
    y: np.ndarray


def synthetic(name: str) -> Rows:
    """A set of 20,000 rows whose learning curve has no limit of data."""
    from sklearn.datasets import make_classification, make_friedman1, make_regression

    rng = np.random.default_rng(1)
    if name == "logits":
        X = rng.normal(size=(20_000, 20))
        chance = 1 / (1 + np.exp(-0.5 * X @ rng.normal(size=20)))
        return Rows(X, (rng.random(20_000) < chance).astype(int))
    if name == "blobs":
        return Rows(*make_classification(20_000, 30, n_informative=10, n_classes=3, random_state=0))
    if name == "friedman":
        return Rows(*make_friedman1(20_000, 15, noise=1.0, random_state=0))
    return Rows(*make_regression(20_000, 50, n_informative=10, noise=30.0, random_state=0))


def load(folder: Path, name: str) -> Rows:
    """Read a set, with columns and quantities of one scale."""
    file = folder / f"{name}.npz"
    if name not in ("logits", "blobs", "friedman", "sparse"):
        with np.load(file) as arrays:
            rows = Rows(arrays["X"].astype(np.float64), arrays["y"])
    else:
        rows = synthetic(name)
    X = (rows.X - rows.X.mean(axis=0)) / np.where(rows.X.std(axis=0) > 0, rows.X.std(axis=0), 1.0)
    y = rows.y if is_classes(rows.y) else (rows.y - rows.y.mean()) / rows.y.std()
    return Rows(X, y)


def is_classes(y: np.ndarray) -> bool:
    """Whether targets are classes."""
    return len(np.unique(y)) <= 20


def loss_of(rows: Rows, train: np.ndarray, score: np.ndarray) -> float:
    """Train the default model on some rows, and score it on others."""
    kind = "classification" if is_classes(rows.y) else "regression"
    n_classes = len(np.unique(rows.y)) if kind == "classification" else 0
    model = resolve_model("auto", kind=kind, n_features=rows.X.shape[1], n_classes=n_classes)
    loss = resolve_loss(None, kind=kind, has_proba=kind == "classification")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model.seeded(0).fit(rows.X[train], rows.y[train])
    predict = fitted.predict_proba if kind == "classification" else fitted.predict
    return float(loss.value(rows.y[score], predict(rows.X[score])))


def measured(rows: Rows, options: argparse.Namespace, k_max: int, seed: int) -> Iterator[list[Any]]:
    """Collect from one table in both ways, and compare with the truth at several sizes."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows.y))
    n, table, rest = options.rows, order[: options.rows], order[options.rows :]
    held, pool = table[: n // 5], table[n // 5 :]
    for scoring in ("rotating", "fixed"):
        if scoring == "rotating":
            data = apiece.Dataset.from_arrays(rows.X[table], rows.y[table], validation=0)
        else:
            data = apiece.Dataset.from_arrays(
                rows.X[pool], rows.y[pool], X_val=rows.X[held], y_val=rows.y[held]
            )
        run = apiece.collect(
            data,
            points=range(20),
            sizes=(k_max // 10, k_max),
            samples=60,
            random_state=seed,
            progress=False,
        )
        law = apiece.aggregate(run)
        sizes = {"largest sampled": k_max, "2 x": 2 * k_max, "3 x": 3 * k_max, "pool": data.n_pool}
        for word, k in sizes.items():
            if k + 1000 > len(rest):
                continue
            losses = []
            for _ in range(options.truth):
                new = rng.permutation(rest)
                score = new[k : k + 4000] if scoring == "rotating" else held
                losses.append(loss_of(rows, new[:k], score))
            truth, error = np.mean(losses), np.std(losses) / np.sqrt(len(losses))
            low, high = law.interval(k)
            is_in = low - 1.645 * error <= truth <= high + 1.645 * error
            away = abs(float(law.mean(k)) - truth) / truth
            yield [scoring, word, is_in, (high - low) / truth, away, low < 0 or law.eps < 0]


def main() -> None:
    """Measure every set, and add a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--sets", default=",".join((*CHOSEN_ON, *APART)))
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--truth", type=int, default=15, help="training sets behind the truth")
    options = parser.parse_args()
    names = options.sets.split(",")
    results = Results("loss-law", COLUMNS, options, chosen_on=CHOSEN_ON, reported_on=names)
    for name in names:
        rows = load(options.data, name)
        part = "choosing" if name in CHOSEN_ON else "apart"
        for k_max in (300, 700):
            found: dict[tuple[str, str], list[list[Any]]] = {}
            for seed in range(options.draws):
                for scoring, word, *numbers in measured(rows, options, k_max, seed):
                    found.setdefault((scoring, word), []).append(numbers)
            for (scoring, word), many in found.items():
                inside, width, away, negative = np.array(many, dtype=float).T
                cells = inside.mean(), width.mean(), away.mean(), int(negative.sum())
                results.add(name, part, scoring, k_max, word, *cells)


if __name__ == "__main__":
    main()
