"""What laws hold: parameters, noise, fit and status of every point, and how to look them up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from apiece._base.check import unknown_name
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray, Place, PointIds
from apiece.errors import DataError, FitError
from apiece.laws._build import NUMBERS
from apiece.laws._family import Family
from apiece.laws.provenance import plain
from apiece.laws.sizes import check_range, middle
from apiece.records import SCORING_ROWS, Provenance, scope_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class LawColumns:
    """The columns of `Laws`, which describes them."""

    family: Family
    params: FloatArray
    sigma: FloatArray
    beta: FloatArray
    r2: FloatArray
    r2_variance: FloatArray
    n_samples: IntArray
    status: AnyArray
    ids: PointIds
    k_range: tuple[int, int]
    cov: FloatArray | None = None
    df: FloatArray | None = None
    labels: AnyArray | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, p = len(self.ids), len(self.family.parameters)
        expected: dict[str, tuple[int, ...]] = {"params": (n, p), "cov": (n, p, p)}
        for name in (*NUMBERS, "params", "cov", "df", "n_samples", "status", "labels"):
            column, shape = getattr(self, name), expected.get(name, (n,))
            if column is not None and column.shape != shape:
                raise DataError(
                    f"{name} has shape {column.shape}: expected {shape}, for {n} points and the "
                    f"parameters {', '.join(self.family.parameters)}. Pass columns that agree."
                )
        if self.cov is not None:  # symmetric to the last bit, as a file keeps it
            above = np.triu(self.cov, 1)
            diagonal = np.tril(np.triu(self.cov))
            object.__setattr__(self, "cov", above + diagonal + np.swapaxes(above, 1, 2))
        object.__setattr__(self, "k_range", check_range(self.k_range, "k_range"))
        object.__setattr__(self, "attrs", plain(self.attrs, "attrs"))
        object.__setattr__(self, "diagnostics", plain(self.diagnostics, "diagnostics"))

    @property
    def provenance(self) -> Provenance:
        """Where the laws came from: ``attrs`` with names and types."""
        return Provenance.of(self.attrs)

    @property
    def n_points(self) -> int:
        """Number of points, with or without a law."""
        return len(self.ids)

    @property
    def c(self) -> FloatArray:
        """Signed scale of power laws, shape ``(n_points,)``."""
        return self.parameter("c")

    @property
    def alpha(self) -> FloatArray:
        """Decay of power laws, shape ``(n_points,)``."""
        return self.parameter("alpha")

    def parameter(self, name: str) -> FloatArray:
        """One parameter of the family by name, shape ``(n_points,)``."""
        if name not in self.family.parameters:
            raise unknown_name(
                f"parameter of {self.family.name} laws,", name, self.family.parameters
            )
        return self.params[:, self.family.parameters.index(name)]

    @property
    def k_ref(self) -> float:
        """The size at which local coordinates are anchored: the geometric mean of ``k_range``."""
        return middle(self.k_range)

    @property
    def k_pool(self) -> int:
        """The size of the pool, at which points are judged by default.

        The largest sampled size for laws that come from no run.
        """
        return self.provenance.n_pool or self.k_range[1]

    @property
    def scope(self) -> str:
        """What means, intervals and values refer to.

        ``"population"``: the population of the rows, because scoring rows rotated.
        ``"scoring rows"``: only the fixed validation set.
        """
        return scope_of(self.attrs) or SCORING_ROWS

    @property
    def has_law(self) -> BoolArray:
        """Which points have parameters, shape ``(n_points,)``."""
        return np.asarray(np.isfinite(self.params).all(axis=1))

    @property
    def provides(self) -> tuple[str, ...]:
        """Names of the columns that are known for at least one point."""
        columns = {name: getattr(self, name) for name in NUMBERS}
        columns["cov"] = np.empty(0) if self.cov is None else self.cov
        known = [name for name, column in columns.items() if np.isfinite(column).any()]
        return (*self.family.parameters, *known)

    def place(self, point: object) -> Place:
        """Return the place of the point with that id; an unknown id is an error."""
        names = self.ids.astype(str)
        rows = np.flatnonzero(names == str(point))
        if not len(rows):
            raise unknown_name("point", point, names.tolist())
        return Place(int(rows[0]))

    @property
    def has_backtest(self) -> bool:
        """Whether the laws were fitted with a backtest."""
        return "backtest" in self.diagnostics

    def backtest(self) -> pd.DataFrame:
        """Return how well laws fitted on the smaller sizes predicted the larger ones.

        Returns
        -------
        pandas.DataFrame
            One row for each candidate and group of held-out sizes: ``method``, ``family``, ``k``,
            ``r2`` (share of the variation of true contributions that was predicted),
            ``correlation`` (with the noisy means held out), ``coverage`` of 90 % intervals,
            ``n_points``.

        Raises
        ------
        FitError
            If the laws were fitted without one.

        Examples
        --------
        >>> import apiece
        >>> table = apiece.synthetic.sample(apiece.synthetic.random_laws(20), samples=30)
        >>> sorted(apiece.fit(table, "likelihood", backtest=True).backtest().columns)[:3]
        ['correlation', 'coverage', 'family']
        """
        import pandas as pd

        if not self.has_backtest:
            raise FitError(
                "these laws were not backtested: expected laws fitted with backtest=True or "
                'method="auto", since a backtest needs the contributions. Fit again with one of '
                "these (on the command line: apiece fit RUN --backtest)."
            )
        return pd.DataFrame(self.diagnostics["backtest"]["scores"])
