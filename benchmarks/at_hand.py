"""Add picked rows to a given training set: whose picks help most on rows that nothing has seen?

Of each set a training set, candidates and scoring rows are drawn. ``apiece.select(have=...)`` and
every baseline pick from the same candidates, with the same scoring rows where they use any. A model
of the training set and the picks is scored on other rows. A cell is the fall of the log loss, mean
± standard error over draws; ``inside`` is the share of draws whose fall lies in the interval that
was promised. With ``--resume`` the cells that an interrupted call has written are kept.

    nice -n 10 python benchmarks/at_hand.py --data DIR
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

import apiece
from _results import Results, summary
from apiece.uses import baselines
from decisions import load

CHOSEN_ON = ("magic", "electricity")
APART = ("pol", "miniboone", "spambase", "adult", "higgs")
RIVALS = ("influence", "margin", "k-center", "random")


def one(name: str, k: int, take: int, seed: int, options) -> tuple[dict[str, float], float, bool]:
    """Return the fall of the loss by method, what was promised, and whether it was kept."""
    X, y = load(name, options.data, seed)
    spread = X[:k].std(axis=0)
    X = (X - X[:k].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    end = k + options.candidates
    scoring, test = slice(end, end + options.scoring), slice(end + options.scoring, None)
    dataset = apiece.Dataset.from_arrays(X[:end], y[:end], X_val=X[scoring], y_val=y[scoring])
    have = dataset.ids[:k]
    picks = apiece.select(
        dataset, take=take, have=have, model="logistic", random_state=seed, progress=False
    )
    values = {
        "influence": baselines.influence(dataset, have=have, model="logistic"),
        "margin": baselines.margin(dataset, have=have, model="logistic"),
        "k-center": baselines.k_center(dataset, have=have, take=take),
        "random": baselines.random_values(dataset, random_state=seed),
    }
    chosen = {"have": dataset.positions(picks.index)} | {
        way: k + np.argsort(-table["value"].to_numpy()[k:end], kind="stable")[:take]
        for way, table in values.items()
    }

    def loss(rows):
        model = LogisticRegression(max_iter=5_000, tol=1e-8).fit(X[rows], y[rows])
        return log_loss(y[test], model.predict_proba(X[test]))

    held = np.arange(k)
    before = loss(held)
    falls = {way: before - loss(np.concatenate([held, rows])) for way, rows in chosen.items()}
    last = picks.iloc[-1]
    is_kept = last["gain_low"] <= falls["have"] <= last["gain_high"]
    return falls, float(last["gain"]), bool(is_kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default=",".join((*CHOSEN_ON, *APART)))
    parser.add_argument("--sizes", default="100,200,1000,2000")
    parser.add_argument("--takes", default="20,50")
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--scoring", type=int, default=500)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--resume", action="store_true", help="keep cells that the file has")
    options = parser.parse_args()
    sets = options.sets.split(",")
    ways = ("have", *RIVALS)
    results = Results(
        "at-hand",
        {"data": "{}", "k": "{:,}", "picks": "{}"}
        | dict.fromkeys(ways, "{:+.5f} ± {:.5f}")
        | {"promised": "{:+.5f}", "inside": "{:.2f}"},
        options,
        chosen_on=CHOSEN_ON,
        reported_on=sets,
    )
    if options.resume:
        results.resume()
    with threadpool_limits(1):
        cases = product(map(int, options.takes.split(",")), map(int, options.sizes.split(",")))
        for take, k in cases:
            for name in sets:
                if results.has(data=name, k=k, picks=take):
                    continue
                found = [one(name, k, take, seed, options) for seed in range(options.draws)]
                cells = [summary([each[0][way] for each in found]) for way in ways]
                promised, inside = (np.mean([each[part] for each in found]) for part in (1, 2))
                results.add(name, k, take, *cells, promised, inside)


if __name__ == "__main__":
    main()
