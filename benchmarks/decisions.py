"""Follow the advice: what happens to a model on rows that nothing has seen?

Of each set a table is drawn, some of its labels are flipped (or targets of a regression replaced by
those of other rows; with ``--noise``, twice their standard deviation of noise added), and
`apiece.advise` is asked what to do. A model is then trained on the table as it is, with all advice
followed, with as many rows relabelled and dropped at random, and with exactly the flipped rows put
right (the oracle), and with those of them put right that were doubted (the most that this order of
doubt can gain). Two finders that know more than the table (``_limits.py``) show what can be found.
All are scored on other rows with right labels. A cell is the change against keeping everything,
mean ± standard error over draws. For quantities, the F1 of doubted rows stands next to that of an
ideal finder, which knows the distribution of right and wrong values.

    nice -n 10 python benchmarks/decisions.py --data DIR

With ``--resume`` the cells that an interrupted call has written are kept, but those of the sets of
``--again``. With ``--keep-limits`` the two finders, which take most of the time, are not asked
again: what the file has of them stays.
``--more`` measures the sets of ``_more_data.py`` instead, without them, into
``decisions-more.json``.
"""

from __future__ import annotations

import argparse
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score
from threadpoolctl import threadpool_limits

import apiece
from _limits import best_labels, best_values, ideal_proba, own_probas
from _more_data import KEEL, R_CLASSES, R_QUANTITIES, RARE
from _results import Results, summary

CHOSEN_ON = (
    *("magic", "electricity", "spambase", "pol", "miniboone", "higgs", "mnist", "rare", "overlap"),
    *("adult", "breast_cancer", "wine", "rings", "steps", "wide", "seldom"),
    *("california_housing", "fried", "diabetes"),
    *("satimage", "phoneme", "german", "contraceptive", "ring", "segment", "default", "churn"),
    *("attrition", "lending", "mammographic", "yeast4", "page-blocks0", "vehicle", "hpc"),
    *("car-vgood", "fried2", "fried3", "tails"),
    *("ames", "sacramento", "saratoga", "hotel", "computers", "grades", "assets", "panel", "race"),
    *("women", "hours", "chemistry", "storms", "gestation", "census", "airfare", "earnings"),
    *("budget", "diamonds", "cps", "wage", "boston", "distance", "cpssw", "males", "working"),
    *("slid", "retschool", "birthweight"),
)
APART = ("imdb", "cifar10", "digits", "twenty")
MORE = (*KEEL, *RARE, *R_CLASSES, *R_QUANTITIES)
REGRESSION = (
    *("california_housing", "fried", "diabetes", "fried2", "fried3", "tails"),
    *R_QUANTITIES,
)
WAYS = ("advice", "random", "oracle", "limit")
LIMITS = ("ideal", "own size")
COMPONENTS = 40  # of sets whose features are components in decreasing order
BUNDLED = {
    "digits": load_digits,
    "breast_cancer": load_breast_cancer,
    "wine": load_wine,
    "diabetes": load_diabetes,
}


def rare():
    """Return two classes that overlap, one of them 1 % of the rows."""
    made = np.random.default_rng(99)
    y = (made.random(20_000) < 0.01).astype(int)
    X = made.normal(size=(20_000, 8))
    X[:, :4] += 0.9 * y[:, None]
    return X, y


def overlap():
    """Return two classes that overlap so much that a label is hardly known."""
    made = np.random.default_rng(98)
    X = made.normal(size=(20_000, 8))
    score = X[:, :4] @ [0.6, 0.4, 0.3, 0.2] - 0.5 * X[:, 0] * X[:, 1]
    return X, (made.random(20_000) < 1 / (1 + np.exp(-score))).astype(int)


def twenty():
    """Return 20 classes around centres, with some overlap."""
    made = np.random.default_rng(97)
    y = made.integers(0, 20, 12_000)
    return 1.1 * made.normal(size=(20, 12))[y] + 0.8 * made.normal(size=(12_000, 12)), y


def rings():
    """Return two classes by the distance from the middle, which a line cannot part."""
    made = np.random.default_rng(96)
    X = made.normal(size=(12_000, 5))
    far = (X[:, :3] ** 2).sum(axis=1) + 0.3 * made.normal(size=12_000)
    return np.column_stack([X, X[:, 0] ** 2 + made.normal(size=12_000)]), (far > 2.4).astype(int)


