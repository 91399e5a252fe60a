"""Every Python snippet of the docs runs, page by page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib import pyplot

from apiece import plots

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = sorted(
    str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if FENCE.search(page.read_text())
)


@pytest.mark.parametrize("page", PAGES)
def test_the_snippets_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    try:
        for code in FENCE.findall((DOCS / page).read_text()):
            exec(compile(code, page, "exec"), names)
    finally:
        pyplot.close("all")


def test_the_gallery_shows_every_plot_light_and_dark():
    text = (DOCS / "gallery.md").read_text()
    assert set(re.findall(r"plots\.(plot_\w+)\(", text)) == {
        name for name in plots.__all__ if name.startswith("plot_")
    }
    shown = {
        name
        for page in DOCS.rglob("*.md")
        for name in re.findall(r"images/gallery/([\w-]+\.png)", page.read_text())
    }
    assert shown == {file.name for file in (DOCS / "images" / "gallery").iterdir()}
    for name in re.findall(r"images/gallery/([\w-]+)\.png#only-light", text):
        assert f"images/gallery/{name}-dark.png#only-dark" in text


def test_links_between_pages_lead_somewhere():
    for page in [DOCS.parent / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
