from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece import synthetic
from apiece.errors import ApieceWarning, FitError
from apiece.laws import Laws
from apiece.records import Contributions
from apiece.uses import BetaShapley, GivenWeights, value, value_samples


def drawn(rng, sizes, n_pool=None, truth=lambda k: 100.0 / k, noise=0.1, n_points=400):
    """Contributions at random sizes, missing as often as a point is inside D."""
    k = np.broadcast_to(sizes[:, None], (len(sizes), n_points))
    seen = rng.random(k.shape) > (0 if n_pool is None else k / n_pool)
    task, point = np.nonzero(seen)
    delta = truth(k[seen]) + noise * rng.standard_normal(seen.sum())
    return Contributions.from_arrays(
        task=task,
        point=point,
        k=k[seen],
        delta=delta,
        attrs={"design": {"name": "uniform", "sizes": [100, 1000]}},
    )


def test_large_sizes_that_are_seen_less_often_count_in_full():
    """A plain mean is 38 % too large here; with the pool known, strata are off by noise alone."""
    rng = np.random.default_rng(0)
    table = drawn(rng, rng.integers(100, 1001, 400), n_pool=1010)
    exact = (100.0 / np.arange(100, 1001)).mean()
    plain = np.bincount(table.point, table.delta) / np.bincount(table.point)
    estimate = value_samples(table, sizes=(100, 1000), n_pool=1010)
    assert plain.mean() > 1.3 * exact
    assert_allclose(estimate["value"].mean(), exact, rtol=0.02)


def test_few_contributions_are_weighed_by_their_chance():
    """Twelve training sets: a plain mean is 16 % too large."""
    rng = np.random.default_rng(1)
    tables = [drawn(rng, rng.integers(100, 1001, 12), 1500, n_points=50) for _ in range(60)]
    estimates = [
        value_samples(table, sizes=(100, 1000), n_pool=1500)["value"].mean() for table in tables
    ]
    exact = (100.0 / np.arange(100, 1001)).mean()
    error = np.std(estimates) / np.sqrt(60)
    assert abs(np.mean(estimates) - exact) < 2 * error < 0.06 * exact
    assert np.mean([table.delta.mean() for table in tables]) > 1.14 * exact


def test_candidates_are_always_seen():
    rng = np.random.default_rng(2)
    table = drawn(rng, rng.integers(100, 1001, 400), noise=0.0)
    exact = (100.0 / np.arange(100, 1001)).mean()
    all_candidates = np.ones(table.n_points, dtype=bool)
    estimate = value_samples(table, sizes=(100, 1000), n_pool=1010, is_candidate=all_candidates)
    assert_allclose(estimate["value"], exact, rtol=0.02)


@pytest.mark.parametrize("design", ["uniform", "log-uniform", "grid"])
@pytest.mark.parametrize("options", [{}, {"kind": BetaShapley(3, 2), "n": 1000}])
@pytest.mark.filterwarnings("ignore::apiece.ApieceWarning")
def test_every_design_gives_the_same_value(design, options):
    truth = Laws.from_arrays(c=[100.0], alpha=[1.2], sigma=[0.0], beta=[2.0])
    table = synthetic.sample(truth, samples=4000, design=design, random_state=1)
    # Without noise what is left is where sizes fell, and a grid's interpolation: below 1 %.
    estimate = value_samples(table, **(options | {"sizes": (100, 1000)}))
    exact = value(truth, **(options | {"sizes": (100, 1000)}))
    assert_allclose(estimate["value"], exact["value"], rtol=0.01)


def test_standard_errors_cover_as_often_as_they_say():
    truth = synthetic.random_laws(600, random_state=2)
    table = synthetic.sample(truth, samples=60, random_state=3, shared=False)
    estimate = value_samples(table, sizes=(100, 1000), level=0.9)
    exact = value(truth, sizes=(100, 1000))["value"]
    covered = ((estimate["low"] < exact) & (exact < estimate["high"])).mean()
    # The standard error of a coverage over 600 points is 0.012.
    assert abs(covered - 0.9) < 0.04


