"""The command line: the verbs of the library, in the same words."""

from __future__ import annotations

import io
import sys

import click

from apiece.cli._advise import advise, suspects
from apiece.cli._analysis import baseline, compare, crossings, exchange, means, movers
from apiece.cli._collect import collect
from apiece.cli._demo import demo
from apiece.cli._experiment import experiment
from apiece.cli._help import TaskGroup
from apiece.cli._laws import fit, show
from apiece.cli._plan import plan
from apiece.cli._report import report, serve
from apiece.cli._reproduce import reproduce
from apiece.cli._tables import aggregate, backtest, boundary, contributions, theory
from apiece.cli._value import select, value

__all__ = ["cli", "main"]

TASKS = {
    "Decide what to do": (
        (advise, "which rows to relabel, drop or check, and what that gains"),
        (suspects, "rows by how implausible their labels are"),
        (select, "which rows to add to a training set"),
        (report, "everything in one interactive HTML page"),
        (serve, "the same page, following a collection"),
    ),
    "Value rows, step by step": (
        (plan, "what a collection will cost and how sure it will be"),
        (collect, "sample what each row contributes at many dataset sizes"),
        (fit, "fit one law per row"),
        (value, "one value per row: Shapley and others"),
        (show, "what a run holds; the law of one row"),
    ),
    "Explain and compare": (
        (compare, "how well two valuations agree"),
        (crossings, "pairs of rows that trade places as data grows"),
        (movers, "rows whose rank changes most as data grows"),
        (means, "average value of each class or group"),
        (exchange, "how many rows of one source equal one of another"),
        (baseline, "KNN-Shapley, leave-one-out, or chance"),
        (boundary, "how far rows lie from the decision boundary"),
        (theory, "first terms of the laws, from theory"),
    ),
    "Check": (
        (aggregate, "how the loss falls with the size of the dataset"),
        (backtest, "how well laws predict larger sizes"),
        (contributions, "every stored contribution"),
        (experiment, "test values and selections on your data"),
        (reproduce, "tables and figures of the paper"),
        (demo, "everything once, on built-in data"),
    ),
}

_EPILOG = """
A table is a .csv, .tsv, .jsonl, .parquet, .feather or .npz file:

\b
  apiece advise houses.csv --target price
  apiece report houses.csv --target price -o houses.html

`apiece COMMAND --help` has more. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""


@click.group(
    cls=TaskGroup, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="apiece")
def cli() -> None:
    """What is each row of my data worth, and what should I do with it?"""


cli.add_tasks(TASKS)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # ids that an ASCII terminal cannot show
    cli()
