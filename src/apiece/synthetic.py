r"""Known laws in, contributions out: the truth that tests and tutorials share.

$$\Delta_i(k) = \psi_k(\text{params}_i) + \sigma_i\,k^{-\beta_i/2}\,\varepsilon, \qquad
  \varepsilon \sim \mathcal{N}(0, 1)$$

`random_laws` makes up a population like those of the paper (alpha around 1.2, most points helpful
and some harmful, $\log|c|$ rising with $\alpha$); `sample` draws contributions from any laws.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from apiece._base.check import one_of, some
from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import FloatArray, IntArray
from apiece.errors import FitError, PlanError
from apiece.laws import FamilyLike, Laws, resolve_family
from apiece.laws.sizes import check_range, middle
from apiece.records import Contributions

DESIGNS: Final = ("uniform", "grid", "log-uniform")
_TYPICAL: Final = 1e-4  # typical contribution at the middle size, in units of the loss


def random_laws(
    n_points: int,
    *,
    family: FamilyLike = "power",
    random_state: RandomState = 0,
    sizes: tuple[int, int] = (100, 1000),
    harmful: float = 0.3,
) -> Laws:
    r"""Make up a realistic population of laws.

    Power laws have $\alpha \sim \mathcal{N}(1.2, 0.3)$ cut off below 0.1 and
    $\log|\psi_\mathrm{ref}| \sim \mathcal{N}(\log 10^{-4}, 1)$ at the middle size, so that
    $\log|c| = \log|\psi_\mathrm{ref}| + \alpha\log k_\mathrm{ref}$ rises with $\alpha$ as in the
    paper. Sums of terms, such as series laws, have normal terms at the middle size, each smaller
    than the one before; other families have typical shapes.
    Noise has $\beta \sim \mathcal{N}(2.5, 0.3)$, and at the middle size a standard deviation of
    typically twice the contribution, with the heavy tail of a Student t of 4 degrees in its log.

    Parameters
    ----------
    n_points
        How many points.
    family
        ``"power"``, ``"series"``, or any other word for a family, or a family.
    random_state
        Seed of the population.
    sizes
        Smallest and largest cardinality that the laws are about.
    harmful
        Share of laws with a negative sign; sums of terms have either sign equally often.

    Examples
    --------
    >>> laws = random_laws(1000, random_state=0)
    >>> bool(abs(laws.alpha.mean() - 1.2) < 0.05)
    True
    """
    if n_points < 1:
        raise PlanError(f"n_points={n_points}: expected at least 1. Pass for example n_points=100.")
    seed = seed_from(random_state)
    rng = stream(seed)
    k_range = check_range(sizes)
    k_ref = middle(k_range)
    height = _TYPICAL * np.exp(rng.standard_normal(n_points))
    kind = resolve_family(family, k_range)
    params = kind.random(height, k_ref, rng, harmful)
    beta = np.clip(rng.normal(2.5, 0.3, n_points), 0.5, 5.0)
    tail = np.clip(0.5 * rng.standard_t(4, n_points), -3.0, 3.0)
    noise = 2.0 * np.sqrt(height * _TYPICAL) * np.exp(tail)
    return Laws.from_arrays(
        family=kind,
        params=params,
        sigma=noise * k_ref ** (beta / 2),
        beta=beta,
        k_range=k_range,
        attrs={"estimator": "truth", "seed": seed},
    )


def sample(
    laws: Laws,
    *,
    samples: int = 100,
    sizes: tuple[int, int] = (100, 1000),
    design: Literal["uniform", "grid", "log-uniform"] = "uniform",
    n_sizes: int = 10,
    random_state: RandomState = 0,
    shared: bool = True,
) -> Contributions:
    r"""Draw contributions of every point from its law.

    Parameters
    ----------
    laws
        The truth; every point needs a law, ``sigma`` and ``beta`` (``sigma = 0``: no noise).
    samples
        Contributions for each point, over all sizes together.
    sizes
        Smallest and largest cardinality.
    design
        ``"uniform"`` or ``"log-uniform"`` draws over the sizes, or ``"grid"``: log-spaced sizes,
        taken in turn.
    n_sizes
        Number of sizes of the grid.
    random_state
        Seed of sizes and noise.
    shared
        Whether a task has one size for all points, as in a run; otherwise every contribution is a
        task of its own. The noise of different points is independent either way.

    Returns
    -------
    Contributions
        ``samples`` rows for each point; losses are unknown (nan).

    Examples
    --------
    >>> truth = Laws.from_arrays(c=[0.5], alpha=[1.0], sigma=[0.0], beta=[2.0])
    >>> sample(truth, samples=2, sizes=(10, 20), design="grid", n_sizes=2).delta
    array([0.05 , 0.025])
    """
    one_of("design", design, DESIGNS)
    k_min, k_max = check_range(sizes)
    if samples < 1 or n_sizes < 1:
        raise PlanError(
            f"samples={samples}, n_sizes={n_sizes}: expected at least 1 of each. "
            "Pass for example samples=100."
        )
    unknown = ~(laws.has_law & np.isfinite(laws.sigma) & np.isfinite(laws.beta))
    if unknown.any():
        raise FitError(
            f"{int(unknown.sum())} points have no law or no noise to draw from, among them "
            f"{some(laws.ids[unknown].tolist())}: expected params, sigma and beta for all. "
            "Leave them out with laws.select."
        )
    seed = seed_from(random_state)
    rng = stream(seed)
    n = laws.n_points
    # One row for each task and one column for each point, or for all of them.
    k = _draw_sizes(rng, (samples, 1 if shared else n), k_min, k_max, design, n_sizes)
    k = np.broadcast_to(k, (samples, n))
    distinct, place = np.unique(k, return_inverse=True)
    at = place.reshape(k.shape), np.arange(n)
    mean = laws.mean(distinct).T[at]
    noise = (laws.sigma * distinct[:, None] ** (-laws.beta / 2))[at]
    delta = mean + noise * rng.standard_normal(k.shape)
    task = np.repeat(np.arange(samples), n) if shared else np.arange(samples * n)
    return Contributions.from_arrays(
        task=task,
        k=k.ravel(),
        point=np.tile(np.arange(n), samples),
        delta=delta.ravel(),
        ids=laws.ids,
        attrs={
            "source": "synthetic",
            "design": {"name": design, "sizes": [k_min, k_max]},
            "seed": seed,
        },
    )


def _draw_sizes(
    rng: np.random.Generator,
    shape: tuple[int, int],
    k_min: int,
    k_max: int,
    design: str,
    n_sizes: int,
) -> IntArray:
    """Draw cardinalities of the design; a grid goes through its sizes in turn along axis 0."""
    if design == "uniform":
        return rng.integers(k_min, k_max, shape, endpoint=True)
    if design == "log-uniform":
        return _rounded(np.exp(rng.uniform(np.log(k_min), np.log(k_max), shape)), k_min, k_max)
    grid = np.unique(_rounded(np.geomspace(k_min, k_max, n_sizes), k_min, k_max))
    return np.broadcast_to(grid[np.arange(shape[0]) % len(grid), None], shape)


def _rounded(sizes: FloatArray, k_min: int, k_max: int) -> IntArray:
    return np.clip(np.rint(sizes).astype(np.int64), k_min, k_max)
