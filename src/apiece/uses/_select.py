"""Which points to add: the best at a size, on the way to another, for a price, and together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from apiece._base.check import one_of
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.collection import largest_size
from apiece.data import Dataset
from apiece.errors import CardinalityError, PlanError
from apiece.laws import Laws, quantile
from apiece.losses import LossLike
from apiece.uses._kinds import Distributional
from apiece.uses._ranks import drawn_values
from apiece.uses._redundancy import GreedySelector
from apiece.uses._rules import Limits, Rules, make_rules
from apiece.uses._run_data import trained_by
from apiece.uses._weights import SizeWeights, nodes

if TYPE_CHECKING:
    import pandas as pd

    from apiece.engines import EngineName

REDUNDANCY: Final = ("auto", "aware", "none")
_SHORTLIST: Final = 10  # times the picks: what is valued together
_FEWEST: Final = 100


class JointSettings(NamedTuple):
    """How picks are valued together, see `apiece.select`: which data, model, loss and engine."""

    redundancy: str | None = "auto"
    dataset: Dataset | None = None
    model: Any = None
    metric: LossLike = None
    engine: EngineName = "auto"
    draws: int = 20
    shortlist: int | None = None


_ALONE: Final = JointSettings(redundancy="none")


def picks_from_laws(
    laws: Laws,
    limits: Limits,
    joint: JointSettings = _ALONE,
    *,
    at: float | None = None,
    until: float | None = None,
    level: float = 0.9,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Pick the points that help most when added to ``at`` others; see `apiece.select`.

    Points are ranked by $\psi_k$ at $k$ = ``at``, or by its mean over all sizes from ``at`` to
    ``until``: what a point gives on average while the dataset grows. Equal values keep the order
    of the points; one without a law is never picked.

    Picks that are valued together (``joint.redundancy``) are valued by the engine: exact
    contributions to ``joint.draws`` random training sets that the picks so far have joined. Each
    set is scored by different rows, which are no picks: parts of the validation rows, as long as a
    part has 50 rows, or rows of the pool that are drawn with it. A pick raises most the lower
    bound (the mean less a standard error) of what all picks gain. The work is about picks x draws x
    shortlist contributions.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[1.0, 8.0, 5.0], alpha=[1.0, 2.0, 2.0], ids=["a", "b", "c"])
    >>> picks_from_laws(laws, Limits(take=2), at=2)["value"].to_dict()
    {'b': 2.0, 'c': 1.25}
    >>> picks_from_laws(laws, Limits(take=1), at=2, until=100)["value"].round(4).to_dict()
    {'b': 0.0513}
    """
    import pandas as pd

    how = one_of("redundancy", joint.redundancy or "none", REDUNDANCY)
    at, largest = _sizes(laws, at, until)
    weights = _horizon(at, until)
    sums = nodes(weights)
    estimate = laws.functional(sums.k, sums.w, level=level)
    labels = labels_of(laws, joint.dataset)
    if joint.dataset is not None:
        joint.dataset.check_is(laws.provenance.dataset)
    is_known = np.isfinite(estimate.value)
    rules = make_rules(limits, ids=laws.ids, labels=labels, is_known=is_known)
    sizes = (int(at), int(at if until is None else until))
    together = None
    if how == "aware" or (how == "auto" and _may_join(laws, joint, sizes)):
        near = _shortlist(rules, estimate.value, joint.shortlist)
        together = GreedySelector(
            **_trained(laws, joint),
            ids=laws.ids[near],
            sizes=sizes,
            draws=joint.draws,
            most=_most_picks(rules, near),
            seed=seed,
        )
    if together is None or (how == "auto" and not together.is_quick):
        rows = rules.pick(estimate.value)
        gains = {name: column[rows] for name, column in estimate._asdict().items()}
    else:
        result = together.pick(rules.of(near))
        rows, half = near[result.rows], quantile(level) * result.error
        gains = {"value": result.gain, "low": result.gain - half, "high": result.gain + half}
        gains["alone"] = estimate.value[rows]
    columns: dict[str, Any] = {"rank": np.arange(1, len(rows) + 1), **gains}
    columns["p_best"] = _chances(laws, weights, rules, rows, seed)
    if labels is not None:
        columns["label"] = labels[rows]
    if limits.costs is not None:
        columns["cost"] = rules.cost[rows]
    if laws.is_beyond(largest) and "alone" not in columns:
        columns["status"] = [str(status) for status in laws.status_at(largest)[rows]]
    return pd.DataFrame(columns, index=pd.Index(laws.ids[rows], name="point"))


