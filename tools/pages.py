"""Run the code of the documentation, and write or compare what it prints and draws.

    python tools/pages.py [--check] [PAGES]

The blocks of a page run in order, in an empty folder:

- ``python`` is executed. A ``text`` block right after it is what it prints; a picture in
  ``images/gallery`` right after it is the figure of its variable ``ax``; it is drawn dark too.
- ``console`` holds lines ``$ apiece ...``, each followed by what the command prints.

Without ``--check`` printed blocks and pictures are written. In a printed block ``...`` stands for
any text; numbers agree up to one unit of their last digit, or one per cent.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from PIL import Image

ROOT: Final = Path(__file__).resolve().parents[1]
BLOCK: Final = re.compile(
    r"^```(?P<language>python|console)\n(?P<code>.*?)^```\n"
    r"(?P<printed>\n```text\n.*?^```\n)?"
    r"(?P<pictures>(?:\n?!\[[^\]]*\]\([^)]*\)(?:\{[^}]*\})?)*)",
    re.DOTALL | re.MULTILINE,
)
PICTURE: Final = re.compile(r"images/gallery/([\w-]+)\.png")
NUMBER: Final = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
FARTHEST: Final = 4.0  # mean difference of two pictures, of 255 grey levels
WIDTH: Final = "100"  # columns of the terminal


@dataclass(frozen=True)
class Result:
    """What one block printed or drew, and what the page shows."""

    block: re.Match[str]
    printed: str
    drawn: dict[str, Image.Image]


def run(page: Path, *, dark: bool = False) -> Iterator[Result]:
    """Run the blocks of a page in the present folder."""
    from apiece import plots

    mpl.use("agg")
    from matplotlib import pyplot as plt

    names: dict[str, Any] = {"__name__": "__main__"}
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["language"] == "console":
            yield Result(block, console(block["code"]), {})
            continue
        code = compile(block["code"], f"{page.name}", "exec")
        pictures = PICTURE.findall(block["pictures"])
        if dark:
            pictures += [f"{picture}-dark" for picture in pictures if picture != "theme"]
        drawn, said = {}, ""
        for picture in pictures or [""]:
            said = io.StringIO()
            looks = ["dark"] if picture.endswith("-dark") else []
            with contextlib.redirect_stdout(said), plots.theme(*looks):
                exec(code, names)
            if picture:
                drawn[picture] = image_of(names["ax"].figure)
            said = said.getvalue()
        yield Result(block, said, drawn)
        plt.close("all")


def console(text: str) -> str:
    """Return the commands of a block, each with what it prints now."""
    from click.testing import CliRunner

    from apiece.cli import cli

    parts = []
    for line in re.findall(r"^\$ (.*(?:\\\n.*)*)", text, re.MULTILINE):
        program, *words = shlex.split(line.replace("\\\n", " "))
        assert program == "apiece", line
        done = CliRunner(env={"COLUMNS": WIDTH, "NO_COLOR": "1"}).invoke(cli, words)
        if done.exit_code:
            raise RuntimeError(f"{line}: exit code {done.exit_code}\n{done.output}")
        printed = "\n".join(row.rstrip() for row in done.stdout.splitlines())
        parts.append(f"$ {line}\n{printed}\n")
    return "\n".join(parts)


def image_of(figure: Any) -> Image.Image:
    """Return a figure as a picture of few colours, which a figure has anyway."""
    held = io.BytesIO()
    figure.savefig(held, facecolor=figure.get_facecolor())
    return Image.open(held).convert("RGB").quantize(96)


def fences(text: str) -> Iterator[tuple[str, str]]:
    """Return the language and the contents of every block of a page."""
    language, held = None, []
    for line in text.splitlines():
        if not line.startswith("```"):
            held.append(line)
        elif language is None:
            language, held = line.removeprefix("```"), []
        else:
            yield language, "\n".join(held)
            language = None


def shown(block: re.Match[str]) -> str | None:
    """Return the output that the page shows for a block."""
    if block["language"] == "console":
        return block["code"]
    if block["printed"] is None:
        return None
    return block["printed"].removeprefix("\n```text\n").removesuffix("```\n")


def agree(expected: str, printed: str) -> bool:
    """Whether two texts agree: words exactly, numbers nearly, ``...`` with anything.

    >>> agree("loss 0.123, ...", "loss 0.124,  3 rows")
    True
    >>> agree("loss 0.123", "loss 0.143")
    False
    """
    pattern = "".join(
        r"(.*?)"
        if part == "..."
        else rf"({NUMBER.pattern})"
        if NUMBER.fullmatch(part)
        else r"\s+"
        if part.isspace()
        else re.escape(part)
        for part in re.split(rf"(\.\.\.|{NUMBER.pattern}|\s+)", expected.strip())
        if part
    )
    match = re.fullmatch(pattern, printed.strip(), re.DOTALL)
    if match is None:
        return False
    kept = re.findall(rf"\.\.\.|{NUMBER.pattern}", expected)
    return all(near(one, other) for one, other in zip(kept, match.groups(), strict=True))


def near(one: str, other: str) -> bool:
    """Whether two numbers agree up to one unit of the last digit shown, or one per cent."""
    if one == "...":
        return True
    digits = len(one.partition("e")[0].partition(".")[2])
    exponent = float(re.split("[eE]", one)[1]) if re.search("[eE]", one) else 0.0
    first, second = (float(word.replace(",", "").rstrip(".")) for word in (one, other))
    unit = 10.0 ** (exponent - digits) if digits or exponent else 0.0
    return abs(first - second) <= max(1.01 * unit, 0.01 * abs(first) if digits else 0.0)


def differences(page: Path) -> list[str]:
    """Run a page in the present folder and return what differs from what it shows."""
    found = []
    for result in run(page):
        expected = shown(result.block)
        if expected is not None and not agree(expected, result.printed):
            found.append(f"{page.name} shows\n{expected}\nbut the code prints\n{result.printed}")
        for name, image in result.drawn.items():
            file = ROOT / "docs" / "images" / "gallery" / f"{name}.png"
            if not file.exists() or distance(Image.open(file), image) > FARTHEST:
                found.append(f"{page.name}: {name}.png differs from what the code draws")
    return found


def distance(one: Image.Image, other: Image.Image) -> float:
    """Return the mean difference of two pictures in grey levels; infinite if sizes differ much."""
    if max(abs(a - b) for a, b in zip(one.size, other.size, strict=True)) > 12:
        return float("inf")
    size = one.size[0] // 8, one.size[1] // 8  # coarse, so that fonts hardly matter
    grey = [np.asarray(each.convert("L").resize(size), float) for each in (one, other)]
    return float(np.abs(grey[0] - grey[1]).mean())


def write(page: Path) -> None:
    """Write what the code of a page prints and draws."""
    text, new, end = page.read_text(encoding="utf-8"), [], 0
    for result in run(page, dark=True):
        block, expected = result.block, shown(result.block)
        for name, image in result.drawn.items():
            image.save(ROOT / "docs" / "images" / "gallery" / f"{name}.png", optimize=True)
        if expected is None or agree(expected, result.printed):
            continue
        body = "\n".join(line.rstrip() for line in result.printed.strip("\n").splitlines())
        where = "code" if block["language"] == "console" else "printed"
        filled = body + "\n" if where == "code" else f"\n```text\n{body}\n```\n"
        new += [text[end : block.start(where)], filled]
        end = block.end(where)
        print(f"{page.relative_to(ROOT)}: wrote\n{body}")
    page.write_text("".join([*new, text[end:]]), encoding="utf-8")


def pages() -> list[Path]:
    """Return README.md and the pages of docs/ that have code to run."""
    every = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [page for page in every if BLOCK.search(page.read_text(encoding="utf-8"))]


def main() -> None:
    """Write or check pages from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="pages; all by default")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if stale")
    options = parser.parse_args()
    stale = []
    for page in [page.resolve() for page in options.pages] or pages():
        here = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                stale += differences(page) if options.check else write(page) or []
            finally:
                os.chdir(here)
    print("\n".join(stale))
    sys.exit(bool(stale))


if __name__ == "__main__":
    main()
