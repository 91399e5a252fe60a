from __future__ import annotations

from apiece.laws import Blend, Power, Ridge, Series
from apiece.testing import FamilyContract


class TestPower(FamilyContract):
    def make(self):
        return Power()


class TestSeries(FamilyContract):
    def make(self):
        return Series()


class TestSeriesOfTwoTerms(FamilyContract):
    def make(self):
        return Series((2, 4))


class TestRidge(FamilyContract):
    def make(self):
        return Ridge((0, 30, 1000))


class TestBlend(FamilyContract):
    def make(self):
        return Blend(Ridge((0, 30, 1000)))
