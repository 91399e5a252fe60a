"""What is asked of a collection: which points, by which model; this decides engine and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from apiece._base.check import one_of
from apiece._base.typing import Positions
from apiece.collection._pilot import choose_by_pilot
from apiece.collection._request import default_sizes, positions
from apiece.collection._trainings import check_amount
from apiece.data import Dataset, Groups, groups_of
from apiece.engines import (
    Engine,
    EngineChoice,
    RefitEngine,
    ReuseEngine,
    choose_engine,
    choose_group_engine,
)
from apiece.errors import DataError, PlanError
from apiece.losses import LossLike

Scoring = Literal["auto", "fixed", "rotating", "sample"]


@dataclass(frozen=True, eq=False)
class Question:
    """Points or groups to value, and the model and loss that value them, see `collect`.

    Parameters
    ----------
    dataset
        The data, candidates included.
    model, metric, sizes, group_size
        As given.
    valued, groups
        Positions to value, and groups of them.
    rotates
        Whether rows take turns in scoring.
    """

    dataset: Dataset
    model: Any
    metric: LossLike
    sizes: Sequence[int] | None
    valued: Positions
    groups: Groups | None
    group_size: int | None
    rotates: bool

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        *,
        model: Any,
        metric: LossLike,
        sizes: Sequence[int] | None,
        points: npt.ArrayLike | None,
        scoring: Scoring,
        groups: Any = None,
        group_size: int | None = None,
    ) -> Question:
        """Check what is given.

        Raises
        ------
        DataError
            If it is no dataset.
        PlanError
            If points, groups or scoring do not fit it.
        """
        if not isinstance(dataset, Dataset):
            raise DataError(
                f"dataset is a {type(dataset).__name__}: expected an apiece.Dataset. Make one, for "
                "example with Dataset.from_pandas(frame, target='label') or "
                "Dataset.from_arrays(X, y)."
            )
        is_rotating = rotates(scoring, dataset)
        valued = positions(points, dataset)
        found = groups_of(dataset, groups, valued)
        if group_size is not None and found is None:
            raise PlanError(
                f"group_size={group_size} is given and points are valued: expected groups. Name "
                "their column when reading the data (groups=, --groups), or leave group_size "
                "(--group-size) out."
            )
        return cls(dataset, model, metric, sizes, valued, found, group_size, is_rotating)

    def engine(self, choice: EngineChoice) -> tuple[Engine, str]:
        """Return the engine of a choice, and the reason in words."""
        choose = choose_engine if self.groups is None else choose_group_engine
        return choose(self.dataset, model=self.model, metric=self.metric, engine=choice)

    def ends(self, engine: Engine) -> Sequence[int]:
        """Return the sizes as given, or the usual ones of an engine."""
        if self.sizes is not None:
            return self.sizes
        return default_sizes(
            self.dataset,
            self.groups,
            group_size=self.group_size,
            rotates=self.rotates,
            is_quick=engine.is_quick,
        )

    def answered_by(
        self, choice: EngineChoice, samples: int | None, begun: str | None = None
    ) -> tuple[Engine, str]:
        """Return the engine of a choice; where only refits are exact, a pilot has its say.

        Parameters
        ----------
        choice
            As given.
        samples
            Contributions per point, if they are asked for: trainings cannot give them.
        begun
            The engine of the run that is continued, None for a new one.
        """
        engine, reason = self.engine(choice)
        if choice != "auto" or samples is not None or type(engine) is not RefitEngine:
            return engine, reason
        if begun == ReuseEngine.name:
            return self.engine("reuse")[0], "as this run began"
        if begun is not None:
            return engine, reason
        ends = self.ends(engine)
        both = (int(np.min(ends)), int(np.max(ends)))
        return choose_by_pilot(engine, self.valued, both, rotates=self.rotates)

    def amount(
        self, choice: EngineChoice, engine: Engine, samples: int | None, trainings: int | None
    ) -> int | None:
        """Return how many trainings or samples are asked for, whichever the engine counts.

        Where refits are what ``auto`` chose, trainings are as many samples as they allow.

        Raises
        ------
        PlanError
            If the other ones are asked for, or less than one.
        """
        for name, number in (("samples", samples), ("trainings", trainings)):
            if number is not None and number < 1:
                raise PlanError(
                    f"{name}={number} asks for nothing: expected at least 1. Pass for example "
                    f"{name}=100 (--{name} 100)."
                )
        is_refit = choice == "auto" and type(engine) is RefitEngine
        if is_refit and samples is None and trainings is not None:
            return max(1, trainings // (len(self.valued) + 1))
        check_amount(samples, trainings, engine, has_groups=self.groups is not None)
        return trainings if engine.gives_trainings else samples


def rotates(scoring: Scoring, dataset: Dataset) -> bool:
    """Return whether scoring rows rotate."""
    one_of("scoring", scoring, ("auto", "fixed", "rotating", "sample"))
    has_rows = len(dataset.y_val) > 0
    if scoring in ("fixed", "sample") and not has_rows:
        raise PlanError(
            f"scoring={scoring!r} is asked for, but the dataset has no validation rows: expected "
            "some. Pass X_val and y_val (--validation), or scoring='rotating' (--scoring rotating)."
        )
    return scoring == "rotating" or not has_rows
