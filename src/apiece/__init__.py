"""apiece: what is each data point worth, at every dataset size?

>>> import apiece
>>> laws = apiece.synthetic.random_laws(5, random_state=0)
>>> laws.mean(1000).shape
(5,)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apiece import (
        collection,
        data,
        engines,
        errors,
        estimators,
        experiments,
        laws,
        losses,
        papers,
        plots,
        records,
        reporting,
        store,
        synthetic,
        testing,
        uses,
    )
    from apiece._sklearn import DataValuer
    from apiece.collection import collect, plan, until
    from apiece.data import Dataset
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
    from apiece.estimators import aggregate, fit
    from apiece.laws import FitStatus, Laws
    from apiece.losses import Loss
    from apiece.records import Contributions
    from apiece.reporting import report
    from apiece.store import Run, open_run
    from apiece.uses import advise, compare, select, value

    open = open_run

# Where each public name lives; it is imported when first used, so `import apiece` stays light.
_HOMES = {
    "collect": "collection",
    "aggregate": "estimators",
    "fit": "estimators",
    "advise": "uses",
    "compare": "uses",
    "select": "uses",
    "value": "uses",
    "report": "reporting",
    "open": "store:open_run",
    "open_run": "store",
    "Run": "store",
    "DataValuer": "_sklearn",
    "Dataset": "data",
    "Loss": "losses",
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
    "collection": "",
    "data": "",
    "engines": "",
    "errors": "",
    "estimators": "",
    "experiments": "",
    "laws": "",
    "losses": "",
    "papers": "",
    "plots": "",
    "records": "",
    "reporting": "",
    "store": "",
    "synthetic": "",
    "testing": "",
    "plan": "collection",
    "until": "collection",
    "uses": "",
}

# `apiece.open` is there too, but not here: `from apiece import *` must not hide the builtin.
__all__ = [
    "ApieceError",
    "ApieceWarning",
    "CardinalityError",
    "Contributions",
    "DataError",
    "DataValuer",
    "Dataset",
    "EngineError",
    "FitError",
    "FitStatus",
    "Laws",
    "Loss",
    "MissingExtraError",
    "ModelError",
    "PlanError",
    "Run",
    "StoreError",
    "UnknownNameError",
    "__version__",
    "advise",
    "aggregate",
    "collect",
    "collection",
    "compare",
    "data",
    "engines",
    "errors",
    "estimators",
    "experiments",
    "fit",
    "laws",
    "losses",
    "open_run",
    "papers",
    "plan",
    "plots",
    "records",
    "report",
    "reporting",
    "select",
    "store",
    "synthetic",
    "testing",
    "until",
    "uses",
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
    result = getattr(import_module(f"apiece.{module}"), attribute or name)
    globals()[name] = result
    return result


def __dir__() -> list[str]:
    return __all__
