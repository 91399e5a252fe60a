"""Adding points that were selected for a size: tables 5 to 8.

As the paper's code does it: every selection takes equally many points of each class, laws and
Shapley values come from samples at the sizes of the grid, and accuracy is measured on rows that had
no other part.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Final

import numpy as np
import pandas as pd

from apiece import experiments
from apiece._base.files import make_folder, write_whole
from apiece.experiments._trial import Trial
from apiece.papers import _paper
from apiece.papers._items import Artifact, paper_item
from apiece.papers._runs import PAPER_LOSS, Setting
from apiece.papers._scale import SCALES, Addition
from apiece.papers._workspace import Workspace

_TRAININGS: Final = 7  # per repeat and size: before, and with six selections


def outcomes(work: Workspace, dataset: str, addition: Addition) -> pd.DataFrame | None:
    """Return every repeat of an experiment, from its file if it was done before.

    None is returned if nothing is stored and nothing may be collected, or if the dataset has too
    few rows for the larger size.
    """
    path = _file(work, dataset, addition)
    if not path.is_file():
        setting = Setting(dataset, design="candidates")
        if work.stored or not work.has(setting) or not work.fits(dataset, max(addition.at)):
            return None
        candidate_data = work.candidate_data(dataset)
        experiment = experiments.addition(
            candidate_data.data,
            take=addition.take,
            at=addition.at,
            repeats=addition.repeats,
            quotas="balanced",
            redundancy=False,
            random_state=0,
            progress=work.progress,
            run=work.run(setting),
            test=candidate_data.test,
            method="likelihood",  # the paper's, with a prior on its decays
            also=["bayes"],
            metric=PAPER_LOSS,
        )
        make_folder(path.parent)
        write_whole(path, experiment.samples.to_csv(index=False).encode())
    return pd.read_csv(path)


def trainings(work: Workspace, dataset: str) -> pd.DataFrame:
    """Return the trainings of the experiments on a dataset, and the minutes that remain."""
    candidate_data = work.candidate_data(dataset)
    trial = Trial.of(
        candidate_data.data, model="logistic", metric=PAPER_LOSS, seed=0, test=candidate_data.test
    )
    rows = []
    for addition in work.scale.additions:
        if not work.fits(dataset, max(addition.at)):
            continue
        is_left = not _file(work, dataset, addition).is_file()
        start = process_time()
        for size in addition.at if is_left else ():
            trial.score(trial.draws(size, 1)[0].subset)
        each = _TRAININGS * addition.repeats  # at each size
        rows.append(
            {
                "run": f"{dataset}-logistic-addition-{addition.take}",
                "points": work.scale.candidates,
                "sizes": len(addition.at),
                "samples": addition.repeats,
                "contributions": each * len(addition.at),
                "left": is_left * each * len(addition.at),
                "minutes": each * (process_time() - start) / 60 if is_left else 0.0,
            }
        )
    return pd.DataFrame(rows)


def _file(work: Workspace, dataset: str, addition: Addition) -> Path:
    """Return the file of an experiment; if only stored results may be used, of any scale."""
    name = f"{dataset}-logistic-balanced-{addition.take}.csv"
    scales = (work.scale.name, *SCALES) if work.stored else (work.scale.name,)
    places = [work.to / "runs" / scale / name for scale in scales]
    return next((place for place in places if place.is_file()), places[0])


def _added(work: Workspace, which: int, end: int) -> Artifact:
    """Return the measured rises of accuracy next to the paper's, in percent."""
    addition = work.scale.additions[which]
    paper = list(_paper.ADDITION.values())[2 * which + end]
    rows = []
    for dataset in work.datasets:
        for method, rise in _rises(work, dataset, addition, addition.at[end]).items():
            known = paper.get(method, {}).get(dataset)
            rows.append(
                {
                    "data": work.title(dataset),
                    "method": method,
                    "repeats": len(rise),
                    "measured": rise.mean(),
                    "± over repeats": rise.std(),
                    "± of the mean": rise.sem(),
                    "paper": known.mean if known else np.nan,
                    "± paper": known.std if known else np.nan,
                }
            )
    return Artifact(
        pd.DataFrame(rows),
        note=f"Candidates: {work.scale.candidates:,}, with {work.scale.candidate_samples:,} "
        f"samples each at sizes {work.scale.sizes[0]:,} to {work.scale.sizes[1]:,}. Selections "
        "have equally many points of each class. *scaling* uses the likelihood estimator, as the "
        "paper does. In the file, *preceding* is the accuracy before anything is added.",
    )


def _rises(work: Workspace, dataset: str, addition: Addition, size: int) -> dict[str, pd.Series]:
    """Return the rise of accuracy in percent, repeat by repeat, of every method at a size."""
    samples = outcomes(work, dataset, addition)
    if samples is None:
        return {}
    here = samples[samples["at"] == size]
    rises = {
        str(method): 100 * part["accuracy"] for method, part in here.groupby("method", sort=False)
    }
    return rises | {"preceding": 100 * here.groupby("repeat")["before"].first()}


def _register(number: int, which: int, end: int) -> None:
    """Register the table of an experiment (``which``) at one of its two sizes (``end``)."""
    (take, size), methods = list(_paper.ADDITION.items())[2 * which + end]
    rises = [method for method in methods if method != "preceding"]
    best = {name: max(rises, key=lambda m: methods[m][name].mean) for name in _paper.DATASETS}
    paper_item(
        f"table{number}",
        f"Rise of accuracy (%) with {take} points added to training sets of {size:,}",
        *("candidates", "addition"),
        paper=f"Best on MiniBooNE: {best['miniboone']}; on CIFAR-10: {best['cifar10']}; on IMDB: "
        f"{best['imdb']}.",
        scale="1,000 candidates with 500 samples each, 1,000 repeats",
    )(lambda work: _added(work, which, end))


for _number, (_which, _end) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)], start=5):
    _register(_number, _which, _end)
