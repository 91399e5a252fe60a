"""Tiny datasets that many tests share."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from hypothesis import settings

from apiece import Dataset

collect_ignore = ["fuzz.py"]  # it needs a package that the tests do not

# Times say nothing on a busy machine; where a failure stops others, examples stay the same.
settings.register_profile("apiece", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("apiece")

# Jobs in the background of a shell ignore Ctrl-C, and so would the processes that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def make_blobs(n=60, n_val=40, d=3, n_classes=2, seed=0, shift=1.2):
    rng = np.random.default_rng(seed)
    y = np.arange(n + n_val) % n_classes
    centres = rng.normal(size=(n_classes, d)) * shift
    X = rng.normal(size=(n + n_val, d)) + centres[y]
    return Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:], kind="classification")


def make_line(n=60, n_val=40, d=3, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_val, d))
    y = X @ np.arange(1.0, d + 1) + noise * rng.normal(size=n + n_val)
    return Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:], kind="regression")


@pytest.fixture
def blobs():
    return make_blobs()


@pytest.fixture
def line():
    return make_line()
