"""Models without a fast engine: what is learned from a number of trainings?

`any-model`: of each set 1,000 points (some with a flipped label) are valued on a fixed validation
set of other rows, from the same number of trainings by `engine="reuse"` and by pairs (refits with
and without each point). The truth comes from many more trainings: at each size, a regression of
their losses on which points they hold. Correlations are divided by the square root of the truth's
reliability, from two halves of these trainings. With several ``--seeds`` (other rows, other flipped
labels, other trainings) the table is `any-model-seeds`. Coverage is that of 90 % intervals of
reuse, which the noise of the truth widens.

`any-model-networks`: the squared error of expected contributions at one size, 2,000 valued points,
for networks of the paper's kind: pairs over reuse at equal numbers of trainings. Both are taken
without a prior, so that the error is their variance: for pairs the mean of contributions, for reuse
the difference of mean losses with and without a point.

`any-model-mislabel`: how well 500 trainings of a forest, rows taking turns in scoring, rank flipped
labels (area under the curve): by values, and by the loss of each point for models that were not
trained on it, next to Data-OOB (the share of trees outside whose bag a row is that predict its
label) from as many trees.

`any-model-until`: trainings to a stable top 20, if contributions come from pairs: one training
per training set, and one for each point that joins it. (The exact engine of logistic regression
computes the same contributions here.) ``until="top 20"`` stops by itself. Next to it, the
fixed samples that find as large a share of the true top 20 (shares made rising with samples, and
interpolated); the search for them costs nothing. The truth comes from all other runs. Coverage is
that of 90 % intervals, of points that later rounds valued rarely because their place was settled,
and of the others; and of the others in a fixed run of another draw with as many samples.

`any-model-plan`: what a plan says before the work, and what the work then takes and reaches; and
the time left that its progress shows, from the first tenth of the work on.

`any-model-memory`: time and memory beyond the trainings for 20,000 points and 5,000 trainings.

`any-model-libraries`: one command, ``apiece advise table.csv --target y --model xgboost``, on
spambase with a tenth of the labels flipped. The advice is followed, and the model is scored on rows
that the command did not see. The libraries have to be installed: name this part to run it.

    nice -n 10 python benchmarks/any_model.py --data DIR [--parts values] [--runs FOLDER]

With ``--runs`` trainings are kept in a folder, and a later call takes them from there.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import apiece
from _budgets import planned, stopping
from _results import Results
from apiece.engines import choose_engine, resolve_model
from apiece.estimators import Reuse
from apiece.records import Lists, Task, Trainings

SIZES = [100, 141, 200, 283, 400]
SHOWN = [100, 200, 400]
N_POINTS, N_VALIDATION, FLIPPED = 1_000, 3_000, 100
TREE = DecisionTreeClassifier(max_depth=6)
BOOSTING = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=8, early_stopping=False)
FOREST = RandomForestClassifier(50)
CASES = {  # model, loss and trainings
    "magic": ("tree", TREE, "brier", 3_000),
    "higgs": ("boosting", BOOSTING, "log_loss", 2_000),
    "electricity": ("boosting", BOOSTING, "log_loss", 2_000),
}
CHOSEN_ON = ("magic",)
NETWORK_SIZES, N_OF_NETWORKS = (200, 1_000), 2_000
NETWORK_DRAWS, NETWORK_POINTS = 20, 60  # training sets, and points that join each


def table(name: str, folder: Path, n: int, seed: int = 0):
    """Return features and labels in a random order, and which of the first ``n`` are flipped."""
    with np.load(folder / f"{name}.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.int64)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    is_wrong = np.zeros(n, dtype=bool)
    is_wrong[rng.choice(n, FLIPPED, replace=False)] = True
    y[:n] = np.where(is_wrong, 1 - y[:n], y[:n])
    return X, y, is_wrong


def dataset_of(name: str, folder: Path, seed: int):
    X, y, is_wrong = table(name, folder, N_POINTS, seed)
    rest = slice(N_POINTS, N_POINTS + N_VALIDATION)
    data = apiece.Dataset.from_arrays(X[:N_POINTS], y[:N_POINTS], X_val=X[rest], y_val=y[rest])
    return data, is_wrong


def truth_at(k: int, trainings, members):
    """Return the effect of each point on trainings of one size, from two halves of them."""
    halves = []
    for half in range(2):
        rows = np.flatnonzero(trainings.k == k)[half::2]
        Z = members[rows] - k / N_POINTS
        y = trainings.loss[rows] - trainings.loss[rows].mean()
        square = Z.T @ Z + np.eye(N_POINTS) * 1e-6 * len(rows) + len(rows) / N_POINTS**2
        halves.append(-np.linalg.solve(square, Z.T @ y))
    return np.array(halves)


def members_of(trainings):
    found = np.zeros((len(trainings), N_POINTS))
    found[trainings.trained.owner, trainings.trained.position] = 1
    return found


def pairs(data, model, metric: str, n_trainings: int):
    """Return each point's mean contribution times size, from refits with and without it."""
    engine, _ = choose_engine(data, model=model, metric=metric, engine="refit")
    rng = np.random.default_rng(5)
    total, count = np.zeros(N_POINTS), np.zeros(N_POINTS)
    for index in range(max(1, round(n_trainings / N_POINTS))):
        k = SIZES[2 - index % 3]
        subset = rng.choice(N_POINTS, k, replace=False)
        points = np.setdiff1d(np.arange(N_POINTS), subset)
        outcome = engine.run(Task(index, subset, points, index))
        total[points] += k * outcome.delta
        count[points] += 1
    mean = total / np.maximum(count, 1)
    return np.where(count > 0, mean, mean[count > 0].mean())