def steps():
    """Return three classes by thresholds of single features, 3 % of the labels at random."""
    made = np.random.default_rng(95)
    X = made.exponential(size=(12_000, 6))
    y = np.where(X[:, 0] > 1, 2, np.where(X[:, 1] > 0.7, 1, 0))
    return X, np.where(made.random(12_000) < 0.03, made.integers(0, 3, 12_000), y)


def wide():
    """Return two classes by a line in 80 features."""
    made = np.random.default_rng(94)
    X = made.normal(size=(12_000, 80))
    score = X @ made.normal(size=80) * 0.4
    return X, (made.random(12_000) < 1 / (1 + np.exp(-score))).astype(int)


def seldom():
    """Return three classes, one of them 1 % of the rows."""
    made = np.random.default_rng(93)
    y = made.choice(3, size=20_000, p=[0.69, 0.3, 0.01])
    centres = np.array([[0.0, 0.0, 0.0], [1.6, 0.0, 1.0], [0.0, 2.0, -1.0]])
    return np.column_stack([centres[y], np.zeros((20_000, 3))]) + made.normal(size=(20_000, 6)), y


def tails():
    """Return a quantity with heavy-tailed noise, whose scale grows with a feature."""
    made = np.random.default_rng(92)
    X = made.normal(size=(12_000, 6))
    noise = made.standard_t(3, size=12_000) * np.exp(0.4 * X[:, 5])
    return X, X @ [1.0, -1.0, 0.5, 0.5, 0.0, 0.0] + 0.5 * X[:, 0] * X[:, 1] + 0.5 * noise


MADE = {
    "rare": rare,
    "overlap": overlap,
    "twenty": twenty,
    "rings": rings,
    "steps": steps,
    "wide": wide,
    "seldom": seldom,
    "tails": tails,
    "fried": lambda: make_friedman1(4_000, noise=1.0, random_state=0),
    "fried2": lambda: make_friedman2(4_000, noise=100.0, random_state=0),
    "fried3": lambda: make_friedman3(4_000, noise=0.1, random_state=0),
}


def load(name: str, folder: Path, seed: int):
    """Return all rows in a random order."""
    rng = np.random.default_rng(seed)
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    elif name in MADE:
        X, y = MADE[name]()
    elif name == "mnist":
        with np.load(folder / "mnist.npz") as file:
            X, y = file["X"].reshape(len(file["X"]), -1) / 255.0, file["y"]
        X = PCA(30, random_state=0).fit_transform(X)
    else:
        with np.load(folder / f"{name}.npz") as file:
            X, y = file["X"].astype(np.float64), file["y"]
        if name in ("cifar10", "imdb"):
            X = X[:, :COMPONENTS]
    order = rng.permutation(len(X))
    return X[order], y[order].astype(np.float64 if name in REGRESSION else np.int64)


def corrupted(y, share: float, seed: int, n_classes: int, *, is_noise: bool = False):
    """Return targets with some of them wrong, and which they are."""
    rng = np.random.default_rng((seed, 7))
    is_wrong = np.zeros(len(y), dtype=bool)
    is_wrong[rng.choice(len(y), round(share * len(y)), replace=False)] = True
    if n_classes:
        return np.where(is_wrong, (y + rng.integers(1, n_classes, len(y))) % n_classes, y), is_wrong
    if is_noise:
        return y + np.where(is_wrong, 2 * y.std() * rng.normal(size=len(y)), 0.0), is_wrong
    return np.where(is_wrong, rng.permutation(y), y), is_wrong


def scored(X, y, X_test, y_test, is_regression: bool):
    """Return loss (mean squared error over the variance, for a regression) and accuracy or R2."""
    if is_regression:
        predicted = Ridge().fit(X, y).predict(X_test)
        r2 = r2_score(y_test, predicted)
        return mean_squared_error(y_test, predicted) / y_test.var(), r2
    if len(np.unique(y)) < 2:
        return np.nan, np.nan
    proba = LogisticRegression(max_iter=1_000).fit(X, y)
    full = np.full((len(y_test), y_test.max() + 1), 1e-15)
    full[:, proba.classes_] = proba.predict_proba(X_test)
    full /= full.sum(axis=1, keepdims=True)
    labels = np.arange(full.shape[1])
    return log_loss(y_test, full, labels=labels), accuracy_score(y_test, full.argmax(axis=1))


