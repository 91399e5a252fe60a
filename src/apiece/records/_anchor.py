"""The loss of models trained on nearly all rows, which anchors the law of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Anchor:
    """Losses at one large size.

    Parameters
    ----------
    k
        How many rows trained each model.
    losses
        The loss of each model. With rotating scoring rows these are the folds of a
        cross-validation, in which every row scores once; with a validation set it is one loss.

    Examples
    --------
    >>> Anchor(900, (0.2, 0.4)).loss
    0.30000000000000004
    """

    k: int
    losses: tuple[float, ...]

    @property
    def loss(self) -> float:
        """The mean loss."""
        return float(np.mean(self.losses))

    @property
    def stderr(self) -> float:
        """Standard error of the mean over folds; 0 for one loss on fixed scoring rows."""
        n = len(self.losses)
        return float(np.std(self.losses, ddof=1) / np.sqrt(n)) if n > 1 else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the anchor for a file."""
        return {"k": self.k, "losses": list(self.losses)}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Anchor:
        """Return the anchor that `to_json` described."""
        return cls(int(plain["k"]), tuple(float(loss) for loss in plain["losses"]))
