r"""Rotating scoring rows: every row trains, scores and is valued, in turns.

The rows of the table are split into 16 blocks, each with the classes in the table's proportions. A
task draws some of the blocks. The rows of these *active* blocks are split between the training set
$D$ and the scoring rows; the rows of the other blocks are valued. So $D$, the scoring rows and the
valued point are disjoint, and the mean over tasks is an unbiased U-statistic of the population's
$\psi_k$.

What matters more: noise of the rows cancels. To first order a contribution is
$g_V(f_D)^\top H^{-1} g_z / k$ with the mean gradient $g_V$ of the scoring rows. With one fixed set
of scoring rows that gradient has an error that is the same in every task. Here $D$ and the scoring
rows come from the same rows, so that over tasks the errors of the two are equal and opposite.

Which blocks were active is kept with every contribution: how strongly contributions depend on
single blocks measures what is left of the noise of the rows (`apiece.estimators`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import BoolArray, IntArray
from apiece.errors import CardinalityError

N_BLOCKS: Final = 16
_LEAST_SCORING: Final = 0.25  # share of the active rows that score
_FEWEST: Final = N_BLOCKS // 2  # active blocks: fewer would waste rows
_MOST: Final = N_BLOCKS - 1  # one block is always left to be valued
_STREAM: Final = (1, 1)  # tasks use keys of length one
_PATIENCE: Final = 100  # draws of blocks before one block more is drawn
LEAST_ROWS: Final = 8  # of a table
LEAST_OF_A_CLASS: Final = 3  # one row to train, one to score, one to be valued


def largest_size(n_rows: int, n_classes: int = 1) -> int:
    """Return the largest training set that a table of ``n_rows`` can draw with rotating rows.

    At least a quarter of the drawn rows score, and one row of every class.

    >>> largest_size(1600), largest_size(160, n_classes=50)
    (1125, 100)
    """
    n_drawn = n_rows * _MOST // N_BLOCKS
    return max(0, min(int((1 - _LEAST_SCORING) * n_drawn), n_drawn - n_classes))


def valued_share(k: int, n_rows: int) -> float:
    """Return the share of the rows that a task of size ``k`` leaves to be valued.

    >>> valued_share(100, 1600), valued_share(1000, 1600)
    (0.5, 0.125)
    """
    return 1 - min(_n_active(k, n_rows), _MOST) / N_BLOCKS


def _n_active(k: int, n_rows: int) -> int:
    """Return how many blocks leave a quarter of their rows to score besides ``k`` that train."""
    return max(-(-N_BLOCKS * k // max(1, int((1 - _LEAST_SCORING) * n_rows))), _FEWEST)


@dataclass(frozen=True, eq=False)
class Rotation:
    """Deals the rows of a table into blocks, and draws the active blocks of a task.

    Parameters
    ----------
    seed
        The run's seed.
    strata
        Class code of every row of the table (all zero for regression), shape ``(n_rows,)``.
    """

    seed: int
    strata: IntArray

    @cached_property
    def block_of(self) -> IntArray:
        """The block of every row, shape ``(n_rows,)``; classes are spread evenly over blocks."""
        rng = stream(self.seed, *_STREAM)
        shuffled = rng.permutation(len(self.strata))
        by_class = shuffled[np.argsort(self.strata[shuffled], kind="stable")]
        blocks = np.empty(len(self.strata), dtype=np.int64)
        blocks[by_class] = (np.arange(len(by_class)) + rng.integers(N_BLOCKS)) % N_BLOCKS
        return blocks

    def draw(
        self,
        rng: np.random.Generator,
        k: int,
        *,
        without: int | None = None,
        usable: BoolArray | None = None,
        leaves_block: bool = True,
    ) -> BoolArray:
        """Draw the active blocks for a training set of ``k`` rows.

        The draw is repeated until every class has rows to train and to score on; where that does
        not happen, one block more is drawn.

        Parameters
        ----------
        rng
            Random numbers of the task.
        k
            Size of the training set.
        without
            A block that must not be active, since a point in it is valued; None for any.
        usable
            Which rows may train and score, shape ``(n_rows,)``, such as those outside the group
            that is valued; None for all.
        leaves_block
            Whether at least one block must be left, since rows of the pool are valued.

        Returns
        -------
        BoolArray
            Which blocks are active, shape ``(16,)``.
        """
        n_classes, most = int(self.strata.max()) + 1, _MOST if leaves_block else N_BLOCKS
        block_of, strata = self.block_of, self.strata
        if usable is not None:
            block_of, strata = block_of[usable], strata[usable]
        others = np.array([block for block in range(N_BLOCKS) if block != without])
        for n_blocks in range(min(_n_active(k, len(strata)), most), most + 1):
            for _ in range(_PATIENCE):
                active = np.zeros(N_BLOCKS, dtype=bool)
                active[rng.choice(others, n_blocks, replace=False)] = True
                rows = np.bincount(strata[active[block_of]], minlength=n_classes)
                if rows.min() >= 2 and (rows - 1).sum() >= k:
                    return active
        raise CardinalityError(
            f"a training set of {k} rows leaves too few of the {len(strata):,} rows to score on: "
            "expected some of each class that train and some that score. Lower the sizes, or "
            "pass a validation set."
        )


def as_bits(active: BoolArray) -> int:
    """Return the active blocks as the bits of one number.

    >>> as_bits(np.array([True, False, True]))
    5
    """
    return int(active @ (1 << np.arange(len(active))))
