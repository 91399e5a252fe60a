"""Where laws come from: a run, or a table whose missing steps are run first.

A table is collected into ``runs/NAME``. The run remembers the file and how it was read, so the next
command finds it by the table's path alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from apiece.cli._data import READING, read_all, reading
from apiece.cli._print import note
from apiece.engines import MODELS
from apiece.losses import LOSSES

if TYPE_CHECKING:
    from apiece.data import Dataset
    from apiece.store import Run

Command = TypeVar("Command", bound=Callable[..., Any])

COLLECTING = ("model", "metric", "samples", "jobs")
_COLLECT = (
    click.option("--model", default="auto", show_default=True, help=f"{', '.join(MODELS)}."),
    click.option("--metric", help=f"The loss: {', '.join(LOSSES)}."),
    click.option("--samples", type=int, help="Contributions per point; 100 by default."),
    click.option("--jobs", default=-1, show_default=True, help="Processes; -1: one per core."),
)

_DATA = click.option(
    "--data", type=click.Path(path_type=Path), help="File of the run's data, if it has moved."
)


def run_or_table(*, also: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Take a run or a table; the command gets the opened run, collected first if need be.

    Parameters
    ----------
    also
        Options of `reading` that the command receives too. ``dataset`` stands for the data that
        ``--data`` names, read as the options say; None if it is not given.
    """

    def make(command: Command) -> Command:
        @click.argument("run_or_table", type=click.Path(path_type=Path))
        @wraps(command)
        def call(run_or_table: Path, *, quiet: bool, **options: Any) -> Any:
            asked = {name: options.pop(name) for name in (*READING, *COLLECTING)}
            more = {name: asked[name] for name in also if name != "dataset"}
            if "dataset" in also:
                data = options.pop("data")
                more["dataset"] = None if data is None else read_all(data, asked)
            run = run_of(run_or_table, asked, quiet=quiet)
            return command(run=run, quiet=quiet, **more, **options)

        made: Any = reading(call)
        for option in reversed((*_COLLECT, *([_DATA] if "dataset" in also else []))):
            made = option(made)
        return made  # type: ignore[no-any-return]

    return make


def run_of(source: Path, options: Mapping[str, Any], *, quiet: bool) -> Run:
    """Return the run at a path, or that of a table, which is collected if it is not there yet.

    Parameters
    ----------
    source
        Folder or address of a run, or a file of data.
    options
        Those of `reading` and `COLLECTING`.
    quiet
        Whether to say nothing.
    """
    from apiece.store import open_run

    if not source.is_file():
        run = open_run(source)
    elif (known := remembered(source, options)) is not None:
        run = known
        note(f"run: {run.path} (collected before)", quiet=quiet)
    else:
        run = _collected(source, read_all(source, options), options, quiet=quiet)
    note_if_unfinished(run, quiet)
    return run


def remembered(table: Path, options: Mapping[str, Any]) -> Run | None:
    """Return the run that a table was collected into, if nothing is said about how to read it."""
    from apiece.store import open_run

    if any(options.get(name) for name in READING):
        return None
    for place in _places(table):
        if not (place / "manifest.json").is_file():
            return None
        run = open_run(place)
        source = run.manifest.dataset.source or {}
        file = Path(str(source.get("file", "")))
        is_older = table.stat().st_mtime <= (place / "manifest.json").stat().st_mtime
        if file.is_file() and file.samefile(table) and is_older:
            return run
    return None


def place_for(table: Path, dataset: Dataset) -> Path:
    """Return where a table is collected to: the run of this data, or a folder that is free."""
    return next(place for place in _places(table) if not place.exists() or _holds(place, dataset))


def _holds(place: Path, dataset: Dataset) -> bool:
    from apiece.store import open_run

    is_run = (place / "manifest.json").is_file()
    return is_run and open_run(place).manifest.dataset.fingerprint == dataset.fingerprint


def describe(table: Path, dataset: Dataset, place: Path | str, options: Mapping[str, Any]) -> str:
    """Say what is collected from, and where it goes."""
    return (
        f"{table.name}: {dataset.summary(is_guess=options['task'] is None)}\n"
        f"run: {place} (remembers the file; later commands need no options)"
    )


def note_if_unfinished(run: Run, quiet: bool) -> None:
    """Say how much of a run is there, if not all of it."""
    progress = run.progress()
    if not progress.is_complete:
        note(
            f"this run is unfinished: {progress.n_contributions:,} of {progress.n_planned:,} "
            f"{run.unit} are used. Repeat its collect command to complete it.",
            quiet=quiet,
        )


def _collected(table: Path, dataset: Dataset, options: Mapping[str, Any], *, quiet: bool) -> Run:
    import apiece

    place = place_for(table, dataset)
    note(describe(table, dataset, place, options), quiet=quiet)
    return apiece.collect(
        dataset,
        model=options["model"],
        metric=options["metric"],
        samples=options["samples"],
        n_jobs=options["jobs"],
        to=place,
        progress=not quiet,
    )


def _places(table: Path) -> Iterator[Path]:
    """Yield folders for the runs of a table: runs/NAME, runs/NAME-2 and so on."""
    name = table.name.partition(".")[0] or "table"
    yield Path("runs") / name
    number = 2
    while True:
        yield Path("runs") / f"{name}-{number}"
        number += 1
