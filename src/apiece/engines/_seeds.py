"""Seeds for models that draw random numbers outside of ``random_state``.

A network trained through skorch draws from torch's global generator, some models from NumPy's or
Python's. For the time of a fit these are seeded by the task, and put back afterwards, so that a
training depends on its task alone.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators of Python, NumPy and torch (if it is loaded) for a block."""
    torch = sys.modules.get("torch")
    ours, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002  # users' models use it
    torchs = torch.get_rng_state() if torch is not None else None
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  # as above
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numpys)  # noqa: NPY002  # as above
        if torch is not None:
            torch.set_rng_state(torchs)
