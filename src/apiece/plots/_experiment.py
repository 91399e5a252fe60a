"""Plot of the results of an experiment, for each method and setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from apiece._base.check import one_of
from apiece.plots._style import axes, size_axis, thin

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_SETTINGS: Final = {
    "at": "cardinality k",
    "spent": "budget spent",
    "share": "share of the points left out",
    "flipped": "share of labels flipped",
}


class ExperimentLike(Protocol):
    """What the plot needs of an experiment; `apiece.experiments.Experiment` has it."""

    samples: pd.DataFrame
    by: str
    measures: dict[str, str]

    def table(self, against: tuple[str, ...]) -> pd.DataFrame:
        """Return means and paired differences, by setting and method."""
        ...


def differences(experiment: ExperimentLike, measure: str, over: str | None) -> pd.DataFrame:
    """Return ``mean`` and ``error`` (one standard error) of every setting and method.

    With ``over`` both are those of the paired difference from that method.

    Examples
    --------
    >>> import pandas as pd
    >>> from apiece.experiments import Experiment
    >>> rows = [(0, 100, "law", 0.3), (0, 100, "random", 0.1), (1, 100, "law", 0.5)]
    >>> rows += [(1, 100, "random", 0.1)]
    >>> samples = pd.DataFrame(rows, columns=["repeat", "at", "method", "gain"])
    >>> result = Experiment("addition", samples, "at", {"gain": "fall of the loss"})
    >>> differences(result, "gain", "random")["mean"].round(2).tolist()
    [0.3]
    """
    import pandas as pd

    table = experiment.table(() if over is None else (over,))
    if over is None:
        n = experiment.samples.groupby([experiment.by, "method"])[measure].count()
        spread = table[f"{measure}_std"].to_numpy(np.float64)
        error = spread / np.sqrt(n.reindex(table.index).to_numpy(np.float64))
        return pd.DataFrame({"mean": table[measure], "error": error})
    name = f"{measure}_over_{over}"
    paired = pd.DataFrame({"mean": table[name], "error": table[f"{name}_se"]})
    return paired.drop(index=over, level="method")


def plot_experiment(
    experiment: ExperimentLike,
    measure: str | None = None,
    *,
    over: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot what each method achieved in an experiment, with standard errors.

    Parameters
    ----------
    experiment
        What `apiece.experiments.addition`, ``acquire``, ``removal`` or ``mislabel`` returns.
    measure
        Which of its measures; the first by default.
    over
        Show differences from this method, such as ``"random"``, repeat by repeat: what is common to
        the draws of a repeat cancels, and the errors are smaller.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import pandas as pd
    >>> from apiece.experiments import Experiment
    >>> rows = [(0, 100, "law", 0.3), (0, 100, "random", 0.1), (1, 100, "law", 0.5)]
    >>> rows += [(1, 100, "random", 0.1)]
    >>> samples = pd.DataFrame(rows, columns=["repeat", "at", "method", "gain"])
    >>> result = Experiment("addition", samples, "at", {"gain": "fall of the loss"})
    >>> plot_experiment(result).get_ylabel()
    'fall of the loss'
    """
    measure = next(iter(experiment.measures)) if measure is None else measure
    one_of("measure", measure, tuple(experiment.measures))
    methods = list(dict.fromkeys(experiment.samples["method"]))
    if over is not None:
        one_of("method", over, tuple(methods))
    numbers = differences(experiment, measure, over)
    shown = [
        name for name in methods if name != over and numbers["mean"].xs(name, level=1).notna().any()
    ]
    with axes(ax) as ax:
        settings = np.array(numbers.index.get_level_values(0).unique(), dtype=np.float64)
        x = _side_by_side(settings, len(shown), is_log=experiment.by == "at")
        ax.axhline(0, color="0.5", linewidth=0.8)
        for i, (name, marker) in enumerate(zip(shown, "osD^vPX*" * len(shown), strict=False)):
            part = numbers.xs(name, level="method")
            ax.errorbar(
                x[:, i], part["mean"], part["error"], fmt=marker, linewidth=thin(),
                linestyle="-" if len(settings) > 1 else "none", label=name,
            )  # fmt: skip
        if experiment.by == "at":
            size_axis(ax)
            ax.set_xticks(settings, [f"{k:,.0f}" for k in settings])
            ax.minorticks_off()
        ax.set_xlabel(_SETTINGS.get(experiment.by, experiment.by))
        label = experiment.measures[measure]
        ax.set_ylabel(label if over is None else f"{label},\nover {over}")
        ax.legend(title="mean, standard error")
    return ax


def _side_by_side(settings: Any, n: int, *, is_log: bool) -> Any:
    """Return where to draw each method next to the others, shape ``(n_settings, n)``."""
    at = np.log(settings) if is_log else settings
    gap = np.diff(np.sort(at)).min() if len(at) > 1 else 1.0
    places = at[:, None] + 0.02 * gap * (np.arange(n) - (n - 1) / 2)
    return np.exp(places) if is_log else places
