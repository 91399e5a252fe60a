"""Trainings: which points each model was trained on, and its losses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from apiece._base.arrow import ArrowTable
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray, PointIds
from apiece.records._contributions import Contributions
from apiece.records._moments import Moments

if TYPE_CHECKING:
    import pandas as pd


class Lists(NamedTuple):
    """A list of positions for each training, one after another.

    Parameters
    ----------
    length
        Length of each list, shape ``(n_trainings,)``.
    position
        The lists, joined.

    Examples
    --------
    >>> Lists(np.array([2, 1]), np.array([4, 7, 4])).owner
    array([0, 0, 1])
    """

    length: IntArray
    position: IntArray

    @property
    def owner(self) -> IntArray:
        """Which training each entry belongs to, shape ``(n_entries,)``."""
        return np.repeat(np.arange(len(self.length)), self.length)

    def part(self, rows: slice) -> tuple[Lists, slice]:
        """Return the lists of some trainings, and where their entries are."""
        ends = np.concatenate([[0], np.cumsum(self.length)])
        entries = slice(int(ends[rows.start]), int(ends[rows.stop]))
        return Lists(self.length[rows], self.position[entries]), entries


@dataclass(frozen=True, eq=False)
class Trainings(ArrowTable):
    """The trainings of a run in which each training informs about all of its points.

    Parameters
    ----------
    task, k, loss
        Index, number of training points and loss of each training, shape ``(n_trainings,)``.
    trained
        Positions of the points that each model was trained on.
    scored
        Positions of the points outside it that it was scored on.
    row_loss
        The loss of each of these, shape ``(n_scored,)``.
    ids, labels
        Names and labels of all points, shape ``(n_points,)``.
    is_pool, is_valued
        Which points are of the pool (others are candidates), and which are valued.
    rotates
        Whether ``loss`` is the mean over the points of the pool in ``scored``, instead of the loss
        on a validation set.
    features
        What is known of each point without training, shape ``(n_points, n_features)``.
    attrs
        Where the trainings came from.

    Examples
    --------
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> data, _ = load_demo()
    >>> run = apiece.collect(data, engine="reuse", sizes=(20, 40), trainings=20, progress=False)
    >>> len(run.trainings().k)
    20
    """

    task: IntArray
    k: IntArray
    loss: FloatArray
    trained: Lists
    scored: Lists
    row_loss: FloatArray
    ids: PointIds
    labels: AnyArray
    is_pool: BoolArray
    is_valued: BoolArray
    rotates: bool
    features: FloatArray
    attrs: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.task)

    @property
    def n_points(self) -> int:
        """How many points there are, valued or not."""
        return len(self.ids)

    def first(self, n_trainings: int) -> Trainings:
        """Return the first trainings alone, by their index.

        >>> none = Lists(np.zeros(2, dtype=int), np.empty(0, dtype=int))
        >>> two = Trainings(np.array([0, 1]), np.array([9, 9]), np.array([0.4, 0.5]), none, none,
        ...                 np.empty(0), *(np.empty(0),) * 4, False, np.empty((0, 0)))
        >>> two.first(1).loss
        array([0.4])
        """
        return self._part(slice(0, min(n_trainings, len(self))))

    def after(self, n_trainings: int) -> Trainings:
        """Return all but the first trainings, by their index."""
        return self._part(slice(min(n_trainings, len(self)), len(self)))

    def _part(self, rows: slice) -> Trainings:
        trained, _ = self.trained.part(rows)
        scored, of_scored = self.scored.part(rows)
        return replace(
            self,
            task=self.task[rows],
            k=self.k[rows],
            loss=self.loss[rows],
            trained=trained,
            scored=scored,
            row_loss=self.row_loss[of_scored],
        )

    def unseen_loss(self) -> FloatArray:
        """Return the mean loss of each valued point for models that were not trained on it.

        A model of $k$ points counts $k^3$, since models of more points predict better. Points with
        a wrong label have a high loss. Shape ``(n_valued,)``; nan for points that never scored.

        >>> import apiece
        >>> from apiece.data import load_demo
        >>> data, flipped = load_demo()
        >>> run = apiece.collect(data, engine="reuse", sizes=(20, 40), trainings=40,
        ...                      random_state=0, progress=False)
        >>> loss = run.trainings().unseen_loss()
        >>> bool(loss[flipped].mean() > loss.mean())
        True
        """
        counts = ((self.k / self.k.max(initial=1)) ** 3)[self.scored.owner]
        position = self.scored.position
        seen = np.bincount(position, counts, minlength=self.n_points)
        total = np.bincount(position, counts * self.row_loss, minlength=self.n_points)
        with np.errstate(invalid="ignore"):
            return np.asarray((total / seen)[self.is_valued])

    def losses(self) -> Moments:
        """Summarise the losses by cardinality: one row."""
        table = Contributions.from_arrays(
            point=np.zeros(len(self)), k=self.k, delta=self.loss, ids=["all"]
        )
        return table.moments()

    def table(self) -> pd.DataFrame:
        """Return one row for each training: ``task``, ``k``, ``loss``."""
        import pandas as pd

        return pd.DataFrame({"task": self.task, "k": self.k, "loss": self.loss})
