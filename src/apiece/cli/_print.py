"""How results are printed and written: tables that fit, JSON, files."""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from apiece._base.text import first_line, printable, printable_line, without_formula

if TYPE_CHECKING:
    import pandas as pd

_FORMATS: Final = (".csv", ".json", ".parquet")
_GAP: Final = "  "
_SMALLEST: Final = 1e-4  # a column whose largest number is smaller has exponents
_LARGEST: Final = 1e10  # a column with a larger number has exponents
_MORE: Final = 3  # decimals at most, that the median has beyond those of the largest number
_LONGEST: Final = 60  # characters of a text on a terminal
_SHORTEST: Final = 12  # a text is cut to this before a column is left out

# What a narrow terminal leaves out first. Other columns follow from the right.
_DISPENSABLE: Final = (
    *("reason", "stderr", "status", "n_samples", "rank_low", "rank_high", "value_small"),
    *("value_large", "loss_stderr", "z"),
)
_KEPT: Final = ("value", "low", "high", "advice", "to")  # kept, as the first column is


def say(text: str = "", *, err: bool = False, bold: bool = False) -> None:
    """Print text; escape sequences in it do not reach the terminal. All commands print by this."""
    text = printable(text)
    is_styled = bold and not os.environ.get("NO_COLOR")
    click.echo(click.style(text, bold=True) if is_styled else text, err=err)


def say_prose(text: str, *, err: bool = False) -> None:
    """Print sentences, on a terminal broken between words.

    Lines that begin with a space are commands or parts of a table, and stay as they are.
    """
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = wrapped(text, shutil.get_terminal_size().columns)
    say(text, err=err)


