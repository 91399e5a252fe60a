"""The verbs `value` and `compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np

from apiece._base.check import one_of
from apiece._base.rng import RandomState
from apiece.errors import PlanError
from apiece.estimators import opened
from apiece.laws import Laws
from apiece.records import Contributions, marked
from apiece.store import Run, laws_of
from apiece.uses._agreement import agreement
from apiece.uses._kinds import Kind, Semivalue, Weighting, as_semivalue
from apiece.uses._samples import value_samples
from apiece.uses._value import values_of_laws

if TYPE_CHECKING:
    import pandas as pd

Source = Literal["law", "samples"]


class Valuing(TypedDict, total=False):
    """Options of `value` that `compare` takes too."""

    kind: Kind | Semivalue
    sizes: tuple[int, int] | None
    n: int | None
    a: float
    b: float
    weights: Weighting | None
    source: Source
    memory: int | str | None


def value(
    laws: Laws | Run | Contributions,
    *,
    kind: Kind | Semivalue = "shapley",
    sizes: tuple[int, int] | None = None,
    n: int | None = None,
    a: float = 16.0,
    b: float = 1.0,
    weights: Weighting | None = None,
    source: Source = "law",
    level: float = 0.9,
    top: int | None = None,
    random_state: RandomState = 0,
    memory: int | str | None = None,
) -> pd.DataFrame:
    r"""Value every point: a weighted sum of its expected contributions over sizes.

    $$v_i = \sum_k w_k\,\psi_k$$

    Parameters
    ----------
    laws
        Fitted laws, or a run, whose laws are those of `Run.laws`.
    kind
        ``shapley`` (Distributional Shapley: the mean over ``sizes``), ``data-shapley``,
        ``beta-shapley``, ``banzhaf`` or ``loo`` (leave-one-out) in a game of ``n`` points, or
        ``weights``; or a `Semivalue`. The kinds of a game also weigh sizes below the sampled ones,
        where a law is extrapolated; pass ``sizes`` to keep to some.
    sizes
        ``(k_min, k_max)``, both included; by default the sampled range for ``shapley``, and all
        sizes from 0 to n - 1 for the kinds of a game.
    n
        Points of the game, the one that is valued included; by default the size of the pool.
    a, b
        Shape of Beta Shapley; $a > b$ favours small sizes, $a = b = 1$ is Data Shapley.
    weights
        Weights of your own: ``{k: weight}``, or a function of an array of sizes.
    source
        ``law``, or ``samples`` for the Monte Carlo mean of a run's contributions, no law between.
    level
        Coverage of the interval.
    top
        Also rank the points and give the probability that each is among the ``top`` best.
    random_state
        Seed of the draws behind the ranks.
    memory
        What a run's contributions may take at once, such as ``"2GB"``, see `fit`.

    Returns
    -------
    DataFrame
        Indexed by point id: ``value``, ``low``, ``high``, ``stderr``, in units of the loss;
        positive helps. With ``top`` also ``rank`` (1 is best), ``rank_low``, ``rank_high`` and
        ``p_top``; from samples also ``n_samples``; of groups also ``rows``, with how many of them a
        group entered, and ``per_row``, the value of one. From a run of engine ``reuse`` also
        ``unseen_loss``, the mean loss of the point for models that were not trained on it: sort by
        it to look for wrong labels.

    Examples
    --------
    >>> import apiece
    >>> laws = apiece.Laws.from_arrays(c=[0.5, -0.2], alpha=[1.0, 0.5], ids=["a", "b"])
    >>> apiece.value(laws, sizes=(100, 200))["value"].round(4).to_dict()
    {'a': 0.0035, 'b': -0.0166}
    """
    one_of("source", source, ("law", "samples"))
    attrs = laws.provenance() if isinstance(laws, Run) else getattr(laws, "attrs", {})
    semivalue = as_semivalue(kind, a=a, b=b, weights=weights)
    if n is not None and not semivalue.needs_n:
        raise PlanError(
            f"n={n} is given for kind={semivalue.name!r}, which averages over sizes and plays no "
            "game of n points: expected no n. Leave n (--n) out, pass sizes (--sizes), or choose "
            "kind='data-shapley'."
        )
    options: dict[str, Any] = {
        "kind": semivalue,
        "sizes": sizes,
        "n": attrs.get("n_pool") if n is None and semivalue.needs_n else n,
        "level": level,
        "top": top,
        "random_state": random_state,
    }
    if source == "law":
        result = _per_row(values_of_laws(laws_of(laws, memory), **options), attrs)
        if isinstance(laws, Run) and laws.has_trainings:
            trainings = laws.trainings()
            if trainings.row_loss.any():  # a loss that has no rows has none to show
                result["unseen_loss"] = trainings.unseen_loss()
        return marked(result, attrs)
    if isinstance(laws, Laws):
        raise PlanError(
            "source='samples' is asked of laws, which hold none: expected a run, or its "
            "contributions. Pass the run, or source='law'."
        )
    if isinstance(laws, Run):
        valued = laws.points[laws.points["valued"]]
        # A group is never inside D either: its training sets are drawn without it.
        options["is_candidate"] = (valued["role"] != "pool").to_numpy()
    with opened(laws, memory) as table:
        return marked(_per_row(value_samples(table, **options), attrs), attrs)


def compare(
    first: Laws | Run | Contributions | pd.DataFrame | pd.Series,
    second: Laws | Run | Contributions | pd.DataFrame | pd.Series,
    *,
    top: int | None = None,
    level: float = 0.9,
    random_state: RandomState = 0,
    **how: Unpack[Valuing],
) -> pd.DataFrame:
    r"""Compare two valuations of the same points: how well do they agree?

    Parameters
    ----------
    first, second
        Each a table with a column ``value``, a series, laws or a run; the last two are valued by
        `value` first. Points are matched by id.
    top
        How many of the best points to compare as sets; a tenth of them by default.
    level
        Coverage of the bootstrap interval over points.
    random_state
        Seed of the bootstrap.
    **how
        How laws and runs are valued: ``kind``, ``sizes``, ``n``, ``a``, ``b``, ``weights``,
        ``source`` and ``memory``, as in `value`.

    Returns
    -------
    DataFrame
        Rows ``pearson``, ``spearman``, ``kendall`` and ``top`` (share of the best points in
        common); columns ``agreement``, ``low``, ``high``, ``n``.

    Examples
    --------
    >>> import apiece
    >>> laws = apiece.Laws.from_arrays(c=np.arange(1.0, 30.0), alpha=np.linspace(0.5, 1.5, 29))
    >>> first = apiece.value(laws, sizes=(100, 200))
    >>> round(float(apiece.compare(first, first)["agreement"].min()), 6)
    1.0
    """
    one, two = (
        value(given, **how) if isinstance(given, Laws | Run | Contributions) else given
        for given in (first, second)
    )
    return agreement(one, two, top=top, level=level, random_state=random_state)


def _per_row(table: pd.DataFrame, attrs: dict[str, Any]) -> pd.DataFrame:
    """Add the value of one row, where the points are groups."""
    groups = attrs.get("groups")
    if groups is None:
        return table
    rows = np.array([groups[str(name)] for name in table.index])
    return table.assign(rows=rows, per_row=table["value"] / rows)
