"""What a report computes if it is not given: the data it is about, the law of the loss, advice.

Each is optional. What cannot be had is left out, and the report says why in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from apiece.data import Dataset, pictures_of, read_again, read_table
from apiece.engines import base_name, is_model_name
from apiece.errors import ApieceError, FitError
from apiece.estimators import Aggregate, fit_aggregate
from apiece.laws import Laws
from apiece.records import Contributions
from apiece.store import Run
from apiece.uses import Advice, Quality
from apiece.uses import quality as measure_quality

if TYPE_CHECKING:
    import pandas as pd

Advise = Callable[..., Advice]

_QUICK: Final = ("auto", "logistic", "linear", "ridge", "poisson", "knn", "tree")
_MOST_ASKED: Final = 25_000  # rows that are judged by default, by quick models: a minute or two
_MOST_SLOW: Final = 2_000  # rows that are judged by default, by other models


def find(
    run: Run | Contributions,
    laws: Laws,
    advise: Advise,
    *,
    dataset: Dataset | None = None,
    rows: Any = None,
    ids: str | None = None,
    images: Any = None,
    advice: Advice | pd.DataFrame | bool = True,
    aggregate: Aggregate | bool = True,
    quality: Quality | None = None,
    judge: bool = True,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Return options of `gather`: those that are given, and those that can be found.

    Parameters
    ----------
    run, laws, dataset, rows, ids, images, advice, aggregate
        As in `apiece.report`.
    advise
        What gives advice, `apiece.advise`.
    quality
        How good the model is, if that has been measured.
    judge
        Whether models may be trained, for advice and to measure how good the model is.
    progress
        Whether to show a bar, as in `advise`.

    Examples
    --------
    >>> from apiece import synthetic
    >>> laws = synthetic.random_laws(5, random_state=0)
    >>> options = find(synthetic.sample(laws, samples=5, random_state=0), laws, None, judge=False)
    >>> isinstance(options, dict)
    True
    """
    notes: list[str] = []
    is_of_groups = laws.provenance.groups is not None  # which no row of the data describes
    if isinstance(run, Run) and dataset is None and not is_of_groups:
        dataset = _dataset(run, notes if rows is None else [])
        if dataset is not None and rows is None and dataset.preprocessing["from"] == "table":
            rows, ids = _rows(dataset), None
    if images is None and dataset is not None and not is_of_groups:
        images = pictures_of(dataset)
    if advice is True:
        advice = _advice(run, advise, dataset, notes, progress) if judge else False
    if aggregate is True:
        aggregate = _aggregate(run, notes)
    if quality is None and judge:
        quality = _quality(laws.provenance.model, dataset, progress)
    return {
        "dataset": dataset,
        "rows": rows,
        "ids": ids,
        "images": images,
        "advice": None if advice is False else advice,
        "quality": quality,
        "aggregate": None if aggregate is False else aggregate,
        "notes": notes,
    }


def judged(
    dataset: Dataset,
    advise: Advise,
    *,
    model: str = "auto",
    metric: str | None = None,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Return the options ``advice`` and ``quality`` of `find`, which need no contributions.

    Nothing is returned where that takes more than a minute or two, and for groups of rows.

    Parameters
    ----------
    dataset
        The data.
    advise
        What gives advice, `apiece.advise`.
    model, metric
        As in `collect`.
    progress
        Whether to show a bar, as in `advise`.

    Examples
    --------
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> found = judged(load_demo()[0], apiece.advise, progress=False)
    >>> found["quality"].headline().startswith("logistic, on rows it has not seen: accuracy")
    True
    """
    is_named = model == "auto" or is_model_name(model)
    if dataset.groups is not None or not is_named or dataset.n_points > _most(model):
        return {}
    try:
        advice = advise(dataset, model=model, metric=metric, progress=progress)
    except ApieceError:  # `find` says why
        return {}
    return {"quality": _quality(model, dataset, progress), "advice": advice}


def _dataset(run: Run, notes: list[str]) -> Dataset | None:
    """Read the run's data again, if it is where it was."""
    data = run.manifest.dataset
    try:
        return read_again(data.source, data.fingerprint)
    except ApieceError as error:
        notes.append(f"The points' own rows are not shown: {error}")
        return None


def _rows(dataset: Dataset) -> pd.DataFrame:
    """Return the rows of the files that a dataset was read from, by the points' ids."""
    import pandas as pd

    source = dataset.source or {}
    options = source["options"]
    table = read_table(source["file"])
    if options.get("ids") is not None:
        table = table.set_index(options["ids"])
    files = [options.get("candidates"), *(more["file"] for more in source.get("candidates", []))]
    more = [read_table(file) for file in files if file is not None]
    if more:
        candidates = pd.concat(more).drop(columns=options.get("ids") or [], errors="ignore")
        table = pd.concat([table, candidates.set_axis(dataset.ids[dataset.n_pool :], axis=0)])
    return table


def _aggregate(run: Run | Contributions, notes: list[str]) -> Aggregate | bool:
    try:
        return fit_aggregate(run)
    except FitError as error:
        notes.append(f"There is no law of the loss: {error}")
        return False


def _quality(model: str | None, dataset: Dataset | None, progress: bool | None) -> Quality | None:
    """Measure the model on rows that it has not seen, if its name says what it is."""
    is_named = model == "auto" or is_model_name(model)
    if dataset is None or model is None or not is_named or dataset.n_points > _most(model):
        return None
    try:
        return measure_quality(dataset, model, progress=progress)
    except (ApieceError, ValueError):  # such as a class with a single row
        return None


def _advice(
    run: Run | Contributions,
    advise: Advise,
    dataset: Dataset | None,
    notes: list[str],
    progress: bool | None,
) -> Advice | bool:
    """Advise for every row, where that takes seconds or a minute."""
    if dataset is None:
        notes.append("There is no advice: the data is not known. Pass dataset=.")
        return False
    model = run.provenance().get("model", "auto") if isinstance(run, Run) else "auto"
    if dataset.n_points > _most(model):
        notes.append(
            f"There is no advice, which takes a while for {dataset.n_points:,} rows of this model. "
            "Pass advice=apiece.advise(run), or call apiece advise."
        )
        return False
    try:
        if isinstance(run, Run):
            return advise(run, dataset=dataset, progress=progress)
        return advise(dataset, progress=progress)
    except ApieceError as error:
        notes.append(f"There is no advice: {error}")
        return False


def _most(model: object) -> int:
    """Return how many rows are judged by default."""
    return _MOST_ASKED if base_name(str(model)) in _QUICK else _MOST_SLOW