def wrapped(text: str, width: int) -> str:
    r"""Return text with its long lines broken between words, never inside one.

    >>> print(wrapped("one two three\n  a command of some length", 9))
    one two
    three
      a command of some length
    """
    lines = [
        line
        if line.startswith(" ")
        else textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def note(text: str, *, quiet: bool) -> None:
    """Print a message for people on standard error."""
    if not quiet:
        say_prose(text, err=True)


def emit(result: Any) -> None:
    """Print a result as JSON; numbers that are not finite become null."""
    say(json.dumps(plain(result), indent=2, ensure_ascii=False))


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
    """Print a table for people: whole in a pipe, what fits on a terminal.

    No number is ever broken or cut. A terminal that is too narrow shows shorter texts, then fewer
    columns, and a line says which are left out.
    """
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines, left_out = lines_of(table, width)
    if title is not None:
        say_prose(title)
    say(lines[0], bold=True)
    for line in lines[1:]:
        say(line)
    if left_out:
        say_prose(f"not shown: {', '.join(left_out)} (use a wider terminal, -o or --json)")


def show_ends(table: pd.DataFrame, n: int, level: float, *, at: int | None = None) -> None:
    """Print the most and the least valuable points: those of which the interval says so."""
    where = "" if at is None else f" at k = {at:,}"
    has_intervals = bool(table["low"].notna().any())
    words = f", by the {{}} end of the {100 * level:.4g} % interval" if has_intervals else ""
    n = min(n, -(-len(table) // 2))
    best = table.nlargest(n, "low" if has_intervals else "value")
    others = table.drop(index=best.index)  # no point is at both ends
    worst = others.nsmallest(n, "high" if has_intervals else "value")
    show_table(best, title=f"most valuable{where}{words.format('lower')}")
    if len(worst):
        show_table(worst, title=f"least valuable{where}{words.format('upper')}")


def lines_of(table: pd.DataFrame, width: int | None) -> tuple[list[str], list[str]]:
    """Return a table as lines of at most ``width`` characters, and the columns left out.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"value": [-2.215e-05], "stderr": [1e-06]}, index=[4])
    >>> for line in lines_of(table, None)[0]:
    ...     print(line)
    point       value     stderr
        4  -2.215e-05  1.000e-06
    >>> lines_of(table, 20)[1]
    ['stderr']
    """
    rows = flat(table)
    alike = _alike([str(name) for name in rows.columns])
    columns = [
        _Column(str(name), rows.iloc[:, j], rows.iloc[:, alike[j]])
        for j, name in enumerate(rows.columns)
    ]
    left_out: list[str] = []
    if width is not None:
        for column in columns:
            column.cut(_LONGEST)
        while _total(columns) > width and (longest := _longest_text(columns)) is not None:
            longest.cut(max(_SHORTEST, longest.width - (_total(columns) - width)))
        while _total(columns) > width and len(columns) > 1:
            column = _least(columns)
            columns.remove(column)
            left_out.append(column.name)
    n = len(rows) + 1
    return [_GAP.join(column.cell(i) for column in columns).rstrip() for i in range(n)], left_out


def _alike(names: list[str]) -> list[list[int]]:
    """Return for every column the columns in its unit: an interval has that of its quantity.

    >>> _alike(["value", "r2", "low", "high", "stderr", "k"])
    [[0, 2, 3, 4], [1], [0, 2, 3, 4], [0, 2, 3, 4], [0, 2, 3, 4], [5]]
    """
    owners: list[int] = []
    for j, name in enumerate(names):
        stem = name.removesuffix("_low").removesuffix("_high")
        if name in ("low", "high", "stderr") and "value" in names[:j]:
            owners.append(names.index("value"))
        elif name in ("low", "high") and owners:
            owners.append(owners[-1])
        else:
            owners.append(names.index(stem) if stem in names else j)
    return [[i for i, other in enumerate(owners) if other == owner] for owner in owners]


class _Column:
    """The cells of a column as text, all padded to one width."""

    def __init__(self, name: str, values: pd.Series[Any], alike: pd.DataFrame) -> None:
        from rich.cells import cell_len

        self.name = printable_line(name)
        is_float = values.dtype.kind == "f"
        # Floats in a column of objects differ in unit from row to row, such as parameters.
        self.is_number = values.dtype.kind in "iuf" or all(isinstance(v, float) for v in values)
        if is_float:
            unit = alike.select_dtypes("float").to_numpy().ravel()
            cells = format_numbers(values, among=unit)
        else:
            cells = [format_cell(value) for value in values]
        self.cells: list[str] = [self.name, *cells]
        self.width = max(map(cell_len, self.cells))

    def cut(self, width: int) -> None:
        """Shorten texts, never numbers."""
        if not self.is_number and self.width > width:
            from rich.cells import cell_len, set_cell_size

            self.cells = [
                cell if cell_len(cell) <= width else set_cell_size(cell, width - 1).rstrip() + "…"
                for cell in self.cells
            ]
            self.width = width

    def cell(self, i: int) -> str:
        """Return a cell, padded."""
        from rich.cells import cell_len

        padding = " " * (self.width - cell_len(self.cells[i]))
        return padding + self.cells[i] if self.is_number else self.cells[i] + padding


def _total(columns: list[_Column]) -> int:
    return sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1)


def _longest_text(columns: list[_Column]) -> _Column | None:
    texts = [c for c in columns if not c.is_number and c.width > _SHORTEST]
    return max(texts, key=lambda column: column.width, default=None)


def _least(columns: list[_Column]) -> _Column:
    """Return the column that is missed least."""
    by_name = {column.name: column for column in columns[1:]}
    for name in _DISPENSABLE:
        if name in by_name:
            return by_name[name]
    others = [column for column in columns[1:] if column.name not in _KEPT]
    return (others or columns)[-1]


def format_numbers(values: Iterable[float], *, among: Iterable[float] | None = None) -> list[str]:
    """Write the numbers of a column with as many decimals each.

    The largest has four digits at least, and the median two. Zeros that end all of them are left
    out. Columns of very small or very large numbers use exponents. ``among`` are the numbers that
    decide, by default these: those of a value and its interval.

    >>> format_numbers([0.0310449, -0.00012345]), format_numbers([118750.0, 3.0])
    (['0.03104', '-0.00012'], ['118,750', '3'])
    >>> format_numbers([-207.4, 0.42, 0.98]), format_numbers([0.05, 0.1])
    (['-207.40', '0.42', '0.98'], ['0.05', '0.10'])
    >>> format_numbers([2.2e-7, -1.0e-8])
    ['2.200e-07', '-1.000e-08']
    """
    numbers = [float(value) for value in values]
    deciding = numbers if among is None else [float(value) for value in among]
    sizes = sorted(abs(x) for x in deciding if x and math.isfinite(x))
    largest = sizes[-1] if sizes else 0.0
    if largest and not _SMALLEST <= largest < _LARGEST:
        return [_or_dash(x, f"{x:.3e}") for x in numbers]
    decimals = 0
    if any(x != round(x) for x in sizes):
        decimals = max(0, 3 - _magnitude(largest))
        typical = 1 - _magnitude(sizes[len(sizes) // 2])
        decimals = max(decimals, min(typical, decimals + _MORE))
    while decimals and all(round(x, decimals) == round(x, decimals - 1) for x in sizes):
        decimals -= 1
    return [_or_dash(x, f"{round(x, decimals) + 0.0:,.{decimals}f}") for x in numbers]


def _magnitude(x: float) -> int:
    return math.floor(math.log10(x))


def _or_dash(x: float, written: str) -> str:
    return "-" if x != x else f"{x}" if math.isinf(x) else written


def format_cell(cell: Any) -> str:
    r"""Write one number with four digits, and anything else as it is, control characters escaped.

    >>> format_cell(0.000123456), format_cell(12), format_cell("a\x1b[2J"), format_cell(118750.0)
    ('0.0001235', '12', 'a\\u001b[2J', '118,750')
    """
    if isinstance(cell, float):
        is_large = 1e4 <= abs(cell) < _LARGEST
        return _or_dash(cell, f"{cell:,.0f}" if is_large else f"{cell:.4g}")
    if cell is None:
        return "-"
    return printable_line(str(cell))


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table of points as CSV, JSON or Parquet, by the file's ending.

    In CSV, text that a spreadsheet would compute gets an apostrophe in front.
    """
    import io

    from apiece._base.files import write_whole

    suffix = path.suffix.lower()
    if suffix == ".json":
        data = json.dumps(records(table), indent=2, ensure_ascii=False).encode("utf-8")
    elif suffix == ".parquet":
        buffer = io.BytesIO()
        flat(table).to_parquet(buffer, index=False)
        data = buffer.getvalue()
    else:
        rows = _without_formulas(flat(table))
        text = rows.to_csv(index=False)
        if "\r" in text:  # which pandas leaves without quotes
            text = rows.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)
        data = text.encode("utf-8", "backslashreplace")
    prepare_folder(path)
    write_whole(path, data)


def reason_in_words(error: Exception) -> str:
    """Return the first line of why a file cannot be read."""
    return "there is no such file" if isinstance(error, FileNotFoundError) else first_line(error)


def check_folder(path: Path) -> None:
    """Complain of a file whose folder is not there, nor the folder of that."""
    if not path.parent.is_dir() and not path.parent.parent.is_dir():
        raise click.BadParameter(
            f"{path.parent.parent} is not a folder: expected a file in a folder that is there. "
            "Make the folder, or choose another one.",
            param_hint="--out",
        )


def prepare_folder(path: Path) -> None:
    """Make the folder of a file to be written, one level at most, and say so."""
    check_folder(path)
    folder = path.parent
    if folder.is_dir():
        return
    from apiece._base.files import make_folder

    make_folder(folder)
    say(f"made the folder {folder}", err=True)


def _without_formulas(rows: pd.DataFrame) -> pd.DataFrame:
    safe = rows.rename(columns=without_formula)
    for place in range(safe.shape[1]):
        if safe.dtypes.iloc[place].kind not in "biuf":
            safe.isetitem(place, [without_formula(cell) for cell in rows.iloc[:, place]])
    return safe


def deliver(
    table: pd.DataFrame,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    *,
    show: Callable[[], None] | None = None,
    then: Callable[[], None] | None = None,
) -> None:
    """Print a table or its first rows, as JSON if asked, and write all of it to a file.

    ``show`` prints other rows than the first, and ``then`` more about the table, before the line
    that says what it is for.
    """
    if "caveat" in table.attrs:
        note(table.attrs["caveat"], quiet=quiet)
    if out is not None:
        write_table(table, out)
    from apiece.records import in_words

    scope = table.attrs.get("scope")
    if as_json:
        emit(records(table if scope is None else table.assign(scope=scope)))
        return
    if show is None:
        show_table(table.head(20))
    else:
        show()
    if then is not None:
        then()
    closing = [] if scope is None else [in_words(scope)]
    if out is not None:
        closing.append(f"{len(table):,} rows written to {out}")
    elif show is not None:
        closing.append(f"-o FILE writes all {len(table):,} rows")
    elif len(table) > 20:
        closing.append(f"the first 20 of {len(table):,} rows; -o FILE writes all")
    if closing:
        note("; ".join(map(str, closing)), quiet=quiet)


def _check_out(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Complain of a file that cannot be written before the work begins."""
    if path is not None:
        check_folder(path)
        if path.suffix.lower() not in _FORMATS:
            raise click.BadParameter(
                f"{path} ends in {path.suffix or 'nothing'!r}: expected .csv, .json or .parquet."
            )
    return path


OUT = click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_check_out,
    help="Write the whole table there: .csv, .json or .parquet.",
)
