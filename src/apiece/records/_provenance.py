"""Provenance of contributions and laws, as typed records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from apiece._base.record import Record


@dataclass(frozen=True, kw_only=True)
class EngineRecord(Record):
    """The engine; ``correlation`` with exact contributions is None if it was not measured.

    Examples
    --------
    >>> EngineRecord.from_json({"name": "logistic", "is_exact": True}).is_exact
    True
    """

    name: str
    is_exact: bool
    correlation: float | None = None


@dataclass(frozen=True, kw_only=True)
class DesignRecord(Record):
    """The design by its name, with its settings; ``sizes`` are ends of a range, or a grid.

    ``scoring`` is ``"rotating"`` if scoring rows rotate; None for a validation set.

    Examples
    --------
    >>> DesignRecord(name="uniform", sizes=[100, 1000]).to_json()
    {'name': 'uniform', 'sizes': [100, 1000]}
    """

    name: str
    sizes: list[int] | None = None
    scoring: str | None = None


@dataclass(frozen=True, kw_only=True)
class Snapshot(Record):
    """State of a run: number of contributions, their digest, and whether the run was complete.

    Examples
    --------
    >>> Snapshot(n_contributions=10, digest="ab", is_complete=True).is_complete
    True
    """

    n_contributions: int
    digest: str
    is_complete: bool


@dataclass(frozen=True, kw_only=True)
class Recipe(Record):
    """How to fit laws again: the method, its settings, and whether it learns from features.

    Examples
    --------
    >>> Recipe(method="bayes").to_json()
    {'method': 'bayes'}
    """

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    features: bool = False


@dataclass(frozen=True, kw_only=True)
class Provenance(Record):
    """Provenance of a result: a typed view of the ``attrs`` of contributions, laws and runs.

    Parameters
    ----------
    dataset, n_pool, model, metric, engine, design, seed
        Settings of the contributions; ``dataset`` is the fingerprint of the data.
    groups
        For runs that value groups: how many rows of each group join at once.
    estimator, settings, version, created
        How and when the laws were fitted.
    chosen_by
        ``"auto"``, if a backtest chose the estimator.
    fitted_to
        Which contributions of a run the laws were fitted to.
    recipe
        How to fit them again, if a file can describe it.

    Examples
    --------
    >>> Provenance.of({"seed": 3, "design": {"name": "grid", "sizes": [1, 2]}}).design.name
    'grid'
    """

    dataset: str | None = None
    n_pool: int | None = None
    model: str | None = None
    metric: str | None = None
    engine: EngineRecord | None = None
    design: DesignRecord | None = None
    seed: int | None = None
    groups: dict[Any, int] | None = None
    estimator: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    version: str | None = None
    created: str | None = None
    chosen_by: str | None = None
    fitted_to: Snapshot | None = None
    recipe: Recipe | None = None

    @classmethod
    def of(cls, attrs: Mapping[str, Any]) -> Self:
        """Return the typed view of attributes; entries that do not fit are in ``more``.

        Examples
        --------
        >>> known = Provenance.of({"seed": 3, "design": {"name": "grid", "sizes": [1, 2]}})
        >>> known.seed, known.design.name
        (3, 'grid')
        """
        return cls.from_json(attrs, strict=False)
