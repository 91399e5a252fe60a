"""The dataset: a pool of points, candidates beside it, and a validation set that judges both."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._base.check import check_text
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data._constructors import Constructors
from apiece.data._fingerprint import digest
from apiece.data._options import FilePath, Kind
from apiece.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from apiece.data._frames import FrameEncoder
    from apiece.data._numeric import NumericEncoder

_ARRAYS: Final = ("points_X", "points_y", "X_val", "y_val", "ids", "classes", "ids_val", "groups")
_MOST_NAMES: Final = 100  # feature names that a manifest lists


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Constructors):
    """Points to value, and the validation set on which their worth is measured.

    Make one with `from_csv`, `from_arrays` or another constructor. A point is known by its
    position: ``0 .. n_pool - 1`` are the pool, from which training sets are drawn; from ``n_pool``
    on are the candidates, which are valued against the pool. All arrays are read-only.

    Parameters
    ----------
    points_X
        Features of the pool, then of the candidates, shape ``(n_points, n_features)``.
    points_y
        Their targets, shape ``(n_points,)``: class codes (int64, positions in ``classes``) or
        quantities (float64).
    n_pool
        How many of the points are the pool.
    X_val, y_val
        The validation set, shapes ``(n_validation, n_features)`` and ``(n_validation,)``.
    ids
        The points' names, whole numbers or strings, shape ``(n_points,)``.
    kind
        ``"classification"`` or ``"regression"``.
    classes
        The labels behind the codes, shape ``(n_classes,)``; None for regression.
    feature_names
        A name for each feature.
    target_name
        What is predicted.
    preprocessing
        What was done to make the features, ready for JSON; part of the fingerprint.
    ids_val
        Names of the validation rows, shape ``(n_validation,)``, where they have any.
    encoder
        What the pool taught about the columns, to encode candidates alike.
    source
        The file it was read from and how, ready for JSON; None for data from memory.
    groups
        Name of the group that every point enters with, empty for none, shape ``(n_points,)``; None
        where there are no groups.
    group_column
        The column that names the groups, if a table does.

    Examples
    --------
    >>> dataset = Dataset.from_arrays([[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"])
    >>> dataset
    Dataset(2 points x 1 feature, 2 classes, 2 validation rows, target 'target')
    >>> dataset.labels().tolist()
    ['no', 'yes']
    """

    points_X: FloatArray
    points_y: AnyArray
    n_pool: int
    X_val: FloatArray
    y_val: AnyArray
    ids: AnyArray
    kind: Kind
    classes: AnyArray | None
    feature_names: tuple[str, ...]
    target_name: str = "target"
    preprocessing: dict[str, Any] = field(default_factory=dict)
    ids_val: AnyArray | None = None
    encoder: FrameEncoder | NumericEncoder | None = None
    source: dict[str, Any] | None = None
    groups: AnyArray | None = None
    group_column: str | None = None

    def __post_init__(self) -> None:
        lengths = {len(self.points_X), len(self.points_y), len(self.ids)}
        lengths |= set() if self.groups is None else {len(self.groups)}
        widths = {self.points_X.shape[1], self.X_val.shape[1], len(self.feature_names)}
        if len(lengths) > 1 or len(widths) > 1 or len(self.X_val) != len(self.y_val):
            raise DataError(
                f"features {self.points_X.shape}, targets {self.points_y.shape}, ids "
                f"{self.ids.shape}, groups {getattr(self.groups, 'shape', None)}, validation "
                f"{self.X_val.shape} and {self.y_val.shape} do not fit together: expected one "
                "target, id and group (if any) for each row, and the same features. "
                "Use Dataset.from_arrays, which checks each of them."
            )
        named = {
            "ids": self.ids,
            "groups": self.groups,
            "labels": self.classes,
            "validation ids": self.ids_val,
            "feature names": self.feature_names,
            "target names": [self.target_name],
        }
        for what, names in named.items():
            check_text(what, names)
        self._freeze()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._freeze()

    def _freeze(self) -> None:
        for name in _ARRAYS:
            array = getattr(self, name)
            if array is not None and array.flags.writeable:
                view = array.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    def __repr__(self) -> str:
        def count(n: int, noun: str, plural: str = "s") -> str:
            return f"{n:,} {noun}{'' if n == 1 else plural}"

        points = f"{count(self.n_pool, 'point')} x {count(self.n_features, 'feature')}"
        extra = f" + {count(self.n_candidates, 'candidate')}" if self.n_candidates else ""
        goal = count(self.n_classes, "class", "es") if self.is_classification else self.kind
        validation = count(self.n_validation, "validation row")
        return f"Dataset({points}{extra}, {goal}, {validation}, target {self.target_name!r})"

    @property
    def X(self) -> FloatArray:
        """Features of the pool, shape ``(n_pool, n_features)``."""
        return self.points_X[: self.n_pool]

    @property
    def y(self) -> AnyArray:
        """Targets of the pool, shape ``(n_pool,)``: class codes or quantities."""
        return self.points_y[: self.n_pool]

    @property
    def n_points(self) -> int:
        """How many points there are to value: pool and candidates."""
        return len(self.points_X)

    @property
    def n_candidates(self) -> int:
        """How many of the points are candidates."""
        return self.n_points - self.n_pool

    @property
    def n_validation(self) -> int:
        """How many rows the validation set has."""
        return len(self.X_val)

    @property
    def n_features(self) -> int:
        """How many features a point has."""
        return int(self.points_X.shape[1])

    @property
    def n_classes(self) -> int:
        """How many classes there are; 0 for regression."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return self.kind == "classification"

    def check_is(self, fingerprint: str | None) -> None:
        """Refuse to stand for another dataset: that of a run, or of laws fitted to it.

        Raises
        ------
        DataError
            If the fingerprint is known and not this dataset's.
        """
        if fingerprint not in (None, self.fingerprint):
            raise DataError(
                f"this is another dataset (fingerprint {self.fingerprint[:12]}…, the run is about "
                f"{fingerprint[:12]}…): expected the one that was collected from, with the same "
                "pool, candidates and validation rows. Read it as it was read for collect."
            )

    def features(self, positions: IntArray | slice) -> FloatArray:
        """Return the features of points, shape ``(n_positions, n_features)``."""
        return self.points_X[positions]

    def targets(self, positions: IntArray | slice) -> AnyArray:
        """Return the class codes or quantities of points, shape ``(n_positions,)``."""
        return self.points_y[positions]

    def labels(self) -> AnyArray:
        """Return the target of every point as it was given, shape ``(n_points,)``."""
        return self.points_y if self.classes is None else self.classes[self.points_y]

    def positions(self, ids: object) -> IntArray:
        """Return the positions of points by their ids, shape ``(n_ids,)``.

        >>> Dataset.from_arrays([[0], [1], [2], [3]], [0, 1, 0, 1], ids=list("abcd"),
        ...                     X_val=[[4], [5]], y_val=[0, 1]).positions(["c", "a"])
        array([2, 0])
        """
        from apiece.data._ids import find_ids

        return find_ids(ids, self.ids, others=self.ids_val)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of everything that decides a contribution; names of features and target do not."""
        return digest(
            {
                "kind": self.kind,
                "preprocessing": json.dumps(self.preprocessing, sort_keys=True),
                "n_pool": np.array(self.n_pool),
                "classes": self.classes,
                "ids": self.ids,
                "X": self.points_X,
                "y": self.points_y,
                "X_val": self.X_val,
                "y_val": self.y_val,
            }
        )

    def describe(self) -> dict[str, Any]:
        """Return what a manifest tells of the dataset, ready for JSON."""
        names = list(self.feature_names[:_MOST_NAMES])
        if len(self.feature_names) > _MOST_NAMES:
            names.append(f"… and {len(self.feature_names) - _MOST_NAMES:,} more")
        return {
            "fingerprint": self.fingerprint,
            "kind": self.kind,
            "target": self.target_name,
            "classes": None if self.classes is None else self.classes.tolist(),
            "n_pool": self.n_pool,
            "n_candidates": self.n_candidates,
            "n_validation": self.n_validation,
            "n_features": self.n_features,
            "feature_names": names,
            "preprocessing": self.preprocessing,
            "source": self.source,
        }

    def with_candidates(
        self,
        candidates: tuple[object, object] | pd.DataFrame | FilePath,
        *,
        ids: object = None,
        groups: object = None,
    ) -> Dataset:
        """Return a dataset with further candidates: points to value that are not in the pool.

        Parameters
        ----------
        candidates
            Features and labels ``(X, y)``, as they were given to `from_arrays` (of a dataset made
            from a table: in the space of ``dataset.X``); or, of a dataset made from a table, a
            DataFrame or a csv or Parquet file with the same columns; or, of one made from arrays,
            an npz file with ``X``, ``y`` and perhaps ``ids``.
        ids
            Names for them, shape ``(n_candidates,)``, or the column that holds the names. Left
            out, the table's id column serves; without one, whole numbers go on after the largest
            of the pool and the validation rows, and strings read ``candidate-0`` and so on.
        groups
            Names of their groups, shape ``(n_candidates,)``. Left out, the table's column of groups
            serves; without one, they belong to no group.
        """
        from apiece.data._candidates import read_candidates
        from apiece.data._source import joined

        X, y, names, group = read_candidates(self, candidates, ids, groups)
        return replace(
            self,
            points_X=np.concatenate([self.points_X, X]),
            points_y=np.concatenate([self.points_y, y]),
            ids=np.concatenate([self.ids, names]),
            source=joined(self.source, candidates, ids),
            groups=group,
        )
