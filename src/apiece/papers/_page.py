"""Files of a reproduction: JSON, Markdown, CSV, PNG and PDF per item, one page of all."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from apiece._base.files import cannot_write, make_folder, write_whole
from apiece.papers._items import ITEMS, PaperItem, names
from apiece.papers._measured import Measured
from apiece.papers._runs import PAPER_LOSS
from apiece.papers._sources import SOURCES
from apiece.papers._verdict import markdown_verdict
from apiece.papers._workspace import Workspace
from apiece.plots import style

if TYPE_CHECKING:
    import pandas as pd

PAGE: Final = "reproduction.md"
_IN_FILE: Final = ("± over repeats", "± paper", "Spearman", "why lower")  # not on the page of all


def write(item: PaperItem, measured: Measured, figure: Any, folder: Path) -> None:
    """Write a table or figure in all its forms; ``figure`` is what was drawn now, if anything."""
    measured.write(folder)
    table = item.finish(measured.table())
    written = {folder / f"{item.name}.csv": _csv(table)}
    if figure is not None:
        for suffix in ("png", "pdf"):
            buffer = io.BytesIO()
            with style():
                figure.savefig(buffer, format=suffix, dpi=110)
            path = folder / measured.images[-1]
            written[path.with_suffix(f".{suffix}")] = buffer.getvalue()
    written[folder / f"{item.name}.md"] = _section(item, measured, table).encode()
    for path, content in written.items():
        write_whole(path, content)


def write_page(work: Workspace, folder: Path, page: Path | None = None, note: str = "") -> Path:
    """Join what the folder holds into a page, in the paper's order.

    Parameters
    ----------
    work
        What it was made from.
    folder
        Where tables and figures are.
    page
        Another path for the page, with its figures and tables in ``images/reproduction`` next
        to it; by default ``reproduction.md`` in the folder itself.
    note
        A remark about the data, such as which embeddings they are.
    """
    found = {name: Measured.read(name, folder) for name in names()}
    written = {name: measured for name, measured in found.items() if measured.parts}
    said: dict[str, str] = {}
    sections = [_short(ITEMS[name], measured, said) for name, measured in written.items()]
    text = _opening(work, folder, note) + "".join(sections)
    target = folder / PAGE if page is None else page
    if page is not None:
        images = page.parent / "images" / "reproduction"
        make_folder(images)
        for name, measured in written.items():
            write_whole(images / f"{name}.csv", _csv(ITEMS[name].finish(measured.table())))
            for image in measured.images:
                if (folder / image).is_file():
                    _copy(folder / image, images / image)
        text = re.sub(r"\]\(([\w-]+\.(?:png|csv))\)", r"](images/reproduction/\1)", text)
    write_whole(target, text.encode())
    return target


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False).encode()


def _copy(file: Path, to: Path) -> None:
    try:
        shutil.copyfile(file, to)
    except OSError as error:
        raise cannot_write(to, error) from error


def _opening(work: Workspace, folder: Path, note: str) -> str:
    titles = [source.title for source in SOURCES.values()]

    def by_name(name: str) -> pd.DataFrame:
        return Measured.read(name, folder).only(titles).table()

    tables = [Measured.read(name, folder).table() for name in names()]
    known = {title for table in tables if "data" in table for title in table["data"]}
    absent = [source.title for source in SOURCES.values() if source.title not in known]
    missing = f"\nNot measured: {', '.join(absent)}.\n" if absent else ""
    partial = (
        "Incomplete runs were used, and smaller ones where none exists." if work.stored else ""
    )
    return f"""# The paper, measured again

