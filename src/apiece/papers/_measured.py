"""What was measured for a table or figure: rows in a JSON file, with the code they come from.

A file has parts, such as one dataset with one model. A part that is measured again replaces the
earlier one, so that a dataset can be added without the others. The package carries the rows behind
its documentation in ``measured``.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

import apiece
from apiece._base.files import make_folder, write_whole
from apiece.papers._runs import TITLES
from apiece.papers._sources import SOURCES

PACKAGED: Final = Path(__file__).parent / "measured"
_KEY: Final = ("data", "model", "models", "loss", "sizes")  # columns that name a part


@dataclass(frozen=True)
class Part:
    """Rows that were measured together, a note about them, and the code that measured them."""

    rows: tuple[dict[str, Any], ...]
    note: str
    by: dict[str, str | None]

    @property
    def key(self) -> tuple[Any, ...]:
        """Return what the rows are about: data, model and loss, as far as there are columns."""
        return tuple(self.rows[0].get(name) for name in _KEY)

    @property
    def place(self) -> tuple[int, int]:
        """Return where the part stands in a table: by dataset, then by model."""
        data, model, *_ = self.key
        datasets = [source.title for source in SOURCES.values()]
        models = list(TITLES.values())
        return (
            datasets.index(data) if data in datasets else len(datasets),
            models.index(model) if model in models else len(models),
        )


@dataclass(frozen=True)
class Measured:
    """The parts of a table or figure, and its images.

    Parameters
    ----------
    name
        Name of the table or figure.
    parts
        Its rows, one part for each dataset, model and loss.
    images
        Names of its image files; the one drawn now is the last.
    """

    name: str
    parts: tuple[Part, ...] = ()
    images: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, table: pd.DataFrame, note: str, *, has_image: bool) -> Measured:
        """Take the rows of a table that was just made."""
        by: dict[str, str | None] = {
            "version": f"apiece {apiece.__version__}",
            "commit": _commit(),
            "date": datetime.now(UTC).date().isoformat(),
        }
        rows = [
            {str(key): _plain(cell) for key, cell in row.items()}
            for row in table.to_dict("records")
        ]
        parts: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in rows:
            parts.setdefault(Part((row,), note, by).key, []).append(row)
        images = (f"{name}.png",) if has_image and rows else ()
        return cls(name, tuple(Part(tuple(each), note, by) for each in parts.values()), images)

    @classmethod
    def read(cls, name: str, folder: Path) -> Measured:
        """Read the file of a folder; nothing if there is none."""
        path = folder / f"{name}.json"
        if not path.is_file():
            return cls(name)
        content = json.loads(path.read_text(encoding="utf-8"))
        parts = tuple(Part(tuple(p["rows"]), p["note"], p["by"]) for p in content["parts"])
        return cls(name, parts, tuple(content["images"]))

    def write(self, folder: Path) -> None:
        """Write the file."""
        parts = [{"by": p.by, "note": p.note, "rows": list(p.rows)} for p in self.parts]
        content = {"exhibit": self.name, "images": list(self.images), "parts": parts}
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        make_folder(folder)
        write_whole(folder / f"{self.name}.json", (text + "\n").encode())

    def only(self, titles: list[str]) -> Measured:
        """Keep the parts about some datasets, by title."""
        return replace(self, parts=tuple(part for part in self.parts if part.key[0] in titles))

    def with_image(self) -> Measured:
        """Replace the images by one that shows all parts."""
        return replace(self, images=(f"{self.name}.png",))

    def joined(self, new: Measured) -> Measured:
        """Replace and add parts.

        The new image replaces the earlier ones if it shows all parts; else it is one more, named
        after its datasets, and after its models if there are others of these datasets. It then
        replaces those of the same models that show none but its datasets.
        """
        parts = {part.key: part for part in self.parts} | {part.key: part for part in new.parts}
        ordered = tuple(sorted(parts.values(), key=lambda part: part.place))
        return Measured(self.name, ordered, self._images(new))

    def _images(self, new: Measured) -> tuple[str, ...]:
        if not new.images:
            return self.images
        if {part.key for part in self.parts} <= {part.key for part in new.parts}:
            return new.images
        names = {source.title: name for name, source in SOURCES.items()}
        names |= {title: name for name, title in TITLES.items()}
        data, models = ({part.key[place]: None for part in new.parts} for place in (0, 1))
        others = {part.key[1] for part in self.parts if part.key[0] in data} - set(models)
        shown = [names.get(key, key) for key in data]
        about = [names.get(key, key) for key in models] if others else []

        def is_within(image: str) -> bool:
            said = set(image.removesuffix(".png").split("-")[1:])
            return bool(said & set(shown)) and said - set(shown) == set(about)

        kept = [image for image in self.images if not is_within(image)]
        return (*kept, f"{'-'.join([self.name, *shown, *about])}.png")

    def table(self) -> pd.DataFrame:
        """Return all rows."""
        return pd.DataFrame([row for part in self.parts for row in part.rows])

    def notes(self) -> list[str]:
        """Return the notes; with what they are about if that is not all parts."""
        about: dict[str, list[Part]] = {}
        for part in self.parts:
            about.setdefault(part.note, []).append(part)
        if len(about) < 2:
            return [note for note in about if note]
        return [f"{self._about(parts)}: {note}" for note, parts in about.items() if note]

    def origins(self) -> str:
        """Return a sentence on the code that measured the rows, by dataset if it differs."""
        about: dict[str, list[Part]] = {}
        for part in self.parts:
            commit = f", commit {part.by['commit']}" if part.by.get("commit") else ""
            about.setdefault(f"{part.by['version']} ({part.by['date']}{commit})", []).append(part)
        if len(about) == 1:
            return f"Measured by {next(iter(about))}."
        said = [f"{origin}: {self._about(parts)}" for origin, parts in about.items()]
        return f"Measured by {'; by '.join(said)}." if said else ""

    def _about(self, parts: list[Part]) -> str:
        """Name some parts: by dataset, with the model if the dataset has other parts."""
        others = {part.key[0] for part in self.parts if part not in parts}
        names = [
            " ".join(str(key) for key in part.key[: 2 if part.key[0] in others else 1] if key)
            for part in parts
        ]
        return ", ".join(dict.fromkeys(names))


def _plain(cell: Any) -> Any:
    """Return what JSON holds; None for unknown numbers."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    return None if isinstance(cell, float) and not np.isfinite(cell) else cell


@cache
def _commit() -> str | None:
    """Return the commit of the code if it runs in a clone, marked if it was changed."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    words = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    try:
        done = subprocess.run(words, cwd=root, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() or None
