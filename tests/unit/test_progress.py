from __future__ import annotations

import io
import logging
import sys
import time
import types
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import apiece
from apiece._base import progress
from apiece._base.progress import Bar, ProgressEvent, Tracker, track, tracking
from apiece.estimators.backtest import backtest

SETTINGS = {"model": "tree", "sizes": (6, 20), "samples": 3, "random_state": 3, "progress": False}


def test_events_tell_what_is_done_and_how_long_it_will_take(blobs):
    events = []
    run = apiece.collect(blobs, on_progress=events.append, **SETTINGS)
    counted = [event for event in events if not event.message]
    assert [event.done for event in counted] == sorted(event.done for event in counted)
    assert counted[0].done == 0
    assert counted[0].remaining > 0.0  # as estimated
    assert counted[-1].done == counted[-1].total == run.progress().n_contributions
    assert counted[-1].remaining == 0.0
    assert counted[-1].elapsed > 0.0
    assert any("engine: refit" in event.message for event in events)


def test_an_event_comes_every_two_seconds_though_no_step_is_done():
    events = []
    with tracking(False, events.append, title="working", unit="steps") as tracker:
        tracker.start(2)
        time.sleep(5.0)
        tracker.advance()
    assert len(events) >= 4
    assert [event.done for event in events] == [*[0] * (len(events) - 1), 1]
    assert events[-1].remaining >= 4.0


def test_an_exception_of_the_callback_ends_the_work_and_what_was_done_is_kept(blobs, tmp_path):
    class Enough(Exception):
        pass

    def stop(event):
        if event.done:
            raise Enough

    settings = {**SETTINGS, "engine": "refit", "samples": 12}
    with pytest.raises(Enough):
        apiece.collect(blobs, to=tmp_path / "run", on_progress=stop, **settings)
    partly = apiece.open(tmp_path / "run")
    assert 0 < partly.progress().n_contributions < partly.progress().n_planned
    assert apiece.collect(blobs, to=tmp_path / "run", **settings).is_complete


def test_an_exception_between_two_steps_is_raised_where_the_work_is_done():
    def stop(event):
        if event.elapsed > 1.0:
            raise RuntimeError("enough")

    with tracking(False, stop, title="working", unit="steps") as tracker:
        tracker.start(10)
        time.sleep(3.0)
        with pytest.raises(RuntimeError, match="enough"):
            tracker.advance()


def test_decisions_go_to_the_log_of_the_package(blobs, caplog):
    caplog.set_level(logging.INFO, logger="apiece")
    apiece.collect(blobs, **SETTINGS)
    assert any("engine: refit" in record.message for record in caplog.records)
    assert {record.name for record in caplog.records} == {"apiece"}


def test_nothing_is_printed_unless_asked_for_or_on_a_terminal(blobs, capsys):
    apiece.collect(blobs, **SETTINGS)
    assert capsys.readouterr().err == ""
    apiece.collect(blobs, **{**SETTINGS, "progress": None})  # standard error is not a terminal here
    assert capsys.readouterr().err == ""
    apiece.collect(blobs, **{**SETTINGS, "progress": True})
    assert "engine: refit" in capsys.readouterr().err


def test_steps_deep_inside_are_counted_for_the_caller_that_tracks():
    def deep():
        return [2 * item for item in track("abc")]

    assert deep() == ["aa", "bb", "cc"]
    events = []
    with tracking(False, events.append, title="doubling", unit="letters"):
        deep()
    assert [event.done for event in events] == [0, 1, 2, 3]
    assert str(events[1]).startswith("doubling: 1 of 3 letters, 0:00 elapsed")


def test_a_tracker_that_nobody_follows_counts_in_silence():
    with Tracker() as tracker:
        tracker.start(3)
        tracker.advance()
        assert not tracker.is_followed


def test_other_verbs_count_their_steps_too(blobs):
    run = apiece.collect(blobs, **{**SETTINGS, "model": "logistic", "samples": 12})
    seen = {}

    def follow(name):
        seen[name] = []
        return {"on_progress": seen[name].append, "progress": False}

    apiece.fit(run, backtest=True, **follow("fit"))
    backtest(run.contributions(), **follow("backtest"))
    apiece.select(run, take=3, at=20, redundancy="aware", dataset=blobs, **follow("select"))
    apiece.advise(run, dataset=blobs, **follow("advise"))
    apiece.plan(blobs, sizes=(10, 20), **follow("plan"))
    for name, events in seen.items():
        assert events[-1].done > 0, name
        assert events[-1].total > 0, name
    assert seen["backtest"][-1].unit == "estimators"


