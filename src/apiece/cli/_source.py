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

from apiece._base.text import in_shell
from apiece.cli._common import MODEL_HELP
from apiece.cli._data import READING, read_all, reading
from apiece.cli._print import note
from apiece.cli._words import LOSSES

if TYPE_CHECKING:
    from apiece._base.progress import OnProgress, ProgressEvent
    from apiece.data import Dataset
    from apiece.store import Run

Command = TypeVar("Command", bound=Callable[..., Any])

_TABLES = frozenset(
    {".csv", ".tsv", ".jsonl", ".parquet", ".pq", ".feather", ".arrow", ".npz"}
    | {".json", ".txt", ".xls", ".xlsx"}  # which are refused, but are no runs
)
COLLECTING = ("model", "metric", "samples", "collect_until", "jobs")
_COLLECT = (
    click.option("--model", default="auto", show_default=True, help=MODEL_HELP),
    click.option("--metric", help=f"The loss: {', '.join(LOSSES)}."),
    click.option("--samples", type=int, help="Contributions per point; 100 by default."),
    click.option(
        "--collect-until", help="When to stop collecting: 5m, 2h, 'top 20'; see apiece collect."
    ),
    click.option("--jobs", default=-1, show_default=True, help="Processes; -1: one per core."),
)

_DATA = click.option(
    "--data", type=click.Path(path_type=Path), help="File of the run's data, if it has moved."
)


# What is said of a table before it is collected, and found for the command.
First = Callable[["Dataset", Mapping[str, Any]], dict[str, Any]]


