r"""Noise of sums over contributions that share training sets and rows.

A sum over contributions is a sum over tasks of scores $S_t$. Different tasks draw different
training sets, so that $\sum_t S_t S_t^\top$ is the covariance of what they do not share. They share
the rows of the table: with $T$ tasks, each from $s$ of $G$ random blocks of rows, and the effect
$\beta_g$ of block $g$ on the scores, the choice of rows adds

$$T^2 \frac{s^2}{G^2} \sum_g \beta_g \beta_g^\top,$$

which products of different tasks tell.
"""

from __future__ import annotations

import numpy as np

from apiece._base.typing import FloatArray, IntArray


class Scores:
    """Sums over the contributions of each task, added part by part.

    Parameters
    ----------
    p
        Entries of a score.
    """

    def __init__(self, p: int) -> None:
        self._scores = np.zeros((0, p))
        self._active = np.zeros(0, dtype=np.int64)

    def add(self, each: FloatArray, task: IntArray, active: IntArray | None) -> None:
        """Add contributions, ``(n, p)``, of tasks, and the blocks of rows these drew from."""
        if not len(task):
            return
        n_more = int(task.max()) + 1 - len(self._active)
        if n_more > 0:
            self._scores = np.pad(self._scores, ((0, n_more), (0, 0)))
            self._active = np.pad(self._active, (0, n_more))
        for j, column in enumerate(each.T):
            self._scores[:, j] += np.bincount(task, column, len(self._active))
        if active is not None:
            self._active[task] = active

    def noise_of_sum(self) -> FloatArray:
        """Return the covariance of the sum over all tasks, shape ``(p, p)``."""
        return self._scores.T @ self._scores + self._of_rows()

    def _of_rows(self) -> FloatArray:
        """Return the part of the covariance that blocks of rows give, ``(p, p)``."""
        seen = self._active > 0
        n, p = int(seen.sum()), self._scores.shape[1]
        found: FloatArray = np.zeros((p, p))
        if n < 2:
            return found
        scores, active = self._scores[seen], self._active[seen]
        e = scores - scores.mean(axis=0)
        n_blocks = int(active.max()).bit_length()
        if n_blocks == 1:  # all rows are one block
            return found
        bits = ((active[:, None] >> np.arange(n_blocks)) & 1).astype(np.float64)
        x = bits - bits.mean(axis=0)
        norm = ((x**2).sum(axis=0) ** 2 - (x**4).sum(axis=0)).mean()
        for column in x.T:
            both = column[:, None] * e
            total = both.sum(axis=0)
            found += np.outer(total, total) - both.T @ both
        found *= (n * bits.mean()) ** 2 / max(float(norm), 1e-300)
        values, vectors = np.linalg.eigh(found)
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
