r"""The MLP engine: networks that differ by one training point, trained side by side.

$f_D$ and every $f_{D \cup z}$ start from the same weights, take the same number of full-batch Adam
steps and share the features of $D$; `apiece.engines._mlp_training` says how that saves time.

Training runs for a fixed number of steps, each identical to scikit-learn's, so there is no
convergence certificate (nan).

At the kink of a ReLU, rounding decides on which side a point lies. In double precision that hardly
ever happens among the millions of activations of a training, and contributions match a refit to ten
digits. In single precision it happens in almost every network, and single contributions then differ
by up to their mean size. So all computations are in double precision; `SingleMLPEngine` is for
means over many training sets, where that is noise among other noise.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax

from apiece._base.typing import AnyArray, FloatArray
from apiece.data import Dataset
from apiece.engines._base import Engine
from apiece.engines._mlp_training import Networks, NetworkSettings, initial_network, train
from apiece.engines._models import Model
from apiece.losses import Loss
from apiece.records import Outcome, Task

_WIDEST = 16  # networks in a block: enough for the speed of large products, few enough for caches
_BLOCK_BYTES = 2**26
_LARGE = 30.0  # size of a feature beyond which units saturate, or steps overshoot
_LONG = 1.0  # learning rate times steps beyond which trainings may be chaotic
_STEEP = 0.03  # learning rate beyond which trainings may be chaotic
_NUDGE = 1e-11  # relative change of the starting weights
_NUDGES = 8  # nudged trainings of the network of D
_NUDGES_OF_POINTS = 3  # nudged trainings of each network with a point
_STILL = 1e-5  # change of a loss, in mean contributions, that nudges may make


class MLPEngine(Engine):
    """Trains all networks of a block together.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> engine, _ = choose_engine(load_demo()[0], model="mlp")
    >>> engine.run(Task(0, np.arange(20), np.arange(20, 22), seed=0)).delta.shape
    (2,)
    """

    name: ClassVar[str] = "mlp"
    made_for: ClassVar[tuple[str, ...]] = ("MLPClassifier", "MLPRegressor")
    rows_per_shard: ClassVar[int] = 256
    dtype: ClassVar[type[np.floating[Any]]] = np.float64

    @classmethod
    def supports(cls, dataset: Dataset, model: Model, metric: Loss) -> str | None:
        """Return None if the engine trains this model, or the reason why not.

        It trains ``MLPClassifier`` and ``MLPRegressor`` with one hidden layer, by Adam, on full
        batches, for a fixed number of steps. A batch must hold any training set; any loss works.
        """
        from sklearn.neural_network import MLPClassifier, MLPRegressor

        estimator = model.estimator
        if type(estimator) is not (MLPClassifier if dataset.is_classification else MLPRegressor):
            return "it is not scikit-learn's MLPClassifier or MLPRegressor"
        try:
            estimator._validate_params()
        except (TypeError, ValueError):
            return "scikit-learn refuses its settings"
        settings = estimator.get_params()
        loss = settings.get("loss", "squared_error")
        batch_size = 200 if settings["batch_size"] == "auto" else settings["batch_size"]
        most = min(dataset.n_pool + 1, dataset.n_points)  # the whole pool and a candidate
        obstacles = {
            f"solver is {settings['solver']}": settings["solver"] != "adam",
            "it does not have one hidden layer": np.size(settings["hidden_layer_sizes"]) != 1,
            f"loss is {loss}": loss != "squared_error",
            "early_stopping is on": settings["early_stopping"],
            "n_iter_no_change is less than max_iter, so training may stop early": (
                settings["n_iter_no_change"] < settings["max_iter"]
            ),
            f"batches of {batch_size} may not hold all of a training set": batch_size < most,
        }
        return next((words for words, stands in obstacles.items() if stands), None)

    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every point of the task.

        `RefitEngine` computes trainings that diverge, and tasks whose ``D`` lacks a class, because
        scikit-learn's network then has other outputs; ``notes["refits"]`` counts the points.

        Raises
        ------
        EngineError
            If a network of `RefitEngine` fails too; the task and point are named.
        """
        data = self.dataset
        X, y = data.X[task.subset], data.y[task.subset]
        if data.is_classification and len(np.unique(y)) < data.n_classes:
            return self.refit(task)
        recipe = NetworkSettings.of(self.model.seeded(task.seed))
        start = initial_network(
            recipe, data.n_features, data.n_classes if data.n_classes > 2 else 1
        )
        # D less its last point, plus that point: the same arithmetic as for D + z
        (loss,) = self._losses(recipe, start, X[:-1], y[:-1], X[-1:], y[-1:])
        if not np.isfinite(loss):
            return self.refit(task)
        delta = self._deltas(recipe, start, task, loss)
        is_lost = ~np.isfinite(delta)
        if is_lost.any():
            delta[is_lost] = self.refit(task, task.points[is_lost]).delta
        has_any = bool(np.isfinite(delta).any())
        if self.is_exact and has_any and _is_rough(recipe, X, data.features(task.points)):
            # a nudge may do little by chance, even where rounding does ten times as much
            nudges = [start.nudged(_NUDGE, draw) for draw in range(_NUDGES)]
            again = [self._losses(recipe, n, X[:-1], y[:-1], X[-1:], y[-1:])[0] for n in nudges]
            trials = [self._deltas(recipe, n, task, loss) for n in nudges[:_NUDGES_OF_POINTS]]
            moved = np.abs(np.array(trials) - delta).max(axis=0)
            moved += np.abs(np.array(again) - loss).max()
            delta[~(is_lost | (moved <= _STILL * np.nanmean(np.abs(delta))))] = np.nan
        notes = {"fits": len(delta) + 1, "refits": int(is_lost.sum())}
        return Outcome(float(loss), delta, notes=notes)

    def _deltas(
        self, recipe: NetworkSettings, start: Networks, task: Task, loss: float
    ) -> FloatArray:
        """Train a network with each point of the task; by how much is its loss below ``loss``?"""
        data, delta = self.dataset, np.empty(len(task.points))
        X, y = data.X[task.subset], data.y[task.subset]
        width = _block_width(len(X), data.n_features, recipe.width)
        for first in range(0, len(delta), width):
            points = task.points[first : first + width]
            delta[first : first + width] = loss - self._losses(
                recipe, start, X, y, data.features(points), data.targets(points)
            )
        return delta

    def _losses(
        self,
        recipe: NetworkSettings,
        start: Networks,
        X: FloatArray,
        y: AnyArray,
        added_X: FloatArray,
        added_y: AnyArray,
    ) -> FloatArray:
        """Train a network for each added point and return the losses; nan where that failed."""
        data = self.dataset
        nets = train(
            *(start, X, y, added_X, added_y),
            n_classes=data.n_classes,
            recipe=recipe,
            dtype=self.dtype,
        )
        is_finite = nets.are_finite()
        losses = np.full(len(added_X), np.nan)
        with np.errstate(all="ignore"):
            for i, output in enumerate(nets.outputs(data.X_val, recipe.activation)):
                if is_finite[i]:
                    losses[i] = self.loss_or_nan(data.y_val, self._prediction(output))
        return losses

    def _prediction(self, output: FloatArray) -> AnyArray:
        """Turn outputs, shape ``(n_outputs, n)``, into what the metric needs."""
        if self.metric.needs == "value":
            return np.asarray(output[0])
        if len(output) == 1:
            proba = expit(np.vstack([-output[0], output[0]])).T  # small ones keep their digits
        else:
            proba = softmax(output, axis=0).T
        return proba if self.metric.needs == "proba" else np.argmax(proba, axis=1)