def run_or_table(
    *, also: tuple[str, ...] = (), first: First | None = None
) -> Callable[[Command], Command]:
    """Take a run or a table; the command gets the opened run, collected first if needed.

    Parameters
    ----------
    also
        Options of `reading` that the command receives too. ``dataset`` stands for the data that
        ``--data`` names, read as the options say; None if it is not given.
    first
        Called with the data of a table before it is collected, and with all options. The command
        gets what it returns as ``known``, which is empty for a run.
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
            known: dict[str, Any] = {}

            def before(dataset: Dataset) -> None:
                if first is not None:
                    known.update(first(dataset, {**asked, **options, "quiet": quiet}))

            run = run_of(run_or_table, asked, quiet=quiet, before=before)
            if first is not None:
                more["known"] = known
            return command(run=run, quiet=quiet, **more, **options)

        made: Any = reading(call)
        for option in reversed((*_COLLECT, *([_DATA] if "dataset" in also else []))):
            made = option(made)
        return made  # type: ignore[no-any-return]  # click has no types for decorators

    return make


def run_of(
    source: Path,
    options: Mapping[str, Any],
    *,
    quiet: bool,
    before: Callable[[Dataset], None] | None = None,
) -> Run:
    """Return the run at a path, or that of a table, which is collected if it is not there yet.

    Parameters
    ----------
    source
        Folder or address of a run, or a file of data.
    options
        Those of `reading` and `COLLECTING`.
    quiet
        Whether to say nothing.
    before
        Called with the data before it is collected.
    """
    from apiece.store import open_run

    if not is_table(source):
        run = open_run(source)
    elif (known := remembered(source, options)) is not None:
        run = known
        note(f"run: {run.path} (collected before)", quiet=quiet)
    else:
        dataset = read_all(source, options)
        place = place_for(source, dataset, options)
        note(describe(source, dataset, options), quiet=quiet)
        if before is not None:
            before(dataset)
        run = _collected(dataset, place, options, quiet=quiet)
    note_if_unfinished(run, quiet)
    return run


def is_table(source: Path) -> bool:
    """Return whether a path names a table, which may be missing, or else a run.

    >>> is_table(Path("none.csv.gz")), is_table(Path("runs/none"))
    (True, False)
    """
    is_named_so = bool(_TABLES.intersection(suffix.lower() for suffix in source.suffixes))
    return source.is_file() or (is_named_so and not source.exists())


def remembered(table: Path, options: Mapping[str, Any]) -> Run | None:
    """Return the run that a table was collected into, if nothing is said about how to read it.

    Its model and metric are those that are requested, if any.
    """
    from apiece.store import open_run

    if not table.is_file() or any(options.get(name) for name in READING):
        return None
    for place in _places(table):
        if not (place / "manifest.json").is_file():
            return None
        run = open_run(place)
        source = run.manifest.dataset.source or {}
        file = Path(str(source.get("file", "")))
        is_older = table.stat().st_mtime <= (place / "manifest.json").stat().st_mtime
        is_same = file.is_file() and file.samefile(table) and is_older
        if is_same and _is_as_asked(run, options):
            return run
    return None


def place_for(table: Path, dataset: Dataset, options: Mapping[str, Any]) -> Path:
    """Return where a table is collected to: the run of this data and model, or a free folder."""
    places = _places(table)
    return next(at for at in places if not at.exists() or _holds(at, dataset, options))


def _holds(place: Path, dataset: Dataset, options: Mapping[str, Any]) -> bool:
    from apiece.store import open_run

    if not (place / "manifest.json").is_file():
        return False
    run = open_run(place)
    is_same = run.manifest.dataset.fingerprint == dataset.fingerprint
    return is_same and _is_as_asked(run, options)


def _is_as_asked(run: Run, options: Mapping[str, Any]) -> bool:
    """Whether a run has the model and the metric of the options, as far as they name one.

    What ``module:name`` stands for is not a built-in model; `collect` compares it in full.
    """
    known, model = run.provenance(), options.get("model")
    if options.get("metric") not in (None, known.get("metric")):
        return False
    if model is not None and ":" in model:
        from apiece.engines import is_model_name

        return not is_model_name(known.get("model"))
    return model in (None, "auto", known.get("model"))


def next_command(command: str, table: Path, options: Mapping[str, Any]) -> str:
    """Return a command for the same table, with the options that say how it is read.

    >>> next_command("report", Path("a.csv"), {"target": "y", "text": ("t",), "impute": True})
    'apiece report a.csv --target y --text t --impute'
    """
    words = ["apiece", command, str(table)]
    for name in (*READING, "model", "metric"):
        given = options.get(name)
        option = f"--{name.replace('_', '-')}"
        if given is True:
            words.append(option)
        elif isinstance(given, tuple):
            words.extend(word for item in given for word in (option, str(item)))
        elif given:
            words.extend((option, str(given)))
    return " ".join(map(in_shell, words))


def describe(table: Path, dataset: Dataset, options: Mapping[str, Any]) -> str:
    """Say what a table holds."""
    return f"{table.name}: {dataset.summary(is_guess=options['task'] is None)}"


def saying_where(place: Path | str, *, quiet: bool) -> OnProgress | None:
    """Return what says where a run goes when the work begins, so after the request is checked."""
    lines = iter([f"run: {place} (remembers the file; later commands need no options)"])

    def say_once(_: ProgressEvent) -> None:
        for line in lines:
            note(line, quiet=False)

    return None if quiet else say_once


def note_if_unfinished(run: Run, quiet: bool) -> None:
    """Say how much of a run is there, if not all of it."""
    progress = run.progress()
    if not progress.is_complete:
        note(
            f"this run is unfinished: {progress.n_contributions:,} of {progress.n_planned:,} "
            f"{run.unit} are used. Repeat its collect command to complete it.",
            quiet=quiet,
        )


def _collected(dataset: Dataset, place: Path, options: Mapping[str, Any], *, quiet: bool) -> Run:
    import apiece

    return apiece.collect(
        dataset,
        model=options["model"],
        metric=options["metric"],
        samples=options["samples"],
        until=options["collect_until"],
        n_jobs=options["jobs"],
        to=place,
        progress=not quiet,
        on_progress=saying_where(place, quiet=quiet),
    )


def _places(table: Path) -> Iterator[Path]:
    """Yield folders for the runs of a table: runs/NAME, runs/NAME-2 and so on."""
    name = table.name.partition(".")[0] or "table"
    yield Path("runs") / name
    number = 2
    while True:
        yield Path("runs") / f"{name}-{number}"
        number += 1
