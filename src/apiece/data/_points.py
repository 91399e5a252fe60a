"""The points of a dataset and its validation set, as engines and uses see them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from apiece._base.check import check_text, some
from apiece._base.html import facts_html
from apiece._base.typing import AnyArray, FloatArray, IntArray, PointIds, Positions
from apiece.data._fingerprint import digest
from apiece.data._options import Kind
from apiece.data._rows import Rows, as_dense, guarded, is_frame, parts_of, take_rows, why_not_dense
from apiece.data._summary import count, describe_target, n_copies
from apiece.errors import DataError

if TYPE_CHECKING:
    from apiece.data._columns import Columns

_ARRAYS: Final = (
    *("rows", "points_y", "rows_val", "y_val", "ids", "classes", "ids_val", "groups"),
    "sample_weight",
)
_CACHED: Final = ("points_X", "_as_numbers", "X_val")  # made again where a dataset arrives
_MOST_NAMES: Final = 100  # feature names that a manifest lists


@dataclass(frozen=True, eq=False, repr=False)
class PointSet:
    """What a `Dataset` holds, however it was made.

    A point is known by its position: ``0 .. n_pool - 1`` are the pool, from which training sets
    are drawn; from ``n_pool`` on are the candidates, which are valued against the pool. All arrays
    are read-only.

    Parameters
    ----------
    rows
        Features of the pool, then of the candidates, as models get them: a float32 or float64
        array of shape ``(n_points, n_features)``, a sparse CSR matrix, or a DataFrame.
    points_y
        Their targets, shape ``(n_points,)``: class codes (int64, positions in ``classes``) or
        quantities (float64).
    n_pool
        How many of the points are the pool.
    rows_val, y_val
        The validation set: features like ``rows``, and targets, shape ``(n_validation,)``.
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
    transformer
        The scikit-learn transformer that made the features, fitted to the pool; None if none did.
    columns
        Which columns of a table are what, to read candidates alike; None for arrays.
    source
        The file it was read from and how, ready for JSON; None for data from memory.
    groups
        Name of the group that every point enters with, empty for none, shape ``(n_points,)``; None
        where there are no groups.
    group_column
        The column that names the groups, if a table does.
    sample_weight
        Weight of every point in training, shape ``(n_points,)``; None for equal weights. Scoring
        rows always weigh the same.

    Examples
    --------
    >>> from apiece.data import Dataset
    >>> points = Dataset.from_arrays([[0.0], [1.0], [2.0], [3.0]], list("abab"), ids=list("pqrs"))
    >>> at = points.positions(["s", "q"])
    >>> points.features(at).ravel(), points.take(at).shape, points.targets(at), points.labels()[at]
    (array([3., 1.]), (2, 1), array([1, 1]), array(['b', 'b'], dtype='<U1'))
    >>> points.with_points(np.array([0, 1, 2]), n_pool=2).n_candidates
    1
    >>> points.scored_by(at).X_val.ravel()
    array([3., 1.])
    >>> points.check_is(points.describe()["fingerprint"])  # raises for another dataset
    """

    rows: Rows
    points_y: AnyArray
    n_pool: int
    rows_val: Rows
    y_val: AnyArray
    ids: PointIds
    kind: Kind
    classes: AnyArray | None
    feature_names: tuple[str, ...]
    target_name: str = "target"
    preprocessing: dict[str, Any] = field(default_factory=dict)
    ids_val: AnyArray | None = None
    transformer: Any = None
    columns: Columns | None = None
    source: dict[str, Any] | None = None
    groups: AnyArray | None = None
    group_column: str | None = None
    sample_weight: FloatArray | None = None

    def __post_init__(self) -> None:
        by_point = (self.rows, self.ids, self.groups, self.sample_weight)
        lengths = {part.shape[0] for part in by_point if part is not None} | {len(self.points_y)}
        widths = {self.rows.shape[1], self.rows_val.shape[1], len(self.feature_names)}
        if len(lengths) > 1 or len(widths) > 1 or self.n_validation != len(self.y_val):
            raise DataError(
                f"features {self.rows.shape}, targets {self.points_y.shape}, ids "
                f"{self.ids.shape}, groups {getattr(self.groups, 'shape', None)}, weights "
                f"{getattr(self.sample_weight, 'shape', None)}, validation {self.rows_val.shape} "
                f"and {self.y_val.shape} do not fit together: expected one target, id, group and "
                "weight (if any) for each row, and the same features. Use Dataset.from_arrays, "
                "which checks each of them."
            )
        names = {
            "ids": self.ids,
            "groups": self.groups,
            "labels": self.classes,
            "validation ids": self.ids_val,
            "feature names": self.feature_names,
            "target names": [self.target_name],
        }
        for what, words in names.items():
            check_text(what, words)
        self._freeze()

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name not in _CACHED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._freeze()

    def _freeze(self) -> None:
        for name in _ARRAYS:
            array = getattr(self, name)
            if isinstance(array, np.ndarray) and array.flags.writeable:
                object.__setattr__(self, name, guarded(array))

    def __repr__(self) -> str:
        points = f"{count(self.n_pool, 'point')} x {count(self.n_features, 'feature')}"
        extra = f" + {count(self.n_candidates, 'candidate')}" if self.n_candidates else ""
        goal = count(self.n_classes, "class", "es") if self.is_classification else self.kind
        validation = count(self.n_validation, "validation row")
        return f"Dataset({points}{extra}, {goal}, {validation}, target {self.target_name!r})"

    def _repr_html_(self) -> str:
        facts: list[tuple[str, object]] = [
            ("target", self.target_name),
            ("kind", self.kind),
            ("points", f"{self.n_pool:,}"),
            ("candidates", f"{self.n_candidates:,}"),
            ("validation rows", f"{self.n_validation:,}"),
            ("features", f"{self.n_features:,}"),
            ("fingerprint", self.fingerprint[:12]),
        ]
        if self.classes is not None:
            facts.insert(2, ("classes", some(self.classes.tolist())))
        return facts_html("Dataset", facts)

    @cached_property
    def points_X(self) -> FloatArray:
        """Features of all points as a dense float64 matrix, shape ``(n_points, n_features)``.

        Of a table that is kept as it is (``preprocess=None``), the default preprocessing makes
        them, for what needs numbers besides the model: neighbours, plots, other models.

        Raises
        ------
        DataError
            If a sparse matrix is too large.
        """
        return np.asarray(guarded(self._as_numbers(self.rows)))

    @cached_property
    def X_val(self) -> FloatArray:
        """Features of the validation set as a dense float64 matrix, like `points_X`."""
        if not self.n_validation:
            return self.points_X[:0]
        return np.asarray(guarded(self._as_numbers(self.rows_val)))

    @cached_property
    def _as_numbers(self) -> Callable[[Rows], FloatArray]:
        if not is_frame(self.rows):
            return as_dense
        from apiece.data._preprocess import default_encoder

        return default_encoder(self.take(slice(self.n_pool)))

    @property
    def X(self) -> FloatArray:
        """Features of the pool, shape ``(n_pool, n_features)``, like `points_X`."""
        return self.points_X[: self.n_pool]

    @property
    def y(self) -> AnyArray:
        """Targets of the pool, shape ``(n_pool,)``: class codes or quantities."""
        return self.points_y[: self.n_pool]

    @property
    def n_points(self) -> int:
        """How many points there are to value: pool and candidates."""
        return len(self.points_y)

    @property
    def n_candidates(self) -> int:
        """How many of the points are candidates."""
        return self.n_points - self.n_pool

    @property
    def n_validation(self) -> int:
        """How many rows the validation set has."""
        return int(self.rows_val.shape[0])

    @property
    def n_features(self) -> int:
        """How many features a point has."""
        return int(self.rows.shape[1])

    @property
    def n_classes(self) -> int:
        """How many classes there are; 0 for regression."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def scope(self) -> str:
        """What results are for: the ``"population"``, or the given ``"scoring rows"``."""
        return "scoring rows" if self.n_validation else "population"

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return self.kind == "classification"

    @property
    def needs_refit(self) -> str | None:
        """Why only the refit engine can train on this dataset, in words; None if others can too."""
        if self.sample_weight is not None:
            return "the data has sample weights"
        return why_not_dense(self.rows) or why_not_dense(self.rows_val)

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

    def scored_by(self, rows: IntArray) -> Self:
        """Return the same points with some rows of the pool in place of the validation set."""
        scored = object.__new__(type(self))  # checked already
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        scored.__dict__.update(settings, rows_val=self.take(rows), y_val=self.y[rows], ids_val=None)
        cached = {name: part for name, part in vars(self).items() if name in _CACHED[:2]}
        scored.__dict__.update(cached)
        scored._freeze()
        return scored

    def features(self, positions: IntArray | slice) -> FloatArray:
        """Return the features of points, shape ``(n_positions, n_features)``."""
        return self.points_X[positions]

    def take(self, positions: IntArray | slice) -> Rows:
        """Return the features of points as models get them: array, sparse matrix or frame."""
        return take_rows(self.rows, positions)

    def with_points(self, positions: IntArray, *, n_pool: int) -> Self:
        """Return a dataset of the points at some positions, the first ``n_pool`` of them its pool.

        The validation set stays. A position may occur more than once; ids are then not unique.
        """
        groups, weight = self.groups, self.sample_weight
        return replace(
            self,
            rows=self.take(positions),
            points_y=self.points_y[positions],
            n_pool=n_pool,
            ids=PointIds(self.ids[positions]),
            groups=None if groups is None else groups[positions],
            sample_weight=None if weight is None else weight[positions],
        )

    def targets(self, positions: IntArray | slice) -> AnyArray:
        """Return the class codes or quantities of points, shape ``(n_positions,)``."""
        return self.points_y[positions]

    def labels(self) -> AnyArray:
        """Return the target of every point as it was given, shape ``(n_points,)``."""
        return self.points_y if self.classes is None else self.classes[self.points_y]

    def positions(self, ids: object) -> Positions:
        """Return the positions of points by their ids, shape ``(n_ids,)``.

        Examples
        --------
        >>> from apiece.data import Dataset
        >>> Dataset.from_arrays([[0], [1], [2], [3]], [0, 1, 0, 1], ids=list("abcd"),
        ...                     X_val=[[4], [5]], y_val=[0, 1]).positions(["c", "a"])
        array([2, 0])
        """
        from apiece.data._ids import find_ids

        return Positions(find_ids(ids, self.ids, others=self.ids_val))

    @cached_property
    def fingerprint(self) -> str:
        """Digest of everything that decides a contribution; names of features and target do not."""
        parts: dict[str, Any] = {
            "kind": self.kind,
            "preprocessing": json.dumps(self.preprocessing, sort_keys=True),
            "n_pool": np.array(self.n_pool),
            "classes": self.classes,
            "ids": self.ids,
            **dict(parts_of("X", self.rows)),
            "y": self.points_y,
            **dict(parts_of("X_val", self.rows_val)),
            "y_val": self.y_val,
        }
        return digest(parts if self.sample_weight is None else parts | {"w": self.sample_weight})

    def describe(self) -> dict[str, Any]:
        """Return what a manifest says about the dataset, ready for JSON."""
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

    def summary(self, *, is_guess: bool = True) -> str:
        """Return what the dataset holds and what is predicted, in two lines.

        Rows that are copies of others are counted: what they are worth is for one copy more.

        Parameters
        ----------
        is_guess
            Whether to say how to change the kind of the target, where it was decided from numbers.

        Examples
        --------
        >>> from apiece.data import Dataset
        >>> print(Dataset.from_arrays([[0.0], [1.0], [2.0], [2.0]] * 3, [3, 5, 9, 9] * 3).summary())
        12 points to value, 1 feature, all score in turns; 9 rows are copies of others
        target: 3 classes (3..9); kind='regression' (--task regression) if it is a quantity
        """
        parts = [f"{count(self.n_pool, 'point')} to value", count(self.n_features, "feature")]
        if self.n_candidates:
            parts.append(count(self.n_candidates, "candidate"))
        if self.groups is not None:
            parts.append(count(len(set(self.groups.tolist()) - {""}), "group"))
        if self.sample_weight is not None:
            parts.append("sample weights")
        if self.n_validation:
            parts.append(f"{count(self.n_validation, 'row')} to score on")
        else:
            parts.append("all score in turns")
        copies = n_copies(self)
        verb = "is a copy of another" if copies == 1 else "are copies of others"
        more = f"; {count(copies, 'row')} {verb}" if copies else ""
        return f"{', '.join(parts)}{more}\n{describe_target(self, is_guess=is_guess)}"
