from __future__ import annotations

import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal

import apiece
from apiece.errors import FitError, PlanError, StoreError
from apiece.estimators import Likelihood, backtest, fit_aggregate
from apiece.reporting import _samples
from apiece.reporting._content import gather
from apiece.reporting._payload import unpack
from apiece.reporting._serve import Follower
from apiece.store import Streamed
from apiece.uses import value_samples

from conftest import make_blobs

COLUMNS = ("task", "k", "point", "delta", "loss")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored") / "run"
    return apiece.collect(
        make_blobs(n=300),
        anchor=False,
        points=range(0, 300, 2),
        sizes=(20, 60),
        samples=12,
        random_state=0,
        to=folder,
        progress=False,
    )


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_parts_hold_the_rows_of_a_run_in_its_order(run, scratch):
    whole = run.contributions()
    with run.streamed(memory=60_000) as streamed:
        assert len(list(scratch.iterdir())) == 1
        parts = list(streamed.parts())
        assert len(parts) > 3
        start = 0
        for part in parts:
            points = np.arange(start, start + part.n_points)
            expected = whole.of(points)
            for name in COLUMNS:
                assert_array_equal(getattr(part, name), getattr(expected, name), err_msg=name)
            assert_array_equal(part.ids, whole.ids[points])
            start += part.n_points
        assert start == whole.n_points
        assert_array_equal(streamed.counts(), whole.counts())
        assert_array_equal(streamed.nonzero(), whole.nonzero())
        assert_array_equal(np.stack(streamed.sizes()), np.stack(whole.sizes()))
        assert streamed.k_range == whole.k_range
        assert len(streamed) == len(whole)
    assert not list(scratch.iterdir())


def test_rows_of_some_points_are_those_of_the_run(run):
    whole, points = run.contributions(), np.array([3, 77, 140])
    with run.streamed(memory=60_000) as streamed:
        found = streamed.of(points)
    expected = whole.of(points)
    for name in (*COLUMNS, "ids"):
        assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("bayes", {}),
        ("bayes", {"family": "power"}),
        ("likelihood", {}),
        ("likelihood", {"family": "series"}),
        ("log_ols", {}),
    ],
)
def test_laws_do_not_depend_on_the_memory(run, method, settings):
    expected = apiece.fit(run, method=method, **settings)
    found = apiece.fit(run, method=method, memory="60 kB", **settings)
    assert_array_equal(found.ids, expected.ids)
    assert_array_equal(found.labels, expected.labels)
    assert_array_equal(found.status, expected.status)
    assert found.k_range == expected.k_range
    for name in ("params", "cov", "sigma", "beta", "df", "n_samples"):
        wanted = getattr(expected, name)
        if wanted is None:
            continue
        # Sums over padded rows of another width round differently, which fits to a tolerance
        # of 1e-9 in the likelihood enlarge.
        size = np.fmax.reduce(np.abs(wanted), axis=0, initial=1e-300)
        assert_allclose(getattr(found, name) / size, wanted / size, atol=1e-5, err_msg=name)


def test_a_method_that_needs_all_contributions_says_so(run):
    with pytest.raises(FitError, match="amortized needs all contributions in memory"):
        apiece.fit(run, method="amortized", memory="1GB")


@pytest.mark.parametrize("options", [{}, {"kind": "beta-shapley", "a": 4.0}, {"top": 10}])
def test_values_from_samples_do_not_depend_on_the_memory(run, options):
    expected = apiece.value(run, source="samples", sizes=(20, 60), **options)
    found = apiece.value(run, source="samples", sizes=(20, 60), memory="60 kB", **options)
    assert_frame_equal(found, expected, check_exact=True)


def test_the_law_of_the_loss_needs_one_shard_at_a_time(run, monkeypatch):
    expected = fit_aggregate(run.contributions())
    monkeypatch.setattr(apiece.store.Run, "contributions", lambda run: pytest.fail("all read"))
    found = apiece.aggregate(run)
    assert found.n_tasks == expected.n_tasks
    assert found.k_range == expected.k_range
    assert_allclose(found.table(), expected.table(), rtol=1e-12)


def test_a_backtest_does_not_depend_on_the_memory(run):
    expected = backtest(run.contributions())
    with run.streamed("60 kB") as streamed:
        found = backtest(streamed)
    assert (found.cut, found.best) == (expected.cut, expected.best)
    assert_array_equal(found.undescribed, expected.undescribed)
    ours, theirs = (
        outcome.table().set_index(["method", "family"]) for outcome in (found, expected)
    )
    assert_allclose(ours, theirs, rtol=1e-5)  # of fits to a tolerance, see above


@pytest.mark.slow
def test_a_method_is_chosen_in_bounded_memory(run):
    expected = apiece.fit(run, method="auto")
    found = apiece.fit(run, method="auto", memory="60 kB", backtest=True)
    assert found.attrs["estimator"] == expected.attrs["estimator"]
    assert found.family == expected.family
    assert_array_equal(found.status, expected.status)
    assert len(found.backtest()) == len(expected.backtest())


