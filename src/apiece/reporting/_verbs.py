"""Show a run: as one file, or on this machine while it grows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apiece.data import Dataset, FilePath
from apiece.estimators import Estimator, MethodName, as_estimator
from apiece.laws import Laws
from apiece.records import Contributions
from apiece.reporting._findings import find as find_for_report
from apiece.reporting._report import write as write_report
from apiece.reporting._serve import serve as serve_report
from apiece.store import Run, check_laws, laws_of
from apiece.uses import Advice, advise

if TYPE_CHECKING:
    import pandas as pd

    from apiece.estimators import Aggregate


def report(
    run: Run | Contributions,
    laws: Laws | None = None,
    *,
    to: str | Path = "report.html",
    dataset: Dataset | None = None,
    rows: pd.DataFrame | FilePath | None = None,
    ids: str | None = None,
    images: Any = None,
    advice: Advice | pd.DataFrame | bool = True,
    slices: Any = None,
    aggregate: Aggregate | bool = True,
    title: str | None = None,
    level: float = 0.9,
    memory: int | str | None = None,
    progress: bool | None = None,
) -> Path:
    """Write an interactive report: one HTML file that opens in any browser, without a network.

    Parameters
    ----------
    run
        A run, or a table of contributions.
    laws
        Its laws; by default those of `Run.laws`.
    to
        The file to write.
    dataset
        The dataset that was collected from: its features are shown for each point, decide which
        points are near each other, and are judged by `advise`. None reads it again from the file
        that the run names, if that is still there.
    rows
        What people know of the points, such as their texts: a table with one row per point, or the
        csv, tsv or Parquet file that holds it. None for those of the run's own file.
    ids
        The column of ``rows`` that holds the ids; None for its index, in a file the row numbers.
    images
        Pictures of the points, in the order of ``laws.ids`` or as a mapping from ids: arrays of
        shape ``(height, width)`` or ``(height, width, channels)``, ``uint8`` or from 0 to 1.
        None for ``images`` in the run's own npz file, if it has any.
    advice
        What to do with each point: from `advise`, or a table indexed by id with ``advice``, and
        perhaps ``reason`` and ``probability``. True for what `advise` says, if that takes a minute
        or two at most; False for none.
    slices
        What divides the scoring rows, so that the page says for whom a point is good or bad: a
        column of ``rows``, or a series or mapping from ids. Numbers are cut into quarters. None for
        the classes.
    aggregate
        The law of the loss itself, drawn through the mean losses; True for what `aggregate`
        finds, False for none.
    title
        Title of the report.
    level
        Coverage of the intervals.
    memory
        What a run's contributions may take at once, such as ``"2GB"``, see `fit`.
    progress
        As in `collect`.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    DataError
        If laws or dataset are those of another run.

    Examples
    --------
    >>> import tempfile
    >>> from apiece import synthetic
    >>> laws = synthetic.random_laws(5, random_state=0)
    >>> table = synthetic.sample(laws, samples=5, random_state=0)
    >>> report(table, laws=laws, to=Path(tempfile.mkdtemp()) / "report.html").name
    'report.html'
    """
    known = laws_of(run, memory) if laws is None else laws
    check_laws(known, run)
    if dataset is not None:
        dataset.check_is(known.provenance.dataset)
    found = find_for_report(
        run,
        known,
        advise,
        dataset=dataset,
        rows=rows,
        ids=ids,
        images=images,
        advice=advice,
        aggregate=aggregate,
        progress=progress,
    )
    shown: dict[str, Any] = {"slices": slices, "title": title, "level": level}
    shown |= found
    return write_report(run, known, to, memory=memory, **shown)


def serve(
    run: str | Path,
    *,
    ready: Callable[[str], None],
    port: int = 0,
    method: MethodName | Estimator | None = None,
    dataset: Dataset | None = None,
    rows: pd.DataFrame | FilePath | None = None,
    ids: str | None = None,
    images: Any = None,
    advice: Advice | pd.DataFrame | bool = True,
    aggregate: Aggregate | bool = True,
    title: str | None = None,
    level: float = 0.9,
    memory: int | str | None = None,
) -> None:
    """Serve the report of a stored run on this machine until interrupted, following its growth.

    Parameters
    ----------
    run
        Folder of the run; it may be under way.
    ready
        Called with the address once it answers.
    port
        Port to listen on, 0 for any free one.
    method
        How laws are fitted, as in `fit`; None for the estimator of the stored laws, or the default.
    dataset, rows, ids, images, advice, aggregate, title, level, memory
        As in `report`; advice is not computed by default.
    """

    def found(opened: Run, laws: Laws) -> dict[str, Any]:
        options = find_for_report(
            opened,
            laws,
            advise,
            dataset=dataset,
            rows=rows,
            ids=ids,
            images=images,
            advice=advice,
            aggregate=aggregate,
            judge=False,
        )
        return {"title": title, "level": level, **options}

    estimator = None if method is None else as_estimator(method)
    serve_report(Path(run), method=estimator, port=port, ready=ready, find=found, memory=memory)