def test_values_from_laws_and_from_samples_converge_to_each_other():
    from apiece.estimators import fit

    truth = synthetic.random_laws(100, random_state=4)
    exact = value(truth)["value"]

    def typical(difference):
        return np.median(np.abs(difference) / np.abs(exact))

    gap, error = {}, {}
    for samples in (40, 640, 10_240):
        table = synthetic.sample(truth, samples=samples, random_state=5)
        by_law = value(fit(table, method="likelihood"), sizes=(100, 1000))["value"]
        by_samples = value_samples(table, sizes=(100, 1000))["value"]
        gap[samples] = typical(by_law - by_samples)
        error[samples] = typical(by_samples - exact), typical(by_law - exact)
    # 256 times the samples: a sixteenth of the errors, give or take a half.
    assert gap[40] > gap[640] > gap[10_240]
    assert gap[10_240] < 0.01
    for before, after in zip(error[40], error[10_240], strict=True):
        assert before / 24 < after < before / 10


def test_ranks_come_from_the_standard_errors():
    truth = synthetic.random_laws(50, random_state=6)
    table = value_samples(synthetic.sample(truth, samples=200), top=5)
    assert_allclose(table["p_top"].sum(), 5.0)
    assert (table["rank_low"] <= table["rank_high"]).all()
    assert (table["n_samples"] == 200).all()


def test_a_point_that_misses_a_size_uses_its_nearest():
    table = Contributions.from_arrays(
        point=[*[0, 1, 2, 3, 4] * 4, 5, 5],
        k=[*[10] * 10, *[20] * 10, 20, 20],
        delta=[*[4.0] * 10, *[2.0] * 10, 3.0, 5.0],
    )
    estimate = value_samples(table, kind=GivenWeights({10: 0.5, 20: 0.5}))
    assert estimate["value"].tolist() == [3.0] * 5 + [4.0]
    assert estimate["stderr"].tolist() == [0.0] * 5 + [1.0]


def test_points_without_contributions_have_no_value():
    table = Contributions.from_arrays(point=[0, 0], k=[10, 10], delta=[1.0, 3.0], ids=["a", "b"])
    estimate = value_samples(table, sizes=(10, 10))
    assert estimate.loc["a", "value"] == 2.0
    assert estimate.loc["b"].isna().tolist() == [True] * 4 + [False]
    assert estimate["n_samples"].tolist() == [2, 0]


def test_a_single_contribution_has_a_value_but_no_error():
    table = Contributions.from_arrays(point=[0], k=[10], delta=[1.0])
    estimate = value_samples(table, sizes=(10, 10)).iloc[0]
    assert estimate["value"] == 1.0
    assert np.isnan(estimate["stderr"])


def test_weight_outside_the_sampled_sizes_warns_or_is_refused():
    table = synthetic.sample(synthetic.random_laws(3), samples=100)
    with pytest.warns(ApieceWarning, match=r"55 % of the weight|55% of the weight"):
        value_samples(table, kind="data-shapley", n=2000)
    with pytest.raises(FitError, match="source='law'"):
        value_samples(table, kind="loo", n=5000)
    far = Contributions.from_arrays(point=[0, 0, 0], k=[1, 1753, 10_000], delta=[1.0, 2.0, 3.0])
    with pytest.raises(FitError, match="around 5,000"):
        value_samples(far, kind="banzhaf", n=10_001)
    with pytest.raises(FitError, match="no contributions"):
        value_samples(table.where(table.k < 0))


def test_sizes_that_were_drawn_more_often_do_not_count_more():
    rng = np.random.default_rng(0)
    n, low, high = 3_000, 10, 200
    k = np.where(rng.random(n) < 0.6, 12, rng.integers(low, high + 1, n))
    table = Contributions.from_arrays(
        point=np.zeros(n),
        k=k,
        delta=10 / k,
        attrs={"design": {"name": "uniform", "sizes": [10, 200]}},
    )
    truth = np.mean(10 / np.arange(low, high + 1))
    known = replace(table, attrs=table.attrs | {"extra_sizes": [[12, 0.6]]})
    found, without = (
        value_samples(one, sizes=(low, high))["value"].item() for one in (known, table)
    )
    assert abs(found / truth - 1) < 0.01
    assert abs(without / truth - 1) > 0.02


def test_points_that_were_valued_rarely_later_count_for_it():
    # Half of the early contributions are lucky. Later ones are right, and one in eight was drawn.
    delta = np.array([1.0] * 8 + [0.0] * 8)
    table = Contributions.from_arrays(point=np.zeros(16), k=np.full(16, 10), delta=delta)
    rare = replace(table, chance=np.array([1.0] * 8 + [0.125] * 8))
    assert_allclose(value_samples(table)["value"].item(), 1 / 2)
    assert_allclose(value_samples(rare)["value"].item(), 1 / 9)
