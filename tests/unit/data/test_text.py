from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from apiece.data._text import TextEncoder

RNG = np.random.default_rng(0)
WORDS = np.array([f"word{i}" for i in range(30)])
TEXTS = np.array([" ".join(RNG.choice(WORDS, 8)) for _ in range(40)], dtype=object)


def fit(texts, n_features=5, seed=0):
    return TextEncoder.fit(np.array(texts, dtype=object), "note", n_features=n_features, seed=seed)


def test_pool_and_later_rows_are_encoded_alike():
    encoder, X = fit(TEXTS)
    assert X.shape == (40, 5)
    assert X.dtype == np.float64
    assert_array_equal(encoder.encode(TEXTS[3:6]), X[3:6])


def test_the_seed_decides_every_bit():
    assert_array_equal(fit(TEXTS)[1], fit(TEXTS)[1])


def test_the_directions_keep_most_of_what_they_can():
    encoder, X = fit(TEXTS, n_features=29)
    counts = encoder.weights.transform(encoder.words.transform(TEXTS)).toarray()
    best = np.linalg.svd(counts, compute_uv=False)[:29]
    assert_allclose((X**2).sum(), (best**2).sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("texts", "n_features", "kept"),
    [
        (["aa bb cc dd"] * 3 + ["aa", "bb cc"], 100, 3),  # vocabulary of 4
        (TEXTS[:4], 100, 3),  # pool of 4
        (TEXTS, 7, 7),
        (["yes", "yes", ""], 100, 1),  # a single word
        (["aa bb"] * 5, 100, 1),  # all texts equal
    ],
)
def test_fewer_directions_are_kept_of_little_text(texts, n_features, kept):
    encoder, X = fit(texts, n_features=n_features)
    assert encoder.n_features == kept
    assert X.shape == (len(texts), kept)
    assert np.isfinite(X).all()
    assert encoder.encode(np.array(["aa unseen", ""], dtype=object)).shape == (2, kept)


def test_an_unknown_or_empty_text_is_the_origin():
    encoder, _ = fit(TEXTS)
    assert_array_equal(encoder.encode(np.array(["", "unheard"], dtype=object)), np.zeros((2, 5)))


def test_a_column_without_words_is_refused(complaint):
    said = complaint(fit, ["", "?", "1"])
    assert "'note'" in said
    assert "--drop note" in said
