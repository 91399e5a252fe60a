"""Objects that the package does not know go through the whole study: collect, fit, use, report."""

from __future__ import annotations

import base64
import copy
import functools
import io
import json
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.naive_bayes import GaussianNB

import apiece
from apiece import synthetic
from apiece.collection import Pool, WorkersLost, work
from apiece.engines import Engine, choose_engine
from apiece.errors import FitError, PlanError, StoreError
from apiece.estimators import Amortized, Auto, Bayes, Estimator, Likelihood, opened
from apiece.laws import Family, Laws, Linear, ShapePrior, resolve_family
from apiece.losses import Loss
from apiece.records import Outcome
from apiece.reporting._payload import unpack
from apiece.store import Manifest, Store, decode_shard, encode_shard, grown_manifest
from apiece.testing import (
    EngineContract,
    EstimatorContract,
    FamilyContract,
    PoolContract,
    StoreContract,
)
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
    assert set(apiece.advise(run, dataset=blobs)["advice"]) <= set(apiece.uses.ADVICE)
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
    pool = run.manifest.dataset.n_pool
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


# A family: three parameters, of which two bend the curve


@dataclass(frozen=True)
class Delayed(Family):
    """Power laws that begin late, c / (k + delay)^alpha."""

    name: ClassVar[str] = "delayed"
    parameters = ("c", "alpha", "delay")
    coordinates = ("psi_ref", "alpha", "log_delay")
    shapes: ClassVar = {
        "alpha": ShapePrior(low=0.0, high=3.0, typical=1.0, spread=0.3),
        "log_delay": ShapePrior(low=0.0, high=8.0, typical=4.0, spread=1.0),
    }

    def curve(self, params, k):
        c, alpha, delay = np.moveaxis(params, -1, 0)
        return c * (k + delay) ** -alpha

    def to_local(self, params, k_ref):
        c, alpha, delay = np.moveaxis(params, -1, 0)
        return np.stack([c * (k_ref + delay) ** -alpha, alpha, np.log(delay)], axis=-1)

    def from_local(self, local, k_ref):
        height, alpha, log_delay = np.moveaxis(local, -1, 0)
        alpha, delay = np.clip(alpha, -20, 20), np.exp(np.clip(log_delay, -20, 20))
        return np.stack([height * (k_ref + delay) ** alpha, alpha, delay], axis=-1)


@dataclass(frozen=True)
class Inverse(Linear):
    """Sums of inverse powers of any steepness."""

    name: ClassVar[str] = "inverse"
    powers: tuple[float, ...] = (0.7, 1.4)

    @property
    def parameters(self):
        return tuple(f"w{j}" for j in range(len(self.powers)))

    def basis(self, k):
        return k[..., None] ** -np.array(self.powers)


class TestDelayed(FamilyContract):
    def make(self):
        return Delayed()


class TestInverse(FamilyContract):
    def make(self):
        return Inverse()


class TestBayesOfAnotherFamily(EstimatorContract):
    def make(self):
        return Bayes(Delayed())


class TestLikelihoodOfAnotherFamily(EstimatorContract):
    def make(self):
        return Likelihood(Delayed())


@pytest.fixture(scope="module")
def truth():
    return synthetic.random_laws(100, family=Delayed(), random_state=0)


@pytest.mark.parametrize("estimator", [Bayes(Delayed()), Likelihood(Delayed())])
def test_intervals_of_an_unknown_family_cover_the_truth(truth, estimator):
    laws = estimator.fit(synthetic.sample(truth, samples=50, random_state=1))
    k = np.array([100, 316, 1000])
    low, high = laws.interval(k)
    covered = ((low <= truth.mean(k)) & (truth.mean(k) <= high)).mean()
    # 100 points at three correlated sizes: standard error at most 0.03; priors are not the truth's.
    assert 0.82 < covered < 0.99
    assert laws.family == Delayed()
    assert laws.attrs["settings"]["family"] == "delayed"


@pytest.mark.parametrize("estimator", [Bayes(Delayed()), Likelihood(Delayed())])
def test_other_units_scale_an_unknown_family(truth, estimator):
    table = synthetic.sample(truth, samples=20, random_state=2)
    one, thousand = estimator.fit(table), estimator.fit(table.scaled(1024.0))
    assert_allclose(thousand.mean([100, 1000]), 1024 * one.mean([100, 1000]), rtol=1e-5)
    assert_allclose(thousand.params[:, 1:], one.params[:, 1:], rtol=1e-4)


def test_likelihood_recovers_the_law_where_there_is_hardly_noise(truth):
    quiet = Laws(**{**vars(truth), "sigma": 1e-6 * truth.sigma})
    laws = Likelihood(Delayed(), prior_sd=None).fit(synthetic.sample(quiet, samples=60))
    assert_allclose(laws.mean([100, 1000]), truth.mean([100, 1000]), rtol=1e-3)


