"""Put measured numbers of the paper's tables and figures into the package, and write their page.

    python tools/reproduction.py [RESULTS]

RESULTS is the folder that ``apiece reproduce ... --stored`` wrote, such as ``reproduction/paper``.
With ``--stored`` it also has what was measured before. Numbers keep the commit that measured them.
Without RESULTS, the page is written from the numbers that there are.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from apiece.papers import SCALES, names
from apiece.papers._measured import PACKAGED, Measured
from apiece.papers._page import write_page
from apiece.papers._sources import SOURCES
from apiece.papers._workspace import Workspace

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "reproduction.md"
PICTURES: Final = PAGE.parent / "images" / "reproduction"


def merge(results: Path, package: Path = PACKAGED, pictures: Path = PICTURES) -> list[str]:
    """Replace the numbers and pictures of the package; return what changed.

    Numbers of the package that were measured on a later day stay.
    """
    changed = []
    for name in names():
        kept, made = Measured.read(name, package), Measured.read(name, results)
        if not made.parts:
            continue
        before = {part.key: part for part in kept.parts}
        lost = before.keys() - {part.key for part in made.parts}
        if lost:
            raise SystemExit(
                f"{results} lacks numbers of {name} about {', '.join(sorted(k[0] for k in lost))}: "
                "expected all of the package. Measure with --stored, and without --datasets."
            )
        parts = tuple(
            max(part, before.get(part.key, part), key=lambda each: each.by["date"] or "")
            for part in made.parts
        )
        drawn = [image for image in made.images if (results / image).is_file()]
        if parts != kept.parts or made.images != kept.images:
            changed.append(name)
            replace(made, parts=parts).write(package)
        for image in drawn:
            shutil.copyfile(results / image, pictures / image)
    return changed


def write(page: Path = PAGE) -> None:
    """Write the page, with its tables, from the numbers of the package."""
    work = Workspace(Path(), Path(), SCALES["paper"], tuple(SOURCES), stored=True)
    write_page(work, PACKAGED, page, (PICTURES / "note.txt").read_text(encoding="utf-8").strip())
    shown = {image for name in names() for image in Measured.read(name, PACKAGED).images}
    for picture in PICTURES.glob("*.png"):
        if picture.name not in shown:
            picture.unlink()
    subprocess.run([sys.executable, ROOT / "benchmarks" / "tables.py"], check=True)


def main() -> None:
    """Merge and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", type=Path, help="folder of measured numbers")
    results = parser.parse_args().results
    if results is not None:
        print(f"changed: {', '.join(merge(results)) or 'nothing'}")
    write()


if __name__ == "__main__":
    main()
