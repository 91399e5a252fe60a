"""The probe of a run: a small task, computed when a run is started and again when it is continued.

Digests of code cannot see everything that decides a number: libraries, compilers, settings of the
machine. So the manifest keeps the contributions of a few points from one task. A collector that
does not compute the same ones is refused. After an upgrade that changes nothing, a run continues.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from typing import Any, Final

import numpy as np

from apiece._base.progress import log
from apiece.collection._compute import run_task
from apiece.engines import Engine
from apiece.errors import ApieceWarning, EngineError, StoreError
from apiece.records import Plan, Task

TOLERANCE: Final = 1e-8  # share of the loss; rounding on the same kind of processor is far smaller
_ELSEWHERE: Final = 1e-6  # other processors round differently, which some models amplify
_CANDIDATES: Final = 16  # the smallest of so many tasks is the probe
_POINTS: Final = 4
_LONG_UNIT: Final = 60.0  # seconds of work that may be lost with a killed worker
_UNIT: Final = 30.0
_INTERRUPTION: Final = 0.2  # seconds


def probe(engine: Engine, plan: Plan, *, task: int | None = None) -> dict[str, Any] | None:
    """Compute a few contributions of the smallest among the first tasks of a plan, or of ``task``.

    Returns
    -------
    dict
        ``task``, ``k``, ``points`` (positions), ``loss`` and ``delta``; None if the task fails.
    """
    if task is None:
        first = [plan[index] for index in range(min(len(plan), _CANDIDATES))]
        task = min((drawn for drawn in first if len(drawn.points)), key=_size).index
    part = _part(plan[task], _POINTS)
    try:
        outcome = run_task(engine, part)
    except EngineError as error:  # it will be met again, and reported, when the task is due
        log.info("the probe of the run failed: %s", error)
        return None
    return {
        "task": task,
        "k": part.cardinality,
        "points": part.points.tolist(),
        "loss": float(outcome.loss),
        "delta": [float(delta) for delta in outcome.delta],
    }


def refuse_other_numbers(
    where: object, engine: Engine, plan: Plan, stored: dict[str, Any], *, is_elsewhere: bool
) -> None:
    """Raise unless the engine computes the numbers of a stored probe.

    Parameters
    ----------
    where
        The run, for the message.
    engine, plan
        What would continue the run.
    stored
        The probe in its manifest.
    is_elsewhere
        Whether the run was started on another kind of machine.

    Raises
    ------
    StoreError
        If the contributions differ.
    """
    found = probe(engine, plan, task=stored["task"])
    if found is None:
        return
    tolerance = _ELSEWHERE if is_elsewhere else TOLERANCE
    difference = _difference(stored, found)
    if difference <= tolerance:
        return
    again = probe(engine, plan, task=stored["task"])
    if again is not None and _difference(found, again) > tolerance:
        warnings.warn(
            f"{engine.model.name} or {engine.metric.name} computes other numbers each time, so "
            "that apiece cannot know whether they are those that this run was started with. Give "
            "the model a random_state parameter.",
            ApieceWarning,
            stacklevel=4,
        )
        return
    raise StoreError(
        f"the model or metric computes other numbers than when the run in {where} was started: "
        f"the contributions of a test task differ by {difference:.2g} of the loss, expected at "
        f"most {tolerance:g}. Point `to` (--to) at a new folder, or go back to the code and the "
        "versions that the run was started with (manifest.json names them)."
    )


def _difference(one: dict[str, Any], two: dict[str, Any]) -> float:
    """Return by how much two probes differ, as a share of the loss."""
    a, b = (np.array([part["loss"], *part["delta"]]) for part in (one, two))
    if a.shape != b.shape:
        return math.inf
    scale = max(np.abs(a).max(), np.finfo(np.float64).tiny)
    return float(np.abs(a - b).max() / scale)


def rows_per_unit(engine: Engine, plan: Plan) -> int:
    """Return how many contributions make a unit of work that takes at most a minute.

    It is the engine's own number; for slow models it is halved until one of the larger tasks is
    short enough. The layout in the manifest keeps it.
    """
    rows = engine.rows_per_shard
    first = [plan[index] for index in range(min(len(plan), _CANDIDATES))]
    task = max((drawn for drawn in first if len(drawn.points)), key=_size)
    _seconds(engine, _part(task, 1))  # what an engine prepares once
    base = _seconds(engine, _part(task, 1))
    if base * rows < _LONG_UNIT:  # even if every contribution took as long as a task
        return rows
    more = min(_POINTS, len(task.points))
    each = max(0.0, _seconds(engine, _part(task, more)) - base) / max(1, more - 1)
    n_tasks = max(1, rows // max(1, plan.points_per_task))
    seconds = each * rows + base * n_tasks
    if seconds <= _LONG_UNIT:
        return rows
    shorter = max(1, rows >> math.ceil(math.log2(seconds / _UNIT)))
    log.log(logging.INFO, "units of work: %d contributions, for a slow model", shorter)
    return shorter


def expected_seconds(engine: Engine, plan: Plan) -> float:
    """Return how long a plan will take in one process, by the times of three of its tasks."""
    first = sorted((plan[index] for index in range(min(len(plan), _CANDIDATES))), key=_size)
    if plan.n_contributions == len(plan):  # each task is one training
        return len(plan) * _seconds(engine, first[len(first) // 2])
    some = [first[part * len(first) // 6] for part in (1, 3, 5)]
    return len(plan) * sum(_task_seconds(engine, task) for task in some) / len(some)


def _task_seconds(engine: Engine, task: Task) -> float:
    """Return how long a task takes, measured with more and more of its points.

    Engines that value thousands of points at once take little longer for a few than for one, so
    that the time of each point is known only when together they take as long as the training,
    and much longer than an interruption by other programs.
    """
    n_all = len(task.points)
    n, base = 1, min(_seconds(engine, _part(task, 1)) for _ in range(2))
    took, enough = base, 2 * base + _INTERRUPTION
    while n < n_all and took < enough:
        n = min(max(4, 8 * n), n_all)
        took = _seconds(engine, _part(task, n))
        if took >= enough and n < n_all:  # or was that an interruption?
            took = min(took, _seconds(engine, _part(task, n)))
    return base + (n_all - 1) * max(0.0, took - base) / max(1, n - 1)


def _seconds(engine: Engine, task: Task) -> float:
    began = time.perf_counter()
    try:
        run_task(engine, task)
    except EngineError:
        return 0.0
    return time.perf_counter() - began


def _size(task: Task) -> int:
    return task.cardinality


def _part(task: Task, n_points: int) -> Task:
    places = np.linspace(0, len(task.points) - 1, min(n_points, len(task.points)))
    return task.part(places.astype(np.int64))