def test_a_bar_on_a_terminal_shows_what_is_done():
    terminal = Console(
        file=io.StringIO(), force_terminal=True, width=120, _environ={"TERM": "xterm"}
    )
    with Tracker([Bar(console=terminal)], title="working", unit="steps") as tracker:
        tracker.start(4)
        tracker.advance(3)
    shown = terminal.file.getvalue()
    assert "working" in shown
    assert "3 of 4" in shown
    assert "elapsed" in shown


def test_a_notebook_shows_one_line_that_changes(monkeypatch):
    class Display:
        shown: ClassVar[list] = []

        def update(self, data, raw):
            self.shown.append(data["text/plain"])

    def display(data, raw, display_id):
        Display.shown.append(data["text/plain"])
        return Display()

    kernel = type("ZMQInteractiveShell", (), {})()
    package = types.SimpleNamespace(get_ipython=lambda: kernel)
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    with tracking(True, title="working", unit="steps") as tracker:
        tracker.start(4)
        tracker.advance(3)
    assert Display.shown[-1].startswith("working: 3 of 4 steps, 0:00 elapsed")


def test_work_inside_work_that_is_tracked_reports_to_the_same_tracker():
    events = []
    with tracking(False, events.append, title="outer", unit="steps") as outer:
        with tracking(None, title="inner", unit="parts") as inner:
            assert inner is outer
        with tracking(False, title="inner", unit="parts") as inner:
            assert inner is not outer


def test_the_remaining_time_is_right_between_batches(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    events = []
    tracker = Tracker([events.append])
    tracker.start(10, done=2)
    for batch in (1.0, 1.2, 0.8, 1.0, 1.0, 1.2, 0.8, 1.0):  # seconds; heartbeats in between
        for _ in range(4):
            now[0] += batch / 4
            tracker.say("still at work")
        tracker.advance()
    known = [event for event in events if event.done > 2 and event.done < 10]
    ratio = [event.remaining / (8.0 - event.elapsed) for event in known if event.elapsed < 7.4]
    assert min(ratio) > 1 / 1.5
    assert max(ratio) < 1.5


def test_before_the_first_step_the_remaining_time_is_the_expected_one(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    events = []
    tracker = Tracker([events.append])
    tracker.expected = 10.0
    for seconds in (0.0, 3.0, 6.0, 30.0):
        now[0] = seconds
        if not seconds:
            tracker.start(2)
        tracker.say("still at work")
    assert [event.remaining for event in events[1:]] == [10.0, 7.0, 4.0, 7.5]
    now[0] = 32.0
    tracker.advance()
    assert events[-1].remaining == 32.0  # at the pace so far


@pytest.mark.parametrize("is_terminal", [True, False])
def test_messages_break_between_words_on_a_terminal_and_not_in_a_pipe(is_terminal):
    said = io.StringIO()
    console = Console(file=said, width=40, force_terminal=is_terminal, highlight=False)
    bar = Bar(console=console)
    message = "plan: 2,364,570 contributions of 20,640 points from 241 training sets"
    bar(ProgressEvent("collecting", 0, 1, "contributions", 0.0, 0.0, message))
    lines = said.getvalue().splitlines()
    assert " ".join(line.strip() for line in lines) == message
    assert max(map(len, lines)) <= 40 if is_terminal else lines == [message]


def test_reading_a_table_and_writing_a_report_are_tracked(tmp_path, monkeypatch):
    titles = []

    class Recorded(Tracker):
        def __init__(self, listeners=(), *, title="", unit=""):
            super().__init__(listeners, title=title, unit=unit)
            titles.append(title)

    monkeypatch.setattr(progress, "Tracker", Recorded)
    frame = pd.DataFrame({"a": np.arange(40.0), "y": np.arange(40) % 2})
    dataset = apiece.Dataset.from_pandas(frame, target="y")
    run = apiece.collect(dataset, **SETTINGS)
    apiece.report(run, to=tmp_path / "report.html", dataset=dataset, advice=False)
    assert titles[0] == "reading the table"
    assert titles[-1] == "writing the report"
