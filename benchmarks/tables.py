"""Write the tables of the documentation from the files in benchmarks/results.

A page marks where a table goes::

    <!-- table: engines -->
    <!-- /table -->

Words after the name choose rows and columns, such as ``data=higgs columns=k,ratio`` (with ``;``
between names that have commas, and quotes around names that have spaces); ``what="exponent.*"`` is
a regular expression for the whole cell.
A page that has ``<!-- results: NAME -->`` instead gets the whole file when the site is built.
With ``--check`` nothing is written; pages that differ from their files are listed, and the
exit code is 1.

    python benchmarks/tables.py [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _results import RESULTS, ROOT, head, line

MARK = re.compile(r"(<!-- table: ([\w-]+)(.*?) -->\n).*?(<!-- /table -->)", re.DOTALL)


def table(content: dict[str, Any], words: str) -> list[str]:
    """Return the lines of a table from a result file."""
    chosen = dict(re.findall(r"([\w.-]+)=(\"[^\"]*\"|\S+)", words))
    chosen = {key: value.strip('"') for key, value in chosen.items()}
    names = chosen.pop("columns", None)
    columns = content["columns"]
    if names is not None:
        columns = {name: columns[name] for name in names.split(";" if ";" in names else ",")}
    rows = content["rows"]
    for key, value in chosen.items():
        rows = [row for row in rows if str(row[key]) == value or re.fullmatch(value, str(row[key]))]
    if not rows:
        raise SystemExit(f"{content['name']}.json has no rows with {words.strip()!r}")
    return [*head(columns), *(line(row, columns) for row in rows), ""]


def source(content: dict[str, Any]) -> str:
    """Return a sentence on what was measured where."""
    commit = (content["commit"] or "unknown")[:8] + (", changed" if content["is_changed"] else "")
    said = f"`{content['command']}`, {content['date'][:10]}, commit {commit}."
    if content["has_earlier_rows"]:
        said += " Some rows are from earlier, interrupted calls."
    asked = set(content["reported_on"])
    measured = asked & {row["data"] for row in content["rows"] if "data" in row} or asked
    if measured < asked:
        said += f" It was stopped before {', '.join(sorted(asked - measured))}."
    if content["chosen_on"]:
        apart = sorted(measured - set(content["chosen_on"]))
        said += f" Settings were chosen on {', '.join(content['chosen_on'])}; sets that had no "
        said += f"part in choosing: {', '.join(apart) or 'none'}."
    return said


def everything(content: dict[str, Any], href: str) -> str:
    """Return all rows of a file, folded, with what was measured where and a link to the file."""
    rows = [line(row, content["columns"]) for row in content["rows"]]
    return "\n".join(
        [
            *(source(content), "", '<details markdown="1">'),
            f"<summary>{len(rows):,} rows</summary>",
            *("", *head(content["columns"]), *rows, "", "</details>", ""),
            f'<a href="{href}" download>{content["name"]}.json</a>',
        ]
    )


def filled(text: str, results: Path, benchmarks: str = "benchmarks.md") -> str:
    """Return a page with every marked table as its file has it.

    The first table from a file also links to the page ``benchmarks``, which says where the numbers
    come from.
    """
    cited = set()

    def replaced(match: re.Match[str]) -> str:
        file = results / f"{match[2]}.json"
        if not file.exists():
            raise SystemExit(f"there is no {file.name} in {results}: run the benchmark first")
        content = json.loads(file.read_text(encoding="utf-8"))
        lines = table(content, match[3])
        if match[2] not in cited:
            cited.add(match[2])
            lines += [f"*Command and all rows: [{match[2]}]({benchmarks}#{match[2]}).*", ""]
        return "\n".join([match[1], *lines, match[4]])

    return MARK.sub(replaced, text)


def link(page: Path, root: Path) -> str:
    """Return the way from a page to the page of all benchmarks."""
    return os.path.relpath(root / "docs" / "benchmarks.md", page.parent).replace(os.sep, "/")


def pages(root: Path) -> Iterator[Path]:
    yield from sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether pages agree")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder with README.md and docs/")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the JSON files")
    options = parser.parse_args()
    stale = []
    for page in pages(options.root):
        before = page.read_text(encoding="utf-8")
        after = filled(before, options.results, link(page, options.root))
        if after != before:
            stale.append(page.relative_to(options.root).as_posix())
            if not options.check:
                page.write_text(after, encoding="utf-8")
    if options.check and stale:
        sys.exit(f"{', '.join(stale)}: tables differ from benchmarks/results. Run: make tables")
    print(f"{len(stale)} pages written" if stale else "tables agree with their files")


if __name__ == "__main__":
    main()
