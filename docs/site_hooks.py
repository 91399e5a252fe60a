"""What the site needs beyond Markdown: MathML, and pages that are files of the root."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

_EQUATION = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_ROOT = Path(__file__).parents[1]


_PAGES = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md"}
_ELSEWHERE = re.compile(r"\[([^\]]+)\]\((?!http|#)[^)]*(?:\.cff|LICENSE|[A-Z_]{4,}\.md)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Fill some pages with files of the root, whose links start one folder higher."""
    if page.file.src_uri not in _PAGES:
        return markdown
    text = (_ROOT / _PAGES[page.file.src_uri]).read_text(encoding="utf-8")
    return _ELSEWHERE.sub(r"\1", re.sub(r"\]\(docs/", "](", text))


def on_page_content(content: str, **_: Any) -> str:
    """Turn equations into MathML, which browsers show without any script."""

    def mathml(match: re.Match[str]) -> str:
        display = "inline" if match[2] == "(" else "block"
        return convert(html.unescape(match[3]), display=display)

    return _EQUATION.sub(mathml, content)
