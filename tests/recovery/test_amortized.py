"""Intervals of amortized laws against synthetic truth: features tell much of a law, not all."""

from __future__ import annotations

import numpy as np
import pytest

from apiece import synthetic
from apiece.estimators import Amortized
from apiece.laws import Laws, Series


def make_truth(seed, n):
    """Laws that follow the features up to a deviation of the point's own, with noise on top."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    scale = 1e-4 * np.exp(0.5 * X[:, 1])
    explained = np.stack([X[:, 2] + y, 0.5 * X[:, 3]], axis=1)
    own = rng.normal(size=(n, 2)) * [0.4, 0.2]
    k_ref = np.sqrt(1e5)
    params = scale[:, None] * (explained + own) * [k_ref, k_ref**2]
    family = Series(terms=(2, 4))
    truth = Laws.from_arrays(family=family, params=params, sigma=2 * scale * k_ref, beta=2.0)
    return X, y, truth


@pytest.mark.parametrize("samples", [10, 50])
def test_intervals_hold_the_truth_of_points_sampled_and_not(samples):
    X, y, truth = make_truth(0, 600)
    known = truth.select(slice(0, 300))
    contributions = synthetic.sample(known, samples=samples, random_state=1, shared=False)
    estimator = Amortized(family=truth.family, epochs=300, weight_decay=(0.01,))
    network = estimator.train(contributions, X[:300], y[:300])
    sizes = np.array([100, 316, 1000, 3000])
    laws = network.laws_for(X, y)
    low, high = laws.interval(sizes)
    covered = ((low <= truth.mean(sizes)) & (truth.mean(sizes) <= high)).mean(axis=0)
    # Measured over three seeds, both numbers of samples and four sizes: 0.86 to 0.98, since the
    # scatter of 300 laws is itself an estimate, and errors have heavier tails than a normal.
    assert (covered > 0.8).all()
    assert 0.82 < covered.mean() < 0.985
