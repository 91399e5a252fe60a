"""``reproduce``: the paper's tables and figures from one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from apiece.cli._common import common
from apiece.cli._print import OUT, emit, note, records, say, say_prose, show_table, write_table

if TYPE_CHECKING:
    import pandas as pd

_EPILOG = """
\b
Examples:
  apiece reproduce table1 --data data --to reproduction
  apiece reproduce all --data data --scale paper --estimate
  apiece reproduce all --scale smoke
"""


class Names(click.ParamType[tuple[str, ...]]):
    """A list of names, ``imdb,adult``."""

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split the words."""
        return value if isinstance(value, tuple) else tuple(str(value).split(","))


@click.command(epilog=_EPILOG)
@click.argument("name")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the datasets.")
@click.option(
    "--scale",
    default="laptop",
    show_default=True,
    help="paper: as many points and samples as there; laptop: a fifth of the points; smoke: a "
    "test on synthetic data.",
)
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder of the runs and results; the same again to continue.",
)
@click.option(
    "--datasets", type=Names(), help="Which take part, such as imdb,adult; all by default."
)
@click.option("--models", type=Names(), help="logistic,mlp,svm by default.")
@click.option("--points", type=int, help="Value at most so many points.")
@click.option("--samples", type=int, help="At most so many samples per size on grids.")
@click.option("--estimate", "only_estimate", is_flag=True, help="Print the runs and their time.")
@click.option(
    "--stored",
    is_flag=True,
    help="Collect nothing: use stored runs, and elsewhere the numbers of the documentation.",
)
@click.option("--page", type=click.Path(path_type=Path), help="Write the page there too.")
@click.option("--note", help="A note on the data for the page, such as which embeddings it has.")
@click.option("--jobs", "n_jobs", type=int, default=1, show_default=True, help="Processes.")
@OUT
@common
def reproduce(
    name: str,
    only_estimate: bool,
    stored: bool,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Make NAME of the paper: a table, a figure, or all of them.

    NAME is table1 to table8, figure1 to figure20, ceiling, aggregate, speed, or all.

    Prints the numbers; writes JSON, Markdown, CSV, PNG and PDF, and a page with each measured
    number next to the paper's. What is measured later is added to what was measured before.
    Interrupted, it continues where it stopped. -o writes the table of --estimate.
    """
    from apiece import papers as room

    if out is not None and not only_estimate:
        raise click.UsageError("-o writes the table of --estimate: results go to --to. Pass that.")
    asked = {key: value for key, value in given.items() if value is not None}
    if only_estimate:
        asked = {key: value for key, value in asked.items() if key not in ("page", "note")}
        table = room.estimate(name, **asked)
        if out is not None:
            write_table(table, out)
        if as_json:
            emit({"runs": records(table), "minutes": table["minutes"].sum()})
        else:
            show_table(table)
            say(f"about {table['minutes'].sum():,.0f} minutes in all")
        return
    page = room.reproduce(name, stored=stored, progress=not quiet, **asked)
    if as_json:
        emit({"name": name, "page": str(page)})
    else:
        if name != "all":
            _show(room.measured(name, scale=given["scale"], to=given["to"]))
        say(f"open {page}")
    note("call again to continue or to add what is missing", quiet=quiet or as_json)


def _show(table: pd.DataFrame) -> None:
    """Print the rows, their scale, and why a cell is below the paper's number or noisy."""
    show_table(table.drop(columns="why lower", errors="ignore"))
    say_prose(table.attrs["scale"])
    for row in table.to_dict("records"):
        if row.get("why lower"):
            names = ", ".join(str(row[name]) for name in ("data", "model", "loss"))
            paper = f" of {row['paper']:.3f}" if row["paper"] == row["paper"] else ""
            say_prose(f"{names}: {row['measured']:.3f}{paper}. {row['why lower']}")