def trained(options, data, word: str, **request):
    """Return trainings of a run, kept in the folder of ``--runs`` if there is one."""
    to = None if options.runs is None else options.runs / word
    run = apiece.collect(data, engine="reuse", to=to, anchor=False, progress=False, **request)
    return run.trainings()


def values(options) -> None:
    results = Results(
        "any-model" if options.seeds == [0] else "any-model-seeds",
        {
            "data": "{}",
            "seed": "{}",
            "model": "{}",
            "loss": "{}",
            "trainings": "{:,}",
            "k": "{:,}",
            "correlation, reuse": "{:.2f}",
            "without features": "{:.2f}",
            "correlation, pairs": "{:.2f}",
            "correlation, planned": "{:.2f}",
            "coverage": "{:.2f}",
            "trainings for the truth": "{:,}",
            "reliability of the truth": "{:.2f}",
        },
        options,
        chosen_on=CHOSEN_ON,
        reported_on=options.sets,
        has_earlier_rows=options.runs is not None,
    )
    for name, seed in product(options.sets, options.seeds):
        word, model, metric, n = CASES[name]
        data, _ = dataset_of(name, options.data, seed)
        request = {"model": model, "metric": metric}
        to = f"{name}-{seed}" if seed else name
        trainings = trained(
            options, data, to, sizes=SIZES, trainings=n, random_state=2 * seed, **request
        )
        plan = apiece.plan(
            data, sizes=SIZES, trainings=n, engine="reuse", random_state=77, **request
        )
        laws = Reuse().fit_trainings(trainings)
        plain = Reuse(features=False).fit_trainings(trainings)
        by_pairs = pairs(data, model, metric, n)
        n_truth = options.truth * len(SHOWN)
        later = trained(
            options,
            data,
            f"{to}-truth",
            sizes=SHOWN,
            trainings=n_truth,
            random_state=2 * seed + 1,
            **request,
        )
        members = members_of(later)
        for k in SHOWN:
            halves = truth_at(k, later, members)
            truth = halves.mean(axis=0)
            half = np.corrcoef(halves)[0, 1]
            reliability = 2 * half / (1 + half)
            noise = ((halves[0] - halves[1]) ** 2).mean() / 4
            known = laws.mean(k - 1) - laws.mean(k - 1).mean()
            width = np.sqrt(laws.stderr(k - 1) ** 2 + noise)
            results.add(
                name,
                seed,
                word,
                metric,
                n,
                k,
                *(
                    np.corrcoef(each, truth)[0, 1] / np.sqrt(reliability)
                    for each in (known, plain.mean(k - 1), by_pairs)
                ),
                plan.correlation,
                np.mean(np.abs(known - truth + truth.mean()) < 1.645 * width),
                options.truth,
                reliability,
            )


