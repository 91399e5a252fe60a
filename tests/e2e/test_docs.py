"""Every Python snippet of the docs runs, page by page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = sorted(
    str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if FENCE.search(page.read_text())
)


@pytest.mark.parametrize("page", PAGES)
def test_the_snippets_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in FENCE.findall((DOCS / page).read_text()):
        exec(compile(code, page, "exec"), names)


def test_links_between_pages_lead_somewhere():
    for page in [DOCS.parent / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
