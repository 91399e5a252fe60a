"""The request of a run: its points, its default sizes, and the manifest that describes it."""

from __future__ import annotations

import hashlib
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from apiece._base.code import code_digest
from apiece._base.machine import describe_machine
from apiece._base.typing import AnyArray, Positions
from apiece.collection._design import log_spaced
from apiece.collection._groups import GroupPlan
from apiece.collection._plan import DrawnPlan
from apiece.collection._rotation import largest_size
from apiece.collection._trainings import TrainingPlan
from apiece.data import Dataset, Groups
from apiece.engines import Engine, sample_of, surrogate_of
from apiece.errors import PlanError
from apiece.laws.sizes import middle
from apiece.store import SCHEMA_VERSION, FolderStore, Layout, Manifest, MemoryStore, Store

if TYPE_CHECKING:
    import pandas as pd


_THEORY_SIZES = 5  # sizes at which theory is stored for each point; it is smooth between them
_BEYOND = (2, 4)  # times the largest size at which it is stored, too: it reaches farther than data


_MOST = 1_000  # points of a training set by default
_MOST_QUICK = 20_000  # where an engine values many points at once and scoring rows rotate


def default_sizes(
    dataset: Dataset,
    groups: Groups | None = None,
    *,
    group_size: int | None = None,
    rotates: bool = False,
    is_quick: bool = False,
) -> tuple[int, int]:
    """Return the sizes used when none are given.

    On a validation set they go up to half of the pool, at most 1,000. Where scoring rows rotate,
    they go as far as the rows allow, so that little has to be extrapolated to the whole table: to
    two thirds of it, at most 1,000, or 20,000 with a quick engine.

    Parameters
    ----------
    dataset
        Its pool and classes.
    groups, group_size
        The groups that are valued, if any, and how many rows of each join. A training set holds
        no row of a group that joins as a whole.
    rotates
        Whether rows take turns in scoring.
    is_quick
        Whether the engine is, see `Engine.is_quick`.
    """
    inside = [0] if groups is None else [(rows < dataset.n_pool).sum() for rows in groups.rows]
    n_rows = dataset.n_pool - (int(max(inside)) if group_size is None else 0)
    usual = min(_MOST, n_rows // 2)
    k_max = usual
    if rotates and group_size is None:
        largest = largest_size(n_rows, max(1, dataset.n_classes))
        k_max = max(1, min(largest, _MOST_QUICK if is_quick else _MOST))
    k_min = max(usual // 10, 2 * dataset.n_classes, min(10, k_max))
    return min(k_min, k_max), k_max


def store_of(to: str | Path | Store | None) -> Store:
    """Return the store that ``to`` means: a folder or an address, a store object, or memory."""
    if to is None:
        return MemoryStore()
    return to if isinstance(to, Store) else FolderStore(to)


def positions(points: npt.ArrayLike | None, dataset: Dataset) -> Positions:
    """Return the positions to value: the chosen pool points, then every candidate."""
    n_pool = dataset.n_pool
    outside = Positions(np.arange(n_pool, dataset.n_points))
    if points is None:
        return Positions(np.arange(dataset.n_points))
    given = np.asarray(list(points) if isinstance(points, range) else points)
    if given.size == 0:
        return outside
    if given.dtype == bool and given.shape == (n_pool,):
        given = np.flatnonzero(given)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise PlanError(
            f"points is an array of {given.dtype} with shape {given.shape}: expected positions in "
            "the pool, or a boolean for every point of it. Turn ids into positions with "
            "dataset.positions(ids)."
        )
    bad = given[(given < 0) | (given >= n_pool)]
    if len(bad):
        raise PlanError(
            f"points holds {int(bad[0])}: expected positions from 0 to {n_pool - 1}, one for each "
            "point of the pool. Turn ids into positions with dataset.positions(ids)."
        )
    return Positions(np.concatenate([np.unique(given), outside]))


def describe(
    dataset: Dataset,
    engine: Engine,
    plan: DrawnPlan | GroupPlan | TrainingPlan,
    *,
    rows_per_unit: int,
) -> Manifest:
    """Return the manifest of a run: everything that decides its contributions.

    ``code`` holds digests of what the model and the metric do: their classes, the parameters that
    are not at their defaults, and the code and state of functions and objects among them.
    """
    libraries = ("apiece", "numpy", "scipy", "scikit-learn", "pyarrow")
    found = {
        "schema_version": SCHEMA_VERSION,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "dataset": dataset.describe(),
        "points": {
            "n_valued": len(plan.points),
            "digest": _digest(plan),
        },
        "model": engine.model.describe(),
        "metric": engine.metric.name,
        "code": {
            "model": code_digest(engine.model.estimator),
            "metric": code_digest(engine.metric),
        },
        "engine": {"name": engine.name, "is_exact": engine.is_exact},
        "design": plan.describe(),
        "samples": plan.design.samples,
        "seed": plan.seed,
        "n_contributions": plan.n_contributions,
        "layout": Layout.of(plan, rows_per_unit).describe(),
        "stages": [stage.to_json() for stage in getattr(plan, "stages", ())] or None,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in libraries},
        },
        "machine": describe_machine(),
    }
    return Manifest.from_json(found)


