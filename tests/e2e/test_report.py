"""`apiece report` and `apiece serve` as a user runs them."""

from __future__ import annotations

import base64
import http.client
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from apiece.cli import cli
from apiece.reporting._payload import unpack


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with a table of texts and a finished run."""
    folder = tmp_path_factory.mktemp("work")
    rng = np.random.default_rng(0)
    label = np.arange(80) % 2
    frame = pd.DataFrame(
        {
            "name": [f"r{i}" for i in range(80)],
            "age": rng.normal(size=80) + label,
            "review": [f"review number {i}, of some length" for i in range(80)],
            "label": label,
        }
    )
    frame.to_csv(folder / "reviews.csv", index=False)
    result = run(
        *("collect", folder / "reviews.csv", "--target", "label", "--ids", "name"),
        *("--drop", "review", "--sizes", "8:30", "--samples", "8", "--random-state", "1"),
        *("--jobs", "1", "--to", folder / "run", "--quiet"),
    )
    assert result.exit_code == 0, result.output
    return folder


def run(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


def data_of(path):
    found = re.search(r'id="data">([^<]*)</script>', path.read_text("utf-8"))
    return unpack(base64.b64decode(found[1]))


def test_a_report_shows_the_rows_of_a_table(workplace):
    out = workplace / "reviews.html"
    result = run(
        *("report", workplace / "run", "-o", out, "--title", "Reviews <2026>"),
        *("--data", workplace / "reviews.csv", "--ids", "name"),
    )
    assert result.exit_code == 0, result.output
    assert f"open {out}" in result.stdout
    assert "<title>Reviews &lt;2026&gt;</title>" in out.read_text("utf-8")
    description, _ = data_of(out)
    texts = {column["name"]: column.get("text") for column in description["columns"]}
    assert list(texts) == ["age", "review", "label"]
    for name, text in zip(description["ids"], texts["review"], strict=True):
        assert text == f"review number {name[1:]}, of some length"


def test_a_report_finds_the_file_by_itself_and_advises(workplace):
    out = workplace / "found.html"
    assert run("report", workplace / "run", "-o", out, "--quiet").exit_code == 0
    description, arrays = data_of(out)
    texts = {column["name"]: column.get("text") for column in description["columns"]}
    assert list(texts) == ["age", "review", "label"]
    assert texts["review"][0] == f"review number {description['ids'][0][1:]}, of some length"
    assert len(arrays["advice"]) == len(description["ids"])
    assert "curve" in description["loss"]


def test_json_tells_where_the_report_is(workplace):
    result = run("report", workplace / "run", "-o", workplace / "a.html", "--json", "--quiet")
    said = json.loads(result.stdout)
    assert said["report"] == str(workplace / "a.html")
    assert said["bytes"] == (workplace / "a.html").stat().st_size


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--ids", "nme", "--data", "reviews.csv"), 2, "no column 'nme'"),
        (("--data", "nowhere.csv"), 2, "nowhere.csv"),
        (("--data", "reviews.csv"), 2, "has none of the points"),
    ],
)
def test_bad_tables_are_reported_and_leave_no_file(workplace, words, code, said, monkeypatch):
    monkeypatch.chdir(workplace)
    result = run("report", "run", "-o", "bad.html", *words)
    assert result.exit_code == code
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert not (workplace / "bad.html").exists()


def test_a_folder_that_is_no_run_is_reported(tmp_path):
    for command in ("report", "serve"):
        result = run(command, tmp_path)
        assert result.exit_code == 1
        assert "is not a run" in result.stderr


def test_the_token_is_not_among_the_words_of_the_browsers_command(workplace, monkeypatch):
    opened = []

    def open_file(address):
        path = Path(address.removeprefix("file://"))
        opened.append((address, path.read_text(), path.parent.stat().st_mode & 0o777))
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", open_file)
    result = run("serve", workplace / "run", "--port", 0, "--json")
    url = json.loads(result.stdout)["url"]
    (address, page, mode), token = opened[0], url.partition("token=")[2]
    assert token not in address
    assert url in page
    assert mode == 0o700
    assert not Path(address.removeprefix("file://")).exists()


def test_serve_answers_and_ends_cleanly_on_ctrl_c(workplace):
    words = ["serve", str(workplace / "run"), "--port", "0", "--no-open", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from apiece.cli import main; main()", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = []
        while "}" not in "".join(lines):
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()
        url = json.loads("".join(lines))["url"]
        host, _, token = url[7:].partition("/?token=")
        connection = http.client.HTTPConnection(host, timeout=30)
        connection.request("GET", "/progress")
        refusal = connection.getresponse()
        refusal.read()
        assert refusal.status == 403
        connection.request("GET", f"/progress?token={token}")
        assert "version" in json.loads(connection.getresponse().read())
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert "Traceback" not in said
    assert said.strip().endswith("ended")


def test_a_table_is_judged_before_it_is_collected_and_as_its_run_is(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    options = ("--drop", "review", "--ids", "name", "--samples", "5", "--jobs", "1")
    first = run("report", "reviews.csv", "--target", "label", *options, "-o", "first.html")
    assert first.exit_code == 0, first.output
    lines = first.output.splitlines()
    advice = next(
        i for i, line in enumerate(lines) if re.match(r"Nothing to relabel|Relabel|Drop", line)
    )
    model = next(i for i, line in enumerate(lines) if line.startswith("model: logistic, on rows"))
    plan = next(i for i, line in enumerate(lines) if line.startswith("plan:"))
    assert model < advice < plan
    again = run("report", "runs/reviews", "-o", "again.html")
    assert again.exit_code == 0, again.output
    assert again.stdout.splitlines()[:2] == [lines[model], lines[advice]]
    (one, _), (other, _) = data_of(Path("first.html")), data_of(Path("again.html"))
    assert one["head"]["advice"] == other["head"]["advice"]
