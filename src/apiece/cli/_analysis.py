"""``compare``, ``crossings``, ``exchange``, ``movers``, ``means``, ``baseline``: on values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from apiece.cli._common import MODEL_HELP, Sizes, common
from apiece.cli._data import read_all, reading
from apiece.cli._help import SectionedCommand
from apiece.cli._laws import LEVEL
from apiece.cli._print import OUT, deliver, note, reason_in_words
from apiece.cli._source import run_or_table
from apiece.cli._value import in_range
from apiece.cli._words import ENGINES, LOSSES
from apiece.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from apiece.store import Run
    from apiece.uses import Kind

BASELINES = ("knn-shapley", "loo", "random")


@click.command(
    epilog="""
\b
Examples:
  apiece compare runs/logistic runs/mlp
  apiece compare values.csv baseline.csv --top 20
"""
)
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--kind", default="shapley", show_default=True, help="Which value of runs.")
@click.option("--sizes", type=Sizes(), help="Sizes that count, for runs; default as sampled.")
@click.option("--top", type=int, help="How many of the best to compare; a tenth by default.")
@LEVEL
@OUT
@common
def compare(
    first: Path,
    second: Path,
    kind: Kind,
    sizes: tuple[int, ...] | None,
    top: int | None,
    level: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say how well two valuations of the same points agree.

    FIRST and SECOND are runs, or tables of values (.csv or .parquet with the columns point and
    value). Of two runs the parameters of their laws are compared, too.
    """
    import apiece
    from apiece import uses
    from apiece.laws import Laws

    one, two = (_valued(path) for path in (first, second))
    values = apiece.compare(one, two, kind=kind, sizes=in_range(sizes), top=top, level=level)
    table = values.reset_index().assign(quantity="value")
    if isinstance(one, Laws) and isinstance(two, Laws):
        import pandas as pd

        if one.provenance.dataset != two.provenance.dataset:
            both = f"{first} and {second}"
            words = f"{both} are of different data: points with the same id are compared"
            note(f"warning: {words}", quiet=quiet)
        laws = uses.compare_laws(one, two, top=top, level=level)
        table = pd.concat([table, laws], ignore_index=True)
    order = ["quantity", "measure", "agreement", "low", "high", "n"]
    deliver(table[order], out, as_json, quiet)


