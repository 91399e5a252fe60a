r"""One decision for every point, from what it is worth at a size and how sure that is.

With $\psi$ the expected contribution at the size, its standard error $s$ and the distribution
function $\Phi$ of its errors (normal, or Student's where the law has degrees of freedom),

$$P(\text{helps}) = \Phi(\psi / s), \qquad P(\text{among the best}) = \Phi((\psi - q) / s),$$

where $q$ is the value that the best share of all points exceed. A decision is made when its
probability reaches the level; otherwise the point is uncertain, and more samples would tell.

What a point is worth does not tell whether its label is right: a wrong one may help where models
are too sure of themselves. So, whatever its value, a point is to be relabelled where models that
have not seen it give another label the probability 3/4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtr, stdtr

from apiece._base.typing import AnyArray, BoolArray, FloatArray
from apiece.errors import PlanError
from apiece.laws import FitStatus, Laws

if TYPE_CHECKING:
    import pandas as pd

ADVICE: Final = ("keep", "drop", "relabel", "more like this", "uncertain")
_SURE: Final = 0.75  # probability of another label from which on it is suggested


def advice_from_laws(
    laws: Laws,
    *,
    at: int | None = None,
    level: float = 0.9,
    best: float = 0.1,
    relabelled: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Advise what to do with every point when the dataset has a given size.

    Parameters
    ----------
    laws
        Fitted laws.
    at
        The size; the largest that was sampled by default.
    level
        The probability from which on a decision is made, above 0.5.
    best
        Share of the points that count as the best, of which more are wanted.
    relabelled
        What points would be worth with another label: those of `doubted`, from `relabel`, with
        ``p_likeliest``.

    Returns
    -------
    pandas.DataFrame
        Indexed by point id: ``advice`` (one of `ADVICE`), ``probability`` that it is right,
        ``reason`` in words, ``value`` at the size in units of the loss (positive helps), and, with
        ``relabelled``, the label ``relabel_to`` and the ``gain`` from it.

    Examples
    --------
    >>> import numpy as np
    >>> cov = np.tile(np.diag([1e-8, 1e-4]), (3, 1, 1))
    >>> laws = Laws.from_arrays(c=[9.0, -1.0, 0.01], alpha=[1.0, 1.0, 1.0], cov=cov)
    >>> advise(laws, at=1000, best=0.34)["advice"].tolist()
    ['more like this', 'drop', 'uncertain']
    """
    import pandas as pd

    _check(level, best)
    size = laws.k_range[1] if at is None else at
    value, error = laws.mean(float(size)), laws.stderr(float(size))
    is_known = np.isfinite(value) & np.isfinite(error)
    cut = float(np.quantile(value[is_known], 1 - best)) if is_known.any() else np.nan
    helps, is_best = (_probability(gap, error, laws.df) for gap in (value, value - cut))

    advice = np.full(laws.n_points, "uncertain", dtype=object)
    probability = np.fmax(helps, 1 - helps)
    for word, chance in (("keep", helps), ("more like this", is_best), ("drop", 1 - helps)):
        decided = is_known & (chance >= level)
        advice[decided], probability[decided] = word, chance[decided]
    probability[~is_known] = np.nan
    table = pd.DataFrame(
        {
            "advice": advice,
            "probability": probability,
            "reason": _reasons(laws, advice, helps, is_known, size, best),
            "value": value,
        },
        index=pd.Index(laws.ids, name="point"),
    )
    return table if relabelled is None else _with_relabelled(table, relabelled)


def doubted(plausible: pd.DataFrame) -> pd.DataFrame:
    """Return the points for which models that have not seen them are sure of another label.

    Parameters
    ----------
    plausible
        From `plausibility`.

    Returns
    -------
    pandas.DataFrame
        Those rows of it.
    """
    is_other = plausible["likeliest"] != plausible["label"]
    return plausible[is_other & (plausible["p_likeliest"] >= _SURE)]


def _check(level: float, best: float) -> None:
    if not 0.5 < level < 1:
        raise PlanError(
            f"level={level}: expected a probability between 0.5 and 1, from which on a decision is "
            "made. Pass for example level=0.9 (--level 0.9)."
        )
    if not 0 < best < 1:
        raise PlanError(
            f"best={best}: expected the share of points that count as the best, between 0 and 1. "
            "Pass for example best=0.1 (--best 0.1)."
        )


def _probability(value: FloatArray, error: FloatArray, df: FloatArray | None) -> FloatArray:
    """Return the probability that a quantity is positive; a sure one is or is not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(error > 0, value / error, np.sign(value) * np.inf)
    chance = ndtr(z)
    if df is not None:
        is_finite = np.isfinite(df)
        chance = np.where(is_finite, stdtr(np.where(is_finite, df, 1.0), z), chance)
    return np.where(value == 0, 0.5, chance)


def _reasons(
    laws: Laws, advice: AnyArray, helps: FloatArray, is_known: BoolArray, size: int, best: float
) -> list[str]:
    where = f"at {size:,} points"
    words = {
        "keep": f"helps {where}",
        "more like this": f"among the best {best:.0%} {where}",
        "drop": f"harms {where}",
    }

    def reason(row: int) -> str:
        if not is_known[row]:
            status = FitStatus(laws.status[row])
            return "no uncertainty is known" if status is FitStatus.OK else f"no law: {status}"
        if advice[row] in words:
            return words[advice[row]]
        side, chance = ("help", helps[row]) if helps[row] >= 0.5 else ("harm", 1 - helps[row])
        return f"may {side} {where}, but only with probability {chance:.2f}; collect more samples"

    return [reason(row) for row in range(laws.n_points)]


def _with_relabelled(table: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Advise another label for the points that were tried with it."""
    turned = table.index.isin(found.index)
    table["relabel_to"], table["gain"] = found["relabel_to"], found["gain"]
    found = found.loc[table.index[turned]]
    table.loc[turned, "advice"] = "relabel"
    table.loc[turned, "probability"] = found["p_likeliest"]
    worth = np.where(found["gain"] > 0, "worth more so", "worth less so")
    table.loc[turned, "reason"] = [
        f"is rather {now} than {was} to models that have not seen it, and {word}"
        for was, now, word in zip(found["label"], found["relabel_to"], worth, strict=True)
    ]
    return table
