"""Adding points that were selected for a size: tables 5 to 8."""

from __future__ import annotations

import numpy as np
import pandas as pd

from apiece import experiments
from apiece._files import make_folder, write_whole
from apiece.reproduce import _paper
from apiece.reproduce._bench import PAPER_LOSS, Bench
from apiece.reproduce._exhibit import Shown, exhibit
from apiece.reproduce._scale import Addition


def outcomes(bench: Bench, dataset: str, asked: Addition) -> pd.DataFrame | None:
    """Return every repeat of an experiment, from its file if it was done before."""
    name = f"{dataset}-logistic-addition-{asked.take}.csv"
    path = bench.to / "runs" / bench.scale.name / name
    if not path.is_file():
        if bench.stored:
            return None
        found = experiments.addition(
            bench.dataset(dataset),
            take=asked.take,
            at=asked.at,
            repeats=asked.repeats,
            redundancy=False,
            random_state=0,
            progress=False,
            n_candidates=asked.candidates,
            samples=asked.samples,
            method="likelihood",
            metric=PAPER_LOSS,
            n_jobs=bench.n_jobs,
        )
        make_folder(path.parent)
        write_whole(path, found.samples.to_csv(index=False).encode())
    return pd.read_csv(path)


def _added(bench: Bench, which: int, end: int) -> Shown:
    """Set the measured rises of accuracy beside the paper's, in percent."""
    asked = bench.scale.additions[which]
    paper = list(_paper.ADDITION.values())[2 * which + end]
    rows = []
    for dataset in bench.datasets:
        samples = outcomes(bench, dataset, asked)
        if samples is None:
            continue
        here = samples[samples["at"] == asked.at[end]]
        # The paper's names carry its sizes: the small one and the large one.
        names = dict(
            zip((f"scaling {size}" for size in asked.at), reversed(list(paper)[:2]), strict=True)
        )
        for method, part in here.groupby("method", sort=False):
            known = paper.get(names.get(str(method), str(method)), {}).get(dataset)
            rows.append(
                {
                    "data": bench.title(dataset),
                    "method": method,
                    "measured": 100 * part["accuracy"].mean(),
                    "± over repeats": 100 * part["accuracy"].std(),
                    "paper": known.mean if known else np.nan,
                    "± paper": known.std if known else np.nan,
                }
            )
    columns = ["data", "method", "measured", "± over repeats", "paper", "± paper"]
    return Shown(
        pd.DataFrame(rows, columns=columns),
        note=f"Measured: {asked.take} of {asked.candidates:,} candidates, chosen from "
        f"{asked.samples:,} samples each, added to {asked.repeats:,} training sets of "
        f"{asked.at[end]:,} points. Half of the rows that score value the candidates, the other "
        "half test; the paper has 1,000 candidates, 500 samples and 1,000 repeats.",
    )


def _register(number: int, which: int, end: int) -> None:
    (take, size), methods = list(_paper.ADDITION.items())[2 * which + end]
    best = {name: max(methods, key=lambda m: methods[m][name].mean) for name in _paper.DATASETS}
    exhibit(
        f"table{number}",
        f"Rise of accuracy (%) with {take} points added to training sets of {size:,}",
        "addition",
        paper=f"Best on MiniBooNE: {best['miniboone']}; on CIFAR-10: {best['cifar10']}; on IMDB: "
        f"{best['imdb']}.",
    )(lambda bench: _added(bench, which, end))


for _number, (_which, _end) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)], start=5):
    _register(_number, _which, _end)
