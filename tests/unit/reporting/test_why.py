"""Why a point matters: first-order effects against refits, slices, and references to rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import apiece
from apiece.errors import DataError
from apiece.reporting._why import EACH, _cut, _Linear, _references, why
from apiece.uses import quality

from conftest import make_blobs


def line(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=n)
    y[:5] += 4.0  # wrong values, which matter
    return apiece.Dataset.from_arrays(X, y, validation=0, standardize=False)


def test_effects_on_rows_are_those_of_refits_to_first_order():
    dataset = line(400)
    linear = _Linear.of(dataset, quality(dataset, "linear"))
    X, y = linear.X, dataset.y
    rows = np.arange(400)

    def losses(kept):
        beta = np.linalg.solve(X[kept].T @ X[kept] + np.eye(4), X[kept].T @ y[kept])
        return (y - X @ beta) ** 2

    places = np.arange(20)  # five of them with wrong values
    found = linear.by_slice(places, rows, rows, 400)  # every row is a slice of its own
    refitted = np.stack([losses(np.delete(rows, i)) - losses(rows) for i in places])
    others = places[:, None] != rows
    # Residuals are of five folds, so they are not exactly those of the fit to all rows.
    assert np.corrcoef(found[others], refitted[others])[0, 1] > 0.98
    slope = (found[others] @ refitted[others]) / (refitted[others] @ refitted[others])
    assert 0.9 < slope < 1.1


def test_listed_rows_are_the_extremes_of_all_effects():
    dataset = line()
    linear = _Linear.of(dataset, quality(dataset, "linear"))
    rows = np.arange(120)
    found = linear.extremes(rows, rows, np.ones(120))
    effect = 2 * np.einsum(
        "i,ij,j->ij", *(linear.residual[:, 0], linear.X @ linear.inverse[0] @ linear.X.T),
        linear.residual[:, 0],
    )  # fmt: skip
    np.fill_diagonal(effect, 0.0)
    for i in (0, 17, 99):
        order = np.argsort(-effect[i])
        assert found.rows[i, :EACH].tolist() == order[:EACH].tolist()
        assert found.rows[i, EACH:].tolist() == order[::-1][:EACH].tolist()
        np.testing.assert_allclose(found.effect[i, :EACH], effect[i][order[:EACH]])


def test_a_flipped_label_is_worse_for_the_class_it_comes_from():
    rng = np.random.default_rng(1)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 2)) + 2.5 * y[:, None]
    y[0] = 1 - y[0]
    dataset = apiece.Dataset.from_arrays(X, y, validation=0)
    linear = _Linear.of(dataset, quality(dataset))
    effect = linear.by_slice(np.array([0]), np.arange(200), dataset.y, 2)[0]
    assert effect[0] < 0  # the label was 0 and says 1 now
    assert effect.mean() < 0


def test_slices_are_words_or_quarters():
    codes, names = _cut(["a", "b", None, "a"])
    assert names == ["a", "b"]
    assert codes.tolist() == [0, 1, -1, 0]
    codes, names = _cut(list(range(40)))
    assert len(names) == 4
    assert np.bincount(codes).tolist() == [10, 10, 10, 10]


def test_rows_that_are_no_points_are_numbered_after_the_points():
    rows = np.array([[0, 3], [4, -1]])
    reference, others = _references(rows, np.array([3, 0, 1]), 6)
    assert others.tolist() == [4]
    assert reference.tolist() == [[1, 0], [3, 2**32 - 1]]


def test_a_column_that_is_not_there_is_named():
    dataset = make_blobs(shift=1.0)
    run = apiece.collect(dataset, samples=4, sizes=(8, 30), random_state=0, progress=False)
    laws = run.laws()
    rows = pd.DataFrame({"town": "Bern"}, index=list(map(str, dataset.ids)))
    with pytest.raises(DataError, match=r"'nowhere' is not a column of the rows.*'town'"):
        why(laws, dataset, quality(dataset), rows, "nowhere")
