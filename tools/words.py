"""Check the words of the documentation: long sentences, words to avoid, terms without a definition.

    python tools/words.py [--check] [--list] [FILES]

Without files: README.md, which is the first page of the site, and every page in docs/. Words are
what spaces separate, code and tables included. Pages that mkdocs.yml leaves out are checked, but
not counted. ``--list`` prints each finding with its place; ``--check`` ends with exit code 1 if
there is any.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
LONGEST: Final = 35  # words of a sentence
MANY_LINES: Final = re.DOTALL | re.MULTILINE

# Words to avoid, and what to write instead.
AVOID: Final = {
    r"foretell\w*|foretold": "predict",
    r"mend(s|ed|ing)?\b": "fix",
    r"\bdear(er)?\b": "expensive",
    r"\bhears?\b": "the noun: progress, callback",
    r"\btold\b": "predicted, stated, known",
    r"cannot tell\b|tells? (apart|how|which|what|whether|the)\b": "say, determine, show",
    r"\b(samples?|contributions?|sets?|draws?|bytes|ms|rows?|points?|numbers?|worth|\d+%?) a "
    r"(point|row|size|contribution|worker|candidate|class|core|page|step|second|group)\b": "per",
    r"\b(dollars|seconds|minutes|sizes|asks|\d+) a (row|point|second|size|worker)\b": "per",
    r"\bbeside\b": "next to",
    r"\bof (its|their|our|your|his|one's|each [\w']+'s|the [\w']+'s) own\b": "your own ...",
    r"\bin the middle\b": "median, halfway",
    r"\b(90 % |interval )?cover(s|ed)? (of|about|0\.\d|\d)|\b90 % cover\b": "coverage",
    r"\bvouch\w*": "check, protect",
    r"\brooms?\b": "package",
    r"\banew\b": "again",
    r"\blikewise\b": "in the same way",
    r"\bsketch(es)?\b": "nothing: a number needs a command",
    r"\b(aim|goal)s?\b|\bnot met\b": "nothing: no goals in pages for users",
    r"\bpersonif\w*|\bspeaks? of\b|\bdoubts?\b": "is about, questions",
    r"\bhang(s)? on\b|\bheld back\b|\bholds? back\b": "depend on, limited",
    r"\bno longer\b|\bat first\b|\bused to be\b": "nothing: no history",
    r"\bwhich nobody\b|\bwhoever\b|\bwhat nobody\b": "anyone who",
    r"\bas one likes\b|\bshine\b|\bflatters?\b": "plain words",
    r"\bfound\.(table|samples)\b|\bfound =": "result",
    r"\b(drawn|shrunk) to it\b|\blearned to the end\b": "shrunk towards, converged",
    r"\bto be had\b|\bat hand\b": "available",
    r"\bis no (number|part|way)\b": "is not a",
    r"\bby the clock\b": "elapsed",
    r"\bon paper\b": "estimated",
    r"\bif need be\b|\bunasked\b|\bat rest\b": "plain words",
}
# Terms of the field or of this library that the glossary must define if a page uses them.
TERMS: Final = (
    *("backtest", "blend", "candidate", "cardinality", "certificate", "coverage", "contribution"),
    *("control variate", "crossing", "design", "effect", "empirical bayes", "engine", "estimator"),
    *("exchange rate", "family", "fingerprint", "first order", "influence function", "interval"),
    *("law", "level", "leverage", "loss", "manifest", "metric", "monte carlo", "plan", "point"),
    *("pool", "population", "rotating", "run", "sample", "scope", "scoring rows", "seed"),
    *("semivalue", "series law", "shapley value", "shard", "share", "size", "status", "store"),
    *("task", "u-statistic", "unit of work", "value"),
)


@dataclass(frozen=True)
class Finding:
    """One place to improve."""

    page: str
    line: int
    kind: str
    text: str


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Return paragraphs and list items, without code, tables, equations and links' targets."""
    text = re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$", lambda m: "X" + "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    is_code, held, first = False, [], 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            is_code = not is_code
        skipped = is_code or stripped.startswith(("|", "```", "~~~", ":::", "![", "<", "#", "*`"))
        starts = re.match(r"\s*([-*]|\d+\.)\s", line) is not None
        if held and (skipped or starts or not stripped):
            yield first, cleaned(" ".join(held))
            held = []
        if stripped and not skipped:
            first = first if held else number
            held.append(re.sub(r"^([-*>]|\d+\.|!!!|\?\?\?)\s", "", stripped))


