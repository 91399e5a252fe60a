"""Everything that can go wrong, as one small tree.

    ApieceError
    ├── DataError          the table, its columns or its labels       (ValueError)
    ├── PlanError          sizes, samples or points that do not fit   (ValueError)
    │   └── CardinalityError   a size that the pool cannot serve
    ├── EngineError        a model that cannot be trained or scored   (RuntimeError)
    │   └── ModelError         a model or metric that does not fit the data
    ├── StoreError         a run that cannot be read or written       (OSError)
    ├── FitError           contributions that cannot be fitted        (ValueError)
    ├── UnknownNameError   a word that is not in the list             (ValueError)
    └── MissingExtraError  an optional library that is not installed  (ImportError)

Messages speak in three beats: what was wrong, what was expected, what to do.
"""

from __future__ import annotations

from typing import ClassVar


class ApieceError(Exception):
    """Base of every error that apiece raises on purpose.

    ``exit_code`` is what the command line returns: 2 for a request that cannot be served as it is
    worded, 1 for one that failed on the way.
    """

    exit_code: ClassVar[int] = 1


class DataError(ApieceError, ValueError):
    """The data given cannot be used as it is."""

    exit_code = 2


class PlanError(ApieceError, ValueError):
    """The requested sizes, samples or points cannot be planned."""

    exit_code = 2


class CardinalityError(PlanError):
    """A training-set size does not fit the pool or its classes."""


class EngineError(ApieceError, RuntimeError):
    """A model could not be trained, or its loss is not a number."""


class ModelError(EngineError):
    """A model or metric that does not fit the data, noticed before any work starts."""

    exit_code = 2


class StoreError(ApieceError, OSError):
    """A run cannot be read or written, or belongs to other data."""


class FitError(ApieceError, ValueError):
    """Contributions from which no law can be fitted."""


class UnknownNameError(ApieceError, ValueError):
    """A name that is not among the known ones."""

    exit_code = 2


class MissingExtraError(ApieceError, ImportError):
    """An optional library is needed and not installed."""


class ApieceWarning(UserWarning):
    """An answer that is right but weaker than it looks."""
