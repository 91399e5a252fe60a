"""Faults that are done to a run on purpose, and what must be true afterwards.

Every fault is judged by the same rules. A reader gets the right contributions, or an `ApieceError`
that says what to do, and nothing else. Collecting again with the same settings ends with the right
contributions, unless that says plainly what has to be restored first.
`benchmarks/faults.py` does many of them and makes the table for the docs.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from unittest import mock

import numpy as np

import apiece
from apiece.engines import LinearEngine, ReuseEngine
from apiece.errors import ApieceError

from conftest import make_line
from processes import start

COLUMNS = ("task", "k", "point", "delta", "loss", "control", "active")
SETTINGS = {"model": "ridge", "sizes": (6, 12), "random_state": 1, "progress": False}
DESIGNS = {
    "fixed scoring rows": {"samples": 8},
    "rotating scoring rows": {"samples": 8, "scoring": "rotating"},
    "reused trainings": {"trainings": 80, "engine": "reuse"},
}
ROWS_PER_SHARD = {"rows_per_shard": 24}, {"rows_per_shard": 5}  # of contributions, of trainings


def columns(run):
    """Everything that a run has stored."""
    if not run.has_trainings:
        table = run.contributions()
        found = [getattr(table, name) for name in COLUMNS]
        return [table.ids, *(column for column in found if column is not None)]
    table = run.trainings()
    return [
        table.ids,
        table.task,
        table.k,
        table.loss,
        *table.trained,
        *table.scored,
        table.row_loss,
    ]


class Bench:
    """A whole run of some design to take copies of, and its contents."""

    def __init__(self, folder, design="fixed scoring rows"):
        self.settings = {**SETTINGS, **DESIGNS[design]}
        self.folder, self.count = Path(folder), 0
        self.whole = self.folder / "whole"
        run = self.collect(self.whole)
        assert len(list(self.whole.glob("shards/shard-*.parquet"))) >= 8
        apiece.fit(run).save(self.whole / "laws.parquet")
        self.right = columns(run)
        self.laws = apiece.Laws.load(self.whole / "laws.parquet")

    @property
    def longer(self):
        """Settings of a run that takes a moment."""
        return {
            name: 25 * self.settings[name]
            for name in ("samples", "trainings") & self.settings.keys()
        }

    def collect(self, folder, **settings):
        few, fewer = ROWS_PER_SHARD
        with (
            mock.patch.multiple(LinearEngine, **few),
            mock.patch.multiple(ReuseEngine, **fewer),
        ):
            return apiece.collect(make_line(n=24), to=folder, **{**self.settings, **settings})

    def start(self, folder, n_jobs=1, **settings):
        """Start a collector in a process of its own."""
        rows = ROWS_PER_SHARD["engine" in self.settings]
        return start(folder, n_jobs, kind="line", **{**self.settings, **rows, **settings})

    def copy(self):
        self.count += 1
        folder = self.folder / f"run-{self.count}"
        shutil.copytree(self.whole, folder)
        return folder

    def is_right(self, run):
        return are_equal(columns(run), self.right)

    def judge(self, folder, **settings):
        """Read, collect again, read; return what happened in words, or raise if it is wrong."""
        try:
            noticed = not apiece.open(folder).is_complete
            if not noticed:
                assert self.is_right(apiece.open(folder)), "a wrong number was read"
        except ApieceError as error:
            noticed = str(error)
        try:
            run = self.collect(folder, **settings)
        except ApieceError as error:
            assert noticed is not False, "damage was noticed too late"
            return f"refused: {_kind(str(error))}"
        assert run.is_complete
        assert self.is_right(run), "the run was not repaired"
        return "noticed and repaired" if noticed else "harmless"


def are_equal(some, others):
    return all(np.array_equal(a, b) for a, b in zip(some, others, strict=True))


def _kind(message):
    for words in ("cannot be read", "is not a run", "is damaged", "holds no laws", "belongs to"):
        if words in message:
            return words
    return message


def a_shard(folder, rng):
    return rng.choice(sorted((folder / "shards").glob("shard-*.parquet")))


def flip(file, rng):
    data = bytearray(file.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


def cut(file, rng):
    data = file.read_bytes()
    file.write_bytes(data[: rng.randrange(len(data))])


def bit_of_a_shard(bench, rng):
    """A bit of a shard flips."""
    folder = bench.copy()
    flip(a_shard(folder, rng), rng)
    return bench.judge(folder)


def shard_cut_short(bench, rng):
    """A shard is cut short."""
    folder = bench.copy()
    cut(a_shard(folder, rng), rng)
    return bench.judge(folder)


def shard_gone(bench, rng):
    """A shard is deleted."""
    folder = bench.copy()
    a_shard(folder, rng).unlink()
    return bench.judge(folder)


def shard_doubled(bench, rng):
    """A shard is copied over another, next to it, or beyond the last."""
    folder = bench.copy()
    source = a_shard(folder, rng)
    names = [a_shard(folder, rng).name, f"{source.stem} (1).parquet", "shard-00099999.parquet"]
    target = source.with_name(rng.choice(names))
    if target != source:
        shutil.copy(source, target)
    return bench.judge(folder)


def shard_of_noise(bench, rng):
    """A shard is overwritten with noise."""
    folder = bench.copy()
    a_shard(folder, rng).write_bytes(rng.randbytes(rng.randrange(3000)))
    return bench.judge(folder)


def manifest_harmed(bench, rng):
    """A bit of the manifest flips, or it is cut short."""
    folder = bench.copy()
    rng.choice([flip, cut])(folder / "manifest.json", rng)
    return bench.judge(folder)


def points_harmed(bench, rng):
    """A bit of the table of points flips, or it is cut short."""
    folder = bench.copy()
    rng.choice([flip, cut])(folder / "points.parquet", rng)
    try:
        assert bench.is_right(apiece.open(folder))
    except ApieceError as error:
        return f"refused: {_kind(str(error))}"
    return "harmless"


def laws_harmed(bench, rng):
    """A bit of the file of laws flips, or it is cut short."""
    folder = bench.copy()
    rng.choice([flip, cut])(folder / "laws.parquet", rng)
    try:
        laws = apiece.Laws.load(folder / "laws.parquet")
    except ApieceError as error:
        return f"refused: {_kind(str(error))}"
    for name in ("params", "cov", "sigma", "beta", "df", "ids", "labels", "k_range", "n_samples"):
        assert np.array_equal(getattr(laws, name), getattr(bench.laws, name)), name
    assert laws.attrs == bench.laws.attrs
    return "harmless"


def disk_full(bench, rng):
    """The disk is full from some write onwards."""
    folder = bench.folder / f"full-{rng.random()}"
    left, real = [rng.randrange(1, 12)], os.fsync

    def fsync(handle):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        real(handle)

    with mock.patch.object(os, "fsync", fsync):
        said = ""
        try:
            bench.collect(folder)
        except ApieceError as error:
            said = str(error)
        assert (left[0] < 0) == ("the disk is full" in said)
        assert not list(folder.rglob("*.tmp"))
    if not (folder / "manifest.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
    run = bench.collect(folder)
    assert run.is_complete
    assert bench.is_right(run)
    return "said so, and went on when there was space"


def clock_jumps(bench, rng):
    """The clock jumps by up to ten years, either way, while a run is collected."""
    folder, real = bench.folder / f"clock-{rng.random()}", time.time

    def jumping():
        return real() + rng.uniform(-3e8, 3e8)

    with mock.patch.object(time, "time", jumping):
        run = bench.collect(folder)
        assert bench.is_right(run)
        assert bench.judge(folder) == "harmless"
    return "harmless"


def two_collectors(bench, rng):
    """Two collectors fill one run at once, one of them after a random pause."""
    folder = bench.folder / f"two-{rng.random()}"
    one = bench.start(folder)
    time.sleep(rng.uniform(0, 0.1))
    two = bench.start(folder)
    for process in (one, two):
        process.join()
        assert process.exitcode == 0
    run = apiece.open(folder)
    assert run.is_complete
    assert bench.is_right(run)
    assert not list(folder.rglob("*.tmp"))
    return "one whole run"


def collector_killed(bench, rng):
    """The collector is killed at a random moment."""
    folder = bench.folder / f"killed-{rng.random()}"
    process = bench.start(folder)
    process.join(rng.uniform(0, 0.15))
    was_alive = process.exitcode is None
    if was_alive:
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    if (folder / "manifest.json").exists():
        bench.judge(folder)
    else:
        assert bench.is_right(bench.collect(folder))
    return "repaired" if was_alive else "it had finished"


def worker_killed(bench, rng):
    """A worker process is killed at a random moment."""
    folder = bench.folder / f"worker-{rng.random()}"
    process, killed = bench.start(folder, 2, **bench.longer), False
    while process.exitcode is None and not killed:
        if len(list(folder.glob("shards/*"))) > rng.randrange(40):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            victims = [pid for pid in children if _is_worker(pid)]
            if victims:
                os.kill(int(rng.choice(victims)), signal.SIGKILL)
                killed = True
        process.join(0.01)
    process.join()
    assert process.exitcode == 0
    run = apiece.open(folder)
    assert run.is_complete
    again = bench.collect(bench.folder / f"again-{rng.random()}", **bench.longer)
    assert are_equal(columns(run), columns(again))
    return "its work was done by another" if killed else "it had finished"


def _is_worker(pid):
    words = Path(f"/proc/{pid}/cmdline").read_bytes()
    return b"popen_loky" in words


SHARES = {
    bit_of_a_shard: 0.25,
    shard_cut_short: 0.1,
    shard_gone: 0.05,
    shard_doubled: 0.1,
    shard_of_noise: 0.05,
    manifest_harmed: 0.15,
    points_harmed: 0.1,
    laws_harmed: 0.1,
    disk_full: 0.04,
    clock_jumps: 0.02,
    two_collectors: 0.02,
    collector_killed: 0.015,
    worker_killed: 0.005,
}