def cleaned(text: str) -> str:
    """Return text as it is read aloud: no targets of links, one word for code and equations."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`|\$[^$]*\$", "X", text)
    return text.replace("**", "").replace("*", "").replace("e.g.", "eg").replace("i.e.", "ie")


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph."""
    return re.split(r"(?<=[.!?])[)\"']*\s+(?=[\"'(]*(?:[A-Z0-9]|apiece))", text)


def read(text: str) -> str:
    """Return a page without code and tables, for the search of words to avoid."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", "", text, flags=MANY_LINES)
    return "\n".join(cleaned(line) for line in text.splitlines())


def findings(page: str, text: str, defined: set[str]) -> Iterator[Finding]:
    """Return everything to improve on a page."""
    for number, paragraph in prose(text):
        for sentence in sentences(paragraph):
            n_words = len(re.findall(r"[\w'.,%-]*\w[\w'%-]*", sentence))
            if n_words > LONGEST:
                yield Finding(page, number, "long", f"{n_words} words: {sentence[:90]}...")
    blank = re.sub(
        r"^( *)(```|~~~).*?^\1\2", lambda m: "\n" * m[0].count("\n"), text, flags=MANY_LINES
    )
    for number, line in enumerate(blank.splitlines(), 1):
        for pattern, better in AVOID.items():
            for match in re.finditer(pattern, cleaned(line), re.IGNORECASE):
                yield Finding(page, number, "dialect", f"{match[0]!r}: {better}")
    said = read(text).lower()
    for term in TERMS:
        if term not in defined and re.search(rf"\b{re.escape(term)}s?\b", said):
            yield Finding(page, 1, "undefined", term)


def glossary(root: Path) -> set[str]:
    """Return the words that the glossary explains."""
    file = root / "docs" / "reference" / "glossary.md"
    if not file.exists():
        return set()
    rows = re.findall(r"^\| ([^|]+) \|", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {word.strip().lower() for row in rows for word in row.split(",")}


def pages(root: Path) -> list[Path]:
    """Return what is checked by default."""
    return [root / "README.md", *sorted(root.glob("docs/**/*.md"))]


def left_out(root: Path) -> set[Path]:
    """Return the pages in docs/ that are not on the site."""
    settings = (root / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.search(r"^exclude_docs:.*\n((?: .*\n)*)", settings, re.MULTILINE)
    names = listed[1].split() if listed else []
    return {root / "docs" / name for name in names if name.endswith(".md")}


def main() -> None:
    """Check pages from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="pages; all by default")
    parser.add_argument("--check", action="store_true", help="exit code 1 if there are findings")
    parser.add_argument("--list", action="store_true", help="print every finding")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder with README.md and docs/")
    options = parser.parse_args()
    defined = glossary(options.root)
    total, counts, undefined = 0, {"long": 0, "dialect": 0, "undefined": 0}, set()
    uncounted = left_out(options.root)
    for page in options.files or pages(options.root):
        text = page.read_text(encoding="utf-8")
        total += 0 if page in uncounted else len(text.split())
        for finding in findings(str(page), text, defined):
            counts[finding.kind] += finding.kind != "undefined"
            if finding.kind == "undefined":
                undefined.add(finding.text)
            if options.list:
                print(f"{finding.page}:{finding.line}: {finding.kind}: {finding.text}")
    counts["undefined"] = len(undefined)
    print(f"{total:,} words")
    print(f"{counts['long']} sentences over {LONGEST} words")
    print(f"{counts['dialect']} words to avoid")
    print(f"{counts['undefined']} terms without a definition: {', '.join(sorted(undefined))}")
    sys.exit(bool(options.check and any(counts.values())))


if __name__ == "__main__":
    main()