class SingleMLPEngine(MLPEngine):
    """The same networks in single precision, in about half of the time.

    Rounding makes single contributions differ from those of `MLPEngine`, but neither shifts their
    means over training sets nor raises their variance (``benchmarks/single_precision.py``). So it
    serves laws and values, not single contributions.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> engine, _ = choose_engine(load_demo()[0], model="mlp", engine="mlp-single")
    >>> engine.run(Task(0, np.arange(20), np.arange(20, 22), seed=0)).delta.shape
    (2,)
    """

    name: ClassVar[str] = "mlp-single"
    is_exact: ClassVar[bool] = False
    dtype: ClassVar[type[np.floating[Any]]] = np.float32


def _is_rough(recipe: NetworkSettings, *features: FloatArray) -> bool:
    """Whether a training may magnify rounding until it decides the outcome."""
    is_long = recipe.rate > _STEEP or recipe.rate * recipe.n_steps > _LONG
    return is_long or any(np.abs(X).max(initial=0.0) > _LARGE for X in features)


def _block_width(k: int, n_features: int, width: int) -> int:
    """How many networks to train together; the same for every task of a cardinality."""
    n_bytes = 8 * width * (3 * (k + 1) + 5 * (n_features + 1))
    return max(1, min(_WIDEST, _BLOCK_BYTES // n_bytes))