@pytest.mark.parametrize("most", [10, 400_000])
def test_a_report_does_not_depend_on_the_memory(run, most, monkeypatch):
    monkeypatch.setattr(_samples, "MOST_RAW", most)
    laws = apiece.fit(run)
    laws = laws.select(np.random.default_rng(0).permutation(laws.n_points)[:100])
    described, arrays = gather(run, run.contributions(), laws)
    with run.streamed("60 kB") as streamed:
        found, columns = gather(run, streamed, laws)
    ours, theirs = (pd.DataFrame(description.pop("loss")) for description in (found, described))
    assert_frame_equal(ours, theirs, rtol=1e-12)
    assert found == described
    assert arrays.keys() == columns.keys()
    assert ("sample_k" in arrays) == (most > 10)
    for name, column in arrays.items():
        assert_array_equal(columns[name], column, err_msg=name)


@pytest.mark.slow
def test_a_run_is_followed_in_bounded_memory(run, monkeypatch):
    whole = Follower(run.path)
    assert whole.update()
    monkeypatch.setattr(apiece.store.Run, "contributions", lambda run: pytest.fail("all read"))
    bounded = Follower(run.path, memory="60 kB")
    assert bounded.update()
    assert bounded.news["fitted"] == whole.news["fitted"]
    assert_allclose(
        unpack(bounded.data)[1]["bin_mean"], unpack(whole.data)[1]["bin_mean"], rtol=1e-6
    )


@pytest.mark.parametrize("memory", ["lots", "", "0", 0, -5, "1..5GB"])
def test_what_is_no_amount_of_memory_is_refused(run, memory):
    with pytest.raises(PlanError, match="is not an amount of memory"):
        apiece.fit(run, memory=memory)


def test_a_damaged_shard_leaves_no_scratch_file(run, scratch, tmp_path):
    import shutil

    shutil.copytree(run.path, tmp_path / "copy")
    victim = next(Path(tmp_path / "copy" / "shards").iterdir())
    data = bytearray(victim.read_bytes())
    data[60] ^= 0xFF
    victim.write_bytes(data)
    with pytest.raises(StoreError, match="is damaged"):
        apiece.fit(apiece.open(tmp_path / "copy"), memory="60 kB")
    assert [entry.name for entry in scratch.iterdir()] == ["copy"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_folder_for_temporary_files_is_named(run, scratch, monkeypatch):
    monkeypatch.setattr(Streamed, "_files", property(lambda self: [Path("/dev/full")]))
    with pytest.raises(StoreError, match=f"in {scratch}: the disk is full.* set TMPDIR"):
        apiece.fit(run, memory="60 MB")
    assert not list(scratch.iterdir())


def test_no_folder_for_temporary_files_at_all_is_an_error_that_says_so(run, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere/at/all"])
    with pytest.raises(StoreError, match="No usable temporary directory"):
        apiece.fit(run, memory="60 MB")


class Shards:
    """Four hundred points with any number of contributions, made as they are asked for."""

    n_points, n_rows = 400, 4_000

    def __init__(self, n_shards):
        self.n_shards = n_shards

    def streamed(self, memory):
        return Streamed(
            map(self.columns, range(self.n_shards)),
            ids=np.arange(self.n_points),
            attrs={"n_pool": 10_000},
            n_rows=self.n_shards * self.n_rows,
            memory=memory,
        )

    def columns(self, index):
        rng = np.random.default_rng(index)
        task = 10 * index + np.repeat(np.arange(10), self.n_points)
        k = rng.integers(100, 200, 10)[task % 10]
        point = np.tile(np.arange(self.n_points), 10)
        delta = (1 + point % 7) / k + 0.01 * rng.standard_normal(self.n_rows)
        return {"task": task, "k": k, "point": point, "delta": delta, "loss": 1 + 1 / k}


POWER = (Likelihood("power"), Likelihood("power", bound=1.0))  # the others learn from 5,000 points
USES = {
    "moments": lambda table: sum(len(moments) for _, moments in table.blocks(10**9)),
    "values": lambda table: value_samples(table),
    "aggregate": lambda table: fit_aggregate(table),
    "backtest": lambda table: backtest(table, candidates=POWER),
    "report": lambda table: (_samples.means_by_size(table), _samples.loss_by_size(table)),
}


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_five_times_the_contributions_take_no_more_memory(use):
    with Shards(2).streamed(10**8) as streamed:
        USES[use](streamed)  # what is loaded on first use
    peaks = []
    for n_shards in (30, 150):
        tracemalloc.start()
        with Shards(n_shards).streamed(2_000_000) as streamed:
            USES[use](streamed)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # 600,000 rows are 24 MB as a table. What is kept for each size and task may grow a little.
    assert peaks[1] < 1.2 * peaks[0]


def test_memory_that_is_given_is_used():
    tracemalloc.start()
    with Shards(50).streamed(400_000_000) as streamed:
        USES["moments"](streamed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak > 20_000_000