def networks(options) -> None:
    results = Results(
        "any-model-networks",
        {
            "data": "{}",
            "k": "{:,}",
            "points": "{:,}",
            "pairs over reuse": "{:.1f} ± {:.1f}",
            "reuse pays from, points": "{:,.0f}",
        },
        options,
        reported_on=options.networks,
        has_earlier_rows=options.runs is not None,
    )
    for name in options.networks:
        X, y, _ = table(name, options.data, N_OF_NETWORKS)
        n, rest = N_OF_NETWORKS, slice(N_OF_NETWORKS, N_OF_NETWORKS + N_VALIDATION)
        data = apiece.Dataset.from_arrays(X[:n], y[:n], X_val=X[rest], y_val=y[rest])
        for k in NETWORK_SIZES:
            loss = trained(
                options,
                data,
                f"{name}-network-{k}",
                model="mlp",
                sizes=[k],
                design="grid",
                trainings=options.network_trainings,
                random_state=0,
            ).loss
            share = k / n
            gain = n * share * (1 - share) * contribution_spread(data, k) / np.var(loss)
            draws = np.random.default_rng(0).choice(len(gain), (1_000, len(gain)))
            results.add(name, k, n, [gain.mean(), gain[draws].mean(axis=1).std()], n / gain.mean())


def contribution_spread(data, k: int):
    """Return the variance of contributions to each of some training sets, expectation included."""
    engine, _ = choose_engine(data, model="mlp")
    rng = np.random.default_rng(7)
    found = []
    for index in range(NETWORK_DRAWS):
        drawn = rng.permutation(data.n_pool)
        outcome = engine.run(Task(index, drawn[:k], drawn[k : k + NETWORK_POINTS], index))
        found.append(np.nanvar(outcome.delta))
    return np.array(found)


def memory(options) -> None:
    results = Results(
        "any-model-memory",
        {
            "points": "{:,}",
            "trainings": "{:,}",
            "training sets of": "{}",
            "processor minutes": "{:.1f}",
            "GB": "{:.1f}",
        },
        options,
    )
    rng = np.random.default_rng(0)
    n, many = options.memory_points, options.memory_trainings
    low, high = n // 40, n // 20
    k = rng.integers(low, high + 1, many)
    trained = [np.sort(rng.choice(n, size, replace=False)) for size in k]
    scored = [np.sort(rng.choice(n, 1_000, replace=False)) for _ in k]
    effect = rng.normal(size=n) / 100
    loss = 0.3 + 10 / k - np.array([effect[rows].mean() for rows in trained])
    trainings = Trainings(
        np.arange(many),
        k,
        loss + 1e-3 * rng.normal(size=many),
        Lists(k, np.concatenate(trained)),
        Lists(np.full(many, 1_000), np.concatenate(scored)),
        rng.normal(size=1_000 * many) ** 2,
        np.arange(n),
        rng.integers(0, 2, n),
        np.ones(n, dtype=bool),
        np.ones(n, dtype=bool),
        False,
        rng.normal(size=(n, 10)),
    )
    began = time.process_time()
    Reuse().fit_trainings(trainings)
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    results.add(n, many, f"{low:,} to {high:,}", seconds / 60, peak)


def data_oob(X, y, n_trees: int):
    """Return the share of trees outside whose bag a row is that predict its label."""
    forest = BaggingClassifier(DecisionTreeClassifier(), n_trees, random_state=0).fit(X, y)
    right, seen = np.zeros(len(y)), np.zeros(len(y))
    for tree, rows in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        outside = np.setdiff1d(np.arange(len(y)), rows)
        right[outside] += tree.predict(X[outside]) == y[outside]
        seen[outside] += 1
    return right / np.maximum(seen, 1)


def mislabel(options) -> None:
    results = Results(
        "any-model-mislabel",
        {
            "data": "{}",
            "trainings": "{:,}",
            "draws": "{}",
            "AUC, unseen loss": "{:.3f} ± {:.3f}",
            "AUC, value": "{:.3f} ± {:.3f}",
            "AUC, Data-OOB": "{:.3f} ± {:.3f}",
            "unseen loss over Data-OOB": "{:+.4f} ± {:.4f}",
        },
        options,
        chosen_on=("magic", "pol", "spambase"),
        reported_on=options.mislabelled,
        has_earlier_rows=options.runs is not None,
    )
    for name in options.mislabelled:
        found = np.array([found_wrong(options, name, seed) for seed in options.seeds])
        found = np.column_stack([found, found[:, 0] - found[:, 2]])
        few = np.sqrt(max(len(found) - 1, 1))
        results.add(
            name,
            options.forests,
            len(found),
            *([column.mean(), column.std() / few] for column in found.T),
        )


