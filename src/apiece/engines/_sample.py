r"""A validation set as a sample of the population that matters.

With the mean gradients $\bar g_V$ of $m$ validation rows and $\bar g$ of the $n$ rows of the pool
(see `apiece.engines._surrogate`), contributions to models that are trained on rows of the pool have
the first-order part

$$\frac{(\bar g_V - \bar g)^\top H_k^{-1} g_z}{1 + w_z h_z}$$

in all tasks. It falls as $1/k$, more slowly than the expected gain on the population, and no number
of tasks averages it out. If both sets of rows come from one population, $d = \bar g_V - \bar g$ is
noise with the covariance $N = \mathrm{Cov}(g)\,(1/m + 1/n)$. Let $q = d^\top N^{-1} d$ at a model
of all rows, and $q_0$ its median over splits of all rows at random. If $q$ is not above almost all
of these, that part is subtracted, less its expectation: models err as the pool does, which the
point corrects, in part already here, by $w_z\,x_z^\top C_n H H_k^{-1} x_z$ with the covariance
$C_n$ of a fit to the pool. Otherwise the validation rows are from another population: the part
$s = 1 - q_0/q$ of $d$ is taken to be real, the rest is subtracted, and $s N$ is what is not known
of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np

from apiece._base.typing import FloatArray, IntArray
from apiece.data import Dataset
from apiece.engines._expansion import Mode
from apiece.engines._models import Model
from apiece.engines._surrogate import Surrogate, surrogate_of
from apiece.records import Task

_SPLITS: Final = 99  # of all rows at random
_RANK: Final = 2  # of the largest distances between them; beyond it, populations differ
_TINY: Final = 1e-10  # of the largest eigenvalue: directions without gradients
_N_BLOCKS: Final = 16  # of rows, for the jackknife


class _Gradients(NamedTuple):
    """Gradients of a mode: their means over validation rows and classes, and their covariance."""

    validation: FloatArray  # shape (p,)
    means: FloatArray  # shape (n_classes, p)
    covariance: FloatArray  # shape (p, p)


@dataclass(frozen=True, eq=False)
class ScoringSample:
    """The validation rows of a dataset, compared with those of the pool.

    Parameters
    ----------
    surrogate
        A generalised linear model of the pool, evaluated on the validation rows as well.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> dataset, _ = load_demo()
    >>> ScoringSample(Surrogate(dataset)).is_of_the_pool
    True
    """

    surrogate: Surrogate

    @property
    def is_of_the_pool(self) -> bool:
        """Whether the validation rows may come from the population of the pool."""
        distance, at_random = self._distances
        return distance <= float(np.sort(at_random)[-_RANK])

    @property
    def real_part(self) -> float:
        """How much of the difference between both sets of rows is taken to be real."""
        distance, at_random = self._distances
        return 0.0 if self.is_of_the_pool else 1 - float(np.median(at_random)) / distance

    @cached_property
    def _middle(self) -> list[Mode]:
        return self.surrogate.modes(max(1, self.surrogate.dataset.n_pool // 4))

    @cached_property
    def _distances(self) -> tuple[float, FloatArray]:
        r"""Return $d^\top N^{-1} d$ of the validation set, and of random sets as large.

        Gradients are those of a model of all rows. One of the pool would know its own rows, those
        far from all others above all, and any other rows would look like another population.
        """
        modes = self.surrogate.modes_of_all_rows
        m = self.surrogate.dataset.n_validation
        rows = np.arange(self.surrogate.dataset.n_pool + m)
        n, rng = len(rows) - m, np.random.default_rng(0)
        picks = np.zeros((1 + _SPLITS, n + m), dtype=bool)
        picks[0, n:] = True
        for pick in picks[1:]:
            pick[rng.choice(n + m, size=m, replace=False)] = True
        weights = np.where(picks, 1 / m, -1 / n)
        found = np.zeros(1 + _SPLITS)
        for mode in modes:
            g = mode.gradients(rows)
            values, vectors = np.linalg.eigh(g.T @ g)
            is_seen = values > _TINY * values.max(initial=0.0)
            found += ((weights @ (g @ vectors[:, is_seen])) ** 2 / values[is_seen]).sum(axis=1)
        return float(found[0]), found[1:]

    def _of(self, mode: Mode) -> _Gradients:
        """Return means and covariance of the gradients of a mode, computed once."""
        if id(mode) not in self._known:
            g = mode.gradients(mode.rows)
            away = g - g.mean(axis=0)
            self._known[id(mode)] = _Gradients(
                mode.gradient(self.surrogate.validation_rows),
                np.stack([mode.gradient(rows) for rows in self.surrogate.members]),
                away.T @ away / len(g),
            )
        return self._known[id(mode)]

    @cached_property
    def _known(self) -> dict[int, _Gradients]:
        return {}

    def control(self, task: Task) -> FloatArray:
        r"""Predict the first-order part of the contributions of a task that is noise.

        That is its deviation from the mean over draws of $D$, which never holds the point, and the
        part of $\bar g_V - \bar g$ that is not real, less its expectation.

        Parameters
        ----------
        task
            A task that the validation set scores.

        Returns
        -------
        FloatArray
            Shape ``(n_points_of_the_task,)``, up to a factor that estimators fit.
        """
        k, points, strata = task.cardinality, task.points, self.surrogate.strata
        n, noise, penalty = len(strata), 1 - self.real_part, self.surrogate.penalty
        rows_of = np.bincount(strata).astype(np.float64)
        shares = np.bincount(strata[task.subset], minlength=len(rows_of)) / k
        is_own = points < n
        code = np.where(is_own, strata[np.minimum(points, n - 1)], 0)
        left_out = is_own * shares[code] / np.maximum(rows_of[code] - 1, 1)
        predicted = np.zeros(len(points))
        for mode in self.surrogate.modes(k):
            validation, means, covariance = self._of(mode)
            inverse, whole = (1 / (size * mode.eigenvalues + penalty) for size in (k, n))
            shrink = k * mode.eigenvalues * inverse
            away = noise * validation - shrink * mode.gradient(task.subset)
            away = away + (shrink - noise) * (shares @ means)
            without = left_out[:, None] * (shrink - noise) * (means[code] - mode.gradients(points))
            first = (mode.moved(points, inverse) * (away + without)).sum(axis=1)
            spread = n * whole[:, None] * covariance * (whole * mode.eigenvalues * inverse)
            w = mode.damping(points, inverse) @ mode.weight[points]
            predicted += first - noise * (w * mode.squares(points, spread)).sum(axis=(1, 2))
        return predicted

    def row_noise(self, points: IntArray, sizes: Sequence[int]) -> FloatArray | None:
        """Return the covariance over sizes that the choice of rows gives to contributions.

        For one population that is the jackknife of what theory predicts
        (`Surrogate.row_noise`); for two, what is not known of the difference between them.

        Parameters
        ----------
        points
            Positions of the points.
        sizes
            Training-set sizes.

        Returns
        -------
        FloatArray | None
            Shape ``(n_points, n_sizes, n_sizes)``; None where it would take too long.
        """
        n, m = self.surrogate.dataset.n_pool, self.surrogate.dataset.n_validation
        if self.is_of_the_pool:
            blocks = np.random.default_rng(0).permutation(n) % min(n, _N_BLOCKS)
            return self.surrogate.row_noise(points, sizes, blocks)
        found = np.zeros((len(points), len(sizes), len(sizes)))
        for mode in self._middle:
            noise = self.real_part * self._of(mode).covariance * (1 / m + 1 / n)
            penalty = self.surrogate.penalty
            steps = [mode.moved(points, 1 / (k * mode.eigenvalues + penalty)) for k in sizes]
            for i, one in enumerate(steps):
                for j, other in enumerate(steps):
                    found[:, i, j] += (one @ noise * other).sum(axis=1)
        return found


def sample_of(dataset: Dataset, model: Model) -> ScoringSample:
    """Return the validation rows of a dataset as a sample, compared when first used.

    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> dataset, _ = load_demo()
    >>> sample_of(dataset, choose_engine(dataset)[0].model).real_part
    0.0
    """
    return _sample(surrogate_of(dataset, model))


@lru_cache(maxsize=4)
def _sample(surrogate: Surrogate) -> ScoringSample:
    return ScoringSample(surrogate)
