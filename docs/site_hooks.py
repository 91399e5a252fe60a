"""What the site adds to Markdown: MathML, files of the root, names, benchmarks, notebooks."""

from __future__ import annotations

import html
import importlib
import inspect
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

_EQUATION = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_ROOT = Path(__file__).parents[1]


_PAGES = {"index.md": "README.md"}
_ELSEWHERE = re.compile(r"\[([^\]]+)\]\((?!http|#)[^)]*(?:\.cff|LICENSE|[A-Z_]{4,}\.md)\)")


_PRINTED = re.compile(r'<div class="highlight"><pre><span></span><code>(?=[^$<])([^<]*)</code>')
_WIDEST = 110  # characters of a line of a printed table
_COMMAND = re.compile(r"(apiece|make|pip|python) ")
_ERROR = re.compile(r"(<td[^>]*>[^<±]*) (±) ([^<±]*)(?=</td>)")
_DEFAULT = re.compile(  # the cells that mkdocs-click writes for an option
    r"(<tr>\n<td><code>-.*</td>\n<td>.*</td>\n<td>.*)</td>\n<td>(.*)</td>\n</tr>"
)
_DOCUMENTED = re.compile(r"^::: apiece\.[\w.]+\.(\w+)$(\n    options:)?", re.MULTILINE)
_RESULTS = re.compile(r"<!-- results: ([\w-]+) -->")
_CODE = re.compile(  # of a notebook: what it prints follows, and what it draws
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?(?:\n!\[[^\]]*\]\([^)]*\)\n)*",
    re.DOTALL | re.MULTILINE,
)
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)#\s]+)\.(png|svg)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Fill some pages from the root or with names, and show pictures light or dark."""
    path = Path(page.file.src_uri)
    text = with_dark(with_public_names(filled(markdown, page.file.src_uri)), path.parent)
    if path.parent.name == "tutorials":
        title, _, rest = text.partition("\n")
        link = f'<a href="{path.stem}.ipynb" download>This page as a notebook</a>'
        return f"{title}\n\n{link}\n{rest}"
    return text


def with_public_names(markdown: str) -> str:
    """Head what the reference documents by the name that a script writes, such as `apiece.fit`."""
    import apiece

    def headed(match: re.Match[str]) -> str:
        name = "open" if match[1] == "open_run" else match[1]
        if name not in {*apiece.__all__, "open"}:
            return match[0]
        first = match[0].removesuffix(match[2] or "")
        return f"{first}\n    options:\n      heading: apiece.{name}\n      toc_label: {name}"

    return _DOCUMENTED.sub(headed, markdown)


def with_dark(markdown: str, folder: Path) -> str:
    """Show the dark version of a picture, where there is one, to readers in the dark."""

    def both(match: re.Match[str]) -> str:
        alt, path, kind = match.groups()
        if not (_ROOT / "docs" / folder / f"{path}-dark.{kind}").exists():
            return match[0]
        light, dark = f"{path}.{kind}#only-light", f"{path}-dark.{kind}#only-dark"
        return f"![{alt}]({light})\n![{alt}]({dark})"

    return _PICTURE.sub(both, markdown)


def filled(markdown: str, uri: str) -> str:
    """Fill some pages with files of the root, whose links start one folder higher."""
    if uri == "reference/index.md":
        return markdown.replace("<!-- names -->", names())
    if uri == "reference/commands.md":
        return markdown.replace("<!-- examples -->", examples())
    if uri == "benchmarks.md":
        return _RESULTS.sub(lambda match: measured(match[1]), markdown)
    if uri not in _PAGES:
        return markdown
    text = (_ROOT / _PAGES[uri]).read_text(encoding="utf-8")
    return _ELSEWHERE.sub(r"\1", re.sub(r"\]\(docs/", "](", text))


def examples() -> str:
    """Return the examples that `--help` shows, command by command."""
    from apiece.cli import cli

    text = []
    for name, command in cli.commands.items():
        lines = [line.strip() for line in (command.epilog or "").splitlines()]
        shown = [line for line in lines if line.startswith("apiece ")]
        if shown:
            text += [f"**{name}**", "", "```", *shown, "```", ""]
    return "\n".join(text)


