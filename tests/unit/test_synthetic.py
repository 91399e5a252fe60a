from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from apiece import synthetic
from apiece.errors import CardinalityError, FitError, PlanError, UnknownNameError
from apiece.laws import Laws


def test_the_population_looks_like_the_papers():
    laws = synthetic.random_laws(4000, random_state=1)
    # Standard errors over 4,000 points: 0.005 for the mean of alpha and 0.007 for the share.
    assert abs(laws.alpha.mean() - 1.2) < 0.02
    assert abs((laws.c < 0).mean() - 0.3) < 0.03
    assert laws.alpha.min() > 0
    assert np.corrcoef(laws.alpha, np.log(np.abs(laws.c)))[0, 1] > 0.6
    assert abs(laws.beta.mean() - 2.5) < 0.02
    ratio = np.log(laws.sigma * laws.k_ref ** (-laws.beta / 2))
    assert ((ratio - ratio.mean()) ** 4).mean() / ratio.var() ** 2 > 3.1


def test_series_populations_change_sign_at_some_points():
    laws = synthetic.random_laws(500, family="series", random_state=2)
    assert laws.family.name == "series"
    ends = np.sign(laws.mean([100, 1000]))
    assert 0.01 < (ends[:, 0] != ends[:, 1]).mean() < 0.5


def test_the_same_seed_gives_the_same_rows():
    laws = synthetic.random_laws(3, random_state=5)
    assert_array_equal(laws.params, synthetic.random_laws(3, random_state=5).params)
    one, two = (synthetic.sample(laws, samples=7, random_state=9) for _ in range(2))
    assert_array_equal(one.delta, two.delta)
    assert not np.array_equal(one.delta, synthetic.sample(laws, samples=7, random_state=8).delta)


@pytest.mark.parametrize("design", synthetic.DESIGNS)
@pytest.mark.parametrize("shared", [True, False])
def test_every_point_gets_its_samples_inside_the_sizes(design, shared):
    laws = synthetic.random_laws(5)
    table = synthetic.sample(laws, samples=40, sizes=(50, 60), design=design, shared=shared)
    assert_array_equal(np.bincount(table.point), [40] * 5)
    assert table.k.min() >= 50
    assert table.k.max() <= 60
    sizes = [np.unique(table.k[table.task == task]).size for task in np.unique(table.task)]
    assert max(sizes) == 1
    assert len(np.unique(table.task)) == (40 if shared else 200)


def test_a_grid_spreads_samples_evenly_over_log_spaced_sizes():
    table = synthetic.sample(synthetic.random_laws(1), samples=30, design="grid", n_sizes=3)
    assert_array_equal(np.unique(table.k, return_counts=True), [[100, 316, 1000], [10, 10, 10]])


def test_uniform_sizes_reach_both_ends():
    table = synthetic.sample(synthetic.random_laws(1), samples=500, sizes=(3, 6))
    assert set(table.k) == {3, 4, 5, 6}


def test_contributions_scatter_around_the_law_with_its_noise():
    laws = Laws.from_arrays(c=[2.0, -5.0], alpha=[0.5, 1.0], sigma=[3.0, 8.0], beta=[1.0, 2.0])
    table = synthetic.sample(laws, samples=20_000, design="grid", n_sizes=2, random_state=3)
    for point in range(2):
        for k in (100, 1000):
            delta = table.delta[(table.point == point) & (table.k == k)]
            sd = laws.sigma[point] * k ** (-laws.beta[point] / 2)
            # 10,000 samples: standard errors are sd / 100 for the mean and 0.7 % for the spread.
            assert abs(delta.mean() - laws.mean(k)[point]) < 4 * sd / 100
            assert_allclose(delta.std(), sd, rtol=0.03)


def test_laws_without_noise_give_exact_contributions():
    laws = Laws.from_arrays(c=[2.0], alpha=[1.5], sigma=[0.0], beta=[0.0], ids=["x"])
    table = synthetic.sample(laws, samples=5)
    assert_allclose(table.delta, 2 * table.k**-1.5)
    assert table.ids.tolist() == ["x"]


def test_what_cannot_be_drawn_is_refused():
    laws = Laws.from_arrays(c=[1.0, np.nan], alpha=[1.0, np.nan], sigma=1.0, beta=2.0)
    with pytest.raises(FitError, match=r"among them 1: .*laws\.select"):
        synthetic.sample(laws)
    with pytest.raises(FitError, match="no noise"):
        synthetic.sample(Laws.from_arrays(c=[1.0], alpha=[1.0]))
    good = laws.select([0])
    with pytest.raises(UnknownNameError, match="Did you mean 'uniform'"):
        synthetic.sample(good, design="unifrom")
    with pytest.raises(PlanError, match="samples=0"):
        synthetic.sample(good, samples=0)
    with pytest.raises(CardinalityError, match="sizes"):
        synthetic.sample(good, sizes=(10, 5))
    with pytest.raises(PlanError, match="n_points=0"):
        synthetic.random_laws(0)
    with pytest.raises(UnknownNameError, match="family"):
        synthetic.random_laws(1, family="exponential")
