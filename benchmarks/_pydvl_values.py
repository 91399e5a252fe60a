"""Values by pyDVL, computed where pyDVL is installed, for `mislabel.py`.

    python _pydvl_values.py IN.npz OUT.npz

IN holds `X`, `y`, `X_val`, `y_val`, `permutations` and `seed`; OUT gets the values of each method
and the seconds of processor time that it took. pyDVL wants an older NumPy than pyarrow, hence a
Python of its own.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from pydvl.valuation import (
    DataOOBValuation,
    Dataset,
    KNNShapleyValuation,
    MinUpdates,
    ModelUtility,
    PermutationSampler,
    ShapleyValuation,
    SupervisedScorer,
)
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits


def main(source: str, target: str) -> None:
    warnings.simplefilter("ignore")
    with np.load(source) as file:
        arrays = dict(file)
    train = Dataset(arrays["X"], arrays["y"])
    test = Dataset(arrays["X_val"], arrays["y_val"])
    seed, found = int(arrays["seed"]), {}

    def value(name: str, valuation, prepare=lambda: None) -> None:
        started = time.process_time()
        prepare()
        values = valuation().fit(train).values()
        found[f"{name}:seconds"] = time.process_time() - started
        order = np.argsort(values.indices)
        found[name] = values.values[order]

    def permutation_shapley():
        scorer = SupervisedScorer("neg_log_loss", test, default=-np.log(2), range=(-np.inf, 0))
        utility = ModelUtility(LogisticRegression(max_iter=1000), scorer, show_warnings=False)
        return ShapleyValuation(
            utility,
            PermutationSampler(seed=seed),
            MinUpdates(int(arrays["permutations"])),
            show_warnings=False,
        )

    forest = RandomForestClassifier(200, random_state=seed)
    with threadpool_limits(1):
        value(
            "knn-shapley",
            lambda: KNNShapleyValuation(KNeighborsClassifier(5), test, progress=False),
        )
        value(
            "data-oob",
            lambda: DataOOBValuation(forest),
            lambda: forest.fit(arrays["X"], arrays["y"]),
        )
        if arrays["permutations"] > 0:
            value("permutation shapley", permutation_shapley)
    np.savez(target, **found)


if __name__ == "__main__":
    main(*sys.argv[1:3])
