"""``experiment``: whether values and selections keep their promises on one's own data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from apiece.cli._common import MODEL_HELP, Sizes, common
from apiece.cli._data import of_verb, read_all, reading
from apiece.cli._help import NamedGroup
from apiece.cli._print import OUT, emit, note, plain, say, show_table, write_table
from apiece.cli._words import LOSSES

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
  apiece experiment {name} table.csv --target y -o {name}.csv
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


@click.group(cls=NamedGroup, epilog=_EXAMPLE.format(name="mislabel"))
def experiment() -> None:
    """Test values and selections against baselines: addition, removal, mislabel, acquire.

    A fifth of the rows test what follows from the values of the others. With --validation, half
    of those rows do, and the other half score.
    """


_AWARE = click.option(
    "--no-aware", "redundancy", flag_value=False, type=bool, help="Skip joint picks."
)
_POINTS = click.option("--points", "n", type=int, help="Points in each repeat; 1000.")

_EXPERIMENTS: dict[str, tuple[str, list[Callable[[Any], Any]]]] = {
    "addition": (
        "Add the points selected for a size to training sets of that and other sizes.",
        [
            click.option("--take", type=int, help="How many points each selection adds; 20."),
            click.option(
                "--at", type=Sizes(), help="Sizes of the training sets; 100,1000 if they fit."
            ),
            click.option(
                "--n-candidates",
                type=int,
                help="Points of the pool to select from; 1000, or half of it.",
            ),
            _AWARE,
        ],
    ),
    "acquire": (
        "Buy points up to a budget, and watch the model improve as it is spent.",
        [
            click.option(
                "--at", type=int, help="Size of the training set to begin with; 100 if it fits."
            ),
            click.option("--budget", type=float, help="What may be spent, at 1 per point; 100."),
            click.option(
                "--steps", type=int, help="At how many shares of the budget to measure; 5."
            ),
            click.option(
                "--n-candidates",
                type=int,
                help="Points of the pool to buy from; 1000, or half of it.",
            ),
            _AWARE,
        ],
    ),
    "removal": (
        "Leave out the points of lowest or highest value, and train on the rest.",
        [
            click.option(
                "--remove", type=click.Choice(["lowest", "highest"]), help="Which; lowest."
            ),
            click.option("--shares", type=Shares(), help="Shares of the points to leave out."),
            _POINTS,
        ],
    ),
    "mislabel": (
        "Flip labels at random, and look for them among the points of lowest value.",
        [
            click.option(
                "--flipped", type=Shares(), help="Shares of the labels to flip; 0.05,0.1,0.2."
            ),
            _POINTS,
            click.option(
                "--no-suggest", "suggest", flag_value=False, type=bool, help="No relabelling."
            ),
        ],
    ),
}


def _add(name: str, words: str, options: list[Callable[[Any], Any]]) -> None:
    """Add a command that reads data, runs an experiment, and prints its table."""

    def call(data: Path, out: Path | None, as_json: bool, quiet: bool, **given: Any) -> None:
        from apiece import experiments

        dataset = read_all(data, given)
        asked = {key: item for key, item in of_verb(given).items() if item is not None}
        found = getattr(experiments, name)(dataset, progress=False if quiet else None, **asked)
        _print(found, out, as_json, quiet)

    call.__name__, call.__doc__ = name, words
    wrapped: Any = common(OUT(call))
    for option in reversed((*options, *_SHARED)):
        wrapped = option(wrapped)
    wrapped = click.argument("data", type=click.Path(path_type=Path))(reading(wrapped))
    experiment.command(epilog=_EXAMPLE.format(name=name))(wrapped)


for _name, (_words, _options) in _EXPERIMENTS.items():
    _add(_name, _words, _options)


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
