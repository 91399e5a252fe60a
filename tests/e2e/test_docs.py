"""The code of the docs prints and draws what pages show; links, tables and headings are whole."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shlex
import sys
from collections import Counter
from pathlib import Path

import click
import pytest
from markdown.extensions.toc import slugify

from apiece import plots
from apiece.cli import cli

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import pages
import site_hooks
import words

DOCS = Path(__file__).parents[2] / "docs"
TEXTS = sorted(
    [*DOCS.parent.glob("*.md"), *DOCS.parent.glob("decisions/*.md"), *DOCS.rglob("*.md")]
)
NAMES = [str(page.relative_to(DOCS.parent)) for page in TEXTS]


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.name)
def test_the_code_of_a_page_prints_and_draws_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stale = pages.differences(page)
    assert not stale, "\n".join(stale) + "\nRun: python tools/pages.py"


@pytest.mark.parametrize("page", TEXTS, ids=NAMES)
def test_every_printed_block_follows_the_code_that_prints_it(page):
    text = page.read_text(encoding="utf-8")
    blocks = list(pages.fences(text))
    printed = sum(block["printed"] is not None for block in pages.BLOCK.finditer(text))
    assert sum(language == "text" for language, _ in blocks) == printed
    for language, body in blocks:
        if not language:
            assert re.match(r"(apiece|make|pip|git|python|#)", body), f"not a command: {body}"


def test_the_gallery_shows_every_plot_light_and_dark():
    text = (DOCS / "gallery.md").read_text()
    assert set(re.findall(r"plots\.(plot_\w+)\(", text)) == {
        name for name in plots.__all__ if name.startswith("plot_")
    }
    shown = {
        name
        for page in DOCS.rglob("*.md")
        for name in re.findall(r"images/gallery/([\w-]+)\.png", page.read_text())
    }
    drawn = {file.stem for file in (DOCS / "images" / "gallery").iterdir()}
    assert drawn == shown | {f"{name}-dark" for name in shown - {"theme"}}


def prose(page):
    """Return the lines of a page that are not code, with their numbers."""
    is_code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, line


def headings(page):
    return [line.lstrip("# ").strip() for _, line in prose(page) if re.match(r"#{1,6} ", line)]


def anchors(page):
    """Return the ids that the site gives to the headings of a page."""
    plain = (re.sub(r"[`*$]|\]\([^)]*\)|\[", "", heading) for heading in headings(page))
    return {slugify(heading, "-") for heading in plain}


@pytest.mark.parametrize("page", TEXTS, ids=NAMES)
def test_links_lead_to_a_page_and_a_heading(page):
    for number, line in prose(page):
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", line):
            where = page.parent / target if target else page
            assert where.exists(), f"line {number} links to {target}"
            if anchor and where.suffix == ".md":
                assert anchor in anchors(where), f"line {number} links to {target}#{anchor}"


@pytest.mark.parametrize("page", TEXTS, ids=NAMES)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(page):
    expected = None
    for number, line in prose(page):
        if not line.startswith("|"):
            expected = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`|\$[^$]*\$", "", line)))
        expected = expected or cells
        assert cells == expected, f"line {number} has {cells - 1} cells instead of {expected - 1}"


@pytest.mark.parametrize("page", TEXTS, ids=NAMES)
def test_no_page_has_a_heading_twice(page):
    # A changelog repeats its kinds of change in every version.
    if page.name != "CHANGELOG.md":
        twice = [heading for heading, n in Counter(headings(page)).items() if n > 1]
        assert not twice


def test_decisions_are_short_records_of_one_form_in_the_index():
    records = sorted((DOCS.parent / "decisions").glob("0*.md"))
    index = (DOCS.parent / "decisions" / "README.md").read_text(encoding="utf-8")
    assert records
    for number, record in enumerate(records, 1):
        title, *rest = headings(record)
        assert record.name.startswith(f"{number:04d}-")
        assert rest == ["Context", "Decision", "Consequences"]
        assert len(record.read_text(encoding="utf-8").split()) <= 200, record.name
        assert f"| [{number:04d}]({record.name}) | {title.partition('. ')[2]} |" in index


def test_the_architecture_names_every_package_and_files_that_exist():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rows = text.partition("## Packages")[2].partition("**Imports")[0]
    cells = [line.split("|")[1] for line in rows.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    source = DOCS.parent / "src" / "apiece"
    modules = {file.parent.name for file in source.glob("*/__init__.py")}
    modules |= {file.stem for file in source.glob("*.py") if not file.stem.startswith("__")}
    assert named == modules
    files = re.findall(r"`((?:\w+/)+\w*(?:\.py)?)`", text)
    assert len(files) > 10
    for file in files:
        assert (source / file).exists() or (DOCS.parent / file).exists(), file


def test_every_table_of_names_is_in_the_file_that_the_architecture_names():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    found = re.findall(r"((?:`\w+`(?: and)? )+)in `((?:\w+/)+\w+\.py)`", text)
    named = [(name, file) for names, file in found for name in re.findall(r"\w+(?=`)", names)]
    assert len(named) > 10
    for name, file in named:
        code = (DOCS.parent / "src" / "apiece" / file).read_text(encoding="utf-8")
        assert re.search(rf"^(def |class )?{name}\b", code, re.MULTILINE), (name, file)


def test_numbers_of_a_printed_block_agree_nearly_and_words_exactly():
    assert pages.agree("r = 0.91, 12 rows, ...", "r = 0.92, 12 rows, in 3 s")
    assert not pages.agree("r = 0.91, 12 rows", "r = 0.91, 13 rows")
    assert not pages.agree("r = 0.91", "r = 0.95")
    assert not pages.agree("gain 1e-3", "gain 3e-3")
    assert not pages.agree("keep 3", "drop 3")


def test_the_check_of_words_finds_what_it_is_for():
    text = "This was mended, by 10 samples a point. " + "very " * 36 + "long. The leverage is high."
    kinds = {finding.kind for finding in words.findings("page", text, set())}
    assert kinds == {"dialect", "long", "undefined"}
    assert not list(
        words.findings("page", "Ten samples per point are enough.", {"sample", "point"})
    )


@pytest.mark.parametrize("page", words.pages(DOCS.parent), ids=lambda page: page.name)
def test_pages_use_plain_words_short_sentences_and_defined_terms(page):
    text = page.read_text(encoding="utf-8")
    found = list(words.findings(page.name, text, words.glossary(DOCS.parent)))
    assert not found, "\n".join(f"line {each.line}: {each.kind}: {each.text}" for each in found)


@pytest.mark.parametrize("page", sorted(DOCS.glob("tutorials/*.md")), ids=lambda page: page.stem)
def test_a_notebook_has_the_code_and_the_words_of_its_page(page):
    text = page.read_text(encoding="utf-8")
    cells = site_hooks.notebook(text)["cells"]
    code = ["".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "code"]
    assert code == [block["code"] for block in pages.BLOCK.finditer(text)]
    words = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert all(heading in words for heading in headings(page))
    assert "```text" not in words
    assert "](../" not in words


def test_a_notebook_runs_and_prints_what_it_holds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    book = json.loads(json.dumps(site_hooks.notebook((DOCS / "tutorials/texts.md").read_text())))
    names = {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            printed = "".join(output["text"] for output in cell["outputs"])
            assert pages.agree(printed, capsys.readouterr().out)
    assert (tmp_path / "reviews.csv").exists()


def commands():
    """Return every command line of pages and of help, with where it is."""
    texts = {
        page.name: "\n".join(body for _, body in pages.fences(page.read_text(encoding="utf-8")))
        for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]
    }
    texts |= {f"help of {name}": command.epilog or "" for name, command in cli.commands.items()}
    for where, text in texts.items():
        for line in re.findall(r"^(?:\$ | *)apiece +(\w+ .*)", text, re.MULTILINE):
            yield where, shlex.split(line, comments=True)


def test_every_command_of_a_page_has_options_that_exist_and_reviews_have_a_text():
    found = list(commands())
    assert len(found) > 60
    for where, (name, *rest) in found:
        command = cli.commands[name]
        if isinstance(command, click.Group) and rest[0] in command.commands:
            command, rest = command.commands[rest[0]], rest[1:]
        with click.Context(command) as context:
            command.make_parser(context).parse_args(list(rest))  # refuses unknown options
        if "reviews.csv" in rest:  # the file of the tutorial of texts
            assert "--text" in rest, f"{where}: apiece {name} {shlex.join(rest)}"


def test_the_page_of_commands_has_the_examples_of_help_and_no_marks_of_click():
    shown = site_hooks.filled("<!-- examples -->", "reference/commands.md")
    assert "apiece advise reviews.csv --target label --text review -o advice.csv" in shown
    assert shown.count("```") > 20


def test_the_default_of_an_option_stands_in_its_description():
    cells = ["<code>--level</code>", "float", "Coverage.", "{}"]
    row = "<tr>\n" + "".join(f"<td>{cell}</td>\n" for cell in cells) + "</tr>"
    with_default = site_hooks.on_page_content(row.format("<code>0.9</code>"))
    assert with_default.endswith("<td>Coverage. Default: <code>0.9</code>.</td>\n</tr>")
    without = site_hooks.on_page_content(row.format("<code>Sentinel.UNSET</code>"))
    assert without.endswith("<td>float</td>\n<td>Coverage.</td>\n</tr>")


def test_a_number_is_not_torn_from_its_error_on_a_narrow_screen():
    cell = '<td>0.3 <span class="error">±&nbsp;0.1</span></td>'
    assert site_hooks.on_page_content("<td>0.3 ± 0.1</td>") == cell
    assert site_hooks.on_page_content("<p>mean ± error</p>") == "<p>mean&nbsp;±&nbsp;error</p>"


def test_the_name_of_an_option_is_not_broken():
    option, code = "<code>--collect-until</code>", "<code>a - b</code>"
    assert site_hooks.on_page_content(option) == '<code class="option">--collect-until</code>'
    assert site_hooks.on_page_content(code) == code


def test_printed_sentences_and_commands_wrap_and_printed_tables_do_not():
    block = '<div class="highlight"><pre><span></span><code>{}\n</code></pre></div>'
    sentence, table = block.format("word " * 30), block.format("point  value\n" * 30)
    commands = block.format("apiece advise a.csv --text review -o b.csv\nmake demo")
    assert 'class="highlight printed wrapped"' in site_hooks.on_page_content(sentence)
    assert 'class="highlight wrapped"' in site_hooks.on_page_content(commands)
    shown = site_hooks.on_page_content(commands)
    assert '<span class="option">--text</span> review <span class="option">-o</span> b' in shown
    printed = table.replace("highlight", "highlight printed")  # and has no button to copy it
    assert site_hooks.on_page_content(table) == printed


def test_the_reference_heads_what_scripts_call_by_the_names_that_they_write():
    page = "::: apiece.store.open_run\n::: apiece.laws.Laws\n    options:\n      members: [mean]\n"
    assert site_hooks.with_public_names(page) == (
        "::: apiece.store.open_run\n    options:\n      heading: apiece.open\n"
        "      toc_label: open\n"
        "::: apiece.laws.Laws\n    options:\n      heading: apiece.Laws\n      toc_label: Laws\n"
        "      members: [mean]\n"
    )
    for module in ("::: apiece.errors\n", "::: apiece.uses.baselines\n"):
        assert site_hooks.with_public_names(module) == module


def documented():
    """Return every object that a page of the reference names, with its public members."""
    for page in sorted(DOCS.glob("reference/*.md")):
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"^::: (apiece[\w.]+)", text, re.MULTILINE):
            module, _, name = path.rpartition(".")
            found = getattr(importlib.import_module(module), name)
            yield path, found
            for member in getattr(found, "__all__", None) or vars(found):
                inner = getattr(found, member)
                if not member.startswith("_") and (callable(inner) or isinstance(inner, property)):
                    yield f"{path}.{member}", inner


def test_examples_have_a_heading_without_which_the_site_shows_them_as_quotations():
    texts = {path: inspect.getdoc(found) or "" for path, found in documented()}
    assert len(texts) > 300
    assert not [path for path, text in texts.items() if ">>>" in text.partition("Examples\n")[0]]
