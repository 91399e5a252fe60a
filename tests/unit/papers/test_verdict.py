"""The verdict on the paper's claims, and the page that opens with it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from apiece.papers import measured, names
from apiece.papers._items import ITEMS
from apiece.papers._verdict import markdown_verdict, verdict

ROOT = Path(__file__).parents[3]


def judged(**tables):
    """Return the verdict on some tables; the others have no rows."""
    return verdict(lambda name: tables.get(name, pd.DataFrame()))


def grid(model, measured, ceiling, data="IMDB"):
    return {
        "data": data,
        "model": model,
        "loss": "softmax_of_proba",
        "points": 200,
        "samples per size": 40,
        "measured": measured,
        "ceiling by noise": ceiling,
    }


def test_a_law_holds_fails_or_is_too_noisy_to_judge():
    rows = [
        grid("SVM", 0.95, 0.99),
        grid("SVM", 0.83, 0.91, "HIGGS"),
        grid("SVM", 0.7, 0.99, "adult"),
        grid("SVM", 0.5, 0.6, "MAGIC"),
    ]
    ((claim, answer, numbers, scale),) = judged(table1=pd.DataFrame(rows))
    assert "SVM" in claim
    assert answer == "yes on IMDB, HIGGS; not on adult; not shown on MAGIC, too noisy"
    assert numbers == (
        "R², of what noise allows: IMDB 0.95 of 0.99, HIGGS 0.83 of 0.91, adult 0.70 of 0.99, "
        "MAGIC 0.50 of 0.60"
    )
    assert scale == "200 points, 40 samples"


def test_the_best_choice_may_be_worse_by_a_standard_error():
    def rises(data, chosen):
        methods = {"scaling 100": chosen, "scaling 1000": 0.2, "shapley": 1.0, "random": 0.1}
        return [
            {"data": data, "method": m, "measured": rise, "± of the mean": 0.1, "repeats": 50}
            for m, rise in methods.items()
        ]

    table = pd.DataFrame([*rises("IMDB", 0.95), *rises("adult", 0.85), *rises("MAGIC", 2.0)])
    ((_, answer, _, scale),) = judged(table5=table)
    assert answer == "yes on IMDB, MAGIC; no on adult"
    assert scale == "50 repeats"


def test_a_variance_that_no_point_shows_is_no_answer():
    rows = [
        {"data": data, "model": "MLP", "points": 60, "samples per size": 90, "median": median}
        for data, median in (("IMDB", 0.7), ("HIGGS", float("nan")), ("MAGIC", 1.4))
    ]
    ((_, answer, numbers, _),) = judged(figure12=pd.DataFrame(rows))
    assert answer == "yes on MAGIC; no on IMDB"
    assert numbers == "median beta 0.70 to 1.40"


def test_nothing_measured_is_no_verdict():
    assert judged() == []
    assert markdown_verdict(lambda _: pd.DataFrame()) == ""


def test_the_page_of_the_documentation_shows_the_packaged_numbers():
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert markdown_verdict(measured) in text
    for name in names():
        section = text.split(f": {ITEMS[name].title}\n")[1].split("\n## ")[0]
        file = ROOT / "docs" / "images" / "reproduction" / f"{name}.csv"
        assert file.read_text(encoding="utf-8") == measured(name).to_csv(index=False)
        images = [part.split(")")[0] for part in section.split("](")[1:] if ".png" in part]
        assert all((ROOT / "docs" / image).is_file() for image in images)
        assert bool(images) == name.startswith("figure") or name in ("ceiling", "aggregate")


def test_every_part_of_the_page_says_its_scale_and_the_papers():
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    said = {}
    for name in names():
        section = text.split(f": {ITEMS[name].title}\n")[1].split("\n## ")[0]
        last = section.strip().splitlines()[-1]
        kinds = re.findall(r"as for ((?:Table|Figure) \d+)", last)
        assert all(kind in said for kind in kinds)
        words = " ".join([last, *(said[kind] for kind in kinds)])
        said[re.sub(r"(\d)", r" \1", name.capitalize(), count=1)] = words
        assert re.search(r"\d (points|samples|repeats)", words), name
        assert not ITEMS[name].scale or "In the paper: " in words, name
