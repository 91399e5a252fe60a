"""What a report works out by itself, and what it says where it cannot."""

from __future__ import annotations

import base64
import re

import numpy as np
import pandas as pd
import pytest

import apiece
from apiece import synthetic
from apiece.errors import DataError
from apiece.reporting import _findings
from apiece.reporting._payload import unpack

from conftest import make_blobs, make_line

OPTIONS = {"sizes": (8, 40), "random_state": 0, "progress": False}


def report(run, to, **options):
    """Write a report and read its data; the law of the loss takes time, so only where asked."""
    options.setdefault("aggregate", False)
    text = apiece.report(run, to=to / "report.html", **options).read_text("utf-8")
    found = re.search(r'id="data">([^<]*)</script>', text)
    return unpack(base64.b64decode(found[1]))


def table(n=80):
    rng = np.random.default_rng(0)
    label = np.arange(n) % 2
    frame = pd.DataFrame({"size": rng.normal(size=n) + label, "width": rng.normal(size=n)})
    frame["label"] = np.where(label, "cat", "dog")
    frame["note"] = [f"animal {i}" for i in range(n)]
    return frame


@pytest.fixture
def file(tmp_path):
    table().to_csv(tmp_path / "animals.csv", index=False)
    return tmp_path / "animals.csv"


def from_file(file, **options):
    return apiece.Dataset.from_csv(file, target="label", drop="note", **options)


@pytest.mark.slow
def test_advice_and_the_law_of_the_loss_are_there_unasked(tmp_path):
    dataset = make_blobs(shift=0.6)
    run = apiece.collect(dataset, samples=20, **OPTIONS)
    laws = apiece.fit(run)
    description, arrays = report(run, tmp_path, laws=laws, dataset=dataset, aggregate=True)
    words = [description["advices"][code] for code in arrays["advice"]]
    advice = apiece.advise(run, dataset=dataset)
    assert words == advice["advice"].tolist()
    assert description["head"]["advice"]["headline"] == advice.headline()
    assert "all" in [part[0] for part in description["head"]["advice"]["effect"]]
    assert sum(count for _, count in description["advice_counts"]) == len(laws)
    assert (
        description["loss"]["curve"]
        == apiece.aggregate(run).mean(description["loss"]["curve_k"]).tolist()
    )


def test_laws_and_data_of_another_run_are_refused(tmp_path):
    mine, other = make_blobs(), make_blobs(seed=1)
    run, foreign = (apiece.collect(data, samples=6, **OPTIONS) for data in (mine, other))
    for shown in (run, run.contributions()):
        with pytest.raises(DataError, match=r"laws are of another run \(dataset .*run.laws\(\)"):
            report(shown, tmp_path, laws=foreign.laws())
    again = apiece.collect(mine, samples=6, **{**OPTIONS, "random_state": 1})
    with pytest.raises(DataError, match=r"another run \(seed 1, here 0\)"):
        report(run, tmp_path, laws=again.laws())
    with pytest.raises(DataError, match="this is another dataset"):
        report(run, tmp_path, dataset=other)
    assert not (tmp_path / "report.html").exists()
    report(run, tmp_path, laws=run.laws(), advice=False)


def test_they_are_left_out_where_that_is_asked(tmp_path):
    run = apiece.collect(make_blobs(), samples=6, **OPTIONS)
    description, arrays = report(run, tmp_path, advice=False)
    assert "advices" not in description
    assert "advice" not in arrays
    assert "curve" not in description["loss"]


def test_contributions_without_losses_have_no_law_of_the_loss_and_the_page_says_so(tmp_path):
    truth = synthetic.random_laws(5, random_state=0)
    description, _ = report(synthetic.sample(truth, samples=30), tmp_path, aggregate=True)
    assert any("no law of the loss" in note for note in description["notes"])
    assert description["loss"] is None


def test_contributions_without_data_give_no_advice_and_the_page_says_so(tmp_path):
    truth = synthetic.random_laws(5, random_state=0)
    description, _ = report(synthetic.sample(truth, samples=30), tmp_path, laws=truth)
    assert any("no advice" in note for note in description["notes"])
    assert "advices" not in description


@pytest.mark.slow
def test_the_file_that_was_collected_from_is_found_again(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    apiece.collect(from_file("animals.csv"), samples=6, to=tmp_path / "run", **OPTIONS)
    monkeypatch.chdir("/")
    description, _ = report(apiece.open(tmp_path / "run"), tmp_path)
    texts = {column["name"]: column.get("text") for column in description["columns"]}
    assert list(texts) == ["size", "width", "label", "note"]
    assert texts["note"] == [f"animal {name}" for name in description["ids"]]
    assert description["near"]["by"] == "features"
    assert all(note.startswith("Advice") for note in description["notes"])


@pytest.mark.slow
def test_candidates_bring_their_own_rows(file, tmp_path):
    more = table(12).assign(note=[f"offer {i}" for i in range(12)])
    more.to_csv(tmp_path / "offers.csv", index=False)
    run = apiece.collect(
        from_file(file), candidates=tmp_path / "offers.csv", points=[], samples=6, **OPTIONS
    )
    description, _ = report(run, tmp_path)
    texts = {column["name"]: column.get("text") for column in description["columns"]}
    assert texts["note"] == [f"offer {i}" for i in range(12)]


def test_a_file_that_has_changed_or_gone_is_reported(file, tmp_path):
    run = apiece.collect(from_file(file), samples=6, **OPTIONS)
    table(79).to_csv(file, index=False)
    description, _ = report(run, tmp_path)
    assert any("another dataset" in note for note in description["notes"])
    file.unlink()
    description, _ = report(run, tmp_path)
    assert any("animals.csv" in note for note in description["notes"])
    assert description["columns"] == []


def test_data_from_memory_is_not_looked_for(tmp_path):
    run = apiece.collect(make_line(), model="ridge", samples=6, **OPTIONS)
    description, _ = report(run, tmp_path)
    assert any("Pass dataset=" in note for note in description["notes"])
    assert "advices" not in description


def test_rows_are_not_judged_where_that_would_take_long(tmp_path, monkeypatch):
    dataset = make_blobs(shift=0.6)
    run = apiece.collect(dataset, samples=20, **OPTIONS)
    monkeypatch.setattr(_findings, "_MOST_ASKED", 10)
    description, _ = report(run, tmp_path, dataset=dataset)
    assert any("There is no advice" in note for note in description["notes"])
    assert "advices" not in description


def test_the_demo_is_found_again():
    dataset, _ = apiece.data.load_demo(flipped=0.2, random_state=5)
    assert apiece.data.read_again(dataset.source, None).fingerprint == dataset.fingerprint


def test_pictures_of_the_file_that_was_collected_from_are_shown(tmp_path):
    blobs = make_blobs(n=60)
    X, y = blobs.X, blobs.y
    images = np.random.default_rng(0).integers(0, 255, (len(y), 4, 4), dtype=np.uint8)
    np.savez(tmp_path / "pictures.npz", X=X, y=y, images=images)
    dataset = apiece.Dataset.from_npz(tmp_path / "pictures.npz")
    run = apiece.collect(dataset, samples=3, to=tmp_path / "run", **OPTIONS)
    _, arrays = report(run, tmp_path, advice=False)
    assert (np.diff(arrays["picture_start"]) > 0).all()
