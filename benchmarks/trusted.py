"""Wrong targets, or rows that are hard to know? What a few rows with right targets tell.

Targets of a share of the rows of a table are wrong. Given the features, the targets then have the
same distribution as right ones of a population in which that share of the rows has nothing to do
with its features. So the same table can come from two worlds:

- *wrong*: the targets are wrong, and test rows have right ones;
- *right*: the targets are right, and test rows are like those of the table (the same share of their
  targets is replaced by the same rule).

Whoever has the table alone must do the same in both. *Oracle* puts exactly the replaced targets
right, *advice* follows `apiece.advise`; both are scored in both worlds. Then 200 other rows of the
world at hand are given as validation rows, which are trusted and train every model, and `advise` is
asked again. Cells are changes of the loss against keeping everything (mean squared errors in units
of the variance), mean ± standard error over draws; negative is better. DIR holds the sets of
``_more_data.py``, too.

    nice -n 10 python benchmarks/trusted.py --data DIR
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import apiece
from _results import Results, summary
from decisions import CHOSEN_ON, REGRESSION, corrupted, load, scored, standardised

# Sets that the use of trusted rows was tried on while it was made, and those of `decisions`.
TRIED = {*CHOSEN_ON, "imdb", "cifar10", "pima", "caravan", "star", "ridership"}
SETS = (
    *("magic", "rare", "rings", "adult", "spambase", "imdb", "churn", "lending"),
    *("fried3", "california_housing", "ridership", "earnings"),
    *("letter", "optdigits", "titanic", "credit", "wachurn", "email", "hmda", "spam7"),
    *("rotterdam", "smoke", "mileage", "languages", "exam", "mathach", "twoyear", "flchain"),
)
WORLDS = ("wrong", "right")


class Rows(NamedTuple):
    """Features and targets."""

    X: np.ndarray
    y: np.ndarray

    def joined(self, more: Rows) -> Rows:
        """Return these rows and more of them."""
        return Rows(np.concatenate([self.X, more.X]), np.concatenate([self.y, more.y]))


def followed(table: Rows, dataset: apiece.Dataset, seed: int) -> Rows:
    """Return the rows of a table after all advice is followed."""
    advice = apiece.advise(dataset, random_state=seed, progress=False).table()
    is_new, is_out = ((advice["advice"] == word).to_numpy() for word in ("relabel", "drop"))
    y = table.y.copy()
    y[is_new] = advice["to"][is_new].astype(y.dtype)
    return Rows(table.X[~is_out], y[~is_out])


def one(name: str, share: float, seed: int, options) -> dict[str, float]:
    """Return changes of the loss on one draw."""
    X, y = load(name, options.data, seed)
    is_regression = name in REGRESSION
    n_classes = 0 if is_regression else int(y.max()) + 1
    n = min(options.n, (len(X) - options.trusted) // 2)
    X = standardised(X, n)
    noisy, _ = corrupted(y, share, seed, n_classes)
    places = np.split(np.arange(len(X)), [n, n + options.trusted, n + options.trusted + 2_000])
    table, right = Rows(X[:n], noisy[:n]), Rows(X[:n], y[:n])
    kind = "regression" if is_regression else "classification"
    alone = apiece.Dataset.from_arrays(*table, kind=kind, validation=0)
    advised = followed(table, alone, seed)
    found = {}
    for world in WORLDS:
        held = y if world == "wrong" else noisy
        more, test = (Rows(X[rows], held[rows]) for rows in places[1:3])

        def loss(rows: Rows, test: Rows = test) -> float:
            return scored(*rows, *test, is_regression)[0]

        given = apiece.Dataset.from_arrays(*table, X_val=more.X, y_val=more.y, kind=kind)
        known = followed(table, given, seed).joined(more)
        found |= {
            f"oracle, {world}": loss(right) - loss(table),
            f"advice, {world}": loss(advised) - loss(table),
            f"trusted: oracle, {world}": loss(right.joined(more)) - loss(table.joined(more)),
            f"trusted: advice, {world}": loss(known) - loss(table.joined(more)),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--flipped", default="0.05,0.1,0.2")
    parser.add_argument("--n", type=int, default=1_000)
    parser.add_argument("--trusted", type=int, default=200)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--resume", action="store_true", help="keep cells that the file has")
    options = parser.parse_args()
    ways = [
        f"{before}{way}, {world}"
        for before in ("", "trusted: ")
        for way in ("oracle", "advice")
        for world in WORLDS
    ]
    sets = options.sets.split(",")
    form = "{:+.4f} ± {:.4f}"
    columns = {"data": "{}", "part": "{}", "wrong": "{:.0%}"} | dict.fromkeys(ways, form)
    results = Results("trusted", columns, options, chosen_on=TRIED, reported_on=sets)
    if options.resume:
        results.resume()
    with threadpool_limits(1):
        for name in sets:
            part = "choosing" if name in TRIED else "apart"
            for share in map(float, options.flipped.split(",")):
                if results.has(data=name, wrong=share):
                    continue
                found = [one(name, share, seed, options) for seed in range(options.draws)]
                each = [summary([draw[way] for draw in found]) for way in ways]
                results.add(name, part, share, *each)


if __name__ == "__main__":
    main()
