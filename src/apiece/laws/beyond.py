r"""Laws beyond the sampled sizes: how far they were checked, and how much wider intervals get.

Laws fitted to the smaller sizes of a run are compared with its larger, held-out ones (`Beyond`). If
they predict sizes three times the fitted ones, laws of the whole run are trusted up to three times
its largest size. Standard errors grow with the distance, by the factor that the held-out sizes
needed, and at least by the factor that other data sets needed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from apiece._base.typing import FloatArray
from apiece.errors import ApieceWarning

_STEP: Final = 2.5  # the distance at which `widening` is stated
_is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)
_PACKAGE: Final = str(Path(__file__).resolve().parents[1])


@dataclass(frozen=True)
class Beyond:
    """How predictions did on held-out sizes beyond the fitted ones.

    Parameters
    ----------
    ratio
        Up to this many times the largest sampled size predictions are confirmed; 1 if held-out
        sizes were not predicted well.
    widening
        Factor of standard errors at 2.5 times the largest sampled size, 1 or more.

    Examples
    --------
    >>> Beyond(2.5, 2.0).factor(np.array([900.0, 2500.0]), 1000)
    array([1., 2.])
    """

    ratio: float
    widening: float

    def factor(self, k: FloatArray, k_max: int) -> FloatArray:
        r"""Return by how much standard errors grow at sizes ``k``, in their shape.

        With $t = \log(k/k_\mathrm{max}) / \log 2.5$ and the widening $w$ it is
        $\sqrt{1 + (w^2 - 1)\max(t, t^2)}$ beyond $k_\mathrm{max}$, and 1 up to it.
        """
        t = np.log(np.maximum(k / k_max, 1.0)) / np.log(_STEP)
        return np.asarray(np.sqrt(1 + (self.widening**2 - 1) * np.maximum(t, t**2)))

    def to_json(self) -> dict[str, Any]:
        """Return the record for a file."""
        return asdict(self)


@contextmanager
def quiet() -> Iterator[None]:
    """Do not warn of sizes beyond the sampled ones within the ``with`` block.

    For curves that mark what is extrapolated, and for callers that warn themselves.
    """
    token = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(token)


def warn_beyond(asked: float, k_max: int, reach: int, is_checked: bool) -> None:
    """Warn that a size beyond the sampled ones was asked for, unless within `quiet`."""
    if _is_quiet.get():
        return
    times = f"{asked / k_max:,.1f} times as many"
    known = f"sampled up to {k_max:,} training points, asked for {asked:,.0f}, {times}"
    if not is_checked:
        words = "No backtest supports that"
    elif asked > reach:
        words = f"A backtest supports sizes up to {reach:,}: beyond, values are not known"
    else:
        words = "A backtest supports that, with wider intervals"
    warnings.warn(
        f"laws are extrapolated: {known}. {words}. Collect contributions at larger sizes to be "
        "sure.",
        ApieceWarning,
        stacklevel=_stacklevel(),
    )


def _stacklevel() -> int:
    """Return how many frames above the caller the code outside this package is."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
