"""``value`` and ``select``: what points are worth, and which to add."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from apiece.cli._common import Numbers, Sizes, common
from apiece.cli._help import SectionedCommand
from apiece.cli._laws import LEVEL, MEMORY
from apiece.cli._print import OUT, deliver, note, reason_in_words, say_prose, show_ends, show_table
from apiece.cli._source import run_or_table
from apiece.cli._units import everyday, unit_of, variance, with_r2
from apiece.cli._words import KINDS
from apiece.errors import ApieceError, DataError

if TYPE_CHECKING:
    import pandas as pd

    from apiece.data import Dataset
    from apiece.store import Run
    from apiece.uses import Source

_ENDS = 10  # points at each end
_FEW_CLEAR = 0.1  # share of rows below which their order is mostly noise


@click.command(
    cls=SectionedCommand,
    epilog="""
\b
Examples:
  apiece value reviews.csv --target label --text review -o values.csv
  apiece value runs/reviews --kind beta-shapley --beta 4,1 --top 20
  apiece value runs/reviews --source samples --json
""",
)
@click.option("--kind", default="shapley", show_default=True, help=f"{', '.join(KINDS)}.")
@click.option("--sizes", type=Sizes(), help="Sizes that count, 100:1000; default as sampled.")
@click.option("--n", type=int, help="Points of the game, for all kinds but shapley; the pool's.")
@click.option("--beta", default="16,1", show_default=True, help="Shape a,b of Beta Shapley.")
@click.option("--weights", type=Numbers(), help="Weights of your own: 100=0.5,1000=0.5.")
@click.option("--source", default="law", show_default=True, help="law, or samples (Monte Carlo).")
@click.option("--top", type=int, help="Rank; show this many, and the chance to be among them.")
@MEMORY
@LEVEL
@OUT
@common
@run_or_table()
def value(
    run: Run,
    sizes: tuple[int, ...] | None,
    beta: str,
    weights: dict[str, float] | None,
    source: Source,
    memory: str | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Value every point: a weighted sum of its contributions over sizes, in units of the loss."""
    import apiece

    a, b = _shape(beta)
    table = apiece.value(
        run,
        sizes=in_range(sizes),
        weights=_size_weights(weights),
        source=source,
        memory=memory,
        a=a,
        b=b,
        **options,
    )
    if source == "law":
        laws = run.laws(memory=memory)
        if laws.labels is not None:
            table.insert(0, "label", laws.labels)
        table = with_r2(table, laws)
        if not as_json:
            said = "; unseen_loss: its loss for models that were not trained on it"
            note(f"value: {unit_of(laws)}{said if 'unseen_loss' in table else ''}", quiet=quiet)
    by_value = table.sort_values("value", ascending=False)
    if (top := options["top"]) is not None:
        deliver(by_value, out, as_json, quiet, show=lambda: show_table(by_value.head(top)))
        return
    if len(table) <= 2 * _ENDS:
        deliver(by_value, out, as_json, quiet)
        return

    def show() -> None:
        show_ends(by_value, _ENDS, options["level"])
        clear = int(((table["low"] > 0) | (table["high"] < 0)).sum())
        more = ". The order is mostly noise: collect more samples, value groups or smaller sizes"
        hint = more if clear < _FEW_CLEAR * len(table) else ""
        say_prose(f"rows whose interval does not contain 0: {clear:,} of {len(table):,}{hint}")

    deliver(by_value, out, as_json, quiet, show=show)


