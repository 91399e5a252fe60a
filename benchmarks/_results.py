"""Results of benchmarks as files: what was measured, on which machine, with which settings.

A benchmark makes one `Results` for each of its tables and adds rows. Each row is printed as it is
measured, and the file ``benchmarks/results/<name>.json`` is written again, so that an interrupted
benchmark leaves what it has. ``benchmarks/tables.py`` puts the tables into the documentation.
For a trial, name another folder: ``BENCHMARK_RESULTS=/tmp python benchmarks/overhead.py``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(os.environ.get("BENCHMARK_RESULTS") or ROOT / "benchmarks" / "results")
LIBRARIES = ("apiece", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "torch")


class Results:
    """The rows of one table, kept in a file.

    Parameters
    ----------
    name
        Name of the file and of the table in the documentation.
    columns
        The head of each column, and the format of its cells, such as ``"{:.3f}"``; a cell that is
        a list fills as many braces, such as ``"{:.3f} ± {:.3f}"``.
    settings
        Options of the benchmark. Folders are kept by their last part only.
    chosen_on, reported_on
        For comparisons of methods: the sets on which settings were chosen, and those whose rows
        follow. A table says which of its sets had no part in choosing.
    has_earlier_rows
        Whether numbers may come from an earlier, interrupted call, and so from another commit.
    """

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        settings: argparse.Namespace | Mapping[str, Any],
        *,
        chosen_on: Iterable[str] = (),
        reported_on: Iterable[str] = (),
        has_earlier_rows: bool = False,
    ) -> None:
        given = vars(settings) if isinstance(settings, argparse.Namespace) else settings
        self.file = RESULTS / f"{name}.json"
        self.content: dict[str, Any] = {
            "name": name,
            "command": command(sys.argv),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            **_REVISION,
            "versions": versions(),
            "machine": machine(),
            "settings": {key: plain(value) for key, value in given.items() if not callable(value)},
            "chosen_on": sorted(chosen_on),
            "reported_on": sorted(reported_on),
            "has_earlier_rows": has_earlier_rows,
            "columns": dict(columns),
            "rows": [],
        }

    def resume(self, *, but: Sequence[str] = ()) -> None:
        """Take rows with the same columns from the file, but those of some data."""
        if not self.file.exists():
            return
        earlier = json.loads(self.file.read_text(encoding="utf-8"))
        if earlier["columns"] != self.content["columns"]:
            raise SystemExit(f"{self.file.name} has other columns: remove it, or do not resume.")
        self.content["rows"] = [row for row in earlier["rows"] if row.get("data") not in but]
        reported = {*self.content["reported_on"], *earlier["reported_on"]}
        self.content["reported_on"] = sorted(reported)
        is_same = earlier["commit"] == self.content["commit"] and not earlier["is_changed"]
        self.content["has_earlier_rows"] |= earlier["has_earlier_rows"] or not is_same

    def earlier(self, *names: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Return the rows that the file has, by these cells; some of them will be kept."""
        if not self.file.exists():
            return {}
        self.content["has_earlier_rows"] = True
        rows = json.loads(self.file.read_text(encoding="utf-8"))["rows"]
        return {tuple(row[name] for name in names): row for row in rows}

    def has(self, **cells: Any) -> bool:
        """Return whether there is a row with these cells."""
        rows = self.content["rows"]
        return any(all(row[name] == cell for name, cell in cells.items()) for row in rows)

    def add(self, *cells: Any) -> None:
        """Add a row with one cell for each column, print it, and write the file."""
        columns = self.content["columns"]
        row = dict(zip(columns, map(plain, cells), strict=True))
        if not self.content["rows"]:
            print("\n".join(head(columns)))
        self.content["rows"].append(row)
        print(line(row, columns), flush=True)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.file.with_suffix(".part")
        text = json.dumps(self.content, indent=1, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")
        os.replace(temporary, self.file)


def summary(values: Sequence[float]) -> list[float] | None:
    """Return the mean and its standard error (0 for one value), or None without values."""
    n = len(values)
    if not n:
        return None
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / max(1, n - 1)
    return [mean, math.sqrt(variance / n)]


def head(columns: Iterable[str]) -> list[str]:
    """Return the first two lines of a table."""
    names = list(columns)
    return [f"| {' | '.join(names)} |", "|" + " --- |" * len(names)]


def line(row: Mapping[str, Any], columns: Mapping[str, str]) -> str:
    """Return a row as Markdown."""
    return f"| {' | '.join(cell(row[name], form) for name, form in columns.items())} |"


def cell(value: Any, form: str) -> str:
    """Return a value in its format; text as it is, nothing where there is none."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return form.format(*(math.nan if each is None else each for each in value))
    return form.format(value)


def plain(value: Any) -> Any:
    """Return what JSON can hold: numbers of NumPy as Python's, nan as None, folders by name."""
    if isinstance(value, Path):
        return value.name
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def command(words: Sequence[str]) -> str:
    """Return a command line without the folders of this machine."""
    script, *rest = words
    kept = [Path(word).name if Path(word).is_absolute() else word for word in rest]
    return " ".join(["python", f"benchmarks/{Path(script).name}", *kept])


def revision() -> dict[str, Any]:
    """Return the commit, and whether the code differs from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "benchmarks/*.py")
    return {"commit": git("rev-parse", "HEAD") or None, "is_changed": bool(changed)}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that decide numbers."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Return what the benchmark ran on."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next(x.partition(":")[2].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"system": platform.system(), "processor": processor, "cpu_count": os.cpu_count()}


_REVISION = revision()  # of the code that runs, whatever is committed meanwhile
