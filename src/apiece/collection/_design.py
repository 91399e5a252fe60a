r"""Designs: which training-set sizes are sampled, how often, and how widely one draw is shared.

- ``uniform``: each task draws its size uniformly from $k_{\min}, \ldots, k_{\max}$ (both included);
  the paper's design for fitting.
- ``grid``: a fixed list of sizes, by default ten that are evenly spaced in $\log k$, visited in
  turn; the paper's design for validating the law.
- ``log-uniform``: each task draws $\log k$ uniformly, so every octave gets the same attention.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from apiece._base.check import one_of
from apiece._base.typing import IntArray
from apiece.errors import CardinalityError, PlanError

DesignName = Literal["uniform", "grid", "log-uniform"]
DESIGNS: Final[tuple[str, ...]] = get_args(DesignName)


def log_spaced(k_min: int, k_max: int, n_sizes: int) -> tuple[int, ...]:
    """Return up to ``n_sizes`` distinct sizes, evenly spaced in log k, both ends included.

    >>> log_spaced(100, 1000, 4)
    (100, 215, 464, 1000)
    """
    sizes = np.unique(np.rint(np.geomspace(k_min, k_max, n_sizes)).astype(np.int64))
    return tuple(int(k) for k in sizes)


@dataclass(frozen=True)
class Design:
    """Sizes to draw, contributions per point, and points that share a training set.

    Parameters
    ----------
    name
        One of ``uniform``, ``grid``, ``log-uniform``.
    sizes
        ``(k_min, k_max)``, or for ``grid`` the sizes themselves, rising.
    samples
        Contributions that every valued point gets at least, over all sizes together.
    share
        How many points share one draw of D; None for all of them, 1 for a separate D for every
        contribution, as in the paper.

    Examples
    --------
    >>> Design.of((100, 1000), samples=50)
    Design(name='uniform', sizes=(100, 1000), samples=50, share=None)
    """

    name: DesignName
    sizes: tuple[int, ...]
    samples: int
    share: int | None = None

    @classmethod
    def of(
        cls,
        sizes: Sequence[int] | int,
        *,
        name: DesignName = "uniform",
        samples: int = 100,
        n_sizes: int = 10,
        share: int | None = None,
    ) -> Design:
        """Build a design from what a user says; more than two sizes mean a grid of just these.

        >>> Design.of((100, 1000), name="grid", n_sizes=4).sizes
        (100, 215, 464, 1000)
        >>> Design.of([10, 20, 40]).name
        'grid'
        """
        one_of("design", name, DESIGNS)
        listed = list(sizes) if isinstance(sizes, Iterable) else [sizes]
        given = [_whole_number("a size", size) for size in listed]
        if len(given) == 1 and name == "grid":
            given = given * 2
        if len(given) < 2:
            raise PlanError(
                f"sizes={tuple(given)} is not a range: expected (k_min, k_max), or a list of sizes "
                "for a grid. Pass for example sizes=(100, 1000), or --sizes 100:1000."
            )
        if len(given) > 2:
            if name == "log-uniform":
                raise PlanError(
                    f"{len(given)} sizes are given for the log-uniform design: expected "
                    "(k_min, k_max). Pass two sizes, or design='grid'."
                )
            name, given = "grid", sorted(set(given))
        k_min, k_max = given[0], given[-1]
        if not 1 <= k_min <= k_max:
            raise CardinalityError(
                f"sizes={tuple(given)} is not a rising range: expected 1 <= k_min <= k_max. "
                "Begin with at least 1, the smaller size first, such as sizes=(100, 1000) (--sizes "
                "100:1000)."
            )
        if _whole_number("samples", samples) < 1:
            raise PlanError(
                f"samples={samples} asks for nothing: expected at least 1 contribution for every "
                "point. Pass for example samples=100 (--samples 100)."
            )
        if share is not None and _whole_number("share", share) < 1:
            raise PlanError(
                f"share={share} is not a number of points: expected at least 1, or None to share "
                "each draw among all points. Leave share (--share) out unless you need it."
            )
        grid = log_spaced(k_min, k_max, n_sizes) if len(given) == 2 else tuple(given)
        return cls(name, grid if name == "grid" else (k_min, k_max), int(samples), share)

    @property
    def k_min(self) -> int:
        """The smallest size."""
        return self.sizes[0]

    @property
    def k_max(self) -> int:
        """The largest size."""
        return self.sizes[-1]

    def all_sizes(self) -> IntArray:
        """Every size that a task may have, rising."""
        if self.name == "grid":
            return np.array(self.sizes, dtype=np.int64)
        return np.arange(self.k_min, self.k_max + 1, dtype=np.int64)

    def draw_size(self, rng: np.random.Generator) -> int:
        """Draw one size (not for a grid, whose sizes take turns)."""
        if self.name == "uniform":
            return int(rng.integers(self.k_min, self.k_max + 1))
        log_k = rng.uniform(np.log(self.k_min), np.log(self.k_max + 1))
        return min(int(np.exp(log_k)), self.k_max)

    def describe(self) -> dict[str, Any]:
        """Return the settings that decide which tasks there are, for a manifest."""
        return {"name": self.name, "sizes": list(self.sizes), "share": self.share}


def _whole_number(what: str, number: Any) -> int:
    try:
        whole = int(number)
    except (TypeError, ValueError):
        whole = None
    if whole is None or whole != number:
        raise PlanError(
            f"{what} is {number!r}: expected a whole number. Pass for example 100."
        ) from None
    return int(whole)
