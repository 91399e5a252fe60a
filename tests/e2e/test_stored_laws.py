"""Stored laws are used while they are those of what the run holds, by every command alike."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.testing import assert_array_equal

import apiece
from apiece.cli import cli
from apiece.errors import ApieceError, StoreError
from apiece.estimators import Bayes, Likelihood
from apiece.laws import Series
from apiece.reporting import serve
from apiece.reporting._payload import unpack
from apiece.reporting._serve import Follower

READING = ("--target", "label", "--ids", "name", "--validation", "20")


def run(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


def rows_of(*words):
    said = run(*words, "--json")
    assert said.exit_code == 0, said.output
    return json.loads(said.stdout)


def write_data(path, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["age", "score"])
    frame["source"] = np.array(["lab", "shop", "web"])[np.arange(60) % 3]
    frame["name"] = [f"p{i:02d}" for i in range(60)]
    frame["label"] = np.where(frame["age"] + 0.7 * rng.normal(size=60) > 0, "yes", "no")
    frame.to_csv(path, index=False)


def collect(data, to, samples, *more):
    said = run(
        *("collect", data, *READING, "--sizes", "6:14", "--samples", samples, *more),
        *("--random-state", "1", "--jobs", "1", "--to", to, "--quiet"),
    )
    assert said.exit_code == 0, said.output


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Small and grown runs of points and of groups, and a run of other data."""
    folder = tmp_path_factory.mktemp("made")
    for name, seed in (("data", 0), ("other", 1)):
        write_data(folder / f"{name}.csv", seed)
    collect(folder / "data.csv", folder / "run", 8)
    collect(folder / "data.csv", folder / "groups", 8, "--groups", "source")
    collect(folder / "other.csv", folder / "foreign", 8)
    apiece.open(folder / "foreign").laws()
    return folder


@pytest.fixture
def place(made, tmp_path):
    """A copy of all that, to be changed."""
    return shutil.copytree(made, tmp_path / "place")


def grow(place):
    collect(place / "data.csv", place / "run", 40)
    collect(place / "data.csv", place / "groups", 40, "--groups", "source")


COMMANDS = {
    "show": ("show", "{run}"),
    "show --point": ("show", "{run}", "--point", "p00"),
    "value": ("value", "{run}"),
    "select": ("select", "{run}", "--at", "12", "--take", "5"),
    "compare": ("compare", "{run}", "{values}"),
    "crossings": ("crossings", "{run}", "--pair", "p00", "p01", "--sizes", "1:100000"),
    "exchange": ("exchange", "{groups}"),
    "movers": ("movers", "{run}"),
    "means": ("means", "{run}"),
    "boundary": ("boundary", "{data}", *READING, "--laws", "{run}"),
}
REPORTS = {"report", "serve"}  # tested further below
OF_RUNS_WITHOUT_LAWS = {
    "advise": ("advise", "{run}"),
    "aggregate": ("aggregate", "{run}"),
    "backtest": ("backtest", "{run}"),
    "contributions": ("contributions", "{run}"),
}
WITHOUT_A_RUN = {
    *("baseline", "collect", "demo", "experiment", "fit", "plan"),
    *("reproduce", "suspects", "theory"),
}
COMMANDS |= OF_RUNS_WITHOUT_LAWS
WITH_LAWS = [name for name in COMMANDS if name not in OF_RUNS_WITHOUT_LAWS]


def test_every_command_is_tested_with_stored_laws_or_reads_none():
    tested = {words[0] for words in COMMANDS.values()}
    assert set(cli.commands) == tested | REPORTS | WITHOUT_A_RUN
    for name in WITHOUT_A_RUN - {"fit"}:  # fit makes the laws
        assert "run_or_table" not in {param.name for param in cli.commands[name].params}


def words_of(command, place):
    known = {name: place / name for name in ("run", "groups")}
    known |= {"data": place / "data.csv", "values": place / "values.csv"}
    ids = apiece.open(place / "run").ids
    table = pd.DataFrame({"point": ids, "value": np.arange(len(ids)) % 7})
    table.to_csv(place / "values.csv", index=False)
    return [word.format(**known) for word in COMMANDS[command]]


@pytest.mark.parametrize("command", WITH_LAWS)
def test_a_grown_run_gives_new_numbers_and_says_so(command, place):
    words = words_of(command, place)
    small = rows_of(*words, "--quiet")
    grow(place)
    said = run(*words, "--json")
    assert "fitting them again by bayes" in said.stderr
    grown = json.loads(said.stdout)
    assert grown != small
    for name in ("run", "groups"):
        (place / name / "laws.parquet").unlink(missing_ok=True)
    assert without_time(rows_of(*words, "--quiet")) == without_time(grown)


@pytest.mark.parametrize("command", OF_RUNS_WITHOUT_LAWS)
def test_other_commands_of_a_run_do_not_read_stored_laws(command, place):
    words = words_of(command, place)
    expected = rows_of(*words, "--quiet")
    (place / "run" / "laws.parquet").write_bytes(b"damaged")
    assert rows_of(*words, "--quiet") == expected


