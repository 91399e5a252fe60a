"""A million points on one machine: time, memory and growth, from features to laws of all points.

Logistic regression on N synthetic points with 64 features, 20 contributions of each point at sizes
from 100 to 500, then `bayes` laws for all of them in bounded memory. What a step took is appended
to a file, so that a run may be interrupted and repeated; `plot` draws what the file holds.

    python benchmarks/scale.py run --points 1000000 --to million
    python benchmarks/scale.py plot --out docs/images/scale.png
    python benchmarks/scale.py workers
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import apiece
from _results import Results
from apiece.collection import dismiss_workers

N_FEATURES, N_VALIDATION, SIZES, SAMPLES = 64, 1_000, (100, 500), 20


def make_data(n: int) -> apiece.Dataset:
    rng = np.random.default_rng(0)
    X = np.empty((n + N_VALIDATION, N_FEATURES))
    for rows in np.array_split(X, max(1, n // 50_000)):  # nothing else is as large
        rows[:] = rng.standard_normal(rows.shape)
    weights = rng.standard_normal(N_FEATURES) / 8
    y = (X @ weights + rng.logistic(size=len(X)) > 0).astype(np.int64)
    return apiece.Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:])


def family(pid: int) -> list[int]:
    """Return a process and all below it."""
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        for children in Path(f"/proc/{found[-1]}/task").glob("*/children"):
            todo += [int(child) for child in children.read_text().split()]
    return found


def resident() -> float:
    """Resident memory of this process and its workers in MB, shared pages counted once (Linux)."""
    total = 0
    for pid in family(os.getpid()):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # it has just ended
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def cpu() -> float:
    """Processor seconds of this process and of its children that have ended."""
    mine, ended = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime + ended.ru_utime + ended.ru_stime


@contextmanager
def measured(log: Path, **about: object):
    """Append what the block took to the log: seconds and peak memory."""
    peak, over = [resident()], threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            peak.append(resident())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    began, spent, record = time.perf_counter(), cpu(), dict(about)
    try:
        yield record
    finally:
        over.set()
        thread.join()
        record |= {"seconds": time.perf_counter() - began, "cpu": cpu() - spent, "mb": max(peak)}
        print(json.dumps(record), flush=True)
        with open(log, "a") as file:
            file.write(json.dumps(record) + "\n")


def run(options: argparse.Namespace) -> None:
    n, log = options.points, options.log
    with measured(log, step="data", n=n):
        data = make_data(n)
    before = apiece.open(options.to).progress() if (options.to / "manifest.json").exists() else None
    with measured(log, step="collect", n=n) as record:
        try:
            stored = apiece.collect(
                data,
                sizes=SIZES,
                samples=SAMPLES,
                random_state=0,
                n_jobs=options.jobs,
                to=options.to,
                progress=True,
            )
        finally:
            dismiss_workers()  # their processor time counts once they have ended
            now = apiece.open(options.to).progress()
            record["n_contributions"] = now.n_contributions - (
                before.n_contributions if before else 0
            )
    del data
    with measured(log, step="fit", n=n) as record:
        laws = apiece.fit(stored, method="bayes", memory=options.memory)
        laws.save(options.to / "laws.parquet")
    with measured(log, step="value", n=n):
        apiece.value(stored, source="samples", memory=options.memory)
    with measured(log, step="aggregate", n=n):
        apiece.aggregate(stored)
    with measured(log, step="select", n=n):
        apiece.select(laws, take=20, at=SIZES[1])
    print(laws.summary())


def plot(options: argparse.Namespace) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    from apiece.plots import theme

    rows = [json.loads(line) for line in options.log.read_text().splitlines()]
    sizes = sorted({row["n"] for row in rows if row["step"] == "fit"})

    def number(step: str, field: str, n: int) -> float:
        found = [row.get(field, 0) for row in rows if (row["n"], row["step"]) == (n, step)]
        if field == "mb":
            return max(found)
        return sum(found) if step == "collect" else found[-1]  # pieces of a run; the final fit

    count = [number("collect", "n_contributions", n) for n in sizes]
    clock = [number("collect", "seconds", n) for n in sizes]
    collect, fit = ([number(step, "cpu", n) for n in sizes] for step in ("collect", "fit"))
    peak = [[number(step, "mb", n) / 1024 for n in sizes] for step in ("collect", "fit")]
    columns = {"points": "{:,}", "contributions": "{:,}", "collect, clock, s": "{:,.0f}"}
    columns |= {"core seconds": "{:,.0f}", "contributions per core second": "{:,.0f}"}
    columns |= {"fit, core seconds": "{:,.0f}", "peak, GB": "{:.2f}"}
    results = Results("scale", columns, options, has_earlier_rows=True)
    for n, m, s, c, f, *gb in zip(sizes, count, clock, collect, fit, *peak, strict=True):
        results.add(n, m, s, c, m / c, f, max(gb))
    power = np.polyfit(np.log(count), np.log(collect), 1)[0]
    print(f"collecting takes time as contributions to the power {power:.2f}")
    with theme():
        figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
        axes[0].loglog(count, collect, "o-", label="measured")
        rate = np.array(collect) / np.array(count)
        axes[0].loglog(count, np.median(rate) * np.array(count), ":", color="grey", label="linear")
        for n, m, c in zip(sizes, count, collect, strict=True):
            place, side = ((-8, 0), "right") if n == sizes[-1] else ((8, -8), "left")
            axes[0].annotate(
                f"{n:,} points", (m, c), place, textcoords="offset points", size=7, ha=side
            )
        axes[0].set(xlabel="contributions", ylabel="core seconds", title="Collecting")
        axes[0].legend()
        axes[1].loglog(sizes, fit, "s-", label="measured")
        share = (fit[-1] - fit[0]) / (sizes[-1] - sizes[0])
        line = [fit[0] + share * (n - sizes[0]) for n in sizes]
        axes[1].loglog(sizes, line, ":", color="grey", label="a constant and linear")
        axes[1].set(xlabel="points", ylabel="core seconds", title="Fitting bayes laws")
        axes[1].legend()
        for gigabytes, marker, step in zip(peak, "os", ("collecting", "fitting"), strict=True):
            axes[2].semilogx(sizes, gigabytes, f"{marker}-", label=step)
        axes[2].set(xlabel="points", ylabel="peak resident memory, GB", title="Memory", ylim=(0, 6))
        axes[2].legend()
        for axis in (axes[0].xaxis, axes[0].yaxis, axes[1].yaxis):
            axis.set_minor_formatter(NullFormatter())
        axes[1].set_yscale("linear")
        axes[1].set_ylim(0, None)
        figure.savefig(options.out, dpi=130)


def ticks() -> float:
    """Processor seconds so far of this process and of its workers that live."""
    total = 0
    for pid in family(os.getpid()):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def workers(options: argparse.Namespace) -> None:
    """Compare two worker processes with one, engine by engine, in turns; start-up apart.

    What a run spends before its workers compute and after is timed by a run of a few units: with
    workers still to be started, and with workers that are there, as they are in the runs that are
    compared. Beside the clock, which others on the machine disturb, processor time tells what a
    second worker can add at most: twice the rate, less what it costs.
    """
    from apiece.engines import LogisticEngine, RefitEngine

    # Short units of work, so that two workers are busy to the end of a run.
    LogisticEngine.rows_per_shard, RefitEngine.rows_per_shard = 6_000, 25
    data = make_data(options.points)
    few = np.arange(0, options.points, options.points // 50)
    cases = {
        "refit": {"engine": "refit", "points": few, "samples": 200, "share": 25},
        "logistic": {"engine": "logistic", "samples": 22},
    }

    def timed(n_jobs: int, **case: object) -> tuple[float, float, int]:
        with tempfile.TemporaryDirectory() as folder:
            began, before = time.perf_counter(), ticks()
            run = apiece.collect(
                data, sizes=SIZES, random_state=0, n_jobs=n_jobs, to=folder + "/run", **case
            )
            spent = time.perf_counter() - began, ticks() - before
        return *spent, run.manifest.n_contributions

    small = {"engine": "logistic", "points": few[:2], "samples": 2, "share": 1}
    starts = [timed(2, **small)[0] for _ in range(3)]
    print(f"start-up: {starts[0]:.1f} s with two workers to start, {min(starts[1:]):.2f} s without")
    columns = {"engine": "{}", "per second, 1 worker": "{:,.0f}", "2 workers": "{:,.0f}"}
    columns |= {"ratio": "{:.2f}", "ratio by processor time": "{:.2f}"}
    columns |= {"seconds of a run": "{:.0f} to {:.0f}"}
    settings = {**vars(options), "start_up": starts}
    results = Results("scale-workers", columns, settings)
    for name, case in cases.items():
        rate, spent = {1: 0.0, 2: 0.0}, {1: np.inf, 2: np.inf}
        lengths = []
        for n_jobs in (2, 1, 2, 1):
            seconds, used, n = timed(n_jobs, **case)
            lengths.append(seconds)
            rate[n_jobs] = max(rate[n_jobs], n / seconds)
            spent[n_jobs] = min(spent[n_jobs], used / n)
        ratios = rate[2] / rate[1], 2 * spent[1] / spent[2]
        results.add(name, rate[1], rate[2], *ratios, [min(lengths), max(lengths)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", type=Path, default=Path("scale.jsonl"))
    steps = parser.add_subparsers(required=True)
    step = steps.add_parser("run", help="features to laws, for one number of points")
    step.add_argument("--points", type=int, default=1_000_000)
    step.add_argument("--jobs", type=int, default=2)
    step.add_argument("--memory", default="1GB", help="for the fit")
    step.add_argument("--to", type=Path, required=True, help="folder of the run")
    step.set_defaults(do=run)
    step = steps.add_parser("plot", help="draw what the log holds")
    step.add_argument("--out", type=Path, default=Path("scale.png"))
    step.set_defaults(do=plot)
    step = steps.add_parser("workers", help="throughput with two workers and with one")
    step.add_argument("--points", type=int, default=40_000)
    step.set_defaults(do=workers)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was done is logged
    options.do(options)


if __name__ == "__main__":
    main()