def measured(name: str) -> str:
    """Return what a benchmark measured, from its file."""
    sys.path.insert(0, str(_ROOT / "benchmarks"))
    from tables import everything

    text = (_ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8")
    return everything(json.loads(text), f"results/{name}.json")


def on_post_build(*, config: Any, **_: Any) -> None:
    """Put the files of the benchmarks and the notebooks into the site, for downloads."""
    site = Path(config["site_dir"])
    shutil.copytree(_ROOT / "benchmarks" / "results", site / "results", dirs_exist_ok=True)
    for page in sorted((_ROOT / "docs" / "tutorials").glob("*.md")):
        written = json.dumps(notebook(page.read_text(encoding="utf-8")), indent=1)
        (site / "tutorials" / f"{page.stem}.ipynb").write_text(written, encoding="utf-8")


def notebook(markdown: str) -> dict[str, Any]:
    """Return a page as a Jupyter notebook: its code with what it prints, and the words between.

    Pictures that code draws are left out, since running it shows them, and so are links to other
    pages, which a file that was downloaded does not reach.
    """
    cells: list[dict[str, Any]] = []

    def add_words(text: str) -> None:
        words = re.sub(r"\[([^\]]+)\]\((?!http)[^)]*\)", r"\1", text).strip()
        if words:
            source = words.splitlines(keepends=True)
            cells.append({"cell_type": "markdown", "metadata": {}, "source": source})

    place = 0
    for block in _CODE.finditer(markdown):
        add_words(markdown[place : block.start()])
        place = block.end()
        printed = {"output_type": "stream", "name": "stdout", "text": block[2]}
        cells.append(
            {
                "cell_type": "code",
                "execution_count": None,
                "metadata": {},
                "outputs": [printed] if block[2] else [],
                "source": block[1].rstrip("\n").splitlines(keepends=True),
            }
        )
    add_words(markdown[place:])
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    about = {"kernelspec": kernel}
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 4}


def names() -> str:
    """Return a table of all objects that the pages of the reference document, by name."""
    rows = {}
    for page in sorted(_ROOT.glob("docs/reference/*.md")):
        for path in re.findall(
            r"^::: (apiece[\w.]+)", page.read_text(encoding="utf-8"), re.MULTILINE
        ):
            module, _, name = path.rpartition(".")
            found = getattr(importlib.import_module(module), name)
            if not inspect.ismodule(found):
                said = (inspect.getdoc(found) or "").split("\n\n")[0].replace("\n", " ")
                said = re.sub(r"``(.+?)``", r"`\1`", said).replace("|", "\\|")
                rows[name.lower()] = f"| [`{name}`][{path}] | {said} |"
    return "\n".join(
        ["| name | what it is |", "| --- | --- |", *(rows[key] for key in sorted(rows))]
    )


def on_page_content(content: str, **_: Any) -> str:
    """Turn equations into MathML, which browsers show without any script."""
    from latex2mathml.converter import convert

    def mathml(match: re.Match[str]) -> str:
        display = "inline" if match[2] == "(" else "block"
        shown = convert(html.unescape(match[3]), display=display)
        return f'<div class="equation" tabindex="0">{shown}</div>' if display == "block" else shown

    shown = _EQUATION.sub(mathml, content)
    shown = shown.replace("<th>Description</th>\n<th>Default</th>", "<th>Description</th>")
    shown = _DEFAULT.sub(_with_default, shown)
    # The name of an option is not broken. A number stays with its error; phones show it below.
    shown = re.sub(r"<code>(--?[a-z][\w-]*)</code>", r'<code class="option">\1</code>', shown)
    shown = _ERROR.sub(r'\1 <span class="error">\2&nbsp;\3</span>', shown)
    return _PRINTED.sub(_wrapped, shown).replace(" ± ", "&nbsp;±&nbsp;")


def _with_default(match: re.Match[str]) -> str:
    """Put the default of an option into its description, for tables that fit a phone."""
    # mkdocs-click shows how click marks that an option has no default.
    default = match[2].replace("<code>Sentinel.UNSET</code>", "")
    return f"{match[1]} Default: {default}.</td>\n</tr>" if default else f"{match[1]}</td>\n</tr>"


def _wrapped(match: re.Match[str]) -> str:
    """Let printed sentences and commands wrap; tables stay as they are, and scroll."""
    lines = match[1].splitlines()
    is_command = all(map(_COMMAND.match, lines))
    is_wide = max(map(len, lines), default=0) > _WIDEST
    names = " printed" * (not is_command) + " wrapped" * (is_command or is_wide)
    block = match[0].replace('"highlight"', f'"highlight{names}"', 1)
    whole = r'\1<span class="option">\2</span>'  # which no line ends within
    return re.sub(r"(\s)(--?[a-z][\w-]*)", whole, block) if is_command else block
