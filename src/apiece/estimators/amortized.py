r"""The amortized estimator: a network that predicts a point's law from its features and label.

Instead of one fit per point, a network $g(x, y)$ is trained on the contributions of all points at
once to predict each point's law and noise,

$$\min_g \sum_{i,j} -\log \mathcal{N}\left(\Delta_{ij};\ \psi_{k_{ij}}(g(x_i, y_i)),\
  \sigma^2(g(x_i, y_i))\,k_{ij}^{-\beta(g(x_i, y_i))}\right),$$

so few contributions per point suffice, and points that were never sampled have laws too.

Beyond the paper, the network also gets the predictions of linear models of the target (see
[`_reader`][apiece.estimators._reader]; ``network="paper"`` is the paper's network), five members
are cross-fitted over points and shared tasks, and their errors on held-out points and tasks
determine the intervals.

Reference: Covert et al. (ICML 2024), section 3.2 and appendix B.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Final, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from apiece._base.check import one_of
from apiece._base.progress import Tracker, tracking
from apiece._base.rng import stream
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.errors import FitError
from apiece.estimators._amortized_network import AmortizedNetwork, Predicted
from apiece.estimators._common import attributes, check
from apiece.estimators._cross_fit import widened, widening_for
from apiece.estimators._estimator import Estimator, Features
from apiece.estimators._features import TargetCodes, as_features, as_more, as_target
from apiece.estimators._held_out import Split, scatter_and_noise, without_member_spread
from apiece.estimators._network import Kind, NetworkConfig, load_torch
from apiece.estimators._reader import Inputs
from apiece.estimators._small_models import learn
from apiece.estimators._training import TrainingSettings, fit_laws, fit_target, one_thread
from apiece.laws import FamilyLike, FitStatus, Laws, resolve_family
from apiece.laws.provenance import plain
from apiece.laws.sizes import middle
from apiece.laws.status import mark
from apiece.records import Contributions, Moments, Table

_DECAYED: Final = 1000  # points for which decays are given


class _Trained(NamedTuple):
    """A network, the inputs of its points, their folds, and their scatter around its mean."""

    network: AmortizedNetwork
    inputs: Inputs
    fold: IntArray
    scatter: FloatArray


@dataclass(frozen=True)
class Amortized(Estimator):
    r"""A network trained on all points' contributions; needs features and labels, and torch.

    Parameters
    ----------
    family
        ``"power"``, as in the paper; ``"series"``, whose intervals hold where curves are no power
        laws, too; or a family with ``tensor_curve``, such as ``Series(terms=(2, 4))``.
    network
        ``"gradient"``: the network also sees linear models' error, leverage and gradient at the
        point. ``"paper"``: features alone, with hidden layers first trained to predict the target.
    folds
        Members of the network, each trained without one fold of the points and shared tasks.
    width
        Units in each of the two hidden layers.
    epochs, patience
        Most passes over the points, and steps without an improvement on held-out contributions
        after which training ends.
    learning_rate
        Of Adam.
    weight_decay
        Decoupled decays of the weights to try, for 1,000 points; with more points they are less,
        as one over the root of their number. Each member keeps the decay with the lowest held-out
        loss.
    prior
        Weight of the paper's penalty $(\alpha - 1)^2$ on power laws.
    kind
        ``"classification"`` or ``"regression"``; by default quantities are real numbers, and
        whole numbers or words are classes.
    device
        ``"cpu"``, on which results are reproducible, ``"cuda"``, or any other that torch knows.
    random_state
        Seed of folds and first weights.
    progress
        True for a bar on standard error, False for silence, None for a bar on a terminal.

    Examples
    --------
    >>> from apiece import synthetic
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    >>> truth = Laws.from_arrays(c=(2 * y - 1) * np.exp(X[:, 0]), alpha=1.0, sigma=1.0, beta=2.0)
    >>> contributions = synthetic.sample(truth, samples=10)
    >>> network = Amortized(epochs=50).train(contributions, X, y)
    >>> network.laws_for([[1.0, 0.0], [1.0, 0.0]], [1, 0]).mean(300) > 0
    array([ True, False])
    """

    family: FamilyLike = "power"
    network: Kind = "gradient"
    folds: int = 5
    width: int = 32
    epochs: int = 1000
    patience: int = 100
    learning_rate: float = 5e-3
    weight_decay: tuple[float, ...] = (0.01, 10.0)
    prior: float = 1e-2
    kind: Literal["classification", "regression"] | None = None
    device: str = "cpu"
    random_state: int = 0
    progress: bool | None = False

    def __post_init__(self) -> None:
        resolve_family(self.family, (1, 2))
        one_of("network", self.network, ("gradient", "paper"))
        if self.kind is not None:
            one_of("kind", self.kind, ("classification", "regression"))
        counts = min(self.width, self.epochs, self.patience)
        rates = min(*self.weight_decay, self.prior, self.random_state)
        is_untried = not self.weight_decay or self.learning_rate <= 0
        if self.folds < 2 or counts < 1 or rates < 0 or is_untried:
            raise FitError(
                f"{self} cannot be used: expected folds of at least 2, width, epochs and patience "
                "of at least 1, a learning_rate above 0, and decays, prior and random_state of at "
                "least 0. Leave out what you need not change."
            )

    name: ClassVar[str] = "amortized"
    takes_features: ClassVar[bool] = True
    needs_features: ClassVar[bool] = True

    def fit_table(self, table: Table, features: Features | None = None) -> Laws:
        """Train the network, and return its laws for the points it was trained on.

        Parameters
        ----------
        table
            Contributions, all in memory.
        features
            Features and labels of every point.

        Returns
        -------
        Laws
            One law for each point, predicted by the mean of all members; ``cov`` is the scatter of
            held-out laws around their prediction, in units of the point's predicted noise, widened
            until 90 % of the intervals of members that did not see a point hold its means.
        """
        X, y, more, kind = features or Features()
        contributions = cast("Contributions", table)
        if self.kind is None and kind is not None:
            return replace(self, kind=kind).fit_table(table, features)
        trained = self._train(contributions, X, y, more)
        predicted = trained.network.predicted(trained.inputs).average()
        together = replace(trained.network, scatter=trained.scatter)
        unseen = trained.network.predicted(trained.inputs).take(trained.fold)
        held = self._laws(contributions, trained.network, unseen)
        factor = widening_for([(held, contributions)])
        return widened(self._laws(contributions, together, predicted), factor)

    def train(
        self,
        contributions: Contributions,
        X: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        more: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    ) -> AmortizedNetwork:
        """Train the network, which predicts laws of points never sampled; see `Features`."""
        return self._train(contributions, X, y, more).network

    def out_of_fold(
        self,
        contributions: Contributions,
        X: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        more: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    ) -> Laws:
        """Predict each point's law by the member that never saw the point; see `Features`.

        These laws can be used as prior means, because they do not depend on the contributions of
        the point itself. If tasks are shared, they do depend on the common noise of a task, through
        other points of the same task.
        """
        trained = self._train(contributions, X, y, more)
        predicted = trained.network.predicted(trained.inputs).take(trained.fold)
        return self._laws(contributions, trained.network, predicted)

    def _train(
        self, contributions: Contributions, X: Any, y: Any, more: tuple[Any, Any] | None
    ) -> _Trained:
        """Train everything: the linear models, the members, and the scatter around them."""
        load_torch()
        check(contributions)
        features = as_features(X, contributions.n_points)
        target = as_target(y, contributions.n_points, self.kind)
        others = as_more(more, features, target)
        family = resolve_family(self.family, contributions.k_range)
        k_ref = middle(contributions.k_range)
        n_folds = min(self.folds, max(2, contributions.n_points // 2))
        split = Split.of(contributions, n_folds, stream(self.random_state, 0))
        unit = _typical(split.moments, k_ref)
        split = replace(split, moments=_divided(split.moments, unit))

        reader, inputs = learn(features, target.codes, target.classes, round(k_ref), others)
        shape = NetworkConfig(
            family=family,
            kind=self.network,
            n_features=features.shape[1],
            n_classes=1 if target.classes is None else len(target.classes),
            is_regression=target.classes is None,
            width=self.width,
        )
        rng = stream(self.random_state, 1)
        weights = shape.start(n_folds, rng, _common_noise(split.moments, k_ref))
        with one_thread(), tracking(self.progress, title="training", unit="epochs") as tracker:
            trainings = len(self.weight_decay) * len(shape.fixed) + (self.network == "paper")
            tracker.start(self.epochs * trainings, 0)
            recipe = self._recipe(contributions.n_points, rng, tracker)
            if self.network == "paper":
                view, goal, fold = _all_points(reader, inputs, target, others, split)
                weights = fit_target(shape, weights, view, goal, fold, recipe)
            weights, lowest = fit_laws(shape, weights, inputs, split, k_ref, recipe)
        network = AmortizedNetwork(
            shape=shape,
            reader=reader,
            weights=weights,
            unit=unit,
            k_range=contributions.k_range,
            scatter=np.zeros((shape.p, shape.p)),
            attrs=plain(attributes(contributions, "amortized", self._settings())),
            diagnostics={"held_out_loss": float(lowest.mean()) + float(np.log(unit))},
        )
        predicted = network.predicted(inputs)
        scatter, share = _scatter(network, predicted.take(split.point_fold), split, unit)
        scale = family.scales(np.exp(predicted.log_s.mean(axis=0)), k_ref)
        apart = (predicted.local - predicted.local.mean(axis=0)) / scale
        network = replace(network, scatter=scatter, noise_share=share)
        return _Trained(network, inputs, split.point_fold, without_member_spread(scatter, apart))

    def _recipe(
        self, n_points: int, rng: np.random.Generator, tracker: Tracker
    ) -> TrainingSettings:
        """Return how to train with ``n_points``: the more points, the less weight decay."""
        shrink = (_DECAYED / n_points) ** 0.5
        return TrainingSettings(
            self.epochs,
            self.patience,
            self.learning_rate,
            tuple(decay * shrink for decay in self.weight_decay),
            self.prior,
            self.device,
            rng,
            tracker,
        )

    def _laws(
        self, contributions: Contributions, network: AmortizedNetwork, predicted: Predicted
    ) -> Laws:
        """Return the predictions as laws of the contributions' points."""
        laws = network.as_laws(predicted, contributions.ids)
        counts = contributions.counts()
        status = mark(len(counts), (FitStatus.PREDICTED, counts == 0))
        return replace(laws, n_samples=counts, status=status)

    def _settings(self) -> dict[str, Any]:
        settings = asdict(self) | {"family": resolve_family(self.family, (1, 2)).word}
        del settings["progress"]
        return settings


