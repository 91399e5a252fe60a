"""Contract suites: what every engine, store, pool and estimator promises, as tests to inherit.

Subclass a suite in a pytest module and say how to make the thing::

    class TestMyEngine(EngineContract):
        def make(self, dataset):
            return MyEngine(dataset, ...)
"""

from apiece.testing._engine import EngineContract
from apiece.testing._estimator import EstimatorContract
from apiece.testing._pool import PoolContract
from apiece.testing._store import StoreContract

__all__ = ["EngineContract", "EstimatorContract", "PoolContract", "StoreContract"]
