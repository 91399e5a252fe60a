"""``experiment``: whether values and selections keep their promises on one's own data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from apiece.cli._common import MODEL_HELP, Sizes, common
from apiece.cli._data import READING, read_all, reading
from apiece.cli._print import OUT, emit, note, plain, say, show_table, write_table
from apiece.losses import LOSSES

if TYPE_CHECKING:
    from apiece.experiments import Experiment

_SHARED = (
    click.option("--samples", type=int, help="Contributions per point."),
    click.option("--repeats", type=int, help="How often everything is repeated."),
    click.option("--model", default="auto", show_default=True, help=MODEL_HELP),
    click.option("--metric", help=f"Loss: {', '.join(LOSSES)}."),
    click.option("--method", help="Estimator of the laws."),
    click.option("--random-state", type=int, default=0, show_default=True, help="Seed."),
    click.option("--jobs", "n_jobs", type=int, default=1, show_default=True, help="Processes."),
)


_EXAMPLE = """
\b
Example:
  apiece experiment {name} reviews.csv --target label -o {name}.csv
"""


class Shares(click.ParamType[tuple[float, ...]]):
    """A list of shares, ``0.05,0.1,0.2``."""

    name = "shares"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Turn the words into numbers."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of shares: expected for example 0.05,0.1.")


@click.group(epilog=_EXAMPLE.format(name="mislabel"))
def experiment() -> None:
    """Test values and selections against baselines: addition, removal, mislabel, acquire.

    A fifth of the rows test what follows from the values of the others. With --validation, half
    of those rows do, and the other half score.
    """


def _command(
    *options: Callable[[Any], Any],
) -> Callable[[Callable[..., Experiment]], click.Command]:
    """Make a command that reads data, runs an experiment, and prints its table."""

    def make(run: Callable[..., Experiment]) -> click.Command:
        def call(data: Path, out: Path | None, as_json: bool, quiet: bool, **given: Any) -> None:
            reads = {name: given.pop(name) for name in READING}
            dataset = read_all(data, reads)
            asked = {name: item for name, item in given.items() if item is not None}
            found = run(dataset, progress=False if quiet else None, **asked)
            _print(found, out, as_json, quiet)

        call.__name__, call.__doc__ = run.__name__, run.__doc__
        wrapped: Any = common(OUT(call))
        for option in reversed((*options, *_SHARED)):
            wrapped = option(wrapped)
        wrapped = click.argument("data", type=click.Path(path_type=Path))(reading(wrapped))
        return experiment.command(epilog=_EXAMPLE.format(name=run.__name__))(wrapped)

    return make


@_command(
    click.option("--take", type=int, help="How many points each selection adds; 20."),
    click.option("--at", type=Sizes(), help="Sizes of the training sets; 100,1000."),
    click.option("--n-candidates", type=int, help="Points of the pool to select from; 1000."),
    click.option("--no-aware", "redundancy", flag_value=False, type=bool, help="Skip joint picks."),
)
def addition(dataset: Any, **settings: Any) -> Experiment:
    """Add the points selected for a size to training sets of that and other sizes."""
    from apiece import experiments

    return experiments.addition(dataset, **settings)


@_command(
    click.option("--at", type=int, help="Size of the training set to begin with; 100."),
    click.option("--budget", type=float, help="What may be spent, at 1 per point; 100."),
    click.option("--steps", type=int, help="At how many shares of the budget to measure; 5."),
    click.option("--n-candidates", type=int, help="Points of the pool to buy from; 1000."),
    click.option("--no-aware", "redundancy", flag_value=False, type=bool, help="Skip joint picks."),
)
def acquire(dataset: Any, **settings: Any) -> Experiment:
    """Buy points up to a budget, and watch the model improve as it is spent."""
    from apiece import experiments

    return experiments.acquire(dataset, **settings)


@_command(
    click.option("--remove", type=click.Choice(["lowest", "highest"]), help="Which; lowest."),
    click.option("--shares", type=Shares(), help="Shares of the points to leave out."),
    click.option("--points", "n", type=int, help="Points in each repeat; 1000."),
)
def removal(dataset: Any, **settings: Any) -> Experiment:
    """Leave out the points of lowest or highest value, and train on the rest."""
    from apiece import experiments

    return experiments.removal(dataset, **settings)


@_command(
    click.option("--flipped", type=Shares(), help="Shares of the labels to flip; 0.05,0.1,0.2."),
    click.option("--points", "n", type=int, help="Points in each repeat; 1000."),
    click.option("--no-suggest", "suggest", flag_value=False, type=bool, help="No relabelling."),
)
def mislabel(dataset: Any, **settings: Any) -> Experiment:
    """Flip labels at random, and look for them among the points of lowest value."""
    from apiece import experiments

    return experiments.mislabel(dataset, **settings)


def _print(found: Experiment, out: Path | None, as_json: bool, quiet: bool) -> None:
    table = found.table()
    if out is not None:
        write_table(found.samples, out)
    if as_json:
        rows = table.reset_index().to_dict("records")
        emit({"experiment": found.name, **found.attrs, "measures": found.measures, "table": rows})
        return
    for measure, words in found.measures.items():
        columns = [name for name in table if str(name).startswith(measure)]
        part = table[columns].dropna(how="all")
        if len(part):
            show_table(part.reset_index().set_index(found.by), title=f"{measure}: {words}")
            say()
    note(f"settings: {plain(found.attrs)}", quiet=quiet)
    if out is not None:
        note(f"every repeat written to {out}", quiet=quiet)
