"""Laws that theory expects, asked beyond the sampled sizes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import apiece
from apiece.engines import surrogate_of
from apiece.estimators._theory import expected_laws


@pytest.fixture(scope="module")
def rings():
    """Two classes by the distance from the middle, which a line cannot part."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 5))
    far = (X[:, :3] ** 2).sum(axis=1) + 0.3 * rng.normal(size=2_000)
    X = np.column_stack([X, X[:, 0] ** 2 + rng.normal(size=2_000)])
    return apiece.Dataset.from_arrays(X, (far > 2.4).astype(int), validation=0)


@pytest.fixture(scope="module")
def laws(rings):
    """What theory expects of 100 points, from a run that samples 50 to 400 training rows."""
    run = apiece.collect(
        rings, points=np.arange(100), sizes=(50, 400), samples=4, random_state=0, progress=False
    )
    theory = replace(run.theory, terms=run.theory.terms[:, :, :1])
    table = run.contributions()
    return expected_laws(SimpleNamespace(theory=theory, ids=table.ids, k_range=table.k_range))


@pytest.mark.parametrize("k", [50, 200, 400, 800, 1600])
def test_laws_of_theory_hold_within_the_sampled_sizes_and_four_times_beyond(rings, laws, k):
    # A curve of three terms through the sampled sizes alone is off by 0.3 at 800, 1.4 at 1,600.
    expected = surrogate_of(rings).terms(np.arange(100), k)[:, 0]
    error = laws.mean(float(k)).ravel() - expected
    assert np.sqrt((error**2).mean() / (expected**2).mean()) < 0.15  # of three terms
