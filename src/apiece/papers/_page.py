"""Files of a reproduction: Markdown, CSV, PNG and PDF per exhibit, and one page of all."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from apiece._base.files import cannot_write, make_folder, write_whole
from apiece.papers._bench import Bench
from apiece.papers._exhibit import Artifact, Exhibit, names
from apiece.papers._sources import SOURCES
from apiece.plots import style

if TYPE_CHECKING:
    import pandas as pd

PAGE: Final = "reproduction.md"
_IN_FILE: Final = ("repeats", "± over repeats", "± paper", "Spearman", "true from")  # CSV only


def write(exhibit: Exhibit, artifact: Artifact, folder: Path) -> list[Path]:
    """Write a table or figure in all its forms, and return the files."""
    make_folder(folder)
    written = {folder / f"{exhibit.name}.csv": artifact.table.to_csv(index=False).encode()}
    if artifact.figure is not None:
        for suffix in ("png", "pdf"):
            buffer = io.BytesIO()
            with style():
                artifact.figure.savefig(buffer, format=suffix, dpi=110)
            written[folder / f"{exhibit.name}.{suffix}"] = buffer.getvalue()
    written[folder / f"{exhibit.name}.md"] = _section(exhibit, artifact).encode()
    for path, content in written.items():
        write_whole(path, content)
    return list(written)


def write_page(bench: Bench, folder: Path, page: Path | None = None, note: str = "") -> Path:
    """Join what the folder holds into a page, in the paper's order.

    Parameters
    ----------
    bench
        What it was made from.
    folder
        Where tables and figures are.
    page
        Another path for the page, with its figures and tables in ``images/reproduction`` next
        to it; by default ``reproduction.md`` in the folder itself.
    note
        A remark about the data, such as which embeddings they are.
    """
    written = [name for name in names() if (folder / f"{name}.md").is_file()]
    sections = [(folder / f"{name}.md").read_text() for name in written]
    text = _once(_opening(bench, note) + "".join(sections))
    target = folder / PAGE if page is None else page
    if page is not None:
        images = page.parent / "images" / "reproduction"
        make_folder(images)
        for file in (folder / f"{name}.{suffix}" for name in written for suffix in ("png", "csv")):
            if file.is_file():
                try:
                    shutil.copyfile(file, images / file.name)
                except OSError as error:
                    raise cannot_write(images / file.name, error) from error
        text = re.sub(rf"\]\(({'|'.join(written)})\.", r"](images/reproduction/\1.", text)
    write_whole(target, text.encode())
    return target


def _once(text: str) -> str:
    """Return a page without the notes that an earlier table has already."""
    kept: list[str] = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(("#", "|", "In the paper", "![")) or paragraph not in kept:
            kept.append(paragraph)
    return "\n\n".join(kept)


def _opening(bench: Bench, note: str) -> str:
    scale = bench.scale
    efforts = "; ".join(
        f"{model}: {effort.points:,} points, {effort.samples:,} samples per size"
        for model, effort in scale.grid.items()
        if model in bench.models
    )
    absent = [source.title for name, source in SOURCES.items() if name not in bench.datasets]
    missing = f"\nNot measured: {', '.join(absent)}.\n" if absent else ""
    low, high = scale.sizes
    remark = f"\n{note}\n" if note else ""
    partial = (
        "Incomplete runs were used as they were, and runs of a smaller scale where there was none "
        "of this one. **Each table states its points and samples.**\n"
        if bench.stored
        else ""
    )
    return f"""# The paper, measured again

`apiece reproduce all --scale {scale.name}` measures the tables and figures of Covert, Ji, Hashimoto
and Zou, [Scaling Laws for the Value of Individual Data Points in Machine
Learning](https://arxiv.org/abs/2405.20456), ICML 2024, and compares them with the paper's numbers.
{partial}
Requested: {scale.n_sizes} sizes from {low:,} to {high:,}; {efforts}. The loss is
`softmax_of_proba`, which the paper's code computes, unless a table says otherwise.
{missing}{remark}"""


def _section(exhibit: Exhibit, artifact: Artifact) -> str:
    kind = exhibit.name.capitalize().replace("Table", "Table ").replace("Figure", "Figure ")
    lines = ["", f"## {kind}: {exhibit.title}", "", f"In the paper: {exhibit.paper}", ""]
    if artifact.figure is not None:
        lines += [f"![{kind}]({exhibit.name}.png)", ""]
    part = _compared(artifact.table)
    if len(part) or artifact.table.empty:
        lines += [markdown(part), ""]
    if len(part) < len(artifact.table):
        lines += [f"[Numbers: {len(artifact.table)} rows]({exhibit.name}.csv)", ""]
    if artifact.note:
        lines += [artifact.note, ""]
    return "\n".join(lines)


def _compared(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have a number of the paper, and the columns to compare it with."""
    if "paper" not in table:
        return table[:0]
    known = table[table["paper"].notna()].drop(columns=list(_IN_FILE), errors="ignore")
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
    lines += [[_cell(cell) for cell in row] for row in table.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Any) -> str:
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float):
        if abs(cell) >= 1000:
            return f"{cell:,.0f}"
        return f"{cell:.3f}" if abs(cell) >= 1e-3 or not cell else f"{cell:.1g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
