from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece import Contributions, synthetic
from apiece.errors import DataError
from apiece.reporting import _samples

LAWS = synthetic.random_laws(6, random_state=0)
DRAWN = synthetic.sample(LAWS, samples=50, random_state=0)


def test_means_in_bins_are_the_means_of_the_samples_in_them():
    means = _samples.means_by_size(DRAWN, n_bins=4)
    edges = np.geomspace(DRAWN.k.min(), DRAWN.k.max() + 1, 5)
    for point in range(6):
        for b in range(4):
            inside = (DRAWN.k >= edges[b]) & (DRAWN.k < edges[b + 1])
            mine = DRAWN.delta[inside & (DRAWN.point == point)]
            if len(mine) < 2:
                assert np.isnan(means.mean[point, b])
            else:
                assert means.mean[point, b] == pytest.approx(mine.mean())
                assert means.error[point, b] == pytest.approx(mine.std(ddof=1) / np.sqrt(len(mine)))


def test_a_grid_keeps_its_sizes():
    drawn = synthetic.sample(LAWS, samples=20, design="grid", n_sizes=5)
    means = _samples.means_by_size(drawn)
    assert_allclose(means.k, np.unique(drawn.k))


def test_a_lonely_sample_has_no_mean():
    drawn = Contributions.from_arrays(point=[0, 1, 1], k=[10, 10, 10], delta=[1.0, 2.0, 4.0])
    means = _samples.means_by_size(drawn)
    assert np.isnan(means.mean[0, 0])
    assert means.mean[1, 0] == 3
    assert means.error[1, 0] == 1


def test_the_loss_counts_once_a_task():
    drawn = Contributions.from_arrays(
        task=[0, 0, 0, 1, 2],
        point=[0, 1, 2, 0, 0],
        k=[10, 10, 10, 10, 10],
        delta=np.zeros(5),
        loss=[1.0, 1.0, 1.0, 3.0, np.nan],
    )
    assert _samples.loss_by_size(drawn).mean.tolist() == [[2.0]]


def test_unknown_losses_give_no_curve():
    assert len(_samples.loss_by_size(DRAWN).k) == 0


def test_single_samples_are_listed_by_point():
    found = _samples.raw(DRAWN, np.arange(6))
    assert found is not None
    for point in range(6):
        part = slice(found.start[point], found.start[point + 1])
        assert_allclose(found.delta[part], DRAWN.delta[DRAWN.point == point])
        assert_allclose(found.k[part], DRAWN.k[DRAWN.point == point])


def test_too_many_samples_are_not_listed(monkeypatch):
    monkeypatch.setattr(_samples, "MOST_RAW", 10)
    assert _samples.raw(DRAWN, np.arange(6)) is None


def test_contributions_follow_the_order_of_the_laws():
    ids = np.array([4, 0, 99, 5])
    points = _samples.places(DRAWN, ids)
    assert points.tolist() == [4, 0, -1, 5]
    listed, means = _samples.raw(DRAWN, points), _samples.means_by_size(DRAWN).of(points)
    for row, name in enumerate(ids):
        part = slice(listed.start[row], listed.start[row + 1])
        assert_allclose(listed.delta[part], DRAWN.delta[DRAWN.point == name])
        expected = _samples.means_by_size(DRAWN).mean[name] if name < 6 else np.nan
        assert_allclose(means.mean[row], np.broadcast_to(expected, means.k.shape))
    assert len(listed.delta) == sum((DRAWN.point == name).sum() for name in ids)


def test_laws_of_another_run_are_refused():
    with pytest.raises(DataError, match="none of the laws' ids"):
        _samples.places(DRAWN, np.array(["a", "b"]))
