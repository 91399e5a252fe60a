"""``advise``: one decision for every point; ``suspects``: whose labels are implausible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from apiece.cli._common import OUT, common, deliver, note
from apiece.cli._data import read_all, reading
from apiece.cli._laws import RUN


@click.command(
    epilog="""
\b
Examples:
  apiece advise runs/reviews --at 5000 -o advice.csv
  apiece advise runs/reviews --data reviews.csv --target label --text review
"""
)
@RUN
@click.option("--at", type=int, help="Size of the dataset; default the largest sampled.")
@click.option(
    "--level",
    type=float,
    default=0.9,
    show_default=True,
    help="Probability from which on a decision is made.",
)
@click.option(
    "--best",
    type=float,
    default=0.1,
    show_default=True,
    help="Share of the points that count as the best.",
)
@click.option("--draws", default=20, show_default=True, help="Training sets that try labels.")
@click.option("--random-state", default=0, show_default=True, help="Their seed.")
@click.option("--data", type=click.Path(path_type=Path), help="The file given to collect.")
@reading
@OUT
@common
def advise(
    run: Path,
    at: int | None,
    level: float,
    best: float,
    draws: int,
    random_state: int,
    data: Path | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Advise for every point: keep, drop, relabel, more like this, or uncertain.

    With --data, relabel is advised where models that have not seen a point are sure of another
    label. Options from --target on say how it is read, and are those of collect.
    """
    import apiece
    from apiece.store import open_run

    dataset = None if data is None else read_all(data, options)
    table = apiece.advise(
        open_run(run),
        dataset=dataset,
        at=at,
        level=level,
        best=best,
        draws=draws,
        random_state=random_state,
    )
    worth_a_look = table.sort_values(["advice", "value"], key=_first)
    deliver(worth_a_look, out, as_json, quiet)
    counts = table["advice"].value_counts()
    note(", ".join(f"{count:,} {word}" for word, count in counts.items()), quiet=quiet)


@click.command(
    epilog="""
\b
Example:
  apiece suspects reviews.csv --target label --text review -o suspects.csv
"""
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

    Models that have not seen a point tell how likely its label is. Labels of the validation rows
    are trusted.
    """
    from apiece import uses

    dataset = read_all(data, options)
    chosen = models or ("logistic", "forest")
    table = uses.plausibility(dataset, models=chosen, draws=draws, random_state=random_state)
    deliver(table.sort_values("plausibility", kind="stable"), out, as_json, quiet)


def _first(column: Any) -> Any:
    """Order what calls for action first, and the most harmful first within it."""
    order = {"relabel": 0, "drop": 1, "more like this": 2, "uncertain": 3, "keep": 4}
    return column.map(order) if column.name == "advice" else column
