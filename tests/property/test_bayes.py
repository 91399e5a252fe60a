from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from apiece.estimators import Bayes, Likelihood
from apiece.laws import FitStatus
from apiece.records import Contributions

import strategies

LINEAR = pytest.mark.parametrize(
    "estimator",
    [Likelihood(family="series"), Likelihood(family="series24"), Bayes(), Bayes(family="power")],
    ids=["wls", "wls24", "bayes", "bayes-power"],
)
quick = settings(deadline=None, max_examples=25)


@LINEAR
@given(contributions=strategies.nasty_contributions())
@quick
def test_nothing_that_can_be_thrown_at_it_makes_a_law_fail(estimator, contributions):
    laws = estimator.fit(contributions)
    enough = laws.n_samples >= 3
    assert np.isfinite(laws.params[enough]).all()
    assert np.isnan(laws.params[~enough]).all()
    assert (laws.sigma[enough] >= 0).all()
    if isinstance(estimator, Bayes) and np.abs(contributions.delta).max() < 1e100:
        assert np.isfinite(laws.stderr(250)[laws.status == FitStatus.OK]).all()


@LINEAR
@given(contributions=strategies.contributions(), scale=st.floats(1e-3, 1e3))
@quick
def test_other_units_scale_curves_and_intervals(estimator, contributions, scale):
    sizes = list(contributions.k_range)
    one, two = estimator.fit(contributions), estimator.fit(contributions.scaled(scale))
    # The population is learned to a relative change of 1e-8 where points are as few as here.
    unit = np.abs(one.mean(sizes)).max() + np.nan_to_num(one.stderr(sizes)).max()
    assert_allclose(two.mean(sizes) / scale, one.mean(sizes), atol=1e-6 * unit)
    assert_allclose(two.stderr(sizes) / scale, one.stderr(sizes), rtol=1e-5, atol=1e-6 * unit)


@LINEAR
@given(contributions=strategies.contributions())
@quick
def test_a_harmful_twin_has_the_mirrored_law(estimator, contributions):
    sizes = list(contributions.k_range)
    mirrored = Contributions.from_arrays(
        task=contributions.task,
        k=contributions.k,
        point=contributions.point,
        delta=-contributions.delta,
    )
    one, two = estimator.fit(contributions), estimator.fit(mirrored)
    assert_allclose(two.mean(sizes), -one.mean(sizes), rtol=1e-9)
