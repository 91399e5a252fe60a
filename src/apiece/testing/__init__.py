"""Contract suites: tests that every engine, store, pool, estimator and family must pass.

Subclass a suite in a pytest module and define how to make the object::

    class TestMyEngine(EngineContract):
        def make(self, dataset):
            return MyEngine(dataset, ...)
"""

from apiece.testing._engine import EngineContract
from apiece.testing._estimator import EstimatorContract
from apiece.testing._family import FamilyContract
from apiece.testing._pool import PoolContract
from apiece.testing._store import StoreContract

__all__ = [
    "EngineContract",
    "EstimatorContract",
    "FamilyContract",
    "PoolContract",
    "StoreContract",
]
