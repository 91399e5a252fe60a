"""The unit of values in words, and the rise of R2 next to a fall of the squared error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiece._base.text import change_in_words

if TYPE_CHECKING:
    import pandas as pd

    from apiece.laws import Laws


def unit_of(laws: Laws) -> str:
    """Return what the value of a point is, as a sentence.

    Examples
    --------
    >>> from apiece import synthetic
    >>> unit_of(synthetic.random_laws(3, random_state=0))
    'by how much the loss falls when the row joins a training set'
    """
    from apiece.losses import stored_loss

    metric = laws.provenance.metric or "loss"
    loss = {"zero_one": "share of wrong labels"}.get(metric, metric.replace("_", " "))
    what = "row joins" if laws.provenance.groups is None else "group's rows join"
    text = f"by how much the {loss} falls when the {what} a training set"
    known = stored_loss(metric)
    if known is not None and known.unit:
        return f"{text} ({known.unit}; positive helps)"
    if (spread := variance(laws)) is not None:
        return f"{text}; r2 is the rise of R2, the value divided by the variance {spread:.4g}"
    return f"{text}; positive helps" if laws.provenance.metric else text


def variance(laws: Laws) -> float | None:
    """Return the variance of the target, by which a squared error is a share of R2; else None."""
    import numpy as np

    from apiece.losses import is_squared

    if laws.labels is None or not is_squared(laws.provenance.metric):
        return None
    found = float(np.var(np.asarray(laws.labels, dtype=np.float64)))
    return found if found > 0 else None


def with_r2(table: pd.DataFrame, laws: Laws) -> pd.DataFrame:
    """Return a table of values with the rise of R2 after the column ``value``, for quantities."""
    spread = variance(laws)
    if spread is None:
        return table
    wider = table.copy()
    wider.insert(list(table.columns).index("value") + 1, "r2", table["value"] / spread)
    return wider


def everyday(found: pd.DataFrame) -> list[str]:
    """Return the changes of everyday measures in words, from `apiece.uses.gain`.

    Examples
    --------
    >>> import pandas as pd
    >>> numbers = {"change": 0.012, "low": 0.004, "high": 0.02}
    >>> everyday(pd.DataFrame([numbers], index=["accuracy"]))
    ['accuracy +1.2 points (+0.4 to +2.0)']
    """
    said = []
    for name, word in {"accuracy": "accuracy", "log_loss": "log loss", "r2": "R2"}.items():
        if name in found.index:
            scale, unit = (100, " points") if name == "accuracy" else (1, "")
            mean, low, high = scale * found.loc[[name], ["change", "low", "high"]].to_numpy()[0]
            said.append(f"{word} {change_in_words(mean, low, high, unit)}")
    return said
