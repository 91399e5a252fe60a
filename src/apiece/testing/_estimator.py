"""Contract of estimators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from apiece import synthetic
from apiece.laws import FitStatus, Laws
from apiece.records import Contributions


class EstimatorContract(ABC):
    """One law per point, in the points' order, and never a silent nan.

    Examples
    --------
    >>> from apiece.estimators import Likelihood
    >>> class TestLikelihood(EstimatorContract):
    ...     def make(self):
    ...         return Likelihood()
    >>> TestLikelihood().test_there_is_one_law_for_each_point_in_order()
    """

    @abstractmethod
    def make(self) -> Any:
        """Return an estimator with its default settings."""

    def contributions(self, seed: int = 0, samples: int = 60) -> Contributions:
        """Return contributions of ten points whose laws are known, on a grid of sizes."""
        truth = synthetic.random_laws(10, random_state=seed)
        return synthetic.sample(truth, samples=samples, design="grid", random_state=seed)

    def fit(self, contributions: Contributions) -> Laws:
        """Fit with a new estimator."""
        laws = self.make().fit(contributions)
        assert isinstance(laws, Laws)
        return laws

    def test_there_is_one_law_for_each_point_in_order(self) -> None:
        contributions = self.contributions()
        laws = self.fit(contributions)
        assert laws.ids.tolist() == contributions.ids.tolist()
        assert np.isfinite(laws.mean(500)).all()
        assert laws.k_range == contributions.k_range

    def test_the_order_of_the_rows_does_not_matter(self) -> None:
        contributions = self.contributions()
        order = np.random.default_rng(0).permutation(len(contributions))
        shuffled = Contributions.from_arrays(
            point=contributions.point[order],
            k=contributions.k[order],
            delta=contributions.delta[order],
            task=contributions.task[order],
            ids=contributions.ids,
        )
        one, two = self.fit(contributions), self.fit(shuffled)
        assert_allclose(two.mean(500), one.mean(500), rtol=1e-6)

    def test_other_units_of_the_loss_scale_the_laws(self) -> None:
        contributions = self.contributions()
        one, two = self.fit(contributions), self.fit(contributions.scaled(1000.0))
        assert_allclose(two.mean(500), 1000.0 * one.mean(500), rtol=1e-5)

    def test_a_point_without_samples_is_marked_and_harms_no_other(self) -> None:
        contributions = self.contributions()
        without = self.fit(contributions.where(contributions.point != 4))
        assert without.status[4] != FitStatus.OK
        assert np.isfinite(without.mean(500)[[0, 1, 2, 3, 5, 6, 7, 8, 9]]).all()

    def test_the_result_remembers_where_it_came_from(self) -> None:
        laws = self.fit(self.contributions())
        assert {"version", "estimator", "settings", "created"} <= set(laws.attrs)

    def test_settings_are_frozen_and_fitting_leaves_them_as_they_were(self) -> None:
        estimator = self.make()
        before = repr(estimator)
        estimator.fit(self.contributions())
        assert repr(estimator) == before
