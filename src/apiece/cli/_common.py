"""What all commands share: their common options, how errors end, how tables are printed."""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from apiece._base.progress import tracking
from apiece.errors import ApieceError, ApieceWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

Command = TypeVar("Command", bound=Callable[..., Any])


class Numbers(click.ParamType[dict[str, float]]):
    """Named numbers, ``cat=10,dog=5``."""

    name = "name=number,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, float]:
        """Turn the words into a mapping."""
        if isinstance(value, dict):
            return value
        try:
            pairs = [part.rsplit("=", 1) for part in str(value).split(",")]
            return {name.strip(): float(number) for name, number in pairs}
        except ValueError:
            self.fail(f"{value!r} does not name numbers: expected for example a=10,b=5.")


class Sizes(click.ParamType[tuple[int, ...]]):
    """A range ``100:1000``, or a list ``100,200,400``."""

    name = "sizes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Turn the words into numbers."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(part) for part in str(value).replace(":", ",").split(","))
        except ValueError:
            self.fail(f"{value!r} is not a range of sizes: expected 100:1000, or 100,200,400.")


def common(command: Command) -> Command:
    """Add ``--json``, ``--quiet`` and ``--debug``, and let errors end without a traceback."""

    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
    @click.option("--quiet", "-q", is_flag=True, help="Print no progress and no messages.")
    @click.option("--debug", is_flag=True, help="Show the traceback of an error.")
    @wraps(command)
    def run(*args: Any, debug: bool, **options: Any) -> Any:
        try:
            quiet = options["quiet"]
            silence = tracking(False, title="", unit="") if quiet else nullcontext()
            with silence, _warnings_as_lines(quiet), _log_as_lines(quiet):
                return command(*args, **options)
        except ApieceError as error:
            if debug:
                raise
            click.echo(f"error: {error}", err=True)
            sys.exit(error.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:  # the reader of a pipe, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        except Exception as error:
            if debug:
                raise
            kind = type(error).__name__
            click.echo(
                f"error: {kind}: {error}\nUnexpected error. Stored results are intact. Repeat the "
                "command with --debug and report what it prints.",
                err=True,
            )
            sys.exit(1)

    return run  # type: ignore[return-value]


@contextmanager
def _warnings_as_lines(quiet: bool) -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not quiet:
            click.echo(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ApieceWarning)
        warnings.showwarning = show
        yield


class _Lines(logging.Handler):
    """Writes log messages to standard error, a line each."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        click.echo(record.getMessage(), err=True)


@contextmanager
def _log_as_lines(quiet: bool) -> Iterator[None]:
    """Print what is logged about laws; progress prints its messages itself."""
    log, handler = logging.getLogger("apiece.laws"), _Lines()
    before = log.level, log.propagate
    log.setLevel(logging.CRITICAL + 1 if quiet else logging.INFO)
    log.propagate = False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]


def note(text: str, *, quiet: bool) -> None:
    """Print a message for people on standard error."""
    if not quiet:
        click.echo(text, err=True)


def emit(result: Any) -> None:
    """Print a result as JSON; numbers that are not finite become null."""
    click.echo(json.dumps(plain(result), indent=2, ensure_ascii=False))


def plain(value: Any) -> Any:
    """Turn NumPy and pandas values into what JSON knows."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def flat(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its index as the first column, unless its rows are merely counted."""
    if table.index.name is None and type(table.index).__name__ == "RangeIndex":
        return table
    name = table.index.name
    return table.rename_axis("point" if name is None else str(name)).reset_index()


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, each with its id as ``point``."""
    return [
        {str(name): plain(item) for name, item in row.items()}
        for row in flat(table).to_dict("records")
    ]


def show_table(table: pd.DataFrame, *, title: str | None = None) -> None:
    """Print a table of points for people."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    rows = flat(table)
    for name in rows.columns:
        is_number = rows[name].dtype.kind in "if"
        grid.add_column(str(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows.itertuples(index=False):
        grid.add_row(*(Text(format_cell(cell)) for cell in row))
    console = Console(highlight=False)
    console.print(grid)


def format_cell(cell: Any) -> str:
    """Write a number with four digits, and anything else as it is.

    >>> format_cell(0.000123456), format_cell(12), format_cell("a")
    ('0.0001235', '12', 'a')
    """
    if isinstance(cell, float):
        return "-" if cell != cell else f"{cell:.4g}"
    return str(cell)


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table of points as CSV, JSON or Parquet, by the file's ending."""
    import io

    from apiece._base.files import make_folder, write_whole

    suffix = path.suffix.lower()
    if suffix == ".json":
        data = json.dumps(records(table), indent=2, ensure_ascii=False).encode("utf-8")
    elif suffix == ".parquet":
        buffer = io.BytesIO()
        flat(table).to_parquet(buffer, index=False)
        data = buffer.getvalue()
    elif suffix == ".csv":
        data = flat(table).to_csv(index=False).encode("utf-8")
    else:
        raise click.BadParameter(
            f"{path} ends in {suffix or 'nothing'!r}: expected .csv, .json or .parquet.",
            param_hint="--out",
        )
    make_folder(path.parent)
    write_whole(path, data)


def deliver(table: pd.DataFrame, out: Path | None, as_json: bool, quiet: bool) -> None:
    """Print a table or its first rows, as JSON if asked, and write all of it to a file."""
    if "caveat" in table.attrs:
        note(table.attrs["caveat"], quiet=quiet)
    if out is not None:
        write_table(table, out)
    if as_json:
        emit(records(table))
        return
    show_table(table.head(20))
    if out is not None:
        note(f"{len(table):,} rows written to {out}", quiet=quiet)
    elif len(table) > 20:
        note(f"the first 20 of {len(table):,} rows; -o FILE writes all", quiet=quiet)


OUT = click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the whole table there: .csv, .json or .parquet.",
)