@click.command(
    cls=SectionedCommand,
    epilog="""
\b
Examples:
  apiece select runs/reviews --at 1000 --take 20 -o picks.csv
  apiece select runs/reviews --at 1000 --until 5000 --quotas cat=10,dog=10
  apiece select runs/reviews --at 1000 --costs prices.csv --budget 250
  apiece select runs/houses --at 1000 --data houses.csv --target price
  apiece select runs/reviews --at 1000 --redundancy none
  apiece select runs/reviews --have mine.csv --take 20
""",
)
@click.option(
    "--at", type=int, help="Size of the training set they would join; default the size of the pool."
)
@click.option(
    "--have", type=click.Path(path_type=Path), help="CSV with the ids of its rows, instead of --at."
)
@click.option("--take", type=int, help="How many; 20 unless quotas or a budget say.")
@click.option("--until", type=int, help="Size it will grow to: ranks by the mean on the way.")
@click.option("--quotas", help="How many of each class, cat=10,dog=5; or balanced.")
@click.option("--costs", type=click.Path(path_type=Path), help="CSV with columns point, cost.")
@click.option("--budget", type=float, help="What the picks may cost together.")
@click.option(
    "--redundancy",
    default="auto",
    show_default=True,
    help="aware: value picks together, by training; none: one by one; auto: aware if quick.",
)
@click.option("--draws", default=20, show_default=True, help="Training sets per pick, if aware.")
@click.option("--shortlist", type=int, help="Points valued together, if aware; 10 a pick.")
@click.option("--random-state", default=0, show_default=True, help="Seed of what is drawn.")
@LEVEL
@OUT
@common
@run_or_table(also=("dataset",))
def select(
    run: Run,
    take: int | None,
    have: Path | None,
    quotas: str | None,
    costs: Path | None,
    budget: float | None,
    dataset: Dataset | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Select the points that help most when the training set has a given size."""
    import apiece

    table = apiece.select(
        run,
        take=20 if take is None and quotas is None and budget is None else take,
        have=None if have is None else _ids(have),
        quotas=quotas if quotas in (None, "balanced") else _counts(str(quotas)),
        costs=None if costs is None else _costs(costs),
        budget=budget,
        dataset=dataset,
        **options,
    )
    tried = partial(_note_everyday, run, table, dataset, options, quiet=quiet)
    deliver(table, out, as_json, quiet, then=tried if have is None else None)
    if not as_json and have is not None and len(table):
        last = table.iloc[-1]
        spread = f" ({last['gain_low']:.4g} to {last['gain_high']:.4g})"
        note(f"{_gain(run, last['gain'], len(table), spread)} on rows not seen", quiet=quiet)
    elif not as_json:
        total = float(table["value"].sum())
        note(f"{_gain(run, total, len(table))}; {_how('alone' in table)}", quiet=quiet)


def _how(together: bool) -> str:
    """Say how picks were valued, and what that means for the columns of the table."""
    if not together:
        return (
            "picks were valued one by one, as if they shared nothing; "
            "p_best: the chance to belong among them"
        )
    return (
        "picks were valued together: value is what a pick adds to those above it, measured again "
        "after choosing, so values need not fall; alone and p_best are without the other picks"
    )


def _gain(run: Run, gain: float, n_picks: int, spread: str = "") -> str:
    """Say what all picks gain, in units of the loss, and for quantities of R2."""
    loss = str(run.provenance().get("metric", "loss")).replace("_", " ")
    share = variance(run.laws())
    r2 = "" if share is None else f", R2 rises by {gain / share:.3g}"
    return f"with all {n_picks:,} picks the {loss} falls by {gain:.4g}{spread}{r2}"


def _note_everyday(
    run: Run,
    table: pd.DataFrame,
    dataset: Dataset | None,
    options: dict[str, Any],
    *,
    quiet: bool,
) -> None:
    """Say what the picks do to accuracy or R2, by training with and without them, if quick."""
    from apiece.engines import base_name
    from apiece.uses import data_of, gain

    model, laws = str(run.provenance().get("model")), run.laws()
    data = data_of(run) if dataset is None else dataset
    if quiet or data is None or not len(table) or base_name(model) not in _QUICK:
        return
    if data.sample_weight is not None or laws.provenance.groups is not None:
        return
    size = options["at"] or laws.default_at()
    try:
        found = gain(data, table.index, at=min(size, _MOST_ROWS), model=model)
    except ApieceError:  # such as a table that leaves no rows to score on
        return
    said = ", ".join(everyday(found))
    note(f"tried in 20 training sets of {found.attrs['at']:,} rows: {said}", quiet=quiet)


_QUICK = ("logistic", "linear", "ridge", "poisson")
_MOST_ROWS = 5_000  # of a training set


def in_range(sizes: tuple[int, ...] | None) -> tuple[int, int] | None:
    """Return a range of sizes, or complain of a list of them."""
    if sizes is None:
        return None
    if len(sizes) != 2:
        raise click.BadParameter("expected a range such as 100:1000.", param_hint="--sizes")
    return sizes[0], sizes[1]


def _size_weights(weights: dict[str, float] | None) -> dict[int, float] | None:
    try:
        return None if weights is None else {int(k): w for k, w in weights.items()}
    except ValueError:
        raise click.BadParameter(
            "expected sizes and weights such as 100=0.5,1000=0.5.", param_hint="--weights"
        ) from None


def _shape(beta: str) -> tuple[float, float]:
    try:
        a, b = (float(part) for part in beta.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{beta!r} is no shape: expected two numbers such as 16,1.", param_hint="--beta"
        ) from None
    return a, b


def _counts(quotas: str) -> dict[str, int]:
    named = Numbers().convert(quotas, None, None)
    if any(count != int(count) for count in named.values()):
        raise click.BadParameter(f"{quotas!r}: expected whole numbers.", param_hint="--quotas")
    return {name: int(count) for name, count in named.items()}


def _ids(path: Path) -> list[str]:
    """Read the ids of rows: the column point of a CSV file, or its only column."""
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype=str)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} holds no ids ({reason_in_words(error)}): expected a CSV file with a "
            "column point. Pass another file."
        ) from error
    if "point" not in table and len(table.columns) != 1:
        raise DataError(
            f"{path} has the columns {', '.join(table.columns)}: expected one named point, with "
            "the ids of the rows that are held. Name it so."
        )
    return list(table["point"] if "point" in table else table.iloc[:, 0])


def _costs(path: Path) -> pd.Series:
    """Read a CSV file of costs by point."""
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype={"point": str})
        return table.set_index("point")["cost"]
    except (OSError, KeyError, ValueError) as error:
        raise DataError(
            f"{path} holds no costs ({reason_in_words(error)}): expected a CSV file with the "
            "columns point and cost. Name them so."
        ) from error
