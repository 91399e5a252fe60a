"""Texts as numbers: weighted word counts (tf-idf) in a few directions of their own (SVD).

Latent semantic analysis, fitted on the pool's texts alone. The decomposition runs on one thread, so
that the same texts and seed give the same bits whatever the number of cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.errors import DataError

_MOST_WORDS: Final = 50_000


@dataclass(frozen=True)
class TextEncoder:
    """A fitted vocabulary and the directions kept of it.

    Parameters
    ----------
    words, weights
        A fitted ``CountVectorizer`` and ``TfidfTransformer``.
    directions
        A fitted ``TruncatedSVD``; None when the vocabulary is a single word, whose weight is then
        the only feature.
    n_features
        How many features a text becomes.
    """

    words: Any
    weights: Any
    directions: Any
    n_features: int

    @classmethod
    def fit(
        cls, texts: AnyArray, name: str, *, n_features: int, seed: int
    ) -> tuple[TextEncoder, FloatArray]:
        """Learn from the pool's texts; return the encoder and their features.

        Parameters
        ----------
        texts
            Texts of the pool, shape ``(n_pool,)``.
        name
            The column's name, for messages.
        n_features
            The most features to keep; fewer when the vocabulary or the pool is smaller.
        seed
            Seed of the randomised decomposition.

        Returns
        -------
        tuple of TextEncoder and FloatArray
            The features have shape ``(n_pool, n_features)``.
        """
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
        from threadpoolctl import threadpool_limits

        words = CountVectorizer(max_features=_MOST_WORDS, dtype=np.float64)
        try:
            counts = words.fit_transform(texts)
        except ValueError as error:  # scikit-learn's "empty vocabulary"
            raise DataError(
                f"text column {name!r} holds no word of two letters or more in the pool's "
                f"{len(texts):,} rows: expected texts. Drop it (drop=[{name!r}], --drop {name}) "
                "instead of naming it in text= (--text)."
            ) from error
        n_rows, n_words = counts.shape
        weights = TfidfTransformer(sublinear_tf=True).fit(counts)
        encoder = cls(words, weights, None, 1)
        if n_words == 1:
            return encoder, encoder._encode(counts)
        n_kept = min(n_features, n_words - 1, n_rows - 1)
        directions = TruncatedSVD(n_kept, random_state=seed)
        # The ratio of explained variance, which nobody reads, is 0/0 when all texts are equal.
        with threadpool_limits(1), np.errstate(divide="ignore", invalid="ignore"):
            directions.fit(encoder._weigh(counts))
        encoder = cls(words, weights, directions, n_kept)
        return encoder, encoder._encode(counts)

    def encode(self, texts: AnyArray) -> FloatArray:
        """Return the features of texts, shape ``(n_rows, n_features)``."""
        return self._encode(self.words.transform(texts))

    def _encode(self, counts: Any) -> FloatArray:
        weighed = self._weigh(counts)
        if self.directions is None:
            return np.asarray(weighed.toarray())
        return np.asarray(self.directions.transform(weighed))

    def _weigh(self, counts: Any) -> Any:
        counts.sort_indices()  # sums in one order, so that a text has the same bits everywhere
        return self.weights.transform(counts)
