from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from apiece.losses._softmax import (
    RADIUS,
    against,
    all_probabilities,
    answer,
    bend,
    curve,
    errors,
    moves,
    remainder,
)


@given(
    x=st.floats(-RADIUS, RADIUS).filter(lambda x: abs(x) > 1e-12),
    slack=st.sampled_from([1.0, 1.9, np.inf]),
)
def test_the_curve_has_relative_precision_near_zero_and_far_from_it(x, slack):
    with_expm1 = np.expm1(x) - x if abs(x) > 1e-2 else x**2 / 2 * (1 + x / 3 + x**2 / 12)
    reach = min(RADIUS, slack * abs(x))
    assert_allclose(curve(np.array([x]), reach)[0], with_expm1, rtol=3e-6)
    assert_allclose(curve(np.array([x], dtype=np.float32), reach)[0], with_expm1, rtol=1e-5)


def test_probabilities_are_those_of_the_softmax_without_overflow():
    margins = np.array([[1000.0, -1000.0, 0.3], [0.0, -999.0, -0.2]])
    assert_allclose(all_probabilities(margins)[:-1, :2], [[1, 0], [0, 0]], atol=1e-300)
    e = np.exp([0.3, -0.2, 0.0])
    assert_allclose(all_probabilities(margins)[:, 2], e / e.sum(), rtol=1e-14)


@pytest.mark.parametrize("confidence", [0.0, 5.0, 12.0])
@pytest.mark.parametrize("size", [1e-2, 1e-1, 2.0])
def test_the_remainder_keeps_its_digits_in_single_precision(confidence, size):
    rng = np.random.default_rng(0)
    margins = rng.normal(size=(3, 40))
    margins[0] += confidence
    eta = size * rng.normal(size=(5, 3, 40))
    pi = all_probabilities(margins)
    top = pi.argmax(axis=0)
    full = against(top, eta)
    longer = np.longdouble  # the reference subtracts, so it needs more digits than it keeps
    wide = np.concatenate([margins, np.zeros((1, 40))]).astype(longer)
    e = np.exp(wide + full.astype(longer))
    before = np.exp(wide) / np.exp(wide).sum(axis=0)
    exact = e / e.sum(axis=1, keepdims=True) - before - bend(before, full.astype(longer))
    single = remainder(pi.astype(np.float32), full.astype(np.float32))
    scale = np.abs(exact).max(axis=1, keepdims=True)  # the largest of the classes of a row
    assert np.abs((single - exact) / scale).max() < 1e-5
    assert_allclose(single.sum(axis=1), 0, atol=1e-5 * float(scale.max()))


@pytest.mark.parametrize("sure", [0, 1, 3])
def test_almost_certain_classes_lose_no_digits(sure):
    rng = np.random.default_rng(0)
    margins = rng.normal(size=(3, 40))
    eta = rng.normal(size=(5, 3, 40))
    if sure < 3:
        margins[sure] += 30.0  # its probability is 1 in double precision
    else:
        margins -= 30.0
    longer = np.longdouble
    before, after = (all_probabilities(m.astype(longer)) for m in (margins, margins + eta))
    pi = all_probabilities(margins)

    def assert_close(found, exact):
        scale = np.abs(exact).max(axis=-2, keepdims=True)
        assert (np.abs(found - exact) <= 1e-13 * scale).all()

    truth = (np.arange(3) == sure)[:, None] * np.ones((3, 40))
    exact = before[:-1] - truth
    if sure < 3:
        exact[sure] = -np.delete(before, sure, axis=0).sum(axis=0)
    assert_close(errors(margins, truth), exact)
    assert_close(errors(margins[None], truth[None])[0], exact)
    changes = after - before
    changes[:, sure] = -np.delete(changes, sure, axis=1).sum(axis=1)
    assert_close(moves(pi, all_probabilities(margins + eta)), changes[:, :-1])
    first = bend(before, against(np.full(40, sure), eta.astype(longer)))
    assert_close(answer(pi, eta), first[:, :-1])
    assert_close(answer(np.stack([pi] * 5), eta), first[:, :-1])