def ideal_f1(r2: float, share: float, *, is_noise: bool) -> float:
    """Return the best F1 of wrong values to who knows the distribution of all others.

    Right values are normal around what features say of them, which explains ``r2`` of their
    variance, and how wrong ones come about and their share are known, too.
    """
    rng, n, rest = np.random.default_rng(0), 100_000, 1 - r2
    mean = np.sqrt(r2) * rng.normal(size=n)
    value = mean + np.sqrt(rest) * rng.normal(size=n)
    is_wrong = rng.random(n) < share
    wrong = value + 2 * rng.normal(size=n) if is_noise else rng.permutation(value)
    value = np.where(is_wrong, wrong, value)
    wide = rest + 4 if is_noise else 1.0
    off = value - mean if is_noise else value
    ratio = (value - mean) ** 2 / rest - off**2 / wide
    right = np.cumsum(is_wrong[np.argsort(-ratio)])
    return float((2 * right / (np.arange(1, n + 1) + is_wrong.sum())).max())


def one(name: str, share: float, seed: int, options) -> dict:
    """Return losses and accuracies of one draw."""
    X, y = load(name, options.data, seed)
    is_regression = name in REGRESSION
    n = min(options.n, 2 * len(X) // 3)
    end = n + options.n_test
    X = standardised(X, n)
    others = X[n:], y[n:]
    X, X_test, truth, y_test = X[:n], X[n:end], y[:n], y[n:end]
    n_classes = 0 if is_regression else int(y.max()) + 1
    noisy, is_wrong = corrupted(truth, share, seed, n_classes, is_noise=options.noise)
    dataset = apiece.Dataset.from_arrays(
        X, noisy, validation=0, kind="regression" if is_regression else "classification"
    )
    advice = apiece.advise(dataset, random_state=seed, progress=False)
    table = advice.table()
    is_new, is_out = ((table["advice"] == word).to_numpy() for word in ("relabel", "drop"))
    followed = noisy.copy()
    followed[is_new] = table["to"][is_new].astype(noisy.dtype)
    rng = np.random.default_rng((seed, 8))
    order = rng.permutation(n)
    chance, out = noisy.copy(), order[is_new.sum() : is_new.sum() + is_out.sum()]
    if n_classes:
        turned = order[: is_new.sum()]
        chance[turned] = (chance[turned] + rng.integers(1, n_classes, len(turned))) % n_classes
    ways = {
        "keep": (X, noisy),
        "advice": (X[~is_out], followed[~is_out]),
        "random": (np.delete(X, out, axis=0), np.delete(chance, out)),
        "oracle": (X, truth),
    }
    is_doubted = (table["advice"] != "keep").to_numpy()
    ways["limit"] = X, np.where(is_doubted, truth, noisy)
    found = {way: scored(*train, X_test, y_test, is_regression) for way, train in ways.items()}
    found |= dict.fromkeys(LIMITS, (np.nan, np.nan))
    if share and not (options.more or options.keep_limits):
        tried = partial(kept_scored, X, test=(X_test, y_test), is_regression=is_regression)
        if is_regression:
            found["ideal"] = best_values(X, noisy, others, share, tried, is_noise=options.noise)
        else:
            proba = known_proba(name, seed, n, options.data)
            found["ideal"] = best_labels([proba], noisy, share, tried)
            own = own_probas(X, noisy, truth, n_classes, seed)
            found["own size"] = best_labels(own, noisy, share, tried)
    right = ~is_wrong
    by_class = [right] if is_regression else [right & (truth == c) for c in np.unique(truth)]
    found["relabelled"], found["dropped"] = (
        max(float(word[rows].mean()) for rows in by_class if rows.any())
        for word in (is_new, is_out)
    )
    found["recall"] = (is_new | is_out)[is_wrong].mean() if share else np.nan
    found["f1"] = 2 * (is_doubted & is_wrong).sum() / max(1, is_doubted.sum() + is_wrong.sum())
    found["ideal f1"] = np.nan
    if is_regression and share:
        models = Ridge(), RandomForestRegressor(100, max_features=1 / 3, random_state=0)
        means = [model.fit(X, truth).predict(X_test) for model in models]
        r2 = max(r2_score(y_test, each) for each in (*means, np.mean(means, axis=0)))
        found["ideal f1"] = ideal_f1(r2, share, is_noise=options.noise)
    unit = noisy.var() if is_regression else 1.0  # as the loss
    found["promised"] = float(advice.effect.loc["all", "loss"]) / unit
    return found


def kept_scored(X, is_kept, y, *, test, is_regression: bool):
    """Return the scores of a model of the rows that are kept."""
    return scored(X[is_kept], y[is_kept], *test, is_regression)


@lru_cache(maxsize=32)
def known_proba(name: str, seed: int, n: int, folder: Path):
    """Return what models of the other rows of a set say of the table, whatever is flipped in it."""
    X, y = load(name, folder, seed)
    X = standardised(X, n)
    return ideal_proba(X[:n], (X[n:], y[n:]), int(y.max()) + 1)


def standardised(X, n: int):
    """Return features less their means over the table, in its standard deviations."""
    spread = X[:n].std(axis=0)
    return (X - X[:n].mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def change(found: list[dict], way: str, of: int) -> list[float] | None:
    """Return the mean change against keeping everything, and its standard error."""
    values = [each[way][of] - each["keep"][of] for each in found]
    return None if np.isnan(values).all() else summary(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", help="names with commas between; all by default")
    parser.add_argument("--more", action="store_true", help="the sets of _more_data.py")
    parser.add_argument("--flipped", default="0,0.05,0.1,0.2")
    parser.add_argument("--n", type=int, default=1_000)
    parser.add_argument("--n-test", type=int, default=2_000)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--noise", action="store_true", help="add noise to values of regressions")
    parser.add_argument("--keep-limits", action="store_true", help="keep columns of the finders")
    parser.add_argument("--resume", action="store_true", help="keep cells that the file has")
    parser.add_argument("--again", default="", help="names of sets that are measured again")
    options = parser.parse_args()
    known = [name for name in (*CHOSEN_ON, *APART) if name not in MORE]
    sets = options.sets.split(",") if options.sets else MORE if options.more else known
    results = Results(
        "decisions-more" if options.more else "decisions",
        {
            "data": "{}",
            "wrong": "{:.0%}",
            "loss, keep": "{:.3f}",
            "advice": "{:+.4f} ± {:.4f}",
            "random": "{:+.4f} ± {:.4f}",
            "oracle": "{:+.4f} ± {:.4f}",
            "oracle, doubted rows": "{:+.4f} ± {:.4f}",
            "ideal": "{:+.4f} ± {:.4f}",
            "own size": "{:+.4f} ± {:.4f}",
            "promised": "{:+.4f}",
            "accuracy or R2, advice": "{:+.4f} ± {:.4f}",
            "accuracy or R2, oracle": "{:+.4f} ± {:.4f}",
            "wrong rows changed": "{:.2f}",
            "F1 of doubted rows": "{:.2f}",
            "F1, ideal": "{:.2f}",
            "right rows relabelled, worst class": "{:.3f}",
            "right rows dropped, worst class": "{:.3f}",
        },
        options,
        chosen_on=CHOSEN_ON,
        reported_on=sets,
    )
    kept = results.earlier("data", "wrong") if options.keep_limits else {}
    if options.resume:
        results.resume(but=options.again.split(","))
    with threadpool_limits(1):
        for name in sets:
            for share in map(float, options.flipped.split(",")):
                if results.has(data=name, wrong=share):
                    continue
                found = [one(name, share, seed, options) for seed in range(options.draws)]
                results.add(
                    name,
                    share,
                    np.mean([each["keep"][0] for each in found]),
                    *(change(found, way, 0) for way in WAYS),
                    *(kept.get((name, share), {}).get(w) or change(found, w, 0) for w in LIMITS),
                    np.mean([each["promised"] for each in found]),
                    *(change(found, way, 1) for way in ("advice", "oracle")),
                    *(
                        np.mean([each[key] for each in found])
                        for key in ("recall", "f1", "ideal f1", "relabelled", "dropped")
                    ),
                )


if __name__ == "__main__":
    main()
