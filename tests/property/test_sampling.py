from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from apiece.collection import Design, make_plan
from apiece.collection._balance import allocate
from apiece.errors import CardinalityError


@given(data=st.data(), class_sizes=st.lists(st.integers(2, 60), min_size=1, max_size=8))
def test_allocation_fills_k_within_its_bounds_and_stays_near_the_shares(data, class_sizes):
    sizes = np.array(class_sizes)
    most = sizes - 1
    k = data.draw(st.integers(len(sizes), int(most.sum())))
    counts = allocate(k, sizes, most)
    assert counts.sum() == k
    assert np.all((counts >= 1) & (counts <= most))
    share = k * sizes / sizes.sum()
    if np.all((share >= 1) & (share <= most)):
        assert np.all(np.abs(counts - share) < 1)


@settings(max_examples=60)
@given(
    n_classes=st.integers(1, 4),
    n_pool=st.integers(2, 40),
    k=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    share=st.sampled_from([None, 1, 3]),
    name=st.sampled_from(["uniform", "grid", "log-uniform"]),
    seed=st.integers(0, 5),
)
def test_a_plan_is_either_refused_or_serves_every_point(n_classes, n_pool, k, share, name, seed):
    strata = np.random.default_rng(seed).permutation(np.arange(n_pool) % n_classes)
    design = Design.of(sorted(k), name=name, samples=3, share=share, n_sizes=3)
    try:
        plan = make_plan(design, n_pool=n_pool, points=np.arange(n_pool), seed=seed, strata=strata)
    except CardinalityError:
        classes = np.bincount(strata)
        assert max(k) > (classes - 1).sum() or min(k) < len(classes) or classes.min() < 2
        return
    have = np.zeros(n_pool, dtype=int)
    for index in range(len(plan)):
        task = plan[index]
        have[task.points] += 1
        assert min(k) <= task.cardinality <= max(k)
        assert set(strata[task.subset]) == set(strata)
    assert have.min() >= 3
