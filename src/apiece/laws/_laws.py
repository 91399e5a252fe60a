r"""`Laws`: for every point a curve $\psi_k$ over dataset sizes, and its uncertainty.

Uncertainty is Student's t in the family's local coordinates $\theta$, with a squared scale $C$
(a covariance, where the degrees of freedom are infinite); for any quantity $g(\theta)$ that is
linear in the curve, the delta method gives its standard error

$$\mathrm{se}[g]^2 \approx \nabla g^\top\,C\,\nabla g .$$
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, Unpack

import numpy as np
import numpy.typing as npt

from apiece._base.arrow import ArrowTable
from apiece._base.html import table_html
from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import AnyArray, FloatArray
from apiece.errors import PlanError
from apiece.laws import _file, _summary
from apiece.laws._build import NUMBERS, OptionalColumns, family_for, from_columns
from apiece.laws._columns import LawColumns
from apiece.laws._family import FamilyLike
from apiece.laws.beyond import Beyond, warn_beyond
from apiece.laws.sizes import check_sizes
from apiece.laws.status import FitStatus
from apiece.laws.student import covariance_roots, quantile, standard_error, student_factors

if TYPE_CHECKING:
    import pandas as pd

_ENTRIES = 2_000_000  # of a gradient held at once by `functional`: 16 MB


class Estimate(NamedTuple):
    """A quantity of every point with its interval; each field has shape ``(n_points,)``.

    Examples
    --------
    >>> Laws.from_arrays(c=[0.5], alpha=[1.0]).functional([100, 200], [0.5, 0.5]).value
    array([0.00375])
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class Laws(LawColumns, ArrowTable):
    r"""The laws of ``n_points`` points, of one family with ``p`` parameters.

    $$\mathbb{E}[\Delta_i(k)] = \psi_k(\text{params}_i), \qquad
      \mathrm{Var}[\Delta_i(k)] = \sigma_i^2\,k^{-\beta_i}$$

    Parameters
    ----------
    family
        The family of curves, such as ``Power()``.
    params
        Parameters, shape ``(n_points, p)``; nan for a point without a law.
    sigma, beta
        Scale and decay of the noise, shape ``(n_points,)``; nan where not estimated.
    r2, r2_variance
        Share of the variation of each point's mean and variance over sizes that its law explains
        (log space), shape ``(n_points,)``; nan where not defined.
    n_samples
        Number of contributions behind each law, shape ``(n_points,)``.
    status
        A `FitStatus` for each point, shape ``(n_points,)``.
    ids
        The points' names, shape ``(n_points,)``.
    k_range
        The smallest and the largest cardinality sampled.
    cov
        Covariances in local coordinates, shape ``(n_points, p, p)``; None, or nan for a point,
        where unknown.
    df
        Degrees of freedom of the errors, shape ``(n_points,)``: with few samples the noise itself
        is uncertain, so intervals and draws are Student's t. Infinite or None: normal.
    labels
        The points' labels, shape ``(n_points,)``, or None.
    attrs
        Version, estimator and settings, seed, dataset fingerprint, creation time.
    diagnostics
        Results for the fit as a whole, such as ``overall_r2``.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[0.5, -0.2], alpha=[1.0, 0.5], ids=["a", "b"])
    >>> laws.mean(100)
    array([ 0.005, -0.02 ])
    >>> laws["b"].alpha
    array([0.5])
    >>> laws.select([1]).table()["c"].to_dict()
    {'b': -0.2}
    >>> laws.parameter("c")[laws.place("b")].item()
    -0.2
    >>> print(laws.headline())
    2 power laws: 2 fitted, median alpha 0.75, 50 % helpful at 316 training points
    >>> print(laws.summary().splitlines()[3].strip())
    at 316  50 % helpful, 50 % harmful
    >>> laws.default_at(), laws.is_beyond(5000)
    (1000, False)

    With covariances, laws have errors:

    >>> import tempfile
    >>> sure = Laws.from_arrays(c=[0.5], alpha=[1.0], cov=[np.eye(2) * 1e-6])
    >>> sure.stderr(100).round(6), np.round(sure.interval(100), 6).ravel()
    (array([0.003162]), array([-0.000201,  0.010201]))
    >>> sure.functional([100, 200], [0.5, 0.5]).value
    array([0.00375])
    >>> sure.draws(1000, random_state=0).shape
    (1000, 1, 2)
    >>> path = tempfile.mkdtemp() + "/laws.parquet"
    >>> sure.save(path)
    >>> Laws.load(path).c
    array([0.5])
    """

    @classmethod
    def from_arrays(
        cls,
        *,
        c: npt.ArrayLike | None = None,
        alpha: npt.ArrayLike | None = None,
        family: FamilyLike = "power",
        params: npt.ArrayLike | None = None,
        k_range: tuple[int, int] = (100, 1000),
        **columns: Unpack[OptionalColumns],
    ) -> Self:
        """Build laws from arrays: ``c`` and ``alpha``, or a ``family`` and its ``params``.

        Parameters
        ----------
        c, alpha
            Parameters of power laws, each of shape ``(n_points,)``.
        family
            ``"power"``, ``"series"`` (all three terms), or a family such as
            ``Series(terms=(2, 4))``.
        params
            Parameters of the family, shape ``(n_points, p)``, instead of ``c`` and ``alpha``.
        k_range
            Sizes that the laws are about; they set ``k_ref`` and the default of ``value``.
        **columns
            Any other field of `Laws`. By default numbers are unknown (nan), ids are 0, 1, ..., and
            the status is ``OK``.

        Examples
        --------
        >>> Laws.from_arrays(c=[0.5, -0.2], alpha=[1.0, 0.5]).mean(4)
        array([ 0.125, -0.1  ])
        """
        resolved, matrix = family_for(family, params, c=c, alpha=alpha)
        return cls(family=resolved, params=matrix, k_range=k_range, **from_columns(matrix, columns))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Laws: {self.headline()}>"

    def _repr_html_(self) -> str:
        return table_html(f"Laws: {self.headline()}", self.table())

    def __getitem__(self, point: object) -> Laws:
        """Return the law of the point with that id.

        Examples
        --------
        >>> laws = Laws.from_arrays(c=[0.5, -0.2], alpha=[1.0, 0.5], ids=["a", "b"])
        >>> laws["b"].mean(4)
        array([-0.1])
        """
        return self.select([self.place(point)])

    def __iter__(self) -> Iterator[Laws]:
        """Iterate over the laws of the points, in their order."""
        return (self.select([row]) for row in range(self.n_points))

    @property
    def beyond(self) -> Beyond | None:
        """How laws did on held-out larger sizes; None for laws without such a check."""
        result = self.attrs.get("beyond")
        return None if result is None else Beyond(**result)

    @property
    def reach(self) -> int:
        """The largest size that a backtest on the run's largest sizes covers.

        Without a backtest it is the largest sampled size. `fit` measures it.

        Examples
        --------
        >>> Laws.from_arrays(c=[0.5], alpha=[1.0], k_range=(100, 1000)).reach
        1000
        """
        beyond = self.beyond
        return int(self.k_range[1] * (1.0 if beyond is None else beyond.ratio))

    def status_at(self, k: float) -> AnyArray:
        """Return the status of every point at size ``k``, shape ``(n_points,)``.

        Beyond `reach` it is ``FitStatus.BEYOND`` for every point that has a law.

        Examples
        --------
        >>> laws = Laws.from_arrays(c=[0.5], alpha=[1.0], attrs={"estimator": "bayes"})
        >>> print(laws.status_at(5000)[0])
        not known: the size is beyond what a backtest covers
        """
        status = self.status.copy()
        if self.is_beyond(k):
            status[self.has_law] = FitStatus.BEYOND
        return status

    def is_beyond(self, k: float) -> bool:
        """Whether ``k`` is beyond what a backtest covers; never for laws made from arrays."""
        return self._is_fitted and k > self.reach

    def default_at(self) -> int:
        """Return the size of the pool, `k_pool`, and warn only if it is beyond `reach`."""
        if self.k_pool <= self.reach:
            self.__dict__["_asked"] = max(self.k_pool, self.__dict__.get("_asked", 0))
        return self.k_pool

    @property
    def _is_fitted(self) -> bool:
        """Whether the laws are estimates; laws made from arrays hold wherever they are asked."""
        return "estimator" in self.attrs

    def _widening(self, sizes: FloatArray) -> FloatArray:
        """Warn of sizes beyond the sampled ones; return by how much errors are larger there."""
        k_max = self.k_range[1]
        largest = float(sizes.max(initial=0.0))
        if not self._is_fitted or largest < k_max + 0.5:  # sizes of a grid are rounded
            return np.ones(sizes.shape)
        if largest > self.__dict__.get("_asked", k_max):  # once for these laws and this distance
            self.__dict__["_asked"] = largest
            warn_beyond(largest, k_max, self.reach, self.beyond is not None)
        beyond = self.beyond
        return np.ones(sizes.shape) if beyond is None else beyond.factor(sizes, k_max)

    def mean(self, k: npt.ArrayLike) -> FloatArray:
        r"""Expected contribution of every point at cardinalities ``k``.

        $$\mathbb{E}[\Delta_i(k)] = \psi_k(\text{params}_i)$$

        which is $c_i\,k^{-\alpha_i}$ for power laws; an extrapolation outside ``self.k_range``, of
        which a warning says how far it goes. `reach` is the largest size that a backtest covers.

        Parameters
        ----------
        k
            Cardinalities, a number or shape ``(n_k,)``, each at least 1.

        Returns
        -------
        FloatArray
            Shape ``(n_points, n_k)``, or ``(n_points,)`` for a number; in units of the utility.

        Examples
        --------
        >>> laws = Laws.from_arrays(c=[0.5, -0.2], alpha=[1.0, 0.5])
        >>> laws.mean(np.array([1, 4]))
        array([[ 0.5  ,  0.125],
               [-0.2  , -0.1  ]])
        """
        sizes, is_number = check_sizes(k)
        self._widening(sizes)
        psi = self.family.mean(self.params, sizes)
        return psi[:, 0] if is_number else psi

    def stderr(self, k: npt.ArrayLike) -> FloatArray:
        """Return the standard error of ``mean(k)``, in its shape; nan where ``cov`` is unknown."""
        sizes, is_number = check_sizes(k)
        shape = (self.n_points, len(sizes))
        if self.cov is None:
            error = np.full(shape, np.nan)
        else:
            gradient = self.family.gradient(self.params, sizes, self.k_ref)
            error = standard_error(gradient, self.cov) * self._widening(sizes)
        return error[:, 0] if is_number else error

    def interval(self, k: npt.ArrayLike, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        r"""Return the interval ``(low, high)`` around ``mean(k)``, each in its shape.

        The least and the largest $\psi_k$ of all laws whose local coordinates lie within
        $t$ standard errors of the point's, $(\theta - \hat\theta)^\top C^{-1}
        (\theta - \hat\theta) \le t^2$, with $t$ the quantile of ``level`` for the point's degrees
        of freedom; nan where ``cov`` is unknown. For sums of terms that is
        $\psi_k \pm t\,\mathrm{se}(\psi_k)$. Intervals of power laws are longer away from
        zero, more so for sizes far from the sampled ones: errors of $\alpha$ multiply.
        Intervals are for the mean of the law, not for single contributions. Beyond the sampled
        sizes they are wider by the factor of `Beyond`, where ``fit`` measured one.
        """
        sizes, is_number = check_sizes(k)
        reach = quantile(level, self.df)
        if self.cov is None:
            low, high = np.full((2, self.n_points, len(sizes)), np.nan)
        else:
            low, high = self.family.interval(self.params, self.cov, reach, sizes, self.k_ref)
            wider = self._widening(sizes)
            if (wider > 1).any():
                mean = self.family.mean(self.params, sizes)
                low, high = mean + wider * (low - mean), mean + wider * (high - mean)
        return (low[:, 0], high[:, 0]) if is_number else (low, high)

    def functional(self, k: npt.ArrayLike, weights: npt.ArrayLike, level: float = 0.9) -> Estimate:
        r"""Weighted sum of the curve over sizes, with its interval.

        $$v_i = \sum_k w_k\,\psi_k(\text{params}_i), \qquad
          \nabla v_i = \sum_k w_k \nabla\psi_k$$

        Errors at different sizes come from the same errors of the parameters, so they are
        propagated by the delta method. At one size the interval is that of `interval`.

        Parameters
        ----------
        k, weights
            Cardinalities and their weights $w_k$, both of shape ``(n_k,)``.
        level
            Coverage of the interval.
        """
        sizes, _ = check_sizes(k)
        w = np.broadcast_to(np.asarray(weights, dtype=np.float64), sizes.shape)
        if len(sizes) == 1:
            ends = w * np.concatenate(self.interval(sizes, level), axis=1)
            return Estimate(w * self.mean(sizes)[:, 0], ends.min(axis=1), ends.max(axis=1))
        wider = self._widening(sizes)
        n, p = self.params.shape
        value, gradient = np.zeros(n), np.zeros((n, p))
        step = max(1, _ENTRIES // max(1, n * p))
        for start in range(0, len(sizes), step):
            part = slice(start, start + step)
            value += self.family.mean(self.params, sizes[part]) @ w[part]
            slope = self.family.gradient(self.params, sizes[part], self.k_ref)
            gradient += np.einsum("nka,k->na", slope, w[part] * wider[part])
        if self.cov is None:
            half = np.full(n, np.nan)
        else:
            half = quantile(level, self.df) * standard_error(gradient[:, None, :], self.cov)[:, 0]
        return Estimate(value, value - half, value + half)

    def draws(self, n: int, *, random_state: RandomState = None) -> FloatArray:
        """Draw parameters from their uncertainty, Student's t in local coordinates.

        A draw has all parameters of a point together, so any quantity derived from them (a value,
        a rank, a crossing) gets an interval from the draws. Draws do not widen beyond the sampled
        sizes as `interval` does.

        Returns
        -------
        FloatArray
            Parameters, shape ``(n, n_points, p)``; nan for points whose ``cov`` is unknown.
        """
        if n < 1:
            raise PlanError(f"n={n} draws: expected at least 1. Pass for example n=1000.")
        rng = stream(seed_from(random_state))
        local = self.family.to_local(self.params, self.k_ref)
        noise = rng.standard_normal((n, *local.shape))
        spread = np.einsum("nab,snb->sna", self._roots, noise)
        if self.df is not None:
            spread *= student_factors(self.df, n, rng)[:, :, None]
        return self.family.from_local(local + spread, self.k_ref)

    @cached_property
    def _roots(self) -> FloatArray:
        """Square roots of the covariances, nan where they are unknown, ``(n_points, p, p)``."""
        n, p = self.params.shape
        return covariance_roots(np.full((n, p, p), np.nan) if self.cov is None else self.cov)

    def select(self, rows: npt.ArrayLike | slice) -> Laws:
        """Return the laws of some points, by places, mask or slice, without diagnostics."""
        keep = rows if isinstance(rows, slice) else np.asarray(rows)
        names = (*NUMBERS, "params", "cov", "df", "n_samples", "status", "labels", "ids")
        columns = {name: getattr(self, name) for name in names}
        kept: dict[str, Any] = {
            name: None if column is None else column[keep] for name, column in columns.items()
        }
        part = replace(self, **kept, diagnostics={})
        if "_asked" in self.__dict__:  # what was warned of once
            part.__dict__["_asked"] = self.__dict__["_asked"]
        return part

    def table(self) -> pd.DataFrame:
        """Return one row for each point, indexed by its id: parameters, noise, fit and status."""
        return _summary.table(self)

    def summary(self) -> str:
        """Describe the laws in a few lines for people."""
        return _summary.summary(self)

    def headline(self) -> str:
        """Describe the laws in one line."""
        return _summary.headline(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the laws to one Parquet file, which appears whole or not at all."""
        _file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read laws that `save` wrote."""
        return cls(**_file.load(path))