`apiece reproduce all --scale {work.scale.name}` measures the tables and figures of Covert, Ji,
Hashimoto and Zou, [Scaling Laws for the Value of Individual Data Points in Machine
Learning](https://arxiv.org/abs/2405.20456), ICML 2024. {partial}
Each part states its scale (one repeat if not stated) and the paper's, whose numbers are in
brackets. `apiece reproduce NAME --stored` prints all numbers of a part, also for other datasets,
and the commit that measured them; it needs no data.
{missing}
{markdown_verdict(by_name)}
{note}
"""


def _section(item: PaperItem, measured: Measured, table: pd.DataFrame) -> str:
    kind = _kind(item)
    lines = ["", f"## {kind}: {item.title}", "", f"In the paper: {item.paper}"]
    lines += [item.scales(table), ""]
    for image in measured.images:
        lines += [f"![{kind}]({image})", ""]
    lines += [markdown(table), ""]
    for note in (item.note, *measured.notes()):
        lines += [note, ""] if note else []
    lines += [f"{measured.origins()} [All numbers]({item.name}.csv)", ""]
    return "\n".join(lines)


def _kind(item: PaperItem) -> str:
    return item.name.capitalize().replace("Table", "Table ").replace("Figure", "Figure ")


def _short(item: PaperItem, measured: Measured, said: dict[str, str]) -> str:
    """Return the section of the page: images, and what can be compared with the paper.

    ``said`` has what earlier sections state of the paper, of scales and in notes, and where; this
    one adds its own.
    """
    kind, table = _kind(item), item.finish(measured.table())
    part = _compared(table)
    lines = ["", f"## {kind}: {item.title}", ""]
    is_said = item.paper in said or (len(part) and "method" in part)  # by numbers in brackets
    if not is_said:
        lines += [f"In the paper: {item.paper}", ""]
    said[item.paper] = kind
    for image in measured.images:
        lines += [f"![{kind}]({image})", ""]
    if len(part):
        lines += [markdown(_wide(part) if "method" in part else part), ""]
    notes = list(filter(None, (item.note, *measured.notes())))
    for note in notes:
        lines += [note, ""] if note not in said else []
    scales = {"Here": item.here(table), "In the paper": item.scale}
    scales = {where: words for where, words in scales.items() if words}
    states = [
        f"{where}: {f'as for {said[words]}' if words in said else words}."
        for where, words in scales.items()
    ]
    repeated = dict.fromkeys(said[note] for note in notes if note in said)
    states += [f"Notes: as for {' and '.join(repeated)}."] if repeated else []
    known = {said.get(words) for words in (*scales.values(), *notes)}
    if len(known) == 1 and None not in known:
        states = [f"Scale: as for {known.pop()}."]
    said.update({words: kind for words in (*scales.values(), *notes) if words not in said})
    return "\n".join([*lines, " ".join([*states, f"[Numbers]({item.name}.csv)"]), ""])


def _wide(part: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each dataset and one column for each method, with the paper's number."""
    digits = 2 if "± of the mean" in part else 3

    def cell(row: dict[Hashable, Any]) -> str:
        return f"{row['measured']:.{digits}f} ({row['paper']:.{digits}f})"

    cells = [cell(row) for row in part.to_dict("records")]
    wide = part.assign(cell=cells).pivot_table(
        index="data", columns="method", values="cell", aggfunc="first", sort=False
    )
    if "± of the mean" in part:
        wide["±"] = part.groupby("data", sort=False)["± of the mean"].max()
    return wide.reset_index().rename_axis(columns=None)


def _compared(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have a number of the paper, and the columns to compare it with."""
    if "paper" not in table:
        return table[:0]
    known = table[table["paper"].notna() & table["measured"].notna()]
    known = known.drop(columns=list(_IN_FILE), errors="ignore")
    if "loss" in known:  # the paper has one loss
        known = known[known["loss"] == PAPER_LOSS].drop(columns="loss")
    return known[known["method"] != "preceding"] if "method" in known else known


def markdown(table: pd.DataFrame) -> str:
    """Return a table as Markdown; numbers have three digits, unknown cells are empty.

    >>> import pandas as pd
    >>> print(markdown(pd.DataFrame({"data": ["adult"], "R²": [0.98765], "n": [1000]})))
    | data | R² | n |
    | --- | ---: | ---: |
    | adult | 0.988 | 1,000 |
    """
    if table.empty:
        return "*Nothing measured yet.*"
    kinds = ["---:" if table[name].dtype.kind in "if" else "---" for name in table]
    lines = [[str(name) for name in table], kinds]
    columns = [[_cell(cell) for cell in _counts(table[name])] for name in table]
    lines += [list(row) for row in zip(*columns, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _counts(column: pd.Series[Any]) -> list[Any]:
    """Return the cells of a column; as integers if all of them are, and some are above 10."""
    cells = column.tolist()
    known = [cell for cell in cells if isinstance(cell, float) and cell == cell]
    if known and max(known) > 10 and all(cell.is_integer() for cell in known):
        return [int(cell) if cell in known else None for cell in cells]
    return cells


def _cell(cell: Any) -> str:
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float):
        if abs(cell) >= 1000:
            return f"{cell:,.0f}"
        return f"{cell:.3f}" if abs(cell) >= 1e-3 or not cell else f"{cell:.1g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
