from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from apiece import synthetic
from apiece.errors import FitError, UnknownNameError
from apiece.estimators import METHODS, Likelihood, features_of, fit
from apiece.records import Contributions


@pytest.fixture(scope="module")
def contributions():
    return synthetic.sample(synthetic.random_laws(5), samples=50)


def test_a_method_is_picked_by_name_with_its_settings(contributions):
    laws = fit(contributions, method="likelihood", bound=1.5)
    assert_array_equal(laws.params, Likelihood(bound=1.5).fit(contributions).params)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_one_law_for_each_point_in_order(contributions, method):
    features = {"X": np.arange(5.0)[:, None], "y": [0, 1, 0, 1, 0]}
    quick = {"epochs": 5} if method == "amortized" else {}
    laws = fit(contributions, method, **(features if features_of(method) else {}), **quick)
    assert_array_equal(laws.ids, contributions.ids)
    assert laws.has_law.all()
    assert laws.attrs.get("chosen_by", laws.attrs["estimator"]) == method


def test_a_misspelt_method_is_offered_the_nearest(contributions):
    with pytest.raises(UnknownNameError, match="Did you mean 'log_ols'"):
        fit(contributions, method="logols")


def test_a_misspelt_setting_is_offered_the_nearest(contributions):
    with pytest.raises(UnknownNameError, match="Did you mean 'max_steps'"):
        fit(contributions, method="likelihood", max_step=3)


def test_features_are_refused_by_methods_that_do_not_learn_from_them(contributions):
    with pytest.raises(UnknownNameError, match="setting of likelihood, 'X'"):
        fit(contributions, method="likelihood", X=np.zeros((5, 1)))


def test_failures_are_marked_or_raised_as_asked():
    contributions = Contributions.from_arrays(
        point=[0, 0, 0, 1], k=[10, 20, 30, 10], delta=[1.0, 0.4, 0.3, 1.0], ids=["good", "bad"]
    )
    assert fit(contributions).has_law.tolist() == [True, False]
    with pytest.raises(FitError, match=r"1 of 2 points .* 'bad' \(fewer than three"):
        fit(contributions, on_failure="raise")
    with pytest.raises(UnknownNameError, match="Did you mean 'raise'"):
        fit(contributions, on_failure="rais")
