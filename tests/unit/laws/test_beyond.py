from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import apiece
from apiece.errors import ApieceWarning
from apiece.laws import Beyond, FitStatus, Laws
from apiece.laws.beyond import quiet


def fitted(beyond=None, n_pool=None, **columns):
    attrs = {"estimator": "bayes"}
    attrs |= {} if beyond is None else {"beyond": beyond.to_json()}
    attrs |= {} if n_pool is None else {"n_pool": n_pool}
    cov = np.tile(np.diag([1e-4, 1e-2]), (2, 1, 1))
    return Laws.from_arrays(
        c=[0.5, -0.2], alpha=[1.0, 0.8], k_range=(100, 1000), cov=cov, attrs=attrs, **columns
    )


def test_a_size_beyond_the_sampled_ones_warns_once_and_says_how_far():
    laws = fitted(Beyond(2.5, 1.5))
    with pytest.warns(ApieceWarning, match=r"sampled up to 1,000 .* asked for 5,000, 5\.0 times"):
        laws.mean(5000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        laws.interval(5000)  # the same distance again, and a nearer one
        laws.functional([100, 4000], [1.0, 1.0])
    with pytest.warns(ApieceWarning, match="up to 2,500: beyond, values are not known"):
        laws.interval(6000)


def test_the_warning_says_whether_a_backtest_supports_it():
    with pytest.warns(ApieceWarning, match="A backtest supports that"):
        fitted(Beyond(2.5, 1.5)).mean(2000)
    with pytest.warns(ApieceWarning, match="No backtest supports"):
        fitted().mean(2000)


def test_the_warning_points_at_the_caller():
    with pytest.warns(ApieceWarning) as caught:
        fitted().interval(2000)
    assert caught[0].filename == __file__


def test_sampled_sizes_laws_from_arrays_and_quiet_blocks_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted().interval([100, 1000])
        Laws.from_arrays(c=[0.5], alpha=[1.0]).mean(10**6)
        with quiet():
            fitted().mean(5000)


def test_intervals_widen_with_the_distance_and_not_within_the_sizes():
    narrow, wide = fitted(), fitted(Beyond(2.5, 2.0))
    k = np.array([500.0, 1000.0, 2500.0, 6250.0])
    with quiet():
        expected = np.array([1.0, 1.0, 2.0, np.sqrt(13.0)])
        assert_allclose(wide.stderr(k) / narrow.stderr(k), np.tile(expected, (2, 1)))
        for wider, plain in zip(wide.interval(k), narrow.interval(k), strict=True):
            assert_allclose((wider - wide.mean(k)) / (plain - wide.mean(k)), [expected] * 2)
        one, two = (laws.functional([900, 2500], [0.5, 0.5]) for laws in (narrow, wide))
        assert_allclose(one.value, two.value)
        assert (two.high - two.low > one.high - one.low).all()


def test_beyond_reach_the_status_is_not_known():
    laws = fitted(Beyond(2.5, 1.5))
    assert laws.reach == 2500
    assert laws.status_at(2500).tolist() == [FitStatus.OK, FitStatus.OK]
    assert laws.status_at(2501).tolist() == [FitStatus.BEYOND, FitStatus.BEYOND]
    assert laws[0].reach == 2500  # the laws of some points reach as far
    assert fitted().reach == 1000


def test_files_keep_the_reach(tmp_path):
    laws = fitted(Beyond(2.5, 1.5))
    laws.save(tmp_path / "laws.parquet")
    assert Laws.load(tmp_path / "laws.parquet").beyond == Beyond(2.5, 1.5)


def test_picks_are_for_the_size_of_the_pool_and_warn_only_beyond_reach():
    near = fitted(Beyond(2.5, 1.5), n_pool=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picks = apiece.select(near, take=1)
    assert_allclose(picks["value"].iloc[0], 0.5 / 2000)
    assert "status" not in picks
    with pytest.warns(ApieceWarning, match="not known"):
        far = apiece.select(fitted(Beyond(2.5, 1.5), n_pool=9000), take=1)
    assert far["status"].iloc[0] == FitStatus.BEYOND


def test_values_say_where_they_are_not_known():
    with pytest.warns(ApieceWarning, match=r"9\.0 times as many"):
        table = apiece.value(fitted(Beyond(2.5, 1.5)), sizes=(100, 9000))
    assert (table["status"] == FitStatus.BEYOND).all()
    assert "status" not in apiece.value(fitted(), sizes=(100, 1000))


def test_the_largest_sampled_size_is_not_beyond_by_rounding():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(Beyond(2.5, 1.5)).interval(np.exp(np.log(1000.0)) * (1 + 1e-9))