def _digest(plan: DrawnPlan | GroupPlan | TrainingPlan) -> str:
    """Name what is valued: the positions of the points, or of the rows of each group."""
    words = plan.points.astype("<i8").tobytes()
    if isinstance(plan, GroupPlan):
        parts = [plan.n_joining, *plan.rows]
        words = b";".join(part.astype("<i8").tobytes() for part in parts)
    return hashlib.blake2b(words, digest_size=8).hexdigest()


def point_table(dataset: Dataset, plan: DrawnPlan | TrainingPlan, engine: Engine) -> pd.DataFrame:
    """Return the points by position: ``id``, ``label``, ``role``, ``valued``.

    Where scoring rows rotate or are a sample, and where each training serves all points,
    ``theory_<size>_<term>`` are what theory predicts for each point; with rotating rows only if
    models have fewer parameters than rows at the median size. In the first two cases
    ``rows_<size>_<size>`` are the covariance that the choice of rows gives to it.
    """
    import pandas as pd

    positions = np.arange(dataset.n_points)
    table = pd.DataFrame(
        {
            "id": dataset.ids,
            "label": dataset.labels(),
            "role": np.where(positions < dataset.n_pool, "pool", "candidate"),
            "valued": np.isin(positions, plan.points),
        }
    )
    surrogate = surrogate_of(dataset, engine.model)
    is_dense = isinstance(plan, TrainingPlan) and dataset.needs_refit is None
    sample = None
    if isinstance(plan, DrawnPlan) and plan.is_sample:
        sample = sample_of(dataset, engine.model)
    uses_theory = is_dense or (plan.rotates and not isinstance(plan, TrainingPlan))
    if not ((uses_theory or sample is not None) and surrogate.is_available):
        return table
    sizes = log_spaced(plan.design.k_min, plan.design.k_max, _THEORY_SIZES)
    if not isinstance(plan, TrainingPlan):
        sizes += tuple(factor * plan.design.k_max for factor in _BEYOND)
    is_rotating = isinstance(plan, DrawnPlan) and sample is None
    if is_rotating and not surrogate.describes(
        round(middle((plan.design.k_min, plan.design.k_max)))
    ):
        return table
    terms = {}
    if sample is None or sample.is_of_the_pool:
        terms = {
            f"theory_{k}_{j}": column
            for k in sizes
            for j, column in enumerate(surrogate.terms(positions, k).T)
        }
    noise = None
    if sample is not None:
        noise = sample.row_noise(positions, sizes)
    elif isinstance(plan, DrawnPlan):
        noise = surrogate.row_noise(positions, sizes, plan.rotation.block_of)
    if noise is not None:
        terms |= {
            f"rows_{k}_{other}": noise[:, i, j]
            for i, k in enumerate(sizes)
            for j, other in enumerate(sizes[: i + 1])
        }
    return table.assign(**terms)


def group_table(dataset: Dataset, plan: GroupPlan, names: AnyArray) -> pd.DataFrame:
    """Return the groups as points: their names, rows and labels.

    ``label`` is the most frequent label of a group, or its mean target.
    """
    import pandas as pd

    labels = [pd.Series(dataset.labels()[rows]) for rows in plan.rows]
    return pd.DataFrame(
        {
            "id": names,
            "label": [
                part.mode().iloc[0] if dataset.is_classification else part.mean() for part in labels
            ],
            "role": "group",
            "valued": True,
            "rows": plan.n_joining,
        }
    )