def without_time(found):
    """Return a result without the time at which its laws were fitted."""
    if isinstance(found, dict) and "summary" in found:
        del found["summary"]["attrs"]["created"]
    return found


@pytest.mark.parametrize("command", [name for name in WITH_LAWS if name != "exchange"])
def test_laws_of_another_dataset_are_refused_with_what_to_type(command, place):
    words = words_of(command, place)
    shutil.copy(place / "foreign" / "laws.parquet", place / "run" / "laws.parquet")
    said = run(*words)
    assert said.exit_code == 1
    assert "holds laws of another run (dataset" in said.stderr
    assert f"apiece fit {place / 'run'}" in said.stderr
    assert run("fit", place / "run", "--quiet").exit_code == 0
    assert run(*words, "--quiet").exit_code == 0


def test_laws_of_points_are_refused_for_a_run_of_groups(place):
    apiece.open(place / "run").laws()
    shutil.copy(place / "run" / "laws.parquet", place / "groups" / "laws.parquet")
    said = run("exchange", place / "groups")
    assert said.exit_code == 1
    assert "holds laws of another run" in said.stderr


def test_a_report_follows_a_grown_run_and_refuses_foreign_laws(place):
    words = ("report", place / "run", "-o", place / "report.html")
    assert run(*words, "--quiet").exit_code == 0
    small = (place / "report.html").read_bytes()
    grow(place)
    said = run(*words)
    assert "fitting them again by bayes" in said.stderr
    assert (place / "report.html").read_bytes() != small
    shutil.copy(place / "foreign" / "laws.parquet", place / "run" / "laws.parquet")
    assert "holds laws of another run" in run(*words).stderr


def test_a_served_report_follows_a_grown_run_and_refuses_foreign_laws(place):
    apiece.open(place / "run").laws()
    follower = Follower(place / "run")
    assert follower.update()
    small = unpack(follower.data)[1]["n_samples"].sum()
    assert not follower.update()
    grow(place)
    assert follower.update()
    assert unpack(follower.data)[1]["n_samples"].sum() > 2 * small
    assert not follower.update()
    shutil.copy(place / "foreign" / "laws.parquet", place / "run" / "laws.parquet")
    assert not follower.update()
    assert "holds laws of another run" in follower.news["trouble"]


def test_python_and_the_commands_give_the_same_numbers(place):
    said = run("fit", place / "run", "--method", "likelihood", "--quiet")
    assert said.exit_code == 0
    for samples in (8, 40):
        collect(place / "data.csv", place / "run", samples)
        opened = apiece.open(place / "run")
        assert opened.laws().attrs["estimator"] == "likelihood"
        for words, table in (
            (("value", place / "run"), apiece.value(opened).sort_values("value", ascending=False)),
            (
                ("select", place / "run", "--at", 12, "--redundancy", "none"),
                apiece.select(opened, at=12, take=20, redundancy="none"),
            ),
        ):
            rows = pd.DataFrame(rows_of(*words, "--quiet")).set_index("point")
            assert_array_equal(rows["value"], table.loc[rows.index, "value"])


def test_stored_laws_are_fitted_again_with_their_settings(place, caplog):
    opened = apiece.open(place / "run")
    fitted = opened.laws(Likelihood(Series((2, 4)), bound=1.5), refit=True)
    assert opened.laws().attrs == fitted.attrs
    grow(place)
    opened = apiece.open(place / "run")
    with caplog.at_level(logging.INFO, logger="apiece.laws"):
        again = opened.laws()
    before, after = fitted.attrs["fitted_to"], again.attrs["fitted_to"]
    assert f"was fitted to {before['n_contributions']:,} contributions" in caplog.text
    assert f"the run holds {after['n_contributions']:,}" in caplog.text
    expected = Likelihood(Series((2, 4)), bound=1.5).fit(opened.contributions())
    assert_array_equal(again.params, expected.params)
    caplog.clear()
    assert_array_equal(apiece.open(place / "run").laws().params, expected.params)
    assert not caplog.text


def test_a_backtest_and_features_are_part_of_what_is_fitted_again(place):
    data, folder = place / "data.csv", place / "shared"
    collect(data, folder, 8, "--share", 5)
    fit = ("fit", folder, "--family", "power", "--data", data, *READING, "--backtest")
    assert run(*fit, "--quiet").exit_code == 0
    stored = apiece.open(folder).laws()
    assert stored.has_backtest
    assert stored.attrs["recipe"]["features"]
    collect(data, folder, 20, "--share", 5)
    again = apiece.open(folder).laws()
    assert again.has_backtest
    dataset = apiece.Dataset.from_csv(data, target="label", ids="name", validation=20)
    expected = Bayes("power").fit(apiece.open(folder), dataset=dataset)
    assert_array_equal(again.params, expected.params)
    collect(data, folder, 24, "--share", 5)
    data.unlink()
    with pytest.raises(StoreError, match=r"apiece fit .* --method bayes --data FILE"):
        apiece.open(folder).laws()


