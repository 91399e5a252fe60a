"""The page: a skeleton, styles and scripts from ``assets/``, and the data, in one HTML file.

Its content-security policy allows exactly the scripts and styles that it carries, by their
digests, and no network at all. Nothing a user wrote is markup: the title is escaped, and all other
text travels inside the data, which the page turns into text nodes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from importlib.resources import files
from typing import Final

from apiece.reporting._payload import as_text

_UPLOT: Final = "vendor/uPlot-1.6.32"
STYLES: Final = (f"{_UPLOT}.min.css", "report.css")
SCRIPTS: Final = (
    f"{_UPLOT}.iife.min.js",
    *("data.js", "laws.js", "charts.js", "table.js"),  # these do not depend on this page
    *(
        "state.js",
        "overview.js",
        "points.js",
        "point.js",
        "why.js",
        "plane.js",
        "live.js",
        "report.js",
    ),
)


def page(data: bytes, title: str, *, is_live: bool = False) -> str:
    """Return the HTML of a report.

    Parameters
    ----------
    data
        What `pack` returned.
    title
        Title of the document, any text.
    is_live
        Whether the page may ask the server that it came from for newer data.
    """
    style = "\n".join(asset(name) for name in STYLES)
    scripts = [asset(name) for name in SCRIPTS]
    filled = {
        "policy": policy([style], scripts, is_live=is_live),
        "title": escape(title),
        "style": style,
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
        "live": "live" if is_live else "",
        "data": as_text(data),
    }
    # In one pass: what is filled in is never searched for places itself.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: filled[place[1]], asset("page.html"))


def policy(styles: list[str], scripts: list[str], *, is_live: bool = False) -> str:
    """Return the content-security policy that allows these styles and scripts and nothing else."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(_digest(script) for script in scripts)}",
            f"style-src {' '.join(_digest(style) for style in styles)}",
            "img-src data:",
            *(["connect-src 'self'"] if is_live else []),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def asset(name: str) -> str:
    """Return the text of a file in ``assets/``."""
    return (files("apiece.reporting") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
