"""What picks do to a model in everyday measures: it is trained with and without them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._base.progress import OnProgress, track, tracking
from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import AnyArray, IntArray
from apiece.data import Dataset, take_rows
from apiece.engines import Model, resolve_model
from apiece.errors import PlanError
from apiece.uses._outside import predict
from apiece.uses._quality import measures_of

if TYPE_CHECKING:
    import pandas as pd

_FEWEST: Final = 20  # rows that score
_SCORING: Final = 0.2  # of the other rows, at least


def gain(
    dataset: Dataset,
    picks: Collection[Any],
    *,
    at: int,
    model: Any = "auto",
    draws: int = 20,
    level: float = 0.9,
    random_state: RandomState = 0,
    progress: bool | None = None,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    r"""Measure what points do together when they join random training sets.

    In each draw a model is trained on ``at`` random rows of the pool, and on these and all
    ``picks``. Both are scored on the validation rows, or, without any, on the rows of the pool that
    are left.

    Parameters
    ----------
    dataset
        The data.
    picks
        Ids of points, such as the index of what `select` returns.
    at
        Rows of a training set; fewer if the pool would leave less than a fifth to score on.
    model
        A name or an estimator, as in `collect`.
    draws
        How many training sets.
    level
        Coverage of the intervals, which are about the training sets.
    random_state
        Seed of the draws.
    progress, on_progress
        As in `collect`.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``measure``: ``accuracy``, ``f1``, ``roc_auc`` and ``log_loss``, or ``r2`` and
        ``rmse``, see `Quality`. ``before`` is the mean without the picks, ``change`` what they add
        to it, with an interval from ``low`` to ``high``. ``attrs["at"]`` is the size.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> dataset, _ = load_demo()
    >>> found = gain(dataset, dataset.ids[:20], at=50, draws=5)
    >>> found.columns.tolist()
    ['before', 'change', 'low', 'high']
    """
    import pandas as pd

    joining = _positions(dataset, picks)
    others = np.setdiff1d(np.arange(dataset.n_pool), joining)
    size = _size(dataset, others, at, draws)
    resolved = resolve_model(
        model, kind=dataset.kind, n_features=dataset.n_features, n_classes=dataset.n_classes
    )
    seed, result = seed_from(random_state), []
    with tracking(progress, on_progress, title="trying the picks", unit="training sets"):
        for draw in track(range(draws)):
            order = stream(seed, 31, draw).permutation(others)
            chosen, left = order[:size], order[size:]
            result.append(_pair(dataset, resolved, chosen, joining, left, seed))
    before, after = (pd.DataFrame(list(measured)) for measured in zip(*result, strict=True))
    table = _summary(before, after - before, level)
    table.attrs["at"] = size
    return table


def _positions(dataset: Dataset, picks: Collection[Any]) -> IntArray:
    place = {str(name): position for position, name in enumerate(dataset.ids.tolist())}
    unknown = [pick for pick in picks if str(pick) not in place]
    if unknown or not len(picks):
        said = f"{unknown[0]!r} is no point" if unknown else "there are no picks"
        raise PlanError(
            f"{said}: expected ids of the dataset's points. Pass the index of what select returns."
        )
    return np.unique([place[str(pick)] for pick in picks])


def _size(dataset: Dataset, others: IntArray, at: int, draws: int) -> int:
    """Return the size of the training sets, which leaves rows to score on."""
    if at < 1 or draws < 2:
        raise PlanError(
            f"at={at} with draws={draws}: expected at least one row and two draws. "
            "Pass for example at=1000, draws=20."
        )
    needed = 0 if dataset.n_validation else max(_FEWEST, int(_SCORING * len(others)))
    if len(others) <= needed:
        raise PlanError(
            f"{len(others):,} rows are left besides the picks, of which {needed:,} are to score: "
            "expected more. Pass fewer picks."
        )
    return min(at, len(others) - needed)


def _pair(
    dataset: Dataset, model: Model, chosen: IntArray, joining: IntArray, left: IntArray, seed: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return every measure without and with the picks."""
    if dataset.n_validation:
        rows, target = dataset.rows_val, dataset.y_val
    else:
        rows, target = take_rows(dataset.rows, left), dataset.points_y[left]

    def measured(train: AnyArray) -> dict[str, float]:
        fitted = model.seeded(seed)
        fitted.fit(take_rows(dataset.rows, train), dataset.points_y[train])
        return measures_of(target, predict(fitted, rows, dataset.n_classes), dataset.n_classes)

    return measured(chosen), measured(np.concatenate([chosen, joining]))


def _summary(before: pd.DataFrame, change: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return means over draws, with Student's intervals of the changes."""
    import pandas as pd
    from scipy import stats

    n = len(change)
    half = change.std() * (stats.t.ppf((1 + level) / 2, n - 1) / np.sqrt(n))
    mean = change.mean()
    columns = {"before": before.mean(), "change": mean, "low": mean - half, "high": mean + half}
    return pd.DataFrame(columns).rename_axis("measure")
