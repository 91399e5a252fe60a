"""Where contributions and laws came from, as typed records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from apiece._base.record import Record


@dataclass(frozen=True, kw_only=True)
class EngineRecord(Record):
    """The engine; ``correlation`` is that with exact contributions, where it was measured."""

    name: str
    is_exact: bool
    correlation: float | None = None


@dataclass(frozen=True, kw_only=True)
class DesignRecord(Record):
    """The design by its name, with its settings; ``sizes`` are ends of a range, or a grid.

    ``scoring`` is ``"rotating"`` where rows take turns in scoring; None for a validation set.
    """

    name: str
    sizes: list[int] | None = None
    scoring: str | None = None


@dataclass(frozen=True, kw_only=True)
class Snapshot(Record):
    """Which contributions a run held: how many, a digest of them, and whether these were all."""

    n_contributions: int
    digest: str
    is_complete: bool


@dataclass(frozen=True, kw_only=True)
class Recipe(Record):
    """What fits laws again: the method, its settings, and whether it learns from features."""

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    features: bool = False


@dataclass(frozen=True, kw_only=True)
class Provenance(Record):
    """Where a result came from: a typed view of the ``attrs`` of contributions, laws and runs.

    Parameters
    ----------
    dataset, n_pool, model, metric, engine, design, seed
        What decided the contributions: the dataset's fingerprint and number of points, and words.
    groups
        Of runs that value groups: how many rows of each join at once.
    estimator, settings, version, created
        What fitted the laws, and when.
    chosen_by
        ``"auto"``, if a backtest chose the estimator.
    fitted_to
        Which contributions of a run the laws were fitted to.
    recipe
        How to fit them again, if a file can say it.
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
        """Return the typed view of attributes; what does not fit is in ``more``.

        >>> found = Provenance.of({"seed": 3, "design": {"name": "grid", "sizes": [1, 2]}})
        >>> found.seed, found.design.name
        (3, 'grid')
        """
        return cls.from_json(attrs, strict=False)
