"""Draw the packages and the path of a row, light and dark, next to this file.

python docs/images/architecture.py
"""

from __future__ import annotations

from pathlib import Path

WIDTH, HEIGHT, BOX = 940, 430, (150, 62)
COLOURS = {
    "architecture.svg": {"ink": "#1f2328", "soft": "#59636e", "line": "#8c959f", "fill": "#eef3fa"},
    "architecture-dark.svg": {
        "ink": "#e6edf3",
        "soft": "#9198a1",
        "line": "#6e7681",
        "fill": "#1c2735",
    },
}
# package, what it gives, left edge, top edge
BOXES = [
    ("data", "Dataset", 30, 96),
    ("collection", "plan, loop, pools", 270, 96),
    ("engines", "Engine", 510, 96),
    ("store", "shards, Run", 750, 96),
    ("estimators", "Estimator", 750, 226),
    ("uses", "values, picks, advice", 510, 226),
    ("plots", "axes", 270, 226),
    ("reporting", "one HTML file", 30, 226),
]
# from x, y to x, y, and what travels
ARROWS = [
    (180, 127, 270, 127, "Dataset"),
    (420, 127, 510, 127, "Task"),
    (660, 127, 750, 127, "Outcome"),
    (825, 158, 825, 226, "Contributions"),
    (750, 257, 660, 257, "Laws"),
    (510, 257, 420, 257, "tables"),
    (270, 257, 180, 257, ""),
]
# text, left edge, top edge, width
BARS = [
    (
        "cli, experiments, papers, testing: use the packages below; none of them imports these",
        30,
        30,
        880,
    ),
    ("losses: Loss", 510, 326, 150),
    ("laws: Family, Laws", 750, 326, 160),
    ("records: Task, Contributions, Moments", 30, 326, 460),
    ("_base and errors: types, checks, random numbers, files", 30, 376, 880),
]


def text(x: float, y: float, words: str, colour: str, size: int = 13, weight: int = 400) -> str:
    """Return centred words."""
    style = f'fill="{colour}" font-size="{size}" font-weight="{weight}" text-anchor="middle"'
    return f'<text x="{x}" y="{y}" {style}>{words}</text>'


def rectangle(x: float, y: float, width: float, height: float, fill: str, line: str) -> str:
    """Return a box with round corners."""
    size = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="8"'
    return f'<rect {size} fill="{fill}" stroke="{line}"/>'


def draw(ink: str, soft: str, line: str, fill: str) -> str:
    """Return the picture in these colours."""
    width, height = BOX
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            'font-family="system-ui, sans-serif">'
        ),
        "<title>The packages of apiece and the path of a row from a file to a report</title>",
        (
            f'<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" '
            f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{line}"/></marker></defs>'
        ),
    ]
    for words, x, y, size in BARS:
        parts += [rectangle(x, y, size, 34, "none", line), text(x + size / 2, y + 22, words, soft)]
    for name, gives, x, y in BOXES:
        parts.append(rectangle(x, y, width, height, fill, line))
        parts.append(text(x + width / 2, y + 27, name, ink, 15, 600))
        parts.append(text(x + width / 2, y + 47, gives, soft, 12))
    for x1, y1, x2, y2, words in ARROWS:
        ends = f'x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"'
        parts.append(f'<line {ends} stroke="{line}" stroke-width="1.5" marker-end="url(#tip)"/>')
        where = (x1 + 52, (y1 + y2) / 2 + 4) if x1 == x2 else ((x1 + x2) / 2, y1 - 9)
        parts.append(text(*where, words, soft, 12))
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    for name, colours in COLOURS.items():
        (Path(__file__).parent / name).write_text(draw(**colours), encoding="utf-8")