@click.command(
    cls=SectionedCommand,
    epilog="""
\b
Examples:
  apiece crossings runs/reviews --sizes 100:1000 --most 10
  apiece crossings runs/reviews --pair 17 41
""",
)
@click.option("--pair", nargs=2, multiple=True, help="Ids of two points; may be repeated.")
@click.option("--sizes", type=Sizes(), help="Sizes between which points swap; as sampled.")
@click.option("--most", default=20, show_default=True, help="How many pairs, clearest first.")
@LEVEL
@OUT
@common
@run_or_table()
def crossings(
    run: Run,
    pair: tuple[tuple[str, str], ...],
    sizes: tuple[int, ...] | None,
    most: int,
    level: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """List pairs of points that trade places: the first is worth more up to the size `at`."""
    from apiece import uses

    table = uses.crossings(
        run.laws(), sizes=in_range(sizes), most=most, pairs=pair or None, level=level, per_point=2
    )
    deliver(table, out, as_json, quiet)


@click.command(
    cls=SectionedCommand,
    epilog="""
\b
Examples:
  apiece exchange runs/sources --at 5000
  apiece exchange runs/sources --at 1000,5000 --pair lab web -o rates.csv
""",
)
@click.option("--at", type=Sizes(), help="Sizes, 1000,5000; the largest sampled by default.")
@click.option("--pair", nargs=2, multiple=True, help="Names of two groups; may be repeated.")
@click.option("--most", default=20, show_default=True, help="How many pairs, largest rates first.")
@LEVEL
@OUT
@common
@run_or_table()
def exchange(
    run: Run,
    at: tuple[int, ...] | None,
    pair: tuple[tuple[str, str], ...],
    most: int,
    level: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say how many rows of one group are worth one row of another.

    RUN holds contributions of groups (collect --groups).
    """
    from apiece import uses

    laws = run.laws()
    if laws.provenance.groups is None and not pair:
        raise click.UsageError(
            "the run values single rows: expected groups, such as sources of data. Collect them "
            "with --groups COLUMN, or name two rows with --pair."
        )
    table = uses.exchange(laws, at=at, pairs=pair or None, most=most, level=level)
    deliver(table, out, as_json, quiet)
    if not len(table):
        value = f"apiece value {run.path} has what each is worth"
        note(f"no rates: fewer than two groups help at this size; {value}", quiet=quiet)
    if not as_json and len(table) and table["rate"].notna().any():
        one = table[table["rate"].notna()].iloc[0]
        note(
            f"one row of {one['group']} is worth {one['rate']:.3g} rows of {one['other']} at "
            f"{one['k']:,.0f}, interval {one['low']:.3g} to {one['high']:.3g}",
            quiet=quiet,
        )


@click.command(
    cls=SectionedCommand,
    epilog="\b\nExample:\n  apiece movers runs/reviews --sizes 100:1000 -o movers.csv",
)
@click.option("--sizes", type=Sizes(), help="A small and a large size, 100:1000; as sampled.")
@click.option("--most", default=20, show_default=True, help="How many points.")
@LEVEL
@OUT
@common
@run_or_table()
def movers(
    run: Run,
    sizes: tuple[int, ...] | None,
    most: int,
    level: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """List the points whose rank changes most between a small and a large dataset."""
    from apiece import uses

    table = uses.movers(run.laws(), sizes=in_range(sizes), most=most, level=level)
    deliver(table, out, as_json, quiet)
    n_sure = int(((table["low"] > 0) | (table["high"] < 0)).sum())
    note(f"{n_sure:,} of these {len(table):,} changes are certain", quiet=quiet or as_json)


@click.command(
    cls=SectionedCommand,
    epilog="\b\nExample:\n  apiece means runs/reviews --at 100,1000 --by groups.csv",
)
@click.option("--at", type=Sizes(), help="Sizes, 100,1000; ends and middle of those sampled.")
@click.option("--by", type=click.Path(path_type=Path), help="CSV with columns point, group.")
@LEVEL
@OUT
@common
@run_or_table()
def means(
    run: Run,
    at: tuple[int, ...] | None,
    by: Path | None,
    level: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Average what the points of each class, or of each group that you name, contribute."""
    from apiece import uses

    groups = None if by is None else _read_table(by, "group")["group"]
    table = uses.means(run.laws(), at=at, by=groups, level=level)
    deliver(table, out, as_json, quiet)


@click.command(
    epilog="""
\b
Examples:
  apiece baseline reviews.csv --target label --text review -o knn.csv
  apiece baseline reviews.csv --target label --text review --method loo
"""
)
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--method", default="knn-shapley", show_default=True, help=f"{', '.join(BASELINES)}.")
@click.option("--neighbors", default=5, show_default=True, help="K of knn-shapley.")
@click.option("--model", default="auto", show_default=True, help=f"Of loo: {MODEL_HELP}")
@click.option("--metric", help=f"The loss of loo: {', '.join(LOSSES)}.")
@click.option("--engine", default="auto", show_default=True, help=f"Of loo: {', '.join(ENGINES)}.")
@click.option("--random-state", default=0, show_default=True, help="Seed.")
@reading
@OUT
@common
def baseline(
    data: Path,
    method: str,
    neighbors: int,
    random_state: int,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Value the points of DATA by a baseline: KNN-Shapley, leave-one-out, or chance."""
    from apiece import uses
    from apiece._base.check import one_of

    one_of("method", method, BASELINES)
    dataset = read_all(data, options)
    if method == "knn-shapley":
        table = uses.knn_shapley(dataset, n_neighbors=neighbors)
    elif method == "loo":
        trained = {name: options[name] for name in ("model", "metric", "engine")}
        table = uses.leave_one_out(dataset, random_state=random_state, **trained)
    else:
        table = uses.random_values(dataset, random_state=random_state)
    deliver(table.sort_values("value", ascending=False), out, as_json, quiet)


def _valued(path: Path) -> Any:
    """Return the laws of a run, or a table of values."""
    from apiece.store import open_run

    return open_run(path).laws() if path.is_dir() else _read_table(path, "value")


def _read_table(path: Path, column: str) -> pd.DataFrame:
    """Read a table by point, or say what is missing in it."""
    import pandas as pd

    from apiece._base.files import read_table

    try:
        if path.suffix.lower() == ".parquet":
            table: pd.DataFrame = read_table(path).to_pandas()
        else:
            table = pd.read_csv(path, dtype={"point": str})
        return table.set_index("point")[[column]]
    except Exception as error:  # whatever the reader of a broken file raises
        raise DataError(
            f"{path} cannot be used ({reason_in_words(error)}): expected a run, or a .csv or "
            f".parquet file with the columns point and {column}. Check the path and the columns."
        ) from error
