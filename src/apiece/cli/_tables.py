"""``contributions``, ``aggregate``, ``backtest``, ``boundary``, ``theory``: what laws rest on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from apiece.cli._common import Sizes, common
from apiece.cli._data import read_all, reading
from apiece.cli._help import SectionedCommand
from apiece.cli._laws import LEVEL
from apiece.cli._print import OUT, deliver, note
from apiece.cli._source import run_or_table
from apiece.cli._words import MODELS

if TYPE_CHECKING:
    from apiece.store import Run


@click.command(
    cls=SectionedCommand,
    epilog="\b\nExample:\n  apiece contributions runs/reviews -o contributions.csv",
)
@OUT
@common
@run_or_table()
def contributions(run: Run, out: Path | None, as_json: bool, quiet: bool) -> None:
    """List every stored contribution: by how much the loss fell when a point joined k others."""
    deliver(run.contributions().table(), out, as_json, quiet)


@click.command(
    cls=SectionedCommand,
    epilog="""
\b
Examples:
  apiece aggregate runs/reviews
  apiece aggregate runs/reviews --at 5000,20000 -o forecast.csv
""",
)
@click.option("--at", type=Sizes(), help="Sizes at which to predict the loss, 5000,20000.")
@LEVEL
@OUT
@common
@run_or_table()
def aggregate(
    run: Run,
    at: tuple[int, ...] | None,
    level: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show how the loss falls with the size of the dataset: eps + b / k^lambda."""
    import numpy as np
    import pandas as pd

    import apiece
    from apiece.records import scoped

    law = apiece.aggregate(run)
    table = law.table(level).astype(object)  # each row has its own unit
    if at is not None:
        k = np.array(at)
        low, high = law.interval(k, level=level)
        table = pd.DataFrame(
            {"loss": law.mean(k), "low": low, "high": high}, index=pd.Index(k, name="k")
        )
        table = scoped(table, law.scope)
    deliver(table, out, as_json, quiet)
    note(law.headline(), quiet=quiet or as_json)


@click.command(
    cls=SectionedCommand,
    epilog="\b\nExample:\n  apiece backtest runs/reviews --hold-out 0.5 -o backtest.csv",
)
@click.option(
    "--hold-out",
    type=click.FloatRange(0, 1, True, True),
    help="Share of the contributions to predict, those at the largest sizes; by default all "
    "beyond the largest size over 2.5.",
)
@LEVEL
@OUT
@common
@run_or_table()
def backtest(
    run: Run, hold_out: float | None, level: float, out: Path | None, as_json: bool, quiet: bool
) -> None:
    """Fit every kind of law on the smaller sizes, and judge it at the larger ones.

    auto takes the blend of several families unless another kind of law is clearly better.
    """
    from apiece import estimators

    found = estimators.backtest(run.contributions(), hold_out=hold_out, level=level)
    deliver(found.table(), out, as_json, quiet)
    kinds = list(dict.fromkeys((score.method, score.family) for score in found.scores))
    note(
        f"fitted on sizes up to {found.cut:,}; auto would take {' '.join(kinds[found.best])}; "
        f"{int(found.undescribed.sum()):,} points are described by none",
        quiet=quiet or as_json,
    )


@click.command(
    epilog="""
\b
Examples:
  apiece boundary reviews.csv --target label --text review -o boundary.csv
  apiece boundary reviews.csv --target label --text review --laws runs/reviews
"""
)
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--model", default="logistic", show_default=True, help=f"{', '.join(MODELS)}; fitted to all."
)
@click.option(
    "--laws", "run", type=click.Path(path_type=Path), help="Run whose laws to correlate with it."
)
@reading
@LEVEL
@OUT
@common
def boundary(
    data: Path,
    model: str,
    run: Path | None,
    level: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Measure how far every point of DATA lies from the decision boundary.

    With --laws, show what that has to do with the points' laws instead.
    """
    from apiece import uses
    from apiece.store import open_run

    dataset = read_all(data, options)
    table = (
        uses.boundary(dataset, model=model)
        if run is None
        else uses.boundary_relation(open_run(run).laws(), dataset, model=model, level=level)
    )
    deliver(table, out, as_json, quiet)


@click.command(epilog="\b\nExample:\n  apiece theory houses.csv --target price -o theory.csv")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--no-intercept", is_flag=True, help="A model without an intercept.")
@reading
@OUT
@common
def theory(
    data: Path,
    no_intercept: bool,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Predict the first terms of every point's law, as least squares and two classes have them."""
    from apiece import uses

    dataset = read_all(data, options)
    deliver(uses.theory(dataset, fit_intercept=not no_intercept), out, as_json, quiet)
