"""``apiece plan``: what a collection will cost and how sure it will be, before the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from apiece.cli._common import MODEL_HELP, Sizes, common
from apiece.cli._data import of_verb, read_all, reading
from apiece.cli._print import emit, note, say_prose, show_table
from apiece.cli._source import describe
from apiece.cli._words import ENGINES, LOSSES


@click.command(epilog="\b\nExample:\n  apiece plan houses.csv --target price --model boosting")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--model", default="auto", show_default=True, help=MODEL_HELP)
@click.option("--sizes", type=Sizes(), help="Training-set sizes: 100:1000, or 100,200,400.")
@click.option("--samples", type=int, help="Contributions for every point; 100 by default.")
@click.option("--trainings", type=int, help="Models that engine reuse trains; 2000 by default.")
@click.option("--metric", help=f"The loss: {', '.join(LOSSES)}.")
@click.option("--engine", default="auto", show_default=True, help=f"{', '.join(ENGINES)}.")
@click.option("--jobs", default=-1, show_default=True, help="Worker processes; -1: one per core.")
@reading
@common
def plan(data: Path, jobs: int, as_json: bool, quiet: bool, **options: Any) -> None:
    """Measure by a pilot what `apiece collect` of DATA will cost and how sure it will be."""
    import apiece

    dataset = read_all(data, options)
    note(describe(data, dataset, options), quiet=quiet)
    progress = False if quiet else None
    found = apiece.plan(dataset, n_jobs=jobs, progress=progress, **of_verb(options))
    if as_json:
        names = ("engine", "unit", "amount", "seconds", "correlation", "width", "needed")
        emit({name: getattr(found, name) for name in names})
        return
    say_prose(repr(found))
    show_table(found.table())
