r"""Laws from trainings that each serve all points: any model, without a fast engine.

A model trained on $D$ tells something of all $k$ points in it. With a law
$\phi_k(z) = \sum_j a_j(z) k^{-j/2}$ of each point around the mean, the loss of a training is linear
in all coefficients,

$$L(f_D) = A(k) - \sum_{z \in D} \phi_{k-1}(z) + \text{noise}, \qquad
  \psi_k(z) = A(k) - A(k + 1) + \phi_k(z),$$

and with a prior that is learned from the losses themselves it is a Gaussian process over training
sets (`_process`), whose posterior gives the laws of all points, with intervals.

What is cheap to know of points enters the prior as features, as far as that makes the losses more
likely: their class, how hard they are to predict for models that were not trained on them, and what
theory predicts for them under a generalised linear model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from apiece._base.typing import FloatArray, PointIds
from apiece.errors import FitError
from apiece.estimators._estimator import Estimator, Features
from apiece.estimators._process import LEARNERS, TERMS, Posterior, Process
from apiece.estimators._responses import Responses
from apiece.laws import FitStatus, Laws, Series
from apiece.laws.provenance import provenance
from apiece.records import Stored, StoredTrainings, Table, Trainings

if TYPE_CHECKING:
    from apiece.data import Dataset

_FEWEST: Final = 20  # trainings, at least
_MOST_CLASSES: Final = 30  # classes with a feature each, at most
_SIZES: Final = 25  # sizes at which a difference of means is turned into a law
_FAR: Final = 4.0  # standard deviations beyond which features are cut


@dataclass(frozen=True)
class Reuse(Estimator):
    """Laws of all points from the losses of trainings, see `collect` with ``engine="reuse"``.

    Parameters
    ----------
    features
        Whether the prior of each point is learned from its class, from how hard it is to predict,
        and from theory. Without, all points have one prior.

    Examples
    --------
    >>> import apiece
    >>> X = np.random.default_rng(0).normal(size=(90, 2))
    >>> data = apiece.Dataset.from_arrays(X, (X[:, 0] > 0).astype(int), random_state=0)
    >>> run = apiece.collect(data, model="tree", engine="reuse", trainings=60, metric="brier",
    ...                      sizes=(10, 30), random_state=0, progress=False)
    >>> Reuse().fit(run).n_points == len(run.ids)
    True
    """

    features: bool = True

    name: ClassVar[str] = "reuse"
    needs_trainings: ClassVar[bool] = True

    def fit_table(self, table: Table, features: Features | None = None) -> Laws:
        """Refuse a table of contributions, from which this estimator cannot learn."""
        raise FitError(
            "reuse learns from trainings, and this is a table of contributions: expected a run "
            "that was collected with engine='reuse'. Fit contributions by method='bayes'."
        )

    def fit(
        self,
        source: Stored | Table,
        X: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        more: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        kind: Literal["classification", "regression"] | None = None,
        *,
        dataset: Dataset | None = None,
        memory: int | str | None = None,
    ) -> Laws:
        """Fit one law for each valued point of a run of trainings.

        Parameters
        ----------
        source
            A run that was collected with engine ``reuse``.
        X, y, more, kind
            Not used: what helps is known when trainings are collected.
        dataset, memory
            Not needed.
        """
        if not isinstance(source, StoredTrainings) or not source.has_trainings:
            raise FitError(
                "reuse learns from trainings, and these are contributions: expected a run that "
                "was collected with engine='reuse'. Fit it by method='bayes'."
            )
        fitted_to = source.snapshot()
        laws = self.fit_trainings(source.trainings())
        known = {"fitted_to": fitted_to, "recipe": self.recipe(features=False)}
        return replace(laws, attrs={**laws.attrs, **known})

    def fit_trainings(self, trainings: Trainings, *, n_learners: int = LEARNERS) -> Laws:
        """Fit one law for each valued point.

        Parameters
        ----------
        trainings
            What was trained on which points, with which losses.
        n_learners
            How many trainings at most the prior and the noise are learned from.

        Raises
        ------
        FitError
            If there are too few trainings.
        """
        if len(trainings) < _FEWEST:
            raise FitError(
                f"there are {len(trainings)} trainings: expected at least {_FEWEST}, and some "
                "hundreds for a useful answer. Collect more (trainings=, --trainings)."
            )
        responses = Responses.of(trainings)
        known = np.empty((trainings.n_points, 0))
        if self.features:
            known = _features(trainings, responses)
        process = Process(
            responses.loss,
            trainings.k.astype(np.float64),
            _members(trainings),
            known,
            np.arange(known.shape[1]),
            n_learners,
        )
        found = process.posterior()
        count = np.bincount(trainings.trained.position, minlength=trainings.n_points)
        valued = np.flatnonzero(trainings.is_valued)
        params, cov = _laws(process, found)
        n = len(valued)
        nans = np.full(n, np.nan)
        settings = {"family": Series(TERMS).word, "features": self.features}
        noise = float(np.sqrt(process.settings.noise)) * process._scale
        low, high = int(trainings.k.min()) - 1, int(trainings.k.max()) - 1
        return Laws(
            family=Series(TERMS),
            params=params[valued],
            cov=cov[valued],
            sigma=np.full(n, noise * process.k_ref ** (process.settings.decay / 2)),
            beta=np.full(n, process.settings.decay),
            r2=nans,
            r2_variance=nans.copy(),
            n_samples=count[valued],
            status=np.where(count[valued] > 0, FitStatus.OK, FitStatus.TOO_FEW).astype(object),
            ids=PointIds(trainings.ids[valued]),
            labels=trainings.labels[valued],
            k_range=(max(low, 1), max(high, 1)),
            attrs={**trainings.attrs, **provenance(self.name, settings)},
            diagnostics={"population": _described(process)},
        )


def _members(trainings: Trainings) -> Any:
    from scipy.sparse import csr_array

    ends = np.concatenate([[0], np.cumsum(trainings.trained.length)])
    ones = np.ones(len(trainings.trained.position), dtype=np.float32)
    shape = (len(trainings), trainings.n_points)
    return csr_array((ones, trainings.trained.position, ends), shape=shape)


def _features(trainings: Trainings, responses: Responses) -> FloatArray:
    """Return what is cheap to know of each point, each with mean 0 and variance 1."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    columns: list[FloatArray] = []
    if not np.issubdtype(trainings.labels.dtype, np.floating):
        names, codes = np.unique(trainings.labels.astype(str), return_inverse=True)
        if 1 < len(names) <= _MOST_CLASSES:
            columns += [(codes == code).astype(float) for code in range(len(names) > 2, len(names))]
    hard = responses.hardness
    is_known = np.isfinite(hard)
    if is_known.any() and np.ptp(hard[is_known]) > 0:
        hard = np.where(is_known, hard, hard[is_known].mean())
        normal = ndtri((rankdata(hard) - 0.5) / len(hard))
        columns += [hard, normal, normal**2]
    columns += list(trainings.features.T)
    kept = [_standard(column) for column in columns if np.ptp(column) > 0]
    return np.stack(kept, axis=1) if kept else np.empty((trainings.n_points, 0))


