"""From a run and its laws to a report, one HTML file that opens anywhere without a network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Unpack

from apiece._base.files import make_folder, write_whole
from apiece._base.progress import tracking
from apiece.estimators import opened
from apiece.laws import Laws
from apiece.records import Contributions
from apiece.reporting._content import ReportOptions, gather
from apiece.reporting._page import page
from apiece.reporting._payload import pack
from apiece.store import Run


def build(
    run: Run | Contributions,
    laws: Laws,
    *,
    memory: int | str | None = None,
    **options: Unpack[ReportOptions],
) -> str:
    """Return the HTML of a report; the options are those of `apiece.report`.

    Examples
    --------
    >>> from apiece import synthetic
    >>> laws = synthetic.random_laws(5, random_state=0)
    >>> build(synthetic.sample(laws, samples=5, random_state=0), laws)[:15]
    '<!doctype html>'
    """
    stored = run if isinstance(run, Run) else None
    with tracking(None, title="writing the report", unit="points"), opened(run, memory) as table:
        description, arrays = gather(stored, table, laws, **options)
    return page(pack(description, arrays), description["title"])


def write(
    run: Run | Contributions,
    laws: Laws,
    to: str | os.PathLike[str],
    *,
    memory: int | str | None = None,
    **options: Unpack[ReportOptions],
) -> Path:
    """Write a report to a file, which appears whole or not at all, and return its path.

    Examples
    --------
    >>> import tempfile
    >>> from apiece import synthetic
    >>> laws = synthetic.random_laws(5, random_state=0)
    >>> table = synthetic.sample(laws, samples=5, random_state=0)
    >>> write(table, laws, Path(tempfile.mkdtemp()) / "report.html").name
    'report.html'
    """
    path = Path(to)
    html = build(run, laws, memory=memory, **options)
    make_folder(path.parent)
    write_whole(path, html.encode("utf-8"))
    return path
