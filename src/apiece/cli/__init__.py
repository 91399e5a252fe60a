"""The command line: the verbs of the library, in the same words."""

from __future__ import annotations

import click

from apiece.cli._advise import advise, suspects
from apiece.cli._analysis import baseline, compare, crossings, exchange, means, movers
from apiece.cli._collect import collect
from apiece.cli._demo import demo
from apiece.cli._experiment import experiment
from apiece.cli._laws import fit, show
from apiece.cli._report import report, serve
from apiece.cli._reproduce import reproduce
from apiece.cli._tables import aggregate, backtest, boundary, contributions, theory
from apiece.cli._value import select, value

__all__ = ["cli", "main"]

_EPILOG = """
\b
From a table to the points worth having:
  apiece collect reviews.csv --target label --sizes 100:1000 --to runs/reviews
  apiece fit     runs/reviews
  apiece show    runs/reviews
  apiece value   runs/reviews --kind shapley -o values.csv
  apiece select  runs/reviews --at 1000 --take 20 -o picks.csv
  apiece report  runs/reviews -o reviews.html

\b
New here? `apiece demo` runs all of it on built-in data in seconds.
"""


@click.group(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="apiece")
def cli() -> None:
    """What is each data point worth, at every dataset size?

    Exit codes: 0 done, 1 the run failed, 2 wrong usage, 130 interrupted.
    """


for _command in (
    *(demo, collect, fit, show, value, select, advise, report, serve),
    *(suspects, compare, crossings, exchange, movers, means, baseline),
    *(contributions, aggregate, backtest, boundary, theory),
    *(experiment, reproduce),
):
    cli.add_command(_command)


def main() -> None:
    """Run the command line."""
    cli()
