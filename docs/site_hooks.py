"""What the site needs beyond Markdown: equations as MathML, and the README as its first page."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

_EQUATION = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_ROOT = Path(__file__).parents[1]


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Fill the first page with the README, whose links start one folder higher."""
    if page.file.src_uri != "index.md":
        return markdown
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    readme = re.sub(r"\]\(docs/", "](", readme)
    return re.sub(
        r"\[([^\]]+)\]\((?!http)[^)]*(?:CITATION\.cff|LICENSE|CHANGELOG\.md)\)", r"\1", readme
    )


def on_page_content(content: str, **_: Any) -> str:
    """Turn equations into MathML, which browsers show without any script."""

    def mathml(match: re.Match[str]) -> str:
        display = "inline" if match[2] == "(" else "block"
        return convert(html.unescape(match[3]), display=display)

    return _EQUATION.sub(mathml, content)