def found_wrong(options, name: str, seed: int):
    """Return how well flipped labels are ranked by unseen loss, by value and by Data-OOB."""
    X, y, is_wrong = table(name, options.data, N_POINTS, seed)
    X, y = X[:N_POINTS], y[:N_POINTS]
    to = f"{name}-{seed}-forests" if seed else f"{name}-forests"
    run = apiece.collect(
        apiece.Dataset.from_arrays(X, y, validation=0),
        model=FOREST,
        engine="reuse",
        metric="brier",
        trainings=options.forests,
        random_state=seed,
        anchor=False,
        progress=False,
        to=None if options.runs is None else options.runs / to,
    )
    found = apiece.value(run)
    scores = found["unseen_loss"], -found["value"], -data_oob(X, y, options.forests)
    return [roc_auc_score(is_wrong, each) for each in scores]


def libraries(options) -> None:
    results = Results(
        "any-model-libraries",
        {
            "model": "{}",
            "rows": "{:,}",
            "labels changed": "{:,}",
            "of these wrong": "{:,}",
            "accuracy before": "{:.3f}",
            "after": "{:.3f}",
            "without wrong labels": "{:.3f}",
            "log loss before": "{:.3f}",
            "loss after": "{:.3f}",
            "processor minutes": "{:.1f}",
        },
        options,
        reported_on=["spambase"],
    )
    with np.load(options.data / "spambase.npz") as file:
        X, clean = file["X"].astype(np.float64), file["y"].astype(np.int64)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(clean))
    X, clean = X[order], clean[order]
    n = len(clean) * 4 // 5
    y = clean.copy()
    is_wrong = rng.random(n) < 0.1
    y[:n] = np.where(is_wrong, 1 - y[:n], y[:n])
    for name in options.libraries:
        with tempfile.TemporaryDirectory() as folder:
            advice, seconds = advised(Path(folder), X[:n], y[:n], name)
        is_new = (advice["advice"] == "relabel").to_numpy()
        kept = (advice["advice"] != "drop").to_numpy()
        followed = np.where(is_new, 1 - y[:n], y[:n])
        scores = []
        for rows, labels in ((kept | True, y[:n]), (kept, followed), (kept | True, clean[:n])):
            model = resolve_model(name, kind="classification", n_features=X.shape[1], n_classes=2)
            proba = model.seeded(0).fit(X[:n][rows], labels[rows]).predict_proba(X[n:])
            scores.append((np.mean(proba.argmax(axis=1) == clean[n:]), log_loss(clean[n:], proba)))
        results.add(
            name,
            n,
            int((is_new | ~kept).sum()),
            int(((is_new | ~kept) & is_wrong).sum()),
            *(score[0] for score in scores),
            scores[0][1],
            scores[1][1],
            seconds / 60,
        )


def advised(folder: Path, X, y, model: str):
    """Run the command on a table; return its advice by row, and the processor time it took."""
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y)
    table.to_csv(folder / "table.csv", index=False)
    words = f"advise table.csv --target y --model {model} -o advice.csv --quiet"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "apiece", *words.split()]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = sum(getattr(after, part) - getattr(before, part) for part in ("ru_utime", "ru_stime"))
    return pd.read_csv(folder / "advice.csv").set_index("point").sort_index(), seconds


PARTS = {
    "mislabel": mislabel,
    "values": values,
    "networks": networks,
    "until": partial(stopping, table=table),
    "plan": partial(planned, table=table),
    "memory": memory,
    "libraries": libraries,
}
USUAL = ["mislabel", "values", "networks", "until", "plan"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, help="folder to keep trainings in")
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=USUAL)
    parser.add_argument("--sets", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--truth", type=int, default=5_000, help="trainings at each size")
    parser.add_argument("--networks", nargs="*", default=["magic", "higgs"])
    parser.add_argument("--network-trainings", type=int, default=600)
    parser.add_argument(
        "--mislabelled", nargs="*", default=["electricity", "pol", "miniboone", "magic", "spambase"]
    )
    parser.add_argument("--seeds", nargs="*", type=int, default=[0], help="of values and mislabel")
    parser.add_argument("--stopped", nargs="*", default=["electricity", "higgs", "magic", "adult"])
    parser.add_argument("--draws", type=int, default=6, help="runs of until, and of fixed samples")
    parser.add_argument("--memory-points", type=int, default=20_000)
    parser.add_argument("--memory-trainings", type=int, default=5_000)
    parser.add_argument("--forests", type=int, default=500)
    parser.add_argument("--libraries", nargs="*", default=["xgboost", "lightgbm", "catboost"])
    options = parser.parse_args()
    with threadpool_limits(1):
        for part in options.parts:
            PARTS[part](options)


if __name__ == "__main__":
    main()
