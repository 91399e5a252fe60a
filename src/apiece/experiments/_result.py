"""Result of an experiment: every repeat of every method, and a table of means and differences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from apiece._base.arrow import ArrowTable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Experiment(ArrowTable):
    """The outcome of an experiment.

    Parameters
    ----------
    name
        ``addition``, ``removal``, ``mislabel`` or ``acquire``.
    samples
        One row for each repeat, setting and method: ``repeat``, the setting (``by``), ``method``
        and the measures. Methods of one repeat and setting share their draws.
    by
        The column of settings, such as the size ``at`` which points were added.
    measures
        The measured columns, each with its unit in words. More is better in all of them.
    attrs
        Settings of the experiment.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [(0, 100, "law", 0.3), (0, 100, "random", 0.1), (1, 100, "law", 0.5)]
    >>> rows += [(1, 100, "random", 0.1)]
    >>> samples = pd.DataFrame(rows, columns=["repeat", "at", "method", "gain"])
    >>> result = Experiment("addition", samples, "at", {"gain": "fall of the loss"})
    >>> result.table().loc[(100, "law"), ["gain", "gain_over_random"]].round(2).tolist()
    [0.4, 0.3]
    """

    name: str
    samples: pd.DataFrame
    by: str
    measures: dict[str, str]
    attrs: dict[str, Any] = field(default_factory=dict)

    def table(self, against: tuple[str, ...] = ("random", "shapley")) -> pd.DataFrame:
        """Return mean, spread and paired differences of every method in every setting.

        Parameters
        ----------
        against
            Baselines that every other method is compared with, repeat by repeat; missing ones are
            skipped.

        Returns
        -------
        pandas.DataFrame
            Indexed by setting and method. For each measure ``m``: ``m`` (mean), ``m_std`` (standard
            deviation over repeats), and for each baseline ``b`` the mean difference ``m_over_b``
            with its standard error ``m_over_b_se``.
        """
        import pandas as pd

        wide = {
            measure: self.samples.pivot(index=[self.by, "repeat"], columns="method", values=measure)
            for measure in self.measures
        }
        methods = list(dict.fromkeys(self.samples["method"]))
        rows = []
        for setting in dict.fromkeys(self.samples[self.by]):
            for method in methods:
                row: dict[str, Any] = {self.by: setting, "method": method}
                for measure, frame in wide.items():
                    one = frame.loc[setting]
                    row |= {measure: one[method].mean(), f"{measure}_std": one[method].std()}
                    for other in against:
                        if other in one and other != method and one[other].notna().any():
                            gap = (one[method] - one[other]).to_numpy()
                            row[f"{measure}_over_{other}"] = gap.mean()
                            row[f"{measure}_over_{other}_se"] = _error(gap)
                rows.append(row)
        return pd.DataFrame(rows).set_index([self.by, "method"])


def _error(gap: Any) -> float:
    return float(np.std(gap, ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else float("nan")
