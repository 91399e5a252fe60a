"""What every estimator is: fixed settings, and one method that turns contributions into laws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from apiece.errors import ApieceError, DataError, FitError, PlanError
from apiece.estimators._common import in_memory_only
from apiece.estimators._rows import about_population
from apiece.estimators._theory import with_row_noise
from apiece.laws import Laws
from apiece.laws.provenance import plain, provenance
from apiece.records import Contributions, Stored, Table

if TYPE_CHECKING:
    from apiece.data import Dataset


class Features(NamedTuple):
    """What is known of the points apart from their contributions.

    Parameters
    ----------
    X, y
        Features, shape ``(n_points, n_features)``, and labels, shape ``(n_points,)``, in the order
        of ``contributions.ids``.
    more
        Features and labels of further points, without contributions, to learn the target from.
    kind
        ``"classification"``, ``"regression"``, or None to decide by the labels.

    Examples
    --------
    >>> Features(X=np.zeros((3, 2)), y=np.array([0, 1, 0])).more is None
    True
    """

    X: npt.ArrayLike | None = None
    y: npt.ArrayLike | None = None
    more: tuple[npt.ArrayLike, npt.ArrayLike] | None = None
    kind: Literal["classification", "regression"] | None = None


class Estimator(ABC):
    """Turns contributions into laws. Settings are fixed; every fit returns new laws.

    A new estimator is a class with `fit_table`. Declare it as a frozen dataclass, so that its
    fields are its settings.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Flat(Estimator):
    ...     "The mean contribution of every point, as a law that falls as 1 / k."
    ...
    ...     def fit_table(self, table, features=None):
    ...         means = [part.delta[part.point == i] @ part.k[part.point == i]
    ...                  for part in table.parts() for i in range(part.n_points)]
    ...         return Laws.from_arrays(c=means / table.counts(), alpha=1.0, ids=table.ids,
    ...                                 n_samples=table.counts(), k_range=table.k_range)
    >>> table = Contributions.from_arrays(point=[0, 0], k=[10, 20], delta=[0.4, 0.2])
    >>> Flat().fit(table).c
    array([4.])
    """

    name: ClassVar[str] = ""
    """The word for this estimator, such as ``"bayes"``; the name of the class if empty."""

    streams: ClassVar[bool] = False
    """Whether any `Table` will do; if not, all contributions are read into memory."""

    takes_features: ClassVar[bool] = False
    """Whether `fit_table` can learn from features."""

    needs_features: ClassVar[bool] = False
    """Whether `fit_table` cannot do without features."""

    needs_trainings: ClassVar[bool] = False
    """Whether it learns from trainings, and not from contributions."""

    is_cross_fitted: ClassVar[bool] = False
    """Whether `fit` of the package checks errors on tasks that are held out, and widens them."""

    @abstractmethod
    def fit_table(self, table: Table, features: Features | None = None) -> Laws:
        """Fit one law for each point of ``table.ids``, in that order.

        Parameters
        ----------
        table
            Contributions, in memory unless ``streams`` is true.
        features
            Features of the points, if there are any and ``takes_features`` is true.
        """

    def fit(
        self,
        source: Stored | Table,
        X: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        more: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        kind: Literal["classification", "regression"] | None = None,
        *,
        dataset: Dataset | None = None,
        memory: int | str | None = None,
    ) -> Laws:
        """Fit one law for each point.

        Parameters
        ----------
        source
            A run, contributions, or any other table of them.
        X, y, more, kind
            Features, for estimators that learn from them; see `Features`.
        dataset
            The dataset of the run, instead of ``X``, ``y``, ``more`` and ``kind``. Estimators that
            take no features ignore it.
        memory
            What the contributions of a run may take at once, such as ``"2GB"``. None reads all.

        Returns
        -------
        Laws
            Those of a run remember what they were fitted to, see `Run.laws`.
        """
        word = self.name or type(self).__name__
        given = Features(X, y, more, kind)
        features = None if all(part is None for part in given) else given
        if features is not None and not self.takes_features:
            raise FitError(
                f"{word} does not learn from features: expected contributions alone. Leave X, y "
                "and more out, or choose a method that learns from features, such as bayes."
            )
        stored = source if isinstance(source, Stored) else None
        fitted_to = None if stored is None else stored.snapshot()  # a run may grow
        with opened(source, memory) as table:
            if not self.streams and not isinstance(table, Contributions):
                raise in_memory_only(word)
            given_table, table = table, about_population(table)
            of_dataset = dataset is not None and self.takes_features and features is None
            if dataset is not None and of_dataset:
                features = _features(table, dataset)
            if features is None and self.needs_features:
                features = Features()  # the estimator then says what is missing
            laws = self.fit_table(table) if features is None else self.fit_table(table, features)
            if table is not given_table:
                laws = with_row_noise(laws, getattr(table, "theory", None))
        attrs = {**provenance(word, {}), **laws.attrs}
        if stored is None:
            return replace(laws, attrs=attrs)
        is_known = features is None or of_dataset
        return replace(
            laws,
            labels=stored.labels if laws.labels is None else laws.labels,
            attrs={
                **stored.attrs,
                **attrs,
                "fitted_to": fitted_to,
                "recipe": self.recipe(features=of_dataset) if is_known else None,
            },
        )

    def judged(self, laws: Laws) -> Estimator:
        """Return the estimator to backtest for ``laws``, which this estimator fitted."""
        return self

    def recipe(self, *, features: bool = False) -> dict[str, Any] | None:
        """Return what rebuilds this estimator: its name and settings; None where no file can.

        Parameters
        ----------
        features
            Whether laws are learned from the features of the run's dataset, too.
        """
        settings: Any = self
        if not self.name or not is_dataclass(settings):
            return None
        changed = {}
        for setting in fields(settings):
            value = getattr(self, setting.name)
            if value is not setting.default and not _equal(value, setting.default):
                try:
                    changed[setting.name] = plain(_as_setting(value), setting.name)
                except ApieceError:
                    return None
        return {"method": self.name, "settings": changed, "features": features}


def opened(source: Stored | Table, memory: int | str | None) -> AbstractContextManager[Table]:
    """Return the contributions for a ``with`` block, those of a run streamed if memory is bounded.

    Raises
    ------
    DataError
        If ``source`` holds no contributions.

    Examples
    --------
    >>> from apiece.records import Contributions
    >>> table = Contributions.from_arrays(point=[0], k=[10], delta=[0.1])
    >>> with opened(table, None) as contributions:
    ...     len(contributions)
    1
    """
    if isinstance(source, Stored):
        return source.opened(memory)
    if missing := [name for name in ("ids", "counts", "parts") if not hasattr(source, name)]:
        raise DataError(
            f"an object of type {type(source).__name__} holds no contributions (it has no "
            f"{missing[0]}): expected a run, as collect returns and open_run opens, or "
            "Contributions. Pass one of these."
        )
    return nullcontext(source)


def _equal(value: object, default: object) -> bool:
    return type(value) is type(default) and bool(np.all(value == default))


def _as_setting(value: Any) -> Any:
    """Return a family in the form that files keep, and anything else as it is."""
    return value.to_setting() if hasattr(value, "to_setting") else value


def _features(contributions: Table, dataset: Dataset) -> Features:
    """Return features and labels of the valued points, and of the rest of the pool."""
    dataset.check_is(contributions.attrs.get("dataset"))
    refuse_groups(contributions.attrs, "learning from features")
    valued = dataset.positions(contributions.ids)
    labels = dataset.labels()
    rest = np.setdiff1d(np.arange(dataset.n_points), valued)
    return Features(
        X=dataset.features(valued),
        y=labels[valued],
        more=(dataset.features(rest), labels[rest]),
        kind=dataset.kind,
    )


def refuse_groups(attrs: dict[str, Any], what: str) -> None:
    """Raise where points are groups, and ``what`` is about single rows.

    Examples
    --------
    >>> refuse_groups({"groups": None}, "a boundary")
    """
    if attrs.get("groups") is not None:
        raise PlanError(
            f"{what} is about single points, and these are laws of groups: expected a run that "
            "values points. Collect one with groups=False, or leave dataset out."
        )
