"""Contract of families of laws."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

import numpy as np
from numpy.testing import assert_allclose

from apiece._base.typing import FloatArray
from apiece.laws import Family, Laws, resolve_family

K_REF = 300.0


class FamilyContract(ABC):
    """Curve, coordinates, slopes, intervals, terms and text form agree with each other.

    Examples
    --------
    >>> from apiece.laws import Power
    >>> class TestPower(FamilyContract):
    ...     def make(self):
    ...         return Power()
    >>> TestPower().test_coordinates_lead_back_to_parameters()
    """

    @abstractmethod
    def make(self) -> Family:
        """Return a family."""

    def params(self, family: Family, n: int = 20) -> FloatArray:
        """Return parameters of some laws, shape ``(n, p)``."""
        rng = np.random.default_rng(0)
        return family.random(np.exp(rng.standard_normal(n)), K_REF, rng, 0.3)

    def test_all_curves_at_all_sizes_are_those_of_each_at_its_size(self) -> None:
        family = self.make()
        params, k = self.params(family), np.geomspace(10, 10_000, 20)
        curves = family.mean(params, k)
        assert curves.shape == (20, 20)
        scale = np.abs(curves).max(axis=1)
        assert_allclose(np.diagonal(curves) / scale, family.curve(params, k) / scale, atol=1e-12)

    def test_coordinates_lead_back_to_parameters(self) -> None:
        family = self.make()
        params = self.params(family)
        local = family.to_local(params, K_REF)
        assert local.shape == params.shape == (20, len(family.coordinates))
        assert_allclose(family.from_local(local, K_REF), params, rtol=1e-9)

    def test_shapes_are_the_last_coordinates_and_typical_within_their_range(self) -> None:
        family = self.make()
        assert family.coordinates[family.n_linear :] == tuple(family.shapes)
        assert family.n_linear >= 1
        for prior in family.shapes.values():
            assert prior.low <= prior.typical <= prior.high
            assert prior.spread > 0

    def test_curves_are_linear_in_the_first_coordinates(self) -> None:
        family = self.make()
        params, k = self.params(family), np.geomspace(30, 3000, 7)
        local = family.to_local(params, K_REF)
        u = (local / family.scales(np.ones(20), K_REF))[:, : family.n_linear]
        x = np.broadcast_to(k / K_REF, (20, 7))
        columns = family.columns(x, local[:, family.n_linear :], K_REF)
        curves = family.mean(params, k)
        scale = np.abs(curves).max(axis=1, keepdims=True)
        assert_allclose(np.einsum("nmp,np->nm", columns, u) / scale, curves / scale, atol=1e-9)

    def test_the_gradient_is_that_of_the_curves(self) -> None:
        family = self.make()
        params, k = self.params(family), np.geomspace(30, 3000, 7)
        local, gradient = family.to_local(params, K_REF), family.gradient(params, k, K_REF)
        for j in range(local.shape[1]):
            step = np.zeros_like(local)
            step[:, j] = 1e-5 * (np.abs(local[:, j]) + 1e-3)
            above, below = (
                family.mean(family.from_local(at, K_REF), k) for at in (local + step, local - step)
            )
            slope = (above - below) / (2 * step[:, j, None])
            scale = np.abs(slope).max(axis=1, keepdims=True) + 1e-300
            assert_allclose(gradient[:, :, j] / scale, slope / scale, atol=1e-5)

    def test_intervals_surround_the_curve_and_are_linear_where_they_are_narrow(self) -> None:
        family = self.make()
        params, k = self.params(family), np.geomspace(30, 3000, 5)
        size = np.abs(family.to_local(params, K_REF)) + 1e-3
        cov = 1e-8 * size[:, :, None] * np.eye(size.shape[1]) * size[:, None, :]
        reach = np.array(2.0)
        low, high = family.interval(params, cov, reach, k, K_REF)
        gradient = family.gradient(params, k, K_REF)
        half = 2 * np.sqrt(np.einsum("nka,nab,nkb->nk", gradient, cov, gradient))
        mean = family.mean(params, k)
        # A circle in 64 steps misses the extreme by 0.1 % at most.
        assert_allclose((mean - low) / half, 1, atol=3e-3)
        assert_allclose((high - mean) / half, 1, atol=3e-3)

    def test_the_terms_of_the_page_are_those_of_the_curve(self) -> None:
        family = self.make()
        if family.page_terms is None:
            return
        params, k = self.params(family), np.geomspace(30, 3000, 5)
        local = family.to_local(params, K_REF)
        total = np.zeros((20, 5))
        for j, (kind, number) in enumerate(family.page_terms):
            named = {name: local[:, [a]] for a, name in enumerate(family.coordinates)}
            e = named[number] if isinstance(number, str) else number
            base = k / K_REF if kind == "relative" else k
            total += local[:, [j]] * (1 / (k + e) if kind == "shift" else base**-e)
        assert_allclose(total, family.mean(params, k), rtol=1e-9, atol=1e-9 * np.abs(total).max())

    def test_the_text_form_leads_back_to_the_family(self) -> None:
        family = self.make()
        again = resolve_family(json.loads(json.dumps(family.to_json())))
        assert type(again) is type(family)
        assert again.parameters == family.parameters
        assert resolve_family(family.to_setting()).parameters == family.parameters

    def test_laws_of_the_family_can_be_used(self) -> None:
        family = self.make()
        params = self.params(family)
        p = params.shape[1]
        cov = np.broadcast_to(1e-6 * np.eye(p), (20, p, p))
        laws = Laws.from_arrays(family=family, params=params, cov=cov, k_range=(100, 900))
        assert np.isfinite(laws.draws(3, random_state=0)).all()
        assert np.isfinite(laws.functional([100, 300], [0.5, 0.5]).high).all()
        assert laws.headline()
