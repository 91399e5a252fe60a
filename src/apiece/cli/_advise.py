"""``advise``: what to do with the rows; ``suspects``: whose labels are implausible."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from apiece.cli._common import MODEL_HELP, common
from apiece.cli._data import read_all, reading
from apiece.cli._help import SectionedCommand
from apiece.cli._laws import LEVEL
from apiece.cli._print import OUT, deliver, emit, note, records, say_prose, show_table, write_table
from apiece.cli._source import describe, is_table, next_command, remembered

if TYPE_CHECKING:
    import pandas as pd

    from apiece.uses import Advice

_SHOWN: Final = 20  # rows


@click.command(
    cls=SectionedCommand,
    epilog="""
\b
Examples:
  apiece advise reviews.csv --target label --text review -o advice.csv
  apiece advise runs/reviews
""",
)
@click.argument("source", metavar="RUN_OR_TABLE", type=click.Path(path_type=Path))
@click.option("--model", help=f"That of the run, or: {MODEL_HELP}")
@click.option("--metric", help="What is measured; that of the run, or the log loss.")
@LEVEL
@click.option("--random-state", default=0, show_default=True, help="Seed of the folds.")
@click.option("--data", type=click.Path(path_type=Path), help="File that the run was made from.")
@reading
@OUT
@common
def advise(
    source: Path,
    model: str | None,
    metric: str | None,
    level: float,
    random_state: int,
    data: Path | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Say which rows to relabel, drop or check, and what following that would gain.

    RUN_OR_TABLE is a run, whose data is read again, or a file of data. The effect is measured by
    refitting the model, on rows that had no part in choosing.
    """
    import apiece
    from apiece.store import open_run
    from apiece.uses import quality

    settings: dict[str, Any] = {"model": model, "metric": metric, "level": level}
    settings |= {"random_state": random_state, "progress": False if quiet else None}
    dataset = None if data is None else read_all(data, options)
    run = remembered(source, options) if is_table(source) else open_run(source)
    if run is None:
        dataset = read_all(source, options)
        note(describe(source, dataset, options), quiet=quiet)
        found = quality(dataset, model or "auto", progress=settings["progress"])
        note(f"model: {found.headline()}", quiet=quiet)
        advice = apiece.advise(dataset, **settings)
    else:
        about = run.manifest.dataset
        target = "" if about.target in (None, "target") else f", target {about.target}"
        by = model or run.manifest.model.name
        note(f"run: {run.path} (collected before): model {by}{target}", quiet=quiet)
        advice = apiece.advise(run, dataset=dataset, **settings)
    table = advice.table().sort_values("advice", key=_first, kind="stable")
    if out is not None:
        write_table(table, out)
    if as_json:
        said: dict[str, Any] = {"summary": advice.headline(), "scope": advice.scope}
        said["effect"] = records(advice.effect)
        emit(said | {"rows": records(table)})
        return
    show_advice(advice)
    changed = _most_doubtful_first(table)
    if len(changed):
        show_table(changed.head(_SHOWN))
    if out is not None:
        note(f"{len(table):,} rows written to {out}", quiet=quiet)
    elif len(changed) > _SHOWN:
        note(f"the first {_SHOWN} of {len(changed):,} rows; -o FILE writes all", quiet=quiet)
    if run is None:
        page = next_command("report", source, {**options, "model": model, "metric": metric})
        note(f"what every row is worth, as a page for a browser:\n  {page}", quiet=quiet)


def show_advice(advice: Advice) -> None:
    """Print what to do and what it gains, by part if there are several, and for which rows."""
    from apiece.records import in_words

    say_prose(advice.headline())
    if not (advice["advice"].isin(["relabel", "drop"])).any():
        return
    parts = [str(part) for part in advice.effect.index if part != "all"]
    for part in parts if len(parts) > 1 else []:
        say_prose(f"{part} alone: {advice.changes(part)}")
    say_prose(
        f"({100 * advice.level:.4g} % intervals, {in_words(advice.scope)}; measured by refitting, "
        "on rows that had no part in choosing)"
    )


def _most_doubtful_first(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that something is to be done with, the most doubtful of each part first."""
    changed = table[table["advice"] != "keep"].drop(columns="reason")
    order = changed["probability"].sort_values(kind="stable").index
    return changed.loc[order].sort_values("advice", key=_first, kind="stable")


@click.command(
    cls=SectionedCommand,
    epilog="""
\b
Example:
  apiece suspects reviews.csv --target label --text review -o suspects.csv
""",
)
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--model", "models", multiple=True, help="May be repeated; logistic and forest.")
@click.option("--draws", default=5, show_default=True, help="Models that judge a point, at least.")
@click.option("--random-state", default=0, show_default=True, help="Seed of their training sets.")
@reading
@OUT
@common
def suspects(
    data: Path,
    models: tuple[str, ...],
    draws: int,
    random_state: int,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """List the points of DATA by how implausible their labels are, the least plausible first.

    Models that have not seen a point say how likely its label is. Labels of the validation rows
    are trusted.
    """
    from apiece import uses
    from apiece._base.progress import tracking

    dataset = read_all(data, options)
    chosen = models or ("logistic", "forest")
    with tracking(False if quiet else None, title="judging labels", unit="models"):
        table = uses.plausibility(dataset, models=chosen, draws=draws, random_state=random_state)
    n_other = int((table["plausibility"] < table["p_likeliest"]).sum())
    deliver(
        table.sort_values("plausibility", kind="stable"),
        out,
        as_json,
        quiet,
        then=lambda: say_prose(
            f"another label is more plausible than the given one: {n_other:,} of {len(table):,} "
            "rows"
        ),
    )


def _first(column: Any) -> Any:
    """Order what calls for action first."""
    return column.map({"relabel": 0, "drop": 1, "check": 2, "keep": 3})
