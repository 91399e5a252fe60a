"""``report`` and ``serve``: what a run found, in a browser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from apiece.cli._advise import show_advice
from apiece.cli._common import common
from apiece.cli._help import SectionedCommand
from apiece.cli._laws import LEVEL, MEMORY
from apiece.cli._print import (
    check_folder,
    emit,
    note,
    prepare_folder,
    say,
    say_prose,
    show_ends,
)
from apiece.cli._source import run_or_table
from apiece.cli._units import unit_of, variance

if TYPE_CHECKING:
    from apiece._base.typing import AnyArray
    from apiece.data import Dataset
    from apiece.estimators import MethodName
    from apiece.laws import Laws
    from apiece.store import Run

_SHOWN: Final = 3  # points at each end

DATA = click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Table (such as .csv) whose columns are shown for each point; by default the file "
    "that was collected from, if it is still there.",
)
IDS = click.option("--ids", help="Its column of ids; row numbers if left out.")
SLICES = click.option("--slices", help="Column: for whose rows is a point good or bad?")
TITLE = click.option("--title", help="Title of the report.")


def _check_out(_: click.Context, __: click.Parameter, path: Path) -> Path:
    check_folder(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter(
            f"{path} ends in {path.suffix or 'nothing'!r}: expected .html, since the report is a "
            "page for a browser."
        )
    return path


def _judge(dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
    """Say how good the model is and what to do, which takes seconds, before a long collection."""
    from apiece import advise
    from apiece.reporting import judged

    progress = False if options["quiet"] else None
    found = judged(
        dataset, advise, model=options["model"], metric=options["metric"], progress=progress
    )
    if not options["as_json"]:
        _say_judged(found)
    return found


@click.command(
    cls=SectionedCommand,
    epilog="\b\nExamples:\n  apiece report reviews.csv --target label --text review\n"
    "  apiece report runs/reviews --slices country -o reviews.html",
)
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_check_out,
    default=Path("report.html"),
    show_default=True,
    help="The file to write.",
)
@DATA
@SLICES
@TITLE
@MEMORY
@LEVEL
@common
@run_or_table(also=("ids",), first=_judge)
def report(
    run: Run,
    known: dict[str, Any],
    out: Path,
    data: Path | None,
    ids: str | None,
    slices: str | None,
    title: str | None,
    memory: str | None,
    level: float,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write an interactive report: one HTML file, without a network.

    It ranks all points at any dataset size, advises what to do with each, shows its law, samples
    and columns, and exports the ids that you select.
    """
    from apiece import advise
    from apiece.records import in_words
    from apiece.reporting import find, write

    prepare_folder(out)
    laws = run.laws(memory=memory)
    progress = False if quiet else None
    found = find(run, laws, advise, rows=data, ids=ids, progress=progress, **known)
    shown: dict[str, Any] = {"title": title, "level": level, "slices": slices, **found}
    path = write(run, laws, out, memory=memory, **shown)
    if as_json:
        emit(
            {"report": str(path), "bytes": path.stat().st_size, "n_points": laws.n_points}
            | {"scope": laws.scope}
        )
        return
    if not known:
        _say_judged(found)
    _say_ends(laws, found, level)
    say_prose(f"open {path}: {laws.n_points:,} points, {in_words(laws.scope)}")


def _say_judged(found: Mapping[str, Any]) -> None:
    """Print how good the model is, and what to do."""
    from apiece.uses import Advice

    if found.get("quality") is not None:
        say_prose(f"model: {found['quality'].headline()}")
    if isinstance(advice := found.get("advice"), Advice):
        show_advice(advice)


def _say_ends(laws: Laws, found: Mapping[str, Any], level: float) -> None:
    """Print the most and the least valuable points."""
    from apiece import value

    table = value(laws, level=level).drop(columns="stderr")
    if laws.labels is not None:
        table.insert(0, "label", laws.labels)
    texts = _texts(found["rows"], laws)
    if texts is not None:
        table["text"] = texts
    unit = unit_of(laws)
    if (spread := variance(laws)) is not None:
        table[["value", "low", "high"]] /= spread
        unit = "by how much R2 rises when the row joins a training set; positive helps"
    n = min(_SHOWN, len(table) // 2)
    if n:
        say_prose(f"value: {unit}")
        show_ends(table, n, level)


def _texts(rows: Any, laws: Laws) -> AnyArray | None:
    """Return the text of every point, if the rows have a column of texts."""
    import pandas as pd

    from apiece.reporting import text_column

    if not isinstance(rows, pd.DataFrame) or (name := text_column(rows)) is None:
        return None
    texts = rows[name].set_axis(rows.index.astype(str))
    return texts[~texts.index.duplicated()].reindex(laws.ids.astype(str)).to_numpy()


@click.command(
    epilog="\b\nExample:\n  apiece serve runs/reviews   # while apiece collect is under way"
)
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--port",
    default=8765,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port on 127.0.0.1; 0 for any free one.",
)
@click.option("--no-open", is_flag=True, help="Print the address without opening a browser.")
@click.option(
    "--method",
    help="bayes, likelihood, log_ols, or auto (chosen by a backtest); by default that of the "
    "stored laws.",
)
@DATA
@IDS
@TITLE
@MEMORY
@LEVEL
@common
def serve(
    run: Path,
    port: int,
    no_open: bool,
    method: MethodName | None,
    data: Path | None,
    ids: str | None,
    title: str | None,
    memory: str | None,
    level: float,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show the report of RUN on this machine, and keep it up to date while RUN is collected.

    Only this machine can reach it, and only with the token in its address. Ctrl-C ends it.
    """
    from apiece.reporting import serve as serve_report

    def ready(url: str) -> None:
        if as_json:
            emit({"url": url})
        else:
            say(f"open {url}")
        note("Ctrl-C ends it", quiet=quiet)
        if not no_open:
            _open_browser(url, Path(private))

    shown: dict[str, Any] = {"title": title, "level": level, "rows": data, "ids": ids}
    with TemporaryDirectory(prefix="apiece-serve-") as private:
        try:
            serve_report(run, port=port, method=method, ready=ready, memory=memory, **shown)
        except KeyboardInterrupt:
            note("ended", quiet=quiet)


def _open_browser(url: str, private: Path) -> None:
    """Open a file that leads to the address; a command's arguments are visible to other users."""
    import webbrowser

    door = private / "open.html"
    door.write_text(f'<meta http-equiv="refresh" content="0; url={url}">', encoding="ascii")
    webbrowser.open(door.as_uri())
