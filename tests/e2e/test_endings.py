"""How commands end: pipes that close, full disks, terminals without Unicode, interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

import apiece
from apiece.__main__ import end_at_once
from apiece.cli._common import _interruptible

from conftest import make_blobs

NAMES = [f"\u540d\u524d-{i}" for i in range(40)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("endings") / "run"
    dataset = make_blobs(n=40)
    named = apiece.Dataset.from_arrays(
        dataset.X, dataset.y, X_val=dataset.X_val, y_val=dataset.y_val, ids=NAMES
    )
    run = apiece.collect(named, sizes=(5, 20), samples=10, to=folder, random_state=0)
    run.laws()
    return folder


def start(*words, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **options.pop("env", {})}
    return subprocess.Popen(
        [sys.executable, "-m", "apiece", *(str(word) for word in words)],
        env=environment,
        stderr=subprocess.PIPE,
        **options,
    )


def test_a_pipe_that_closes_early_ends_a_command_quietly(run):
    reader, writer = os.pipe()
    os.close(reader)
    process = start("show", run, stdout=writer)
    os.close(writer)
    said = process.communicate(timeout=120)[1]
    assert (process.returncode, said) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_under_stdout_is_named(run):
    with open("/dev/full", "w") as full:
        process = start("show", run, stdout=full)
        said = process.communicate(timeout=120)[1].decode()
    assert process.returncode == 1
    assert "No space left" in said
    assert "Unexpected" not in said
    assert "Exception ignored" not in said


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_ids_that_a_terminal_cannot_show_do_not_end_a_command(run, encoding):
    env = {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"}
    process = start("show", run, env=env, stdout=subprocess.PIPE)
    shown, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    if encoding == "ascii":  # which click takes for a terminal that was not set up
        assert NAMES[0][:3].encode() in shown
    else:
        assert b"\\u540d\\u524d-" in shown


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.15, 0.4, 0.8, 1.2, 1.6, 2.2])
def test_an_interrupt_at_any_time_ends_with_130_and_no_traceback(run, pause):
    process = start("backtest", run, stdout=subprocess.DEVNULL, start_new_session=True)
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[1].decode()
    if (pause < 0.3 and process.returncode == -signal.SIGINT) or "<frozen site>" in said:
        return  # before a line of ours ran
    assert process.returncode in (0, 130), said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.85, 0.9, 0.95, 1.0])
def test_an_interrupt_while_a_command_ends_is_not_a_signal(run, share):
    began = time.monotonic()
    process = start("show", run, stdout=subprocess.DEVNULL)
    process.communicate(timeout=120)
    assert process.returncode == 0
    lasted = time.monotonic() - began
    process = start("show", run, stdout=subprocess.DEVNULL, start_new_session=True)
    time.sleep(share * lasted)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[1].decode()
    assert process.returncode in (0, 130), said
    assert "Traceback" not in said


class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def turned_into_another_error():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("partially initialized module") from None


def turned_into_an_exit():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        sys.exit(1)


def lost_while_an_object_was_deleted():
    Interrupted()


@pytest.mark.parametrize(
    "way", [turned_into_another_error, turned_into_an_exit, lost_while_an_object_was_deleted]
)
def test_an_interrupt_that_a_library_hides_is_still_an_interrupt(way, capsys):
    before = signal.signal(signal.SIGINT, end_at_once)
    try:
        with pytest.raises(KeyboardInterrupt), _interruptible():
            way()
        assert signal.getsignal(signal.SIGINT) is end_at_once
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == ""


INTERRUPTED_IN_EXEC = """
import signal, click
from apiece.__main__ import end_at_once
from apiece.cli._common import common

@click.command()
@common
def command(**_):
    exec("signal.raise_signal(signal.SIGINT)")  # as where a data class is made

signal.signal(signal.SIGINT, end_at_once)
command()
"""


def test_an_interrupt_of_generated_code_is_an_exit_code_and_not_a_signal(tmp_path):
    (tmp_path / "interrupted_in_exec.py").write_text(INTERRUPTED_IN_EXEC)
    process = subprocess.run(
        [sys.executable, "-m", "interrupted_in_exec"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
    )
    assert (process.returncode, process.stderr.strip()) == (130, b"interrupted")


def test_an_interrupt_that_a_command_has_reported_is_not_reported_again():
    def report():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            sys.exit(130)

    before = signal.signal(signal.SIGINT, end_at_once)
    try:
        with pytest.raises(SystemExit, match="130"), _interruptible():
            report()
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_error_without_an_interrupt_stays_what_it_is():
    before = signal.signal(signal.SIGINT, end_at_once)
    try:
        with pytest.raises(ImportError, match="numpy"), _interruptible():
            raise ImportError("numpy")
    finally:
        signal.signal(signal.SIGINT, before)
