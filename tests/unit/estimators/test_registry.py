from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from apiece import synthetic
from apiece.errors import FitError, UnknownNameError
from apiece.estimators import METHODS, Amortized, Likelihood, MethodName, as_estimator, fit
from apiece.records import Contributions


@pytest.fixture(scope="module")
def contributions():
    return synthetic.sample(synthetic.random_laws(5), samples=50)


def test_a_method_is_picked_by_name_or_given_as_an_object(contributions):
    by_name = fit(contributions, method="likelihood", family="series")
    by_object = fit(contributions, method=Likelihood("series"))
    assert_array_equal(by_name.params, by_object.params)
    assert_array_equal(
        fit(contributions, Likelihood(bound=1.5)).params,
        Likelihood(bound=1.5).fit(contributions).params,
    )


def test_a_family_is_given_with_a_name_only(contributions):
    with pytest.raises(FitError, match=r"Likelihood\(family=...\)"):
        fit(contributions, method=Likelihood(), family="power")


def test_what_is_neither_a_name_nor_an_estimator_is_refused(contributions):
    with pytest.raises(FitError, match="inherits from Estimator"):
        fit(contributions, method=Likelihood)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "reuse"])
def test_every_method_fits_one_law_for_each_point_in_order(contributions, method):
    features = {"X": np.arange(5.0)[:, None], "y": [0, 1, 0, 1, 0]}
    estimator = Amortized(epochs=5) if method == "amortized" else as_estimator(method)
    laws = fit(contributions, estimator, **(features if estimator.takes_features else {}))
    assert_array_equal(laws.ids, contributions.ids)
    assert laws.has_law.all()
    assert laws.attrs.get("chosen_by", laws.attrs["estimator"]) == method


def test_a_misspelt_method_is_offered_the_nearest(contributions):
    with pytest.raises(UnknownNameError, match="Did you mean 'log_ols'"):
        fit(contributions, method="logols")


def test_a_setting_that_a_method_lacks_is_refused(contributions):
    with pytest.raises(UnknownNameError, match="setting of log_ols, 'family'"):
        fit(contributions, method="log_ols", family="power")


def test_features_are_refused_by_methods_that_do_not_learn_from_them(contributions):
    with pytest.raises(FitError, match="likelihood does not learn from features"):
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


def test_the_type_of_names_lists_every_method():
    assert set(get_args(MethodName)) == set(METHODS)