def test_outdated_laws_whose_estimator_cannot_be_rebuilt_are_refused(place):
    opened = apiece.open(place / "run")
    prior = opened.laws("likelihood")
    opened.laws(Bayes(prior=prior), refit=True)
    assert opened.laws().attrs["settings"]["prior"] == "likelihood"
    grow(place)
    with pytest.raises(StoreError, match=r"cannot be fitted again from what it says.*apiece fit"):
        apiece.open(place / "run").laws()


def test_laws_that_do_not_say_what_they_rest_on_are_refused(place):
    opened = apiece.open(place / "run")
    Bayes().fit(opened.contributions()).save(place / "run" / "laws.parquet")
    with pytest.raises(StoreError, match="does not say which contributions"):
        opened.laws()
    opened.laws(refit=True).select(slice(3)).save(place / "run" / "laws.parquet")
    with pytest.raises(StoreError, match="of other points"):
        opened.laws()


def test_laws_of_another_version_are_fitted_again(place, monkeypatch):
    stored = apiece.open(place / "run").laws()
    monkeypatch.setattr("apiece.store._laws.version", lambda: "99.0")
    again = apiece.open(place / "run").laws()
    assert again is not stored
    assert_array_equal(again.params, stored.params)


def test_looking_at_an_unfinished_run_does_not_fix_its_answer(place):
    begun = shutil.copytree(place / "run" / "shards", place / "begun")
    grow(place)
    shutil.rmtree(place / "run" / "shards")
    shutil.move(begun, place / "run" / "shards")
    said = run("show", place / "run")
    assert said.exit_code == 0, said.output
    assert "this run is unfinished" in said.stderr
    assert not (place / "run" / "laws.parquet").exists()
    few = apiece.open(place / "run").laws()
    grow(place)
    whole = apiece.open(place / "run").laws()
    assert whole.n_samples.sum() > few.n_samples.sum()
    assert (place / "run" / "laws.parquet").exists()


def test_laws_asked_for_by_another_method_leave_the_stored_ones(place):
    opened = apiece.open(place / "run")
    opened.laws()
    assert opened.laws("log_ols").attrs["estimator"] == "log_ols"
    assert apiece.Laws.load(place / "run" / "laws.parquet").attrs["estimator"] == "bayes"
    assert opened.laws().attrs["estimator"] == "bayes"


def test_an_estimator_reads_a_run_as_it_reads_contributions(place):
    opened = apiece.open(place / "run")
    laws = Bayes().fit(opened)
    assert_array_equal(laws.params, Bayes().fit(opened.contributions()).params)
    assert_array_equal(laws.labels, opened.labels)
    with pytest.raises(ApieceError, match=r"holds no contributions .* expected a run"):
        Bayes().fit(opened.labels)


def test_laws_of_a_run_in_an_object_store_are_fitted_and_not_stored(made, caplog):
    dataset = apiece.Dataset.from_csv(made / "data.csv", target="label", ids="name")
    place = "memory://stored-laws/run"
    held = apiece.collect(
        dataset, sizes=(6, 14), samples=8, random_state=0, progress=False, to=place
    )
    with caplog.at_level(logging.INFO, logger="apiece.laws"):
        assert held.laws().n_points == len(held.ids)
    assert "in an object store they are not kept" in caplog.text
    assert held.laws() is held.laws()


def test_a_run_in_memory_is_fitted_once(made):
    dataset = apiece.Dataset.from_csv(made / "data.csv", target="label", ids="name")
    held = apiece.collect(dataset, sizes=(6, 14), samples=8, random_state=0, progress=False)
    assert held.laws() is held.laws()
    assert held.laws("likelihood").attrs["estimator"] == "likelihood"


@contextmanager
def not_writable(folder):
    """Take away the right to write, also from root, who becomes nobody for a while."""
    is_root = os.geteuid() == 0
    for path in folder.parents:
        if "pytest" in str(path):
            os.chmod(path, 0o755)
    os.chmod(folder, 0o555)
    try:
        if is_root:
            os.seteuid(65534)
        yield
    finally:
        if is_root:
            os.seteuid(0)
        os.chmod(folder, 0o755)


@pytest.mark.skipif(os.name != "posix", reason="permissions differ")
def test_a_run_that_cannot_be_written_is_shown_and_valued(place):
    with not_writable(place / "run"):
        for words in (("show", place / "run"), ("value", place / "run")):
            said = run(*words)
            assert said.exit_code == 0, said.output
            assert "laws are used without being stored: cannot write" in said.stderr
    assert not (place / "run" / "laws.parquet").exists()


def test_serve_takes_a_method_that_is_known(place):
    with pytest.raises(ApieceError, match="Did you mean 'likelihood'"):
        serve(place / "run", ready=threading.Event().set, method="likelihod")


def test_a_pipe_that_is_closed_early_ends_a_command_silently(made):
    command = f"{sys.executable} -m apiece show {made / 'run'} | head -n 1; echo ${{PIPESTATUS[0]}}"
    said = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "error" not in said.stderr
    assert said.stdout.splitlines()[0].startswith("<Run at")
    assert said.stdout.splitlines()[-1] == "0"
