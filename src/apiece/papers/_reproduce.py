"""Reproduction of the paper: choice of items and data, cost estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from apiece._base.check import one_of
from apiece.errors import PlanError
from apiece.papers._addition import trainings
from apiece.papers._items import ITEMS, names
from apiece.papers._measured import PACKAGED, Measured
from apiece.papers._page import write, write_page
from apiece.papers._scale import MODELS, SCALES, ScaleName
from apiece.papers._sources import SOURCES, SYNTHETIC, at_hand
from apiece.papers._workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd

for _module in ("_goodness", "_ceiling", "_parameters", "_accuracy", "_valuation", "_speed"):
    import_module(f"apiece.papers.{_module}")  # each registers what it can make


class Setup(TypedDict, total=False):
    """What is measured, on which data; described in `reproduce`."""

    data: str | Path | None
    scale: ScaleName
    to: str | Path
    datasets: Sequence[str] | None
    models: Sequence[str]
    points: int | None
    samples: int | None
    n_jobs: int


def reproduce(
    name: str = "all",
    *,
    stored: bool = False,
    page: str | Path | None = None,
    note: str = "",
    progress: bool | None = None,
    **setup: Unpack[Setup],
) -> Path:
    """Make a table or figure of the paper, or all of them.

    Parameters
    ----------
    name
        ``table1`` ... ``table8``, ``figure1`` ... ``figure20``, ``ceiling``, ``aggregate``,
        ``speed``, or ``all``.
    stored
        Whether to collect nothing and use only what is stored: runs, also incomplete ones, and
        for what has no run the numbers behind the documentation, which need no data.
    page
        Write the page there too, with its figures next to it.
    note
        A remark about the data for the page, such as which embeddings they are.
    progress
        As in `apiece.collect`.
    **setup
        ``data``, the folder of the datasets (``data``; scale ``smoke`` needs none); ``scale``,
        ``paper``, ``laptop`` (the default) or ``smoke``, see `SCALES`; ``to``, the folder of the
        runs and results (``reproduction``), the same again to continue; ``datasets`` and
        ``models``, names to include, by default all datasets of the folder and all models;
        ``points`` and ``samples``, the most valued points, and the most samples per size of a grid,
        where those of the scale take too long; and ``n_jobs``, as in `apiece.collect`.

    Returns
    -------
    Path
        The page with each measured number next to the paper's. Its rows are in ``NAME.json`` and
        ``NAME.csv`` in the same folder. A dataset or model that is measured later is added to
        them, or replaces its earlier rows.

    Examples
    --------
    >>> import tempfile
    >>> import apiece.papers
    >>> page = apiece.papers.reproduce(
    ...     "figure4", scale="smoke", models=("logistic",), to=tempfile.mkdtemp(), progress=False
    ... )
    >>> page.name
    'reproduction.md'
    """
    items = _items(name)
    work = replace(_workspace(setup, stored=stored), progress=progress)
    folder = work.to / work.scale.name
    for each in items:
        item = ITEMS[each]
        work.say(partial("{}: {}".format, each, item.title))
        artifact = item.make(work)
        has_image = artifact.figure is not None
        new = Measured.of(each, artifact.table, artifact.note, has_image=has_image)
        measured = _earlier(work, each).joined(new)
        figure = artifact.figure if new.parts else None
        if item.draw is not None and measured.parts:
            figure, measured = item.draw(measured.table()), measured.with_image()
        if measured.parts:
            write(item, measured, figure, folder)
            write_page(work, folder, note=note)
        elif name != "all":
            raise PlanError(
                f"{each} has nothing to show from {', '.join(work.datasets)}: expected the "
                "datasets and models that it is about. Pass others, or leave stored out "
                "(--stored) to collect what is missing."
            )
    if page is not None:
        return write_page(work, folder, Path(page), note)
    return folder / "reproduction.md"


def estimate(name: str = "all", **setup: Unpack[Setup]) -> pd.DataFrame:
    """Return which runs are needed, how large they are, and how long the missing part takes.

    Parameters
    ----------
    name, **setup
        As in `reproduce`.

    Returns
    -------
    pandas.DataFrame
        One row per run: ``run``, ``points``, ``sizes``, ``samples`` (per point, over all sizes),
        ``contributions``, ``left``, and ``minutes`` of processor time, from timing a few training
        sets here. Experiments of adding points follow; their trainings count as contributions.

    Examples
    --------
    >>> import tempfile
    >>> import apiece.papers
    >>> runs = apiece.papers.estimate("figure5", scale="smoke", to=tempfile.mkdtemp())
    >>> runs[["run", "points", "samples"]].to_dict("records")
    [{'run': 'synthetic-logistic-softmax_of_proba-grid', 'points': 24, 'samples': 48}]
    """
    import pandas as pd

    work = _workspace(setup)
    needs = tuple({need for each in _items(name) for need in ITEMS[each].needs})
    rows = []
    for setting in dict.fromkeys(work.settings(needs)):
        cost = work.cost(setting)
        rows.append(
            {
                "run": str(setting),
                "points": cost.points,
                "sizes": cost.sizes,
                "samples": cost.samples,
                "contributions": cost.n_contributions,
                "left": cost.n_left,
                "minutes": cost.seconds / 60 / max(1, work.n_jobs),
            }
        )
    columns = ["run", "points", "sizes", "samples", "contributions", "left", "minutes"]
    table = pd.DataFrame(rows, columns=columns)
    if "addition" not in needs:
        return table
    return pd.concat([table, *(trainings(work, name) for name in work.datasets)])


def measured(
    name: str, *, scale: ScaleName = "paper", to: str | Path | None = None
) -> pd.DataFrame:
    """Return the numbers of a table or figure, next to the paper's.

    Parameters
    ----------
    name
        As in `reproduce`, but not ``all``.
    scale, to
        Those of `reproduce`, for the numbers that it has written; by default the numbers behind the
        documentation.

    Returns
    -------
    pandas.DataFrame
        The rows, with their points and samples; ``attrs["scale"]`` says both, the paper's,
        and which code measured them.

    Examples
    --------
    >>> import apiece.papers
    >>> table = apiece.papers.measured("table1").set_index(["data", "model", "loss"])
    >>> float(table.loc[("IMDB", "logistic regression", "log_loss"), "paper"])
    0.985
    """
    (each,) = _items(one_of("table or figure", name, names()))
    folder = PACKAGED if to is None else Path(to) / scale
    result = Measured.read(each, folder)
    table = ITEMS[each].finish(result.table())
    table.attrs["scale"] = "\n".join([ITEMS[each].scales(table), *result.notes(), result.origins()])
    return table


def _earlier(work: Workspace, name: str) -> Measured:
    """Return what was measured before; if nothing may be collected, also what is packaged."""
    here = Measured.read(name, work.to / work.scale.name)
    if not work.stored:
        return here
    titles = [work.title(dataset) for dataset in work.datasets]
    return Measured.read(name, PACKAGED).only(titles).joined(here)


def _items(name: str) -> tuple[str, ...]:
    return names() if name == "all" else (one_of("table or figure", name, ("all", *names())),)


def _workspace(setup: Setup, *, stored: bool = False) -> Workspace:
    scale = one_of("scale", setup.get("scale", "laptop"), SCALES)
    data, datasets = setup.get("data"), setup.get("datasets")
    models, to = setup.get("models", MODELS), setup.get("to", "reproduction")
    for model in models:
        one_of("model", model, MODELS)
    points, samples = setup.get("points"), setup.get("samples")
    for what, most in (("points", points), ("samples", samples)):
        if most is not None and most < 2:
            raise PlanError(f"{what} is {most}: expected at least 2.")
    folder = Path("data" if data is None else data)
    if datasets is not None:
        wanted = tuple(one_of("dataset", each, (*SOURCES, SYNTHETIC)) for each in datasets)
        for each in wanted if not stored else ():
            if each in SOURCES and SOURCES[each].find(folder) is None:
                raise SOURCES[each].missing(folder)
    elif scale == "smoke":
        wanted = (SYNTHETIC,)
    else:
        wanted = tuple(SOURCES) if stored else at_hand(folder)
    n_jobs = setup.get("n_jobs", 1)
    chosen = SCALES[scale].at_most(points, samples)
    return Workspace(folder, Path(to), chosen, wanted, tuple(models), n_jobs, stored)