def test_intervals_of_three_coordinates_are_the_extremes_over_the_ellipsoid(truth):
    laws = Likelihood(Delayed()).fit(synthetic.sample(truth, samples=40, random_state=3))
    laws = laws.select(slice(5))
    low, high = laws.interval([50, 400, 5000], level=0.9)
    reach = apiece.laws.quantile(0.9, laws.df)
    sphere = np.random.default_rng(0).standard_normal((50_000, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    local = laws.family.to_local(laws.params, laws.k_ref)
    for row in range(5):
        off = reach[row] * sphere @ np.linalg.cholesky(laws.cov[row]).T
        params = laws.family.from_local(local[row] + off, laws.k_ref)
        curves = laws.family.mean(params, np.array([50.0, 400.0, 5000.0]))
        width = high[row] - low[row]
        # Both look for the extreme from inside: 50,000 directions miss it by less than 0.1 %.
        assert_allclose((curves.min(axis=0) - low[row]) / width, 0, atol=2e-3)
        assert_allclose((curves.max(axis=0) - high[row]) / width, 0, atol=2e-3)


def test_another_family_goes_through_a_study(run, blobs, tmp_path):
    laws = apiece.fit(run, family=Delayed())
    assert laws.has_law.all()
    assert np.isfinite(laws.draws(3, random_state=0)).all()
    laws.save(run.path / "laws.parquet")
    again = Laws.load(run.path / "laws.parquet")
    assert again.family == Delayed()
    assert_array_equal(again.params, laws.params)
    assert_allclose(again.interval(10), laws.interval(10), rtol=1e-9)
    values = apiece.value(run)
    assert values.equals(apiece.value(again))
    assert (values["low"] <= values["value"]).all()
    assert (values["value"] <= values["high"]).all()
    assert len(apiece.select(run, take=3, at=20, dataset=blobs, shortlist=6)) == 3
    assert set(apiece.advise(run, dataset=blobs)["advice"]) <= set(apiece.uses.ADVICE)
    assert apiece.report(run, to=tmp_path / "report.html", dataset=blobs).stat().st_size > 10_000
    assert "delayed laws" in laws.summary()
    apiece.plots.plot_plane(laws)
    apiece.plots.plot_curves(laws, laws.ids[:2])
    apiece.plots.plot_histogram(laws)
    pyplot.close("all")


def test_outdated_laws_of_another_family_are_fitted_again(run, blobs):
    first = run.laws("bayes", family=Delayed(), refit=True)
    grown = apiece.collect(
        blobs, sizes=(6, 20), samples=20, random_state=0, progress=False, to=run.path
    )
    laws = grown.laws()
    assert laws.family == Delayed()
    assert laws.n_samples.sum() > first.n_samples.sum()


def test_a_family_that_is_not_defined_is_named_when_its_laws_are_read(truth, tmp_path):
    truth.save(tmp_path / "laws.parquet")
    read = f"from apiece import Laws; Laws.load({str(tmp_path / 'laws.parquet')!r})"
    done = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, check=False)
    assert StoreError.__name__ in done.stderr
    assert f"the family Delayed from {Delayed.__module__}" in done.stderr
    assert f"Import {Delayed.__module__} first" in done.stderr


@pytest.mark.parametrize("estimator", [Bayes, Likelihood])
def test_a_sum_of_terms_states_its_terms_alone(estimator, tmp_path):
    family = Inverse((0.5, 1.5))
    truth = synthetic.random_laws(50, family=family, random_state=4)
    laws = estimator(family).fit(synthetic.sample(truth, samples=400, random_state=5))
    low, high = laws.interval([100, 1000], level=0.95)
    inside = (low <= truth.mean([100, 1000])) & (truth.mean([100, 1000]) <= high)
    assert inside.mean() > 0.85
    laws.save(tmp_path / "laws.parquet")
    assert Laws.load(tmp_path / "laws.parquet").family == family


def test_a_defined_family_without_settings_has_a_word():
    assert resolve_family("delayed") == Delayed()
    assert synthetic.random_laws(3, family="delayed").family == Delayed()


def test_a_backtest_compares_an_unknown_family_with_others(truth):
    table = synthetic.sample(truth, samples=40, random_state=6)
    laws = Auto(candidates=(Bayes("power"), Bayes(Delayed()))).fit(table)
    assert set(laws.backtest()["family"]) == {"power", "delayed"}


def test_a_network_says_that_it_cannot_predict_a_family_without_tensors(truth):
    table = synthetic.sample(truth, samples=5, shared=False)
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 2
    with pytest.raises(FitError, match="delayed laws cannot be predicted by a network"):
        Amortized(Delayed(), epochs=1).fit(table, X, y)


def test_coordinates_that_do_not_end_with_the_shapes_are_refused(truth):
    @dataclass(frozen=True)
    class Askew(Delayed):
        coordinates = ("alpha", "psi_ref", "log_delay")

    with pytest.raises(FitError, match="expected coordinates that end with alpha, log_delay"):
        Bayes(Askew()).fit(synthetic.sample(truth, samples=5))


# A store: shards as bytes in a dictionary that all processes of a team could share


class Warehouse(Store):
    """Keeps a run as the bytes that another service would keep, and nothing else."""

    def __init__(self, shelf):
        self.shelf = shelf  # name -> bytes
        self.lock = threading.Lock()

    def __str__(self):
        return "the warehouse"

    @property
    def manifest(self):
        if not self.has_run():
            raise StoreError("the warehouse is empty: expected a run. Collect one.")
        return Manifest.from_json(json.loads(self.shelf["manifest"]))

    @property
    def points(self):
        return pd.read_json(io.StringIO(self.shelf["points"]), orient="split")

    def has_run(self):
        return "manifest" in self.shelf

    def start(self, manifest, points):
        with self.lock:
            self.shelf.setdefault("manifest", json.dumps(manifest.to_json()))
            self.shelf.setdefault("points", points.to_json(orient="split"))
        self.extend(manifest)

    def extend(self, manifest):
        with self.lock:
            grown = grown_manifest(self, self.manifest, manifest)
            if grown is not None:
                self.shelf["manifest"] = json.dumps(grown.to_json())

    def write(self, shard):
        with self.lock:
            try:
                is_better = shard.footer.holds_more_than(self.footer(shard.index))
            except (StoreError, FileNotFoundError):
                is_better = True
            if is_better:
                self.shelf[f"shard {shard.index}"] = encode_shard(shard)

    def indices(self):
        names = [name.split() for name in list(self.shelf) if name.startswith("shard")]
        return sorted(int(index) for _, index in names)

    def footer(self, index):
        return self.read(index).footer

    def read(self, index):
        name = f"shard {index}"
        if name not in self.shelf:
            raise FileNotFoundError(name)
        return decode_shard(self.shelf[name], name)


class TestAnotherStore(StoreContract):
    shelves: ClassVar[dict] = {}

    def make(self, tmp_path):
        return Warehouse(self.shelves.setdefault(tmp_path, {}))

    def damage(self, store, index):
        data = bytearray(store.shelf[f"shard {index}"])
        data[len(data) // 4] ^= 1
        store.shelf[f"shard {index}"] = bytes(data)


SETTINGS = {"sizes": (6, 20), "random_state": 0, "progress": False}


def test_another_store_goes_through_a_study(blobs, tmp_path):
    shelf = {}
    apiece.collect(blobs, to=Warehouse(shelf), samples=5, **SETTINGS)
    run = apiece.collect(blobs, to=Warehouse(shelf), samples=12, n_jobs=2, **SETTINGS)
    assert run.is_complete
    assert "the warehouse" in repr(run)
    expected = apiece.collect(blobs, samples=12, **SETTINGS)
    assert_array_equal(run.contributions().delta, expected.contributions().delta)
    laws = apiece.fit(run)
    assert_allclose(laws.params, apiece.fit(expected).params)
    assert len(apiece.value(run)) == blobs.n_pool
    assert len(apiece.select(run, take=3, at=20)) == 3
    assert len(apiece.advise(run, dataset=blobs)) == blobs.n_pool
    apiece.report(run, to=tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 0
    with pytest.raises(StoreError, match="another seed"):
        apiece.collect(blobs, to=Warehouse(shelf), samples=12, **{**SETTINGS, "random_state": 1})


# A pool: threads


@dataclass(frozen=True)
class Threads(Pool):
    n: int = 2

    def run(self, job, units):
        with ThreadPoolExecutor(self.n) as executor:
            while batch := list(islice(units, self.n)):
                yield from executor.map(functools.partial(work, job), batch)


class TestAnotherPool(PoolContract):
    most_taken = 2

    def make(self):
        return Threads()


@dataclass(frozen=True)
class Strike(Pool):
    """Workers that leave now and then."""

    def run(self, job, units):
        for number, index in enumerate(units):
            if number == 2:
                raise WorkersLost("the workers are on strike")
            yield work(job, index)


@pytest.mark.parametrize("pool", [Threads(3), Strike()], ids=["threads", "strike"])
def test_another_pool_goes_through_a_study(blobs, tmp_path, monkeypatch, pool):
    monkeypatch.setattr(apiece.engines.RefitEngine, "rows_per_shard", 40)
    settings = {**SETTINGS, "model": "tree", "samples": 6}
    run = apiece.collect(blobs, backend=pool, to=tmp_path / "run", **settings)
    assert run.is_complete
    assert len(run.store.indices()) > 4
    assert_array_equal(
        run.contributions().delta, apiece.collect(blobs, **settings).contributions().delta
    )
    assert len(apiece.value(run)) == blobs.n_pool
    apiece.report(run, to=tmp_path / "report.html")


# A loss, an engine, and all of them together


class Surprise(Loss):
    """How unlikely the true class is, at most 0.9."""

    name = "surprise"

    def rows(self, y, prediction):
        return np.minimum(1.0 - prediction[np.arange(len(y)), y], 0.9)


class NaiveBayesEngine(Engine):
    """Gaussian naive Bayes: its means and variances are updated for one more row."""

    name = "naive-bayes"

    @classmethod
    def supports(cls, dataset, model, metric):
        is_known = type(model.estimator) is GaussianNB and metric.needs == "proba"
        return None if is_known else f"{model.name} is not GaussianNB under a loss of probabilities"

    def run(self, task):
        data = self.dataset
        model = self.model.seeded(task.seed)
        fitted = model.fit(data.features(task.subset), data.targets(task.subset))
        loss = self._loss(fitted)
        delta = []
        for point in task.points[:, None]:
            more = copy.deepcopy(fitted).partial_fit(data.features(point), data.targets(point))
            delta.append(loss - self._loss(more))
        return Outcome(loss, np.array(delta))

    def _loss(self, fitted):
        return self.metric.value(self.dataset.y_val, fitted.predict_proba(self.dataset.X_val))


class TestAnotherEngine(EngineContract):
    def make(self, dataset):
        return choose_engine(
            dataset, model=GaussianNB(), metric=Surprise(), engine=NaiveBayesEngine
        )[0]


class Counting(Threads):
    """Notes which units it was given."""

    def run(self, job, units):
        yield from super().run(job, self._noted(units))

    def _noted(self, units):
        for unit in units:
            GIVEN.append(unit)
            yield unit


GIVEN = []


def shown(page):
    """Return what a report holds: its description and its arrays."""
    text = re.search(r'id="data">([^<]*)</script>', page.read_text("utf-8"))[1]
    return unpack(base64.b64decode(text))


def test_seven_unknown_objects_go_through_one_study(blobs, tmp_path):
    study = {"model": GaussianNB(), "metric": Surprise()}
    settings = {**SETTINGS, **study, "samples": 12}
    store = Warehouse({})
    GIVEN.clear()
    run = apiece.collect(blobs, engine=NaiveBayesEngine, to=store, backend=Counting(2), **settings)
    assert run.is_complete
    assert sorted(GIVEN) == store.indices() != []
    assert (run.manifest.engine.name, run.manifest.metric) == ("naive-bayes", "surprise")
    delta = run.contributions().delta
    assert_allclose(delta, apiece.collect(blobs, **settings).contributions().delta, atol=1e-7)
    usual = apiece.collect(blobs, **{**settings, "metric": "log_loss"}).contributions()
    assert np.abs(delta - usual.delta).max() > 1e-3  # another loss has other contributions

    again = apiece.collect(blobs, engine=NaiveBayesEngine, to=store, backend=Strike(), **settings)
    assert_array_equal(again.contributions().delta, delta)  # nothing is left to compute

    by_family, by_method = apiece.fit(run, family=Delayed()), apiece.fit(run, Proportional())
    by_default = apiece.fit(run)
    for laws, family in ((by_family, Delayed()), (by_method, resolve_family("power", (6, 20)))):
        laws.save(tmp_path / "laws.parquet")
        loaded = Laws.load(tmp_path / "laws.parquet")
        assert loaded.family == family
        assert_array_equal(loaded.params, laws.params)
        assert np.abs(loaded.mean(15) - by_default.mean(15)).max() > 0

        values = apiece.value(loaded, kind=SmallSets(15), n=20, sizes=(6, 19))["value"]
        assert_allclose(values, loaded.mean(np.arange(6, 15)).mean(axis=1), rtol=1e-6)
        picks = apiece.select(loaded, take=3, at=20, redundancy="none")
        assert set(picks.index) == set(loaded.ids[np.argsort(loaded.mean(20))[-3:]])
        assert len(apiece.select(loaded, take=3, at=20, dataset=blobs, **study)) == 3
        page = apiece.report(run, loaded, to=tmp_path / "report.html", dataset=blobs)
        description, arrays = shown(page)
        assert description["metric"] == "surprise"
        assert "naive-bayes" in json.dumps(description["facts"])
        assert any(len(column) == loaded.n_points for column in arrays.values())
    assert "delayed" in by_family.summary()
    advice = apiece.advise(run, dataset=blobs, **study)
    assert advice.effect is not None
    assert set(advice["advice"]) <= set(apiece.uses.ADVICE)
