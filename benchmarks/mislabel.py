"""Wrong labels: who finds them, against pyDVL on the same data, and how long it takes.

Of each dataset some points are drawn, some of their labels flipped, and every method values the
points on the same clean validation rows. pyDVL runs in a Python of its own (`--pydvl`), which must
have it installed; times are processor time, on one thread, for the same number of contributions.
Results are kept in `--to`, so that a benchmark that was interrupted goes on where it was.

    python benchmarks/mislabel.py --data DIR --pydvl PYTHON --to runs/mislabel.csv --draws 1
    python benchmarks/mislabel.py --data DIR --pydvl PYTHON --to runs/mislabel.csv --permutations 0
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import apiece
from _results import Results
from apiece import uses
from apiece.experiments import detection

HERE = Path(__file__).parent
CHOSEN_ON = ("higgs", "magic", "adult", "imdb")  # plausibility was compared with values on these


def load(path: Path, n: int, n_validation: int, seed: int):
    """Return standardised points and validation rows, of their own for every draw."""
    with np.load(path) as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(X))[: n + n_validation]
    X, y = X[order], y[order]
    spread = X[:n].std(axis=0)
    X = (X - X[:n].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X[:n], y[:n], X[n:], y[n:]


def flipped(y, share: float, seed: int):
    """Return labels of two classes with some flipped, and which they are."""
    is_wrong = np.zeros(len(y), dtype=bool)
    rng = np.random.default_rng((seed, round(1e6 * share)))
    is_wrong[rng.choice(len(y), round(share * len(y)), replace=False)] = True
    return np.where(is_wrong, 1 - y, y), is_wrong


def timed(work, times: int = 1):
    """Return what work returns, and the seconds of processor time that it takes, their median."""
    seconds = []
    for _ in range(times):
        started = time.process_time()
        found = work()
        seconds.append(time.process_time() - started)
    return found, float(np.median(seconds))


def by_pydvl(python: str, arrays) -> dict[str, tuple]:
    """Return values and seconds of pyDVL's methods."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **arrays)
        subprocess.run([python, HERE / "_pydvl_values.py", source, target], check=True)
        with np.load(target) as file:
            names = [name for name in file.files if not name.endswith(":seconds")]
            return {f"pyDVL {name}": (file[name], float(file[f"{name}:seconds"])) for name in names}


def one(name: str, share: float, draw: int, options) -> list[dict]:
    """Return a row for each method."""
    X, y, X_val, y_val = load(options.data / f"{name}.npz", options.n, 500, draw)
    noisy, is_wrong = flipped(y, share, draw)
    dataset = apiece.Dataset.from_arrays(X, noisy, X_val=X_val, y_val=y_val)
    every = (2, options.n - 2)  # the sizes of a permutation
    some = (max(10, options.n // 20), options.n // 2)

    def collected(samples: int, sizes):
        return apiece.collect(
            dataset, sizes=sizes, samples=samples, random_state=draw, progress=False
        )

    collected(1, some)  # loads and warms what is loaded once
    # half a second, so that once would be left to chance
    few, seconds = timed(lambda: collected(max(1, options.permutations), every), times=5)
    # Sets shared by all points give some of them more contributions than were asked for.
    seconds *= options.permutations * options.n / len(few.contributions())
    many, more = timed(lambda: collected(100, some))
    laws = apiece.fit(many)
    plausible, asked = timed(lambda: uses.plausibility(dataset, random_state=draw))
    values = {"contributions, as many": (apiece.value(few, source="samples")["value"], seconds)}
    values = values if options.permutations else {}
    values |= {
        "contributions, 100": (apiece.value(many, source="samples")["value"], more),
        "law at n": (laws.mean(float(options.n)), more),
        "plausibility": (plausible["plausibility"], asked),
        "knn-shapley": timed(lambda: uses.knn_shapley(dataset)["value"]),
    }
    values |= by_pydvl(
        options.pydvl,
        {
            "X": X,
            "y": noisy,
            "X_val": X_val,
            "y_val": y_val,
            "permutations": options.permutations,
            "seed": draw,
        },
    )
    where = {"dataset": name, "flipped": share, "draw": draw}
    rows = [
        where | {"method": word, "seconds": took} | detection(np.asarray(value), is_wrong)
        for word, (value, took) in values.items()
    ]
    return rows + suggested(where, dataset, is_wrong)


def suggested(where, dataset, is_wrong) -> list[dict]:
    """Return how good the labels are that advice suggests."""
    advice = apiece.advise(dataset, progress=False).table()
    is_new = (advice["advice"] == "relabel").to_numpy()[: dataset.n_pool]
    found = {
        "method": "relabel: advise",
        "precision": (is_new & is_wrong).sum() / max(1, is_new.sum()),
        "recall": (is_new & is_wrong).sum() / is_wrong.sum(),
        "suggested": int(is_new.sum()),
    }
    return [where | found]


def show(table: pd.DataFrame, options: argparse.Namespace, has_earlier: bool) -> None:
    """Add means over draws; and the time that pyDVL takes for as many contributions, over ours."""
    sets = {"chosen_on": CHOSEN_ON, "reported_on": options.datasets.split(",")}
    about = {**sets, "has_earlier_rows": has_earlier}
    columns = {"data": "{}", "flipped": "{:.0%}", "method": "{}", "AUC": "{:.3f}"}
    columns |= {"precision": "{:.2f}", "recall": "{:.2f}", "suggested": "{:.1f}"}
    columns |= {"seconds, median": "{:.3f}", "draws": "{}"}
    results = Results("mislabel", columns, options, **about)
    scores = ["auc", "precision", "recall", "suggested"]
    for where, part in table.groupby(["dataset", "flipped", "method"]):
        means = [part[score].mean() for score in scores]
        results.add(*where, *means, part["seconds"].median(), len(part))
    wide = table.pivot_table(
        index=["dataset", "draw", "flipped"], columns="method", values="seconds"
    )
    if "contributions, as many" not in wide:
        return
    columns = {"data": "{}", "lowest": "{:.0f}", "median": "{:.0f}", "highest": "{:.0f}"}
    results = Results("mislabel-speed", columns | {"cells": "{}"}, options, **about)
    ratio = (wide["pyDVL permutation shapley"] / wide["contributions, as many"]).dropna()
    for name, part in ratio.groupby("dataset"):
        results.add(name, part.min(), part.median(), part.max(), len(part))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pydvl", required=True, help="a Python that has pyDVL")
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--datasets", default="higgs,magic,adult,imdb")
    parser.add_argument("--flipped", default="0.05,0.1,0.2")
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--permutations", type=int, default=10, help="0: no permutation Shapley")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    has_earlier = options.to.exists()
    table = pd.read_csv(options.to) if has_earlier else pd.DataFrame()
    with threadpool_limits(1):
        for draw in range(options.draws):
            for name in options.datasets.split(","):
                for share in map(float, options.flipped.split(",")):
                    if len(table) and len(
                        table.query("dataset == @name and flipped == @share and draw == @draw")
                    ):
                        continue
                    if time.monotonic() > end:
                        show(table, options, has_earlier)
                        sys.exit("# time is up; repeat the command to go on")
                    rows = pd.DataFrame(one(name, share, draw, options))
                    table = pd.concat([table, rows], ignore_index=True)
                    options.to.parent.mkdir(parents=True, exist_ok=True)
                    table.to_csv(options.to, index=False)
    show(table, options, has_earlier)


if __name__ == "__main__":
    main()
