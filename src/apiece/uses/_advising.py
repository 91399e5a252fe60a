"""The verb `advise`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apiece._base.progress import OnProgress, tracking
from apiece._base.rng import RandomState, seed_from
from apiece.data import Dataset
from apiece.engines import resolve_model
from apiece.errors import PlanError
from apiece.losses import LossLike, resolve_loss
from apiece.store import Run
from apiece.uses._advice import Advice
from apiece.uses._advise import advice_for
from apiece.uses._run_data import data_again, trained_by


def advise(
    data: Run | Dataset,
    *,
    dataset: Dataset | None = None,
    model: Any = None,
    metric: LossLike = None,
    level: float = 0.9,
    random_state: RandomState = 0,
    progress: bool | None = None,
    on_progress: OnProgress | None = None,
) -> Advice:
    """Advise which rows to relabel, drop or check, and measure what following it does.

    The advice is about all rows together, and its effect is measured by refitting the model on
    rows changed as advised, and scoring it on rows that had no part in choosing. Where nothing is
    measured to help, every row is kept.

    Parameters
    ----------
    data
        A run, or a dataset. Every row is judged; only validation rows without ids are trusted. From
        the table alone, wrong targets and rows that are hard to know look alike: a few hundred
        trusted rows tell them apart.
    dataset
        The data that the run was collected from; None reads it again from the file where it was.
    model, metric
        What is refitted and measured: by default those of the run, or ``"auto"`` and the log loss
        (squared error for quantities).
    level
        Coverage of the intervals.
    random_state
        Seed of the folds and of the models.
    progress, on_progress
        As in `collect`.

    Returns
    -------
    Advice
        ``advice.table()`` has a row for each id, ``advice.effect`` what following it does. Of a run
        of trainings (engine ``reuse``) the table also has ``unseen_loss``, see `value`: how hard a
        row is for the run's own model. It had no part in choosing.

    Examples
    --------
    >>> import numpy as np
    >>> import apiece
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> X = rng.normal(size=(400, 4)) + 2.2 * y[:, None]
    >>> y[:40] = 1 - y[:40]  # wrong labels
    >>> advice = apiece.advise(apiece.Dataset.from_arrays(X, y))
    >>> advice["advice"][:40].value_counts().idxmax()
    'relabel'
    """
    if isinstance(data, Run):
        known = data.provenance()
        model, metric = trained_by(model, metric, known)
        dataset = data_again(data, "advice") if dataset is None else dataset
        dataset.check_is(known.get("dataset"))
    elif isinstance(data, Dataset):
        dataset = data
    else:
        raise PlanError(
            f"advice is asked about a {type(data).__name__}: expected a run or "
            "a dataset. Pass apiece.open(path) for a stored run, or a dataset such as "
            "apiece.Dataset.from_pandas(frame, target='label')."
        )
    resolved = resolve_model(
        "auto" if model is None else model,
        kind=dataset.kind,
        n_features=dataset.n_features,
        n_classes=dataset.n_classes,
    )
    loss = resolve_loss(metric, kind=dataset.kind, has_proba=resolved.has_proba)
    with tracking(progress, on_progress, title="advising", unit="folds"):
        result = advice_for(dataset, resolved, loss, level=level, seed=seed_from(random_state))
    return _with_unseen_loss(result, data) if isinstance(data, Run) else result


def _with_unseen_loss(advice: Advice, run: Run) -> Advice:
    """Return the advice with the loss of each row for models of the run that did not see it."""
    import pandas as pd

    trainings = run.trainings() if run.has_trainings else None
    if trainings is None or not trainings.row_loss.any():
        return advice
    loss = pd.Series(trainings.unseen_loss(), index=run.ids)
    rows = advice.rows.assign(unseen_loss=loss.reindex(advice.rows.index))
    return replace(advice, rows=rows)
