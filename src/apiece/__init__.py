"""apiece: what is each data point worth, at every dataset size?

>>> import apiece
>>> laws = apiece.synthetic.random_laws(5, random_state=0)
>>> laws.mean(1000).shape
(5,)
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apiece import (
        analysis,
        decisions,
        experiments,
        plots,
        reproduce,
        selection,
        synthetic,
        valuation,
    )
    from apiece.api import advise, aggregate, collect, compare, fit, report, select, value
    from apiece.data import Dataset
    from apiece.engine import Metric
    from apiece.errors import (
        ApieceError,
        ApieceWarning,
        CardinalityError,
        DataError,
        EngineError,
        FitError,
        MissingExtraError,
        ModelError,
        PlanError,
        StoreError,
        UnknownNameError,
    )
    from apiece.laws import FitStatus, Laws
    from apiece.records import Contributions
    from apiece.store import Run
    from apiece.store import open_run as open

# Where each public name lives; it is imported when first used, so `import apiece` stays light.
_HOMES = {
    "advise": "api",
    "aggregate": "api",
    "collect": "api",
    "compare": "api",
    "fit": "api",
    "report": "api",
    "select": "api",
    "value": "api",
    "open": "store:open_run",
    "Run": "store",
    "Dataset": "data",
    "Metric": "engine",
    "Contributions": "records",
    "FitStatus": "laws",
    "Laws": "laws",
    "ApieceError": "errors",
    "ApieceWarning": "errors",
    "CardinalityError": "errors",
    "DataError": "errors",
    "EngineError": "errors",
    "FitError": "errors",
    "MissingExtraError": "errors",
    "ModelError": "errors",
    "PlanError": "errors",
    "StoreError": "errors",
    "UnknownNameError": "errors",
    "analysis": "",
    "decisions": "",
    "experiments": "",
    "plots": "",
    "reproduce": "",
    "selection": "",
    "synthetic": "",
    "valuation": "",
}

__all__ = [
    "ApieceError",
    "ApieceWarning",
    "CardinalityError",
    "Contributions",
    "DataError",
    "Dataset",
    "EngineError",
    "FitError",
    "FitStatus",
    "Laws",
    "Metric",
    "MissingExtraError",
    "ModelError",
    "PlanError",
    "Run",
    "StoreError",
    "UnknownNameError",
    "__version__",
    "advise",
    "aggregate",
    "analysis",
    "collect",
    "compare",
    "decisions",
    "experiments",
    "fit",
    "open",
    "plots",
    "report",
    "reproduce",
    "select",
    "selection",
    "synthetic",
    "valuation",
    "value",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("apiece")
    if name not in _HOMES:
        raise AttributeError(f"module 'apiece' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    if not module:
        return import_module(f"apiece.{name}")
    found = getattr(import_module(f"apiece.{module}"), attribute or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__


class _FrontDoor(ModuleType):
    """Keeps a verb a verb: importing the room `apiece.report` would put it in the verb's place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and _HOMES.get(name) == "api"):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor
