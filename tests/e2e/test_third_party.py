"""Objects that the package does not know go through the whole study: collect, fit, use, report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import apiece
from apiece.errors import PlanError, StoreError
from apiece.estimators import Estimator, opened
from apiece.laws import Laws
from apiece.testing import EstimatorContract
from apiece.uses import DataShapley, Semivalue

from conftest import make_blobs


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(n=40)


@pytest.fixture
def run(blobs, tmp_path):
    settings = {"sizes": (6, 20), "samples": 12, "random_state": 0, "progress": False}
    return apiece.collect(blobs, **settings, to=tmp_path / "run")


# An estimator


@dataclass(frozen=True)
class Proportional(Estimator):
    """Least squares of contributions on 1 / k, each point alone."""

    shrinkage: float = 0.0

    def fit_table(self, table, features=None):
        delta = np.concatenate([part.delta for part in table.parts()])
        k = np.concatenate([part.k for part in table.parts()])
        point = np.concatenate([part.point for part in table.parts()])
        n = table.n_points
        total = np.bincount(point, k**-2.0, n) + self.shrinkage
        total[total == 0] = np.nan
        c = np.bincount(point, delta / k, n) / total
        residual = delta - c[point] / k
        spread = np.bincount(point, (residual * k) ** 2, n) / np.maximum(table.counts() - 1, 1)
        cov = np.zeros((n, 2, 2))
        middle = np.sqrt(np.prod(table.k_range, dtype=float))
        cov[:, 0, 0] = spread / np.maximum(table.counts(), 1) / middle**2
        return Laws.from_arrays(
            c=c,
            alpha=np.ones(n),
            cov=cov,
            sigma=np.sqrt(spread),
            beta=np.full(n, 2.0),
            n_samples=table.counts(),
            status=np.where(table.counts() >= 3, apiece.FitStatus.OK, apiece.FitStatus.TOO_FEW),
            ids=table.ids,
            k_range=table.k_range,
        )


class TestAnotherEstimator(EstimatorContract):
    def make(self):
        return Proportional()


def test_another_estimator_goes_through_a_study(run, blobs, tmp_path):
    laws = apiece.fit(run, Proportional())
    assert laws.attrs["estimator"] == "Proportional"
    assert_array_equal(laws.params, Proportional().fit(run).params)
    assert_array_equal(laws.labels, run.labels)
    laws.save(run.path / "laws.parquet")
    assert_array_equal(apiece.Laws.load(run.path / "laws.parquet").params, laws.params)
    assert apiece.value(run).equals(apiece.value(laws))
    assert len(apiece.select(run, take=3, at=20, dataset=blobs, shortlist=6)) == 3
    assert set(apiece.advise(run)["advice"]) <= set(apiece.uses.ADVICE)
    assert apiece.report(run, to=tmp_path / "report.html", dataset=blobs).stat().st_size > 10_000


def test_laws_of_another_estimator_that_are_outdated_are_refused(run, blobs):
    run.laws(Proportional(shrinkage=1e-6), refit=True)
    grown = apiece.collect(
        blobs, sizes=(6, 20), samples=20, random_state=0, progress=False, to=run.path
    )
    with pytest.raises(StoreError, match="cannot be fitted again"):
        apiece.value(grown)
    assert grown.laws(Proportional(), refit=True).n_points == 40
    assert len(apiece.value(grown)) == 40


def test_another_estimator_is_compared_by_a_backtest(run):
    laws = apiece.fit(run, Proportional(), backtest=True)
    assert "Proportional" in set(laws.backtest()["method"])


def test_an_estimator_that_does_not_stream_is_given_all_contributions(run):
    with opened(run, None) as table:
        expected = Proportional().fit(table)
    assert_array_equal(Proportional().fit(run.contributions()).params, expected.params)
    with pytest.raises(apiece.FitError, match="Proportional needs all contributions in memory"):
        apiece.fit(run, Proportional(), memory="1MB")


# A semivalue


@dataclass(frozen=True)
class SmallSets(Semivalue):
    """Sizes below a limit count alike."""

    limit: int

    def weights(self, n):
        k = np.arange(n)
        return np.where(k < self.limit, 1 / min(self.limit, n), 0.0)


@pytest.mark.filterwarnings("ignore::apiece.ApieceWarning")
@pytest.mark.parametrize("source", ["law", "samples"])
def test_another_semivalue_values_points_from_laws_and_samples(run, source):
    pool = run.manifest["dataset"]["n_pool"]
    alike = apiece.value(run, kind=SmallSets(pool), source=source)
    assert alike.equals(apiece.value(run, kind="data-shapley", source=source))
    assert alike.equals(apiece.value(run, kind=DataShapley(), n=pool, source=source))
    some = apiece.value(run, kind=SmallSets(15), sizes=(6, 40), source=source)
    expected = apiece.value(run, kind="shapley", sizes=(6, 14), source=source)
    assert_allclose(some["value"], expected["value"], rtol=1e-9)


def test_another_semivalue_compares_two_runs(run):
    found = apiece.compare(run, run.laws("likelihood"), kind=SmallSets(100), sizes=(6, 20))
    assert found.loc["spearman", "agreement"] > 0.3


def test_weights_of_a_wrong_shape_are_refused(run):
    class Wrong(Semivalue):
        def weights(self, n):
            return np.ones(3)

    with pytest.raises(PlanError, match=r"Wrong gives weights of shape \(3,\)"):
        apiece.value(run, kind=Wrong())