def _typical(moments: Moments, k_ref: float) -> float:
    """Return the typical root mean square of a point's contributions, brought to ``k_ref``."""
    total = moments.n.sum(axis=1)
    square = ((moments.m2 + moments.n * moments.mean**2) * (moments.k / k_ref) ** 2).sum(axis=1)
    known = (total > 0) & (square > 0)
    if not known.any():
        return 1.0
    return float(np.exp(0.5 * np.log(square[known] / total[known]).mean()))


def _divided(moments: Moments, unit: float) -> Moments:
    return Moments(moments.k, moments.n, moments.mean / unit, moments.m2 / unit**2)


def _common_noise(moments: Moments, k_ref: float) -> float:
    """Return the logarithm of the root mean square of all contributions, brought to ``k_ref``."""
    square = ((moments.m2 + moments.n * moments.mean**2) * (moments.k / k_ref) ** 2).sum()
    return float(0.5 * np.log(square / moments.n.sum())) if square > 0 else 0.0


def _all_points(
    reader: Any, inputs: Inputs, target: TargetCodes, more: Any, split: Split
) -> tuple[Inputs, AnyArray, IntArray]:
    """Return the points, and those without contributions, to learn the target from."""
    goal = target.codes
    fold = split.point_fold
    if more is not None:
        others = reader.inputs(*more)
        inputs = Inputs(
            **{
                name: np.concatenate([column, getattr(others, name)])
                for name, column in vars(inputs).items()
            }
        )
        goal = np.concatenate([goal, more[1]])
        fold = np.append(fold, np.full(len(others), -1))
    if target.classes is None:
        goal = (goal - reader.target[0]) / reader.target[1]
    return inputs, goal, fold


def _scatter(
    network: AmortizedNetwork, apart: Predicted, split: Split, unit: float
) -> tuple[FloatArray, float]:
    """Estimate the scatter of laws, and the noise, from what each member did not see."""
    moments, k_ref, family = split.moments, middle(network.k_range), network.shape.family
    params = family.from_local(apart.local[0], k_ref)
    # Every point has other sizes.
    rows = [(params[i : i + 1], moments.k[i]) for i in range(len(moments))]
    gradient = np.concatenate([family.gradient(one, k, k_ref) for one, k in rows])
    prediction = np.concatenate([family.mean(one, k) for one, k in rows])
    s = np.exp(apart.log_s[0])
    variance = s[:, None] ** 2 * (moments.k / k_ref) ** -apart.beta[0][:, None]
    is_judged = split.judged(slice(None)).any(axis=0)
    return scatter_and_noise(
        moments.mean - prediction / unit,
        np.where(is_judged, moments.n, 0.0),
        moments.m2,
        variance / unit**2,
        gradient * family.scales(s, k_ref)[:, None, :] / unit,
    )