def _sizes(laws: Laws, at: float | None, until: float | None) -> tuple[float, float]:
    """Return the size to begin with, by default that of the pool, and the largest that counts."""
    begin = laws.default_at() if at is None else at
    return begin, max(begin, until or begin)


def _horizon(at: float, until: float | None) -> SizeWeights:
    """Return the sizes that count: one, or all from one to another."""
    if until is None:
        return SizeWeights(np.array([float(at)]), np.ones(1))
    if not at <= until:
        raise CardinalityError(
            f"until={until} lies below at={at}: expected a size that the dataset grows to. "
            "Pass a larger one, or leave it out."
        )
    return Distributional().over((1, 1), sizes=(int(at), int(until)))


def labels_of(laws: Laws, dataset: Dataset | None) -> AnyArray | None:
    """Return the labels of the points, if laws or data know them."""
    if laws.labels is None and dataset is not None:
        return np.asarray(dataset.labels()[dataset.positions(laws.ids)])
    return laws.labels


def _shortlist(rules: Rules, value: FloatArray, shortlist: int | None) -> IntArray:
    """Return the rows to value together: the best by the rules, as if there were more to pick."""
    picks = rules.pick(value)
    n = max(_SHORTLIST * len(picks), _FEWEST) if shortlist is None else shortlist
    if n < len(picks):
        raise PlanError(
            f"shortlist={shortlist} is smaller than the {len(picks)} picks: expected at least as "
            "many. Raise it, or leave it out for ten times the picks."
        )
    return rules.shortlist(value, n)


def _most_picks(rules: Rules, near: IntArray) -> int:
    affordable = int((np.cumsum(np.sort(rules.cost[near])) <= rules.budget).sum())
    return max(1, min(rules.take, len(near), affordable))


def _may_join(laws: Laws, joint: JointSettings, sizes: tuple[int, int]) -> bool:
    """Whether picks can be valued together by default: model, data and sets to draw are known."""
    dataset = joint.dataset
    if dataset is None or laws.provenance.groups is not None:
        return False
    try:
        if trained_by(joint.model, joint.metric, laws.attrs)[0] is None:
            return False
    except PlanError:  # a model or metric of the user
        return False
    is_outside = bool((dataset.positions(laws.ids) >= dataset.n_pool).all())
    room = dataset.n_pool if is_outside else dataset.n_pool // 2
    if not dataset.n_validation:
        room = min(room, largest_size(dataset.n_pool, max(1, dataset.n_classes)))
    return max(2, dataset.n_classes) <= sizes[0] and sizes[1] <= room


def _trained(laws: Laws, joint: JointSettings) -> dict[str, Any]:
    """Return what is trained on which data: as asked, or as in the run behind the laws."""
    if joint.dataset is None:
        raise PlanError(
            "redundancy='aware' values points together, which needs the data: expected the dataset "
            "that the run was collected from. Pass dataset= (--data FILE, and how to read it)."
        )
    model, metric = trained_by(joint.model, joint.metric, laws.attrs)
    if model is None:
        raise PlanError(
            "redundancy='aware' trains the model, but these laws come from no run: expected a "
            "model. Pass model=, the one that was given to collect."
        )
    return {"dataset": joint.dataset, "model": model, "metric": metric, "engine": joint.engine}


def _chances(
    laws: Laws, weights: SizeWeights, rules: Rules, rows: IntArray, seed: int
) -> FloatArray:
    """Return how often the rules pick each row when values are drawn from their uncertainty."""
    picks = [rules.pick(values) for values in drawn_values(laws, weights, random_state=seed)]
    count = np.bincount(np.concatenate(picks), minlength=laws.n_points)[rows]
    has_error = np.isfinite(laws.select(rows).stderr(weights.k[0]))
    return np.where(has_error, count / len(picks), np.nan)
