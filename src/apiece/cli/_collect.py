"""``apiece collect``: from a file of data to stored contributions."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from apiece.cli._common import MODEL_HELP, Sizes, common
from apiece.cli._data import of_verb, read, reading
from apiece.cli._help import SectionedCommand
from apiece.cli._print import emit, note, say_prose
from apiece.cli._source import describe, place_for, saying_where
from apiece.cli._words import DESIGNS, ENGINES, LOSSES

if TYPE_CHECKING:
    from apiece.data import Dataset

_EXAMPLE = """
\b
Examples:
  apiece collect reviews.csv --target label --text review --to runs/reviews
  apiece collect houses.parquet --target price --model ridge --sizes 50:500
  apiece collect own.csv --target label --candidates offer.csv --points none
  apiece collect reviews.csv --target label --text review --groups source

Repeat the command to continue a run that was interrupted; raise --samples to extend one.
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--to", type=click.Path(), help="Folder; runs/NAME of DATA if omitted.")  # as typed
@click.option(
    "--model",
    default="auto",
    show_default=True,
    help=MODEL_HELP,
)
@click.option("--sizes", type=Sizes(), help="Training-set sizes: 100:1000, or 100,200,400.")
@click.option(
    "--samples", type=int, help="Contributions for every point, at least; 100 by default."
)
@click.option("--trainings", type=int, help="Models that --engine reuse trains; 2000 by default.")
@click.option("--until", help="When to stop: 30s, 10m, 2h, 'top 20', signs; '10m or top 20'.")
@click.option("--metric", help=f"The loss: {', '.join(LOSSES)}.")
@click.option(
    "--design", help=f"{', '.join(DESIGNS)}. Default: uniform, or log-uniform if rotating."
)
@click.option(
    "--scoring",
    type=click.Choice(["auto", "fixed", "rotating", "sample"]),
    default="auto",
    show_default=True,
    help="Rows that score: a fixed validation set (sample: as a sample of the population), or rows "
    "of the table in turns.",
)
@click.option("--engine", default="auto", show_default=True, help=f"{', '.join(ENGINES)}.")
@click.option("--points", help="Pool positions to value: 0:100, 3,5,8 or none. All by default.")
@click.option("--group-size", type=int, help="Rows of a group that enter at once; all by default.")
@click.option("--share", type=int, help="Points that share one draw; 1 is the paper's design.")
@click.option("--random-state", type=int, help="Seed; drawn and kept if left out.")
@click.option("--jobs", default=-1, show_default=True, help="Worker processes; -1: one per core.")
@click.option("--backend", help="A cluster: dask://host:port, or ray. Default: this machine.")
@reading
@common
def collect(
    data: Path,
    to: str | None,
    sizes: tuple[int, ...] | None,
    points: str | None,
    candidates: Path | None,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Sample what every point of DATA contributes at many training-set sizes.

    DATA is a .csv, .tsv, .jsonl, .parquet, .feather or .npz file. A contribution is by how much
    the loss on held-out data falls when the point joins a random training set; positive means
    that it helps.
    """
    import apiece
    from apiece.records import in_words
    from apiece.store import redacted

    dataset = read(data, options)
    place = place_for(data, _with(dataset, candidates), options) if to is None else to
    where = redacted(str(place))
    note(describe(data, dataset, options), quiet=quiet)
    try:
        run = apiece.collect(
            dataset,
            sizes=sizes,
            points=_points(points, dataset.n_pool),
            candidates=candidates,
            n_jobs=jobs,
            to=place,
            progress=not quiet,
            on_progress=saying_where(where, quiet=quiet),
            **of_verb(options),
        )
    except KeyboardInterrupt:
        _leave(place, where, quiet)
    progress = run.progress()
    if as_json:
        emit(
            {
                "run": where,
                "is_complete": progress.is_complete,
                "n_points": run.manifest.points.n_valued,
                "n_contributions": progress.n_contributions,
                "engine": run.manifest.engine.to_json(),
                "scope": run.scope,
                "seed": run.manifest.seed,
                "notes": progress.notes,
            }
        )
        return
    say_prose(
        f"{where}: {progress.n_contributions:,} {run.unit} of "
        f"{run.manifest.points.n_valued:,} {'groups' if 'rows' in run.points else 'points'}, "
        f"{in_words(run.scope)}"
    )
    note(f"next: apiece report {where}, or apiece value {where}", quiet=quiet)


def _leave(to: str | Path, where: str, quiet: bool) -> NoReturn:
    """Say how to continue an interrupted collection, and end the process."""
    from apiece.store import file_system, open_run, redacted

    run = open_run(to) if file_system(to).has("manifest.json") else None
    stored = f"nothing is stored in {where} yet"
    if run is not None:
        progress = run.progress()
        n_stored, n_planned = progress.n_contributions, progress.n_planned
        stored = f"{n_stored:,} of {n_planned:,} {run.unit} are stored in {where}"
    again = redacted(shlex.join(["apiece", *sys.argv[1:]]))
    note(f"interrupted: {stored}. Continue with:\n  {again}", quiet=quiet)
    sys.exit(130)


def _with(dataset: Dataset, candidates: Path | None) -> Dataset:
    return dataset if candidates is None else dataset.with_candidates(candidates)


def _points(words: str | None, n_pool: int) -> Any:
    if words is None:
        return None
    if words == "none":
        return []
    try:
        if ":" in words:
            start, stop = words.split(":")
            return range(int(start or 0), int(stop or n_pool))
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"{words!r} names no points: expected 0:100, 3,5,8 or none.", param_hint="--points"
        ) from None
