from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import gaussian_kde, norm

from apiece.uses._stray import suspect_values


def table(n, share, noise, seed=0):
    """Predictions, targets of which a share is of other rows, which they are, and right ones."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n)
    right = f + noise(rng, n)
    is_wrong = rng.random(n) < share
    return f, np.where(is_wrong, rng.permutation(right), right), is_wrong


def normal(rng, n):
    return 0.4 * rng.normal(size=n)


def skewed(rng, n):
    return 0.25 * (rng.exponential(size=n) ** 1.5 - 1.0)


def suspected(f, y, rate=None):
    return suspect_values(f, y, np.zeros(len(y), dtype=bool), rate)


def by_an_oracle(f, y, share):
    """How probably values are wrong to who knows the noise and the share."""
    stray = share * norm.pdf(y, scale=np.sqrt(1 + 0.4**2))
    return stray / (stray + (1 - share) * norm.pdf(y - f, scale=0.4))


def f1(wrong, is_wrong):
    found = wrong > 0.5
    return 2 * (found & is_wrong).sum() / (found.sum() + is_wrong.sum())


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_values_of_other_rows_are_found_and_counted(share):
    f, y, is_wrong = table(2000, share, normal)
    found = suspected(f, y)
    assert_allclose(found.rate.likeliest, share, rtol=0.25)
    assert found.rate.sure > 5
    ideal = f1(by_an_oracle(f, y, share), is_wrong)
    assert f1(found.wrong, is_wrong) > ideal - 0.05


def test_values_of_other_rows_are_found_where_most_targets_are_crowded():
    rng = np.random.default_rng(4)
    f = -np.exp(rng.normal(size=2000))
    right = f + 0.4 * rng.normal(size=2000)
    is_wrong = rng.random(2000) < 0.1
    y = np.where(is_wrong, rng.permutation(right), right)
    found = suspected(f, y)
    stray = 0.1 * gaussian_kde(right, 0.05)(y)
    ideal = f1(stray / (stray + 0.9 * norm.pdf(y - f, scale=0.4)), is_wrong)
    assert_allclose(found.rate.likeliest, 0.1, rtol=0.25)
    assert f1(found.wrong, is_wrong) > ideal - 0.05


@pytest.mark.parametrize("noise", [normal, skewed])
def test_long_tails_on_one_side_are_no_errors(noise):
    # Evidence beyond three standard errors would be needed to change anything by itself.
    sure = [suspected(*table(1000, 0.0, noise, seed)[:2]).rate.sure for seed in range(5)]
    assert max(sure) < 3


def test_predictions_that_are_too_narrow_are_widened():
    f, y, is_wrong = table(2000, 0.1, normal)
    found = suspected(0.6 * f, y)
    assert_allclose(found.to, f, atol=0.1 + 0.05 * np.abs(f).max())
    assert f1(found.wrong, is_wrong) > f1(by_an_oracle(f, y, 0.1), is_wrong) - 0.1


def test_a_value_that_many_rows_share_is_not_judged():
    rng = np.random.default_rng(1)
    f, y, _ = table(2000, 0.0, normal)
    has_none = rng.random(2000) < 0.1
    y = np.where(has_none, y.min(), y)
    found = suspected(f, y)
    assert not found.wrong[has_none].any()
    assert found.rate.sure < 3


def test_noise_that_was_added_is_found():
    rng = np.random.default_rng(2)
    f, y, _ = table(2000, 0.0, normal)
    is_wrong = rng.random(2000) < 0.1
    noisy = y + np.where(is_wrong, 4 * rng.normal(size=2000), 0.0)
    assert f1(suspected(f, noisy).wrong, is_wrong) > 0.6


@pytest.mark.parametrize(("unit", "zero"), [(1e-9, 0.0), (1e6, -5e6)])
def test_units_and_zero_do_not_matter(unit, zero):
    f, y, _ = table(500, 0.1, skewed)
    here, there = suspected(f, y), suspected(unit * f + zero, unit * y + zero)
    assert_allclose(there.wrong, here.wrong, atol=1e-4)
    assert_allclose((there.to - zero) / unit, here.to, atol=1e-4)


@pytest.mark.parametrize(
    "values", [np.full(50, 3.0), np.repeat([0.0, 1.0], 25), np.arange(20.0)], ids=str
)
def test_nothing_is_doubted_where_nothing_can_be_known(values):
    found = suspected(np.linspace(-1, 1, len(values)), values)
    assert not found.wrong.any()
    assert found.rate == (0.0, 0.0, 0.0)


def test_a_known_share_is_taken_as_it_is():
    f, y, _ = table(1000, 0.1, normal)
    whole = suspected(f, y)
    part = suspected(f[:700], y[:700], whole.rate)
    assert part.rate == whole.rate
    assert_allclose(part.wrong.mean(), whole.wrong[:700].mean(), atol=0.02)


def test_values_that_are_right_for_certain_tell_long_tails_from_wrong_values():
    rng = np.random.default_rng(5)
    f = rng.normal(size=3000)
    right = f + 0.4 * rng.standard_t(1.5, size=3000)
    far = np.where(rng.random(3000) < 0.15, rng.permutation(right), right)
    is_trusted = np.arange(3000) < 1000
    # The same 2,000 values are wrong, or as they should be, by what trusted ones are like.
    as_others = suspect_values(f, far, is_trusted)
    closer = suspect_values(f, np.where(is_trusted, right, far), is_trusted)
    assert as_others.rate.likeliest < 0.5 * closer.rate.likeliest
    assert_allclose(closer.rate.likeliest, 0.15, rtol=0.25)
    assert not closer.wrong[is_trusted].any()
