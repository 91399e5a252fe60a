"""Starting a run in a store, or continuing the one that is there if it is the same run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from apiece._base.progress import Tracker
from apiece.collection._probe import probe, refuse_other_numbers
from apiece.engines import Engine
from apiece.errors import StoreError
from apiece.records import Plan
from apiece.store import Manifest, Store, refuse_mismatch

if TYPE_CHECKING:
    import pandas as pd


def start_run(
    store: Store,
    manifest: Manifest,
    points: Callable[[], pd.DataFrame],
    *,
    engine: Engine,
    plan: Plan,
    tracker: Tracker,
    is_probed: bool,
    is_checked: bool = False,
) -> None:
    """Start a run, or continue the one that is there.

    Parameters
    ----------
    store
        Where the run is, or will be.
    manifest, points
        What is wanted, and what makes the table of points; a run that has one keeps it.
    engine, plan
        What will compute the run.
    tracker
        Receives what differs from when the run was started.
    is_probed
        Whether a new run gets a probe; one that nobody can continue needs none.
    is_checked
        Whether this process has continued the run before, so that nothing can have changed.

    Raises
    ------
    StoreError
        If the run that is there is another one, or if the model or metric computes other numbers
        than when it was started.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        is_new = not store.has_run()
        if is_new and is_probed:
            manifest = replace(manifest, probe=probe(engine, plan))
        elif not is_new and not is_checked:
            _check(store, manifest, engine, plan, tracker)
        store.start(manifest, points() if is_new else _table(store, points))
        if is_new and store.manifest.probe != manifest.probe:
            _check(store, manifest, engine, plan, tracker)  # another collector was first


def _table(store: Store, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    try:
        return store.points
    except StoreError:  # the run was interrupted before it had one
        return make()


def _check(store: Store, manifest: Manifest, engine: Engine, plan: Plan, tracker: Tracker) -> None:
    stored = store.manifest
    refuse_mismatch(store, stored, manifest)
    here = manifest.machine
    machine = stored.machine or here
    is_elsewhere = machine != here
    known = stored.probe
    if known is not None:
        refuse_other_numbers(store, engine, plan, known, is_elsewhere=is_elsewhere)
    same = "" if known is None else ", and a test task gives the same numbers"
    if is_elsewhere:
        tracker.say(
            f"this run was started on another kind of machine ({machine.get('processor')}, "
            f"{machine.get('kernels')}; here {here['processor']}, {here['kernels']}): "
            f"contributions agree up to rounding, not bit by bit{same}"
        )
    was, now = stored.versions, manifest.versions
    changed = [f"{name} {was[name]}, now {now[name]}" for name in now if _differ(was, now, name)]
    if changed:
        tracker.say(f"this run was started with {'; '.join(changed)}{same}")


def _differ(was: dict[str, str], now: dict[str, str], name: str) -> bool:
    return name in was and was[name] != now[name]
