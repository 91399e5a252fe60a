from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from apiece.engines import choose_engine
from apiece.errors import DataError, PlanError
from apiece.uses import relabel

from conftest import make_blobs, make_line


def with_flips(n_classes, flips=6, n=150):
    """Blobs in which the first few points have the next class's label, and their true codes."""
    data = make_blobs(n=n, n_val=150, n_classes=n_classes, d=4, shift=5.0)
    y = data.y.copy()
    y[:flips] = (y[:flips] + 1) % n_classes
    return replace(data, points_y=y), data.y[:flips]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_flipped_points_get_their_true_label_back(n_classes):
    data, truth = with_flips(n_classes)
    table = relabel(data, data.ids[:6], at=80, draws=8, model=LogisticRegression())
    assert (table["relabel_to"].to_numpy() == truth).all()
    assert (table["label"].to_numpy() == data.y[:6]).all()
    assert (table["probability"] > 0.9).all()
    assert (table["gain"] > 0).all()
    assert (table["p_helps"] > 0.1).all()


@pytest.mark.slow
def test_the_label_to_try_can_be_named():
    data, _ = with_flips(3)
    best = relabel(data, data.ids[:6], at=80, draws=4)
    own, found = data.y[:6], best["relabel_to"].to_numpy()
    third = 3 - own - found
    table = relabel(data, data.ids[:6], to=third, at=80, draws=4)
    assert (table["relabel_to"].to_numpy() == third).all()
    assert (table["gain"] <= best["gain"]).all()
    for wrong in (own, [9] * 6, [0]):
        with pytest.raises(PlanError, match="another label of each of the 6 points"):
            relabel(data, data.ids[:6], to=wrong, at=80, draws=4)


def test_points_with_the_right_label_keep_it():
    data, _ = with_flips(2)
    table = relabel(data, data.ids[20:40], at=80, draws=8)
    # Classes overlap: two of these twenty lie on the other class's side.
    assert (table["probability"] > 0.9).sum() <= 2


def test_a_gain_is_the_mean_difference_of_contributions(monkeypatch):
    data, _ = with_flips(2)
    seen = []
    engine_type = type(choose_engine(data)[0])
    honest = engine_type.run

    def watched(self, task):
        outcome = honest(self, task)
        seen.append((self, task, outcome.delta.reshape(-1, 2)))
        return outcome

    monkeypatch.setattr(engine_type, "run", watched)
    table = relabel(data, data.ids[[3]], at=40, draws=4)
    assert len(seen) == 4
    delta = np.stack([outcome[0] for _, _, outcome in seen])
    own = data.y[3]
    assert_allclose(table["gain"], (delta[:, 1 - own] - delta[:, own]).mean())
    assert_allclose(table["value"], delta[:, 1 - own].mean())
    for engine, task, _ in seen:
        assert task.cardinality == 40
        assert 3 not in task.subset
        assert_allclose(engine.dataset.features(task.points), data.X[[3, 3]])
        assert engine.dataset.targets(task.points).tolist() == [0, 1]


def test_the_same_seed_gives_the_same_table():
    data, _ = with_flips(2)
    first, again, other = (
        relabel(data, data.ids[:3], at=40, draws=4, random_state=seed) for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first["gain"].equals(other["gain"])


def test_nobody_suspected_gives_an_empty_table():
    table = relabel(make_blobs(), [], at=20)
    assert len(table) == 0
    assert "relabel_to" in table


def test_what_cannot_be_relabelled_is_refused():
    with pytest.raises(PlanError, match="classification"):
        relabel(make_line(), [0], at=20)
    with pytest.raises(PlanError, match="draws=2"):
        relabel(make_blobs(), [0], at=20, draws=2)
    with pytest.raises(DataError, match="nobody"):
        relabel(make_blobs(), ["nobody"], at=20)
