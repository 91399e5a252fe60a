"""Make the figures of the gallery and the tutorials: ``python docs/images/gallery.py``.

The pages themselves are run, snippet by snippet; one followed by pictures leaves its figure as
``ax``. Each is drawn light and, where the page shows it so, dark.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from PIL import Image

from apiece import plots

DOCS = Path(__file__).parents[1]
FOLDER = DOCS / "images" / "gallery"
SNIPPET = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?P<pictures>(?:\n?!\[[^\]]*\]\([^)]*\))*)",
    re.DOTALL | re.MULTILINE,
)
PAGES = ("gallery.md", "tutorials/choosing-data.md")
PICTURE = re.compile(r"images/gallery/([\w-]+)\.png")


def main() -> None:
    mpl.use("agg")
    from matplotlib import pyplot as plt

    FOLDER.mkdir(exist_ok=True)
    for page in PAGES:
        names: dict[str, Any] = {}
        for snippet in SNIPPET.finditer((DOCS / page).read_text(encoding="utf-8")):
            code = compile(snippet["code"], page, "exec")
            for picture in PICTURE.findall(snippet["pictures"]) or [""]:
                with plots.look(*(["dark"] if picture.endswith("-dark") else [])):
                    exec(code, names)
                if picture:
                    save(names["ax"].figure, FOLDER / f"{picture}.png")
                    plt.close("all")


def save(figure: Any, path: Path) -> None:
    """Save a figure with few colours, which a figure has anyway."""
    figure.savefig(path, facecolor=figure.get_facecolor())
    with Image.open(path) as image:
        image.convert("RGB").quantize(96).save(path, optimize=True)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
