from __future__ import annotations

import logging
import math
import time

import pytest

import apiece
from apiece._base.progress import Tracker, track, tracking

SETTINGS = {"model": "tree", "sizes": (6, 20), "samples": 3, "random_state": 3, "progress": False}


def test_events_tell_what_is_done_and_how_long_it_will_take(blobs):
    events = []
    run = apiece.collect(blobs, on_progress=events.append, **SETTINGS)
    counted = [event for event in events if not event.message]
    assert [event.done for event in counted] == sorted(event.done for event in counted)
    assert counted[0].done == 0
    assert math.isnan(counted[0].remaining)
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
