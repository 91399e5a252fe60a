"""The options that say how a file of data is to be read, the same for every command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from apiece._base.check import some

if TYPE_CHECKING:
    from apiece.data import Dataset

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--target", help="Column to predict (not for .npz)."),
    click.option(
        "--candidates", type=click.Path(path_type=Path), help="File of points to value too."
    ),
    click.option(
        "--validation",
        help="File, count or share of rows to score on. By default all rows score in turns.",
    ),
    click.option("--text", multiple=True, help="Column of free text; may be repeated."),
    click.option("--ids", help="Column that names the points."),
    click.option("--groups", help="Column that names groups, which are then valued as a whole."),
    click.option(
        "--sample-weight", help="Column of weights in training; models are then refitted."
    ),
    click.option("--drop", multiple=True, help="Column to leave out; may be repeated."),
    click.option("--categorical", multiple=True, help="Numeric column to treat as categories."),
    click.option("--impute", is_flag=True, help="Fill missing values from the pool."),
    click.option(
        "--raw", is_flag=True, help="Leave numeric columns as they are, not standardised."
    ),
    click.option(
        "--task",
        type=click.Choice(["classification", "regression"]),
        help="Kind of target; decided from its values by default.",
    ),
)


# Their names, as a command receives them.
READING = (
    *("target", "candidates", "validation", "text", "ids", "groups", "sample_weight", "drop"),
    *("categorical", "impute", "raw", "task"),
)


def reading(command: Command) -> Command:
    """Add the options that say how data is read."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def of_verb(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not of `reading`, so of the verb."""
    return {name: value for name, value in options.items() if name not in READING}


def read(path: Path, options: Mapping[str, Any]) -> Dataset:
    """Read a dataset as the options of `reading` say; candidates are left to the verb."""
    from apiece.data import Dataset

    if (path / "manifest.json").is_file():
        return _of_run(path, options)
    settings: dict[str, Any] = {
        "validation": _validation(options["validation"]),
        "kind": options["task"],
        "impute": options["impute"],
        "standardize": not options["raw"],
        "groups": options["groups"],
    }
    if path.suffix.lower() != ".npz":
        if options["target"] is None:
            return _read_again(path, options)
        settings |= {
            "target": options["target"],
            "text": list(options["text"]) or None,
            "ids": options["ids"],
            "sample_weight": options["sample_weight"],
            "drop": options["drop"],
            "categorical": options["categorical"],
        }
    return Dataset.from_file(path, **settings)


def read_all(path: Path, options: Mapping[str, Any]) -> Dataset:
    """Read a dataset and its candidates, as the options of `reading` say."""
    dataset = read(path, options)
    candidates = options["candidates"]
    return dataset if candidates is None else dataset.with_candidates(candidates)


def _of_run(path: Path, options: Mapping[str, Any]) -> Dataset:
    """Read the data of a run, which knows how that is read."""
    from apiece.store import open_run
    from apiece.uses import data_again

    given = [name for name in READING if options.get(name)]
    if given:
        raise click.UsageError(
            f"{path} is a run, which knows how its data is read: expected no "
            f"--{given[0].replace('_', '-')}. Leave it out, or pass the table instead of the run."
        )
    return data_again(open_run(path), "the command")


def _read_again(path: Path, options: Mapping[str, Any]) -> Dataset:
    """Read a table as the run that was collected from it did."""
    from apiece.cli._source import remembered
    from apiece.data import read_again, read_table

    read_by = {name: options.get(name) for name in READING}
    run = remembered(path, read_by) if path.is_file() else None
    if run is not None:
        return read_again(run.manifest.dataset.source, run.manifest.dataset.fingerprint)
    columns = list(map(str, read_table(path).columns))
    raise click.UsageError(
        f"--target is missing: expected the name of the column to predict, one of {some(columns)}. "
        f"Pass for example --target {columns[-1]}."
    )


def _validation(words: str | None) -> Any:
    if words is None:
        return None
    try:
        return int(words)
    except ValueError:
        pass
    try:
        return float(words)
    except ValueError:
        if "." in words or Path(words).exists():
            return Path(words)
        raise click.BadParameter(
            f"{words!r} is no file: expected a file of rows, a count such as 200, or a share such "
            "as 0.2.",
            param_hint="--validation",
        ) from None
