"""What holds for every dataset: its fingerprint, its carving, its encoder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from apiece.data import Dataset
from apiece.data._fingerprint import digest
from apiece.data._split import carve, spread

# Values that float16 holds exactly, so that every dtype yields the same float64.
exact = st.integers(-64, 64).map(lambda whole: whole / 8)


@st.composite
def datasets(draw):
    n, d = draw(st.integers(6, 14)), draw(st.integers(1, 3))
    X = draw(hnp.arrays(np.float64, (n, d), elements=exact))
    if draw(st.booleans()):
        y = np.array(["a", "b", "c"])[np.arange(n) % draw(st.integers(2, 3))]
    else:
        y = np.arange(n) + 0.5
    names = draw(st.sampled_from([None, [f"id{i}" for i in range(n)]]))
    return Dataset.from_arrays(
        X, y, ids=names, validation=0.2, random_state=draw(st.integers(0, 9))
    )


@given(dataset=datasets(), data=st.data())
def test_any_single_change_changes_the_fingerprint(dataset, data):
    field = data.draw(st.sampled_from(["rows", "points_y", "rows_val", "y_val", "ids"]))
    changed = getattr(dataset, field).copy()
    where = tuple(data.draw(st.integers(0, size - 1)) for size in changed.shape)
    changed[where] = "other" if changed.dtype.kind == "U" else changed[where] + 1
    assert replace(dataset, **{field: changed}).fingerprint != dataset.fingerprint


@given(dataset=datasets(), data=st.data())
def test_any_other_order_changes_the_fingerprint(dataset, data):
    order = data.draw(st.permutations(range(dataset.n_points)))
    assume(order != sorted(order))
    shuffled = replace(
        dataset,
        rows=dataset.points_X[order],
        points_y=dataset.points_y[order],
        ids=dataset.ids[order],
    )
    assert shuffled.fingerprint != dataset.fingerprint


@given(
    dataset=datasets(),
    key=st.text(max_size=5),
    value=st.none() | st.booleans() | st.integers() | st.text(max_size=5),
)
def test_any_step_of_preprocessing_changes_the_fingerprint(dataset, key, value):
    assume(key not in dataset.preprocessing)
    steps = {**dataset.preprocessing, key: value}
    assert replace(dataset, preprocessing=steps).fingerprint != dataset.fingerprint


@given(
    X=hnp.arrays(np.float64, (8, 3), elements=exact),
    dtype=st.sampled_from([np.float16, np.float32, ">f8", object]),
    order=st.sampled_from("CF"),
    step=st.integers(1, 3),
)
def test_equal_numbers_in_any_dtype_and_layout_keep_the_fingerprint(X, dtype, order, step):
    y = np.arange(8) % 2
    spaced = np.repeat(X.astype(dtype), step, axis=1)[:, ::step]
    dressed = np.array(spaced, order=order) if step == 1 else spaced
    expected = Dataset.from_arrays(X, y).fingerprint
    assert Dataset.from_arrays(dressed, y.astype(np.int8)).fingerprint == expected
    assert Dataset.from_arrays(dressed, y.astype(np.float64)).fingerprint == expected


@given(one=st.lists(st.text(max_size=4)), other=st.lists(st.text(max_size=4)))
def test_lists_of_strings_share_a_digest_only_if_equal(one, other):
    # NumPy strings end at their last character that is not NUL, as arrays of ids do.
    first, second = np.array(one, dtype=np.str_), np.array(other, dtype=np.str_)
    is_same = digest({"ids": first}) == digest({"ids": second})
    assert is_same == (first.tolist() == second.tolist())


@given(counts=st.lists(st.integers(2, 60), min_size=2, max_size=8), data=st.data())
def test_the_carving_is_stratified_for_any_classes(counts, data):
    n, n_classes = sum(counts), len(counts)
    total = data.draw(st.integers(n_classes, n - n_classes))
    seed = data.draw(st.integers(0, 2**32 - 1))
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(n_classes), counts))
    pool, held = carve(n, total, seed=seed, codes=codes, classes=np.arange(n_classes))
    assert_array_equal(np.sort(np.concatenate([pool, held])), np.arange(n))
    assert len(held) == total
    taken = np.bincount(codes[held], minlength=n_classes)
    assert_array_equal(taken, spread(np.array(counts), total))
    assert (taken >= 1).all()
    assert (taken < counts).all()
    again = carve(n, total, seed=seed, codes=codes, classes=np.arange(n_classes))
    assert_array_equal(again[1], held)


@given(counts=st.lists(st.sampled_from([2, 3, 40, 60]), min_size=2, max_size=9), data=st.data())
def test_no_other_share_is_closer_to_proportional(counts, data):
    total = data.draw(st.integers(len(counts), sum(counts) - len(counts)))
    counts = np.array(counts)
    quota = total * counts / counts.sum()
    taken = spread(counts, total)
    # Moving one row from class i to class j must not bring the shares closer to the quotas.
    misfit = ((taken - quota) ** 2).sum()
    for i in np.flatnonzero(taken > 1):
        for j in np.flatnonzero(taken < counts - 1):
            if i != j:
                moved = taken.copy()
                moved[i] -= 1
                moved[j] += 1
                assert ((moved - quota) ** 2).sum() >= misfit - 1e-9


@given(
    X=hnp.arrays(np.float64, (12, 2), elements=exact, unique=True),
    seed=st.integers(0, 2**32 - 1),
    validation=st.none() | st.integers(2, 8) | st.floats(0.05, 0.95),
)
def test_points_keep_their_identity_through_the_carving(X, seed, validation):
    y = np.arange(12) % 2
    dataset = Dataset.from_arrays(X, y, validation=validation, random_state=seed)
    assert_array_equal(dataset.X, X[dataset.ids])
    assert_array_equal(dataset.y, y[dataset.ids])
    assert_array_equal(dataset.X_val, X[dataset.ids_val])
    assert_array_equal(np.union1d(dataset.ids, dataset.ids_val), np.arange(12))
    assert dataset.n_points + dataset.n_validation == 12
    assert (np.diff(dataset.ids) > 0).all()


cells = st.fixed_dictionaries(
    {
        "size": exact,
        "flag": st.booleans(),
        "city": st.sampled_from(["Oslo", "Paris", "Rome", "Lima", "Quito"]),
        "note": st.sampled_from(["good film", "bad plot", "new words here", "", "fine"]),
    }
)


@settings(max_examples=30, deadline=None)  # each example fits two vocabularies
@given(rows=st.lists(cells, min_size=12, max_size=12), data=st.data(), scaled=st.booleans())
def test_validation_rows_never_change_the_pools_features(rows, data, scaled):
    frame = pd.DataFrame(rows).assign(label=np.arange(12) % 2)
    frame.loc[:5, "note"] = "good film"  # some words in every pool

    def make(table):
        return Dataset.from_pandas(
            table, target="label", text="note", validation=4, standardize=scaled
        )

    dataset = make(frame)
    changed = frame.copy()
    for row in dataset.ids_val.tolist():
        for name, value in data.draw(cells).items():
            changed.loc[row, name] = value
    other = make(changed)
    assert_array_equal(other.X, dataset.X)
    assert other.feature_names == dataset.feature_names
    assert_array_equal(other.ids, dataset.ids)