def _standard(column: FloatArray) -> FloatArray:
    """Return a feature with mean 0 and variance 1, far values cut."""
    low, high = np.quantile(column, [0.01, 0.99])
    if high > low:
        middle, half = (low + high) / 2, (high - low) / 2
        column = np.clip(column, middle - _FAR / 2 * half, middle + _FAR / 2 * half)
    return np.asarray((column - column.mean()) / column.std())


def _laws(process: Process, found: Posterior) -> tuple[FloatArray, FloatArray]:
    """Return parameters and covariances of series laws: each point around the mean of all."""
    family, k_ref = Series(TERMS), process.k_ref
    low, high = process.k.min(), process.k.max()
    k = np.geomspace(max(low - 1, 1), max(high - 1, 1), _SIZES)
    fall = process.curve_terms(k) - process.curve_terms(k + 1)
    basis = family.basis(k)
    weight = (k**1.5)[:, None]
    size = np.abs(basis * weight).max(axis=0)
    onto = np.linalg.lstsq(basis * weight / size, fall * weight, rcond=1e-10)[0] / size[:, None]
    unit = k_ref ** (np.asarray(TERMS) / 2)  # from terms that are one at k_ref to powers of k
    centred = found.mean - found.mean.mean(axis=0)
    params = unit * centred + onto @ found.curve
    cov = found.cov * np.outer(unit, unit) + onto @ found.curve_cov @ onto.T
    return params, cov


def _described(process: Process) -> dict[str, Any]:
    """Describe what was learned for people and files."""
    known = process.settings
    return {
        "covariance": process._scale**2 * known.root @ known.root.T,
        "trust": known.trust,
        "noise": process._scale * float(np.sqrt(known.noise)),
        "decay": known.decay,
        "k_ref": process.k_ref,
    }
