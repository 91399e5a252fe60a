"""Training of the amortized network: Adam, clipped gradients, early stopping per member.

The members are trained together, each on another share of points and tasks. Every few epochs each
member is evaluated on its held-out share and keeps the weights with the lowest loss there. Training
ends when no member has improved for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from apiece._base.progress import Tracker
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.estimators._held_out import Split
from apiece.estimators._network import NetworkConfig, hidden, load_torch, local, seen
from apiece.estimators._reader import Inputs

_BATCH: Final = 4096  # points of a step
_JUDGED: Final = 5  # steps between two judgements, at least
_CLIP: Final = 5.0  # largest norm of a member's gradient
_GAIN: Final = 1e-4  # of the held-out loss that counts as an improvement
_FREE: Final = ("bias", "summar", "size")  # weights that do not decay, by how they begin

Weights = dict[str, FloatArray]


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    Parameters
    ----------
    epochs
        Most passes over the points.
    patience
        Steps without an improvement after which training ends.
    learning_rate
        Of Adam.
    decays
        Decoupled decays of the weights; laws are trained once with each.
    prior
        Weight of the penalty on shape coordinates, such as the exponent of power laws.
    device
        Where to compute, such as ``"cpu"`` or ``"cuda"``.
    rng
        Draws the order of the points.
    tracker
        Counts epochs.
    """

    epochs: int
    patience: int
    learning_rate: float
    decays: tuple[float, ...]
    prior: float
    device: str
    rng: np.random.Generator
    tracker: Tracker


class Objective(NamedTuple):
    """Losses of the members, ``(n_members,)``, on some of ``n_points``, and held out."""

    learn: Callable[[Mapping[str, Any], IntArray], Any]
    judge: Callable[[Mapping[str, Any]], Any]
    n_points: int


def tensors(arrays: Mapping[str, AnyArray], device: str) -> dict[str, Any]:
    """Move arrays to a device: double precision on a processor, single elsewhere."""
    torch = load_torch()
    real = torch.float64 if device == "cpu" else torch.float32
    return {
        name: torch.as_tensor(
            np.ascontiguousarray(array),
            dtype=real if array.dtype.kind == "f" else torch.int64,
            device=device,
        )
        for name, array in arrays.items()
    }


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one thread: products are small, and results then depend on no machine."""
    torch = load_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def visible(shape: NetworkConfig, inputs: Inputs) -> dict[str, AnyArray]:
    """Return every array that the network needs of some points."""
    return {"seen": seen(shape, inputs), **vars(inputs)}


def fit_laws(
    shape: NetworkConfig,
    start: Weights,
    inputs: Inputs,
    split: Split,
    k_ref: float,
    recipe: TrainingSettings,
) -> tuple[Weights, FloatArray]:
    r"""Train all members to predict laws; contributions are in units of the order of one.

    The loss of a member is the mean over its contributions of

    $$\frac{1}{2}\log v(k) + \frac{(\Delta - \mu(k))^2}{2 v(k)}$$

    computed from the moments, plus ``prior`` times the mean of $(\alpha - 1)^2$ for power laws, and
    in the same way for any shape coordinate.
    Each member keeps the best of all decays, and of all ways to train that its shape has.

    Returns
    -------
    tuple of dict and FloatArray
        The weights, and each member's loss where it did not look, shape ``(n_members,)``.
    """
    torch = load_torch()
    device = recipe.device
    points = tensors(visible(shape, inputs), device)
    moments = split.moments
    x = np.where(moments.n > 0, np.log(moments.k / k_ref), 0.0)
    rows = tensors({"x": x, "n": moments.n, "mean": moments.mean, "m2": moments.m2}, device)

    def losses(weights: Mapping[str, Any], part: IntArray, mask: AnyArray) -> tuple[Any, Any, Any]:
        at = torch.as_tensor(part, device=device)
        batch_points = {name: column[at] for name, column in points.items()}
        x, n, mean, m2 = (rows[name][at] for name in ("x", "n", "mean", "m2"))
        coordinates, log_s, beta = local(shape, weights, batch_points)
        log_v = 2 * log_s[..., None] - beta[..., None] * x
        misfit = m2 + n * (mean - shape.family.tensor_curve(coordinates, x)) ** 2
        each = (n * log_v + misfit * (-log_v).exp()) / 2
        used = torch.as_tensor(mask, device=device)
        count = (n * used).sum(dim=(1, 2))
        return (each * used).sum(dim=(1, 2)), count, coordinates

    def learn(weights: Mapping[str, Any], part: IntArray) -> Any:
        total, count, coordinates = losses(weights, part, split.learned(part))
        loss = total / count.clamp(min=1.0)
        for j, prior in enumerate(shape.family.shapes.values(), start=shape.family.n_linear):
            loss = loss + recipe.prior * ((coordinates[..., j] - prior.typical) ** 2).mean(dim=1)
        return loss

    def judge(weights: Mapping[str, Any]) -> Any:
        total, count = torch.zeros(1, device=device), torch.zeros(1, device=device)
        for part in _parts(np.arange(len(inputs))):
            more, counted, _ = losses(weights, part, split.judged(part))
            total, count = total + more, count + counted
        return total / count.clamp(min=1.0)

    best, lowest = start, np.full(split.n_folds, np.inf)
    for fixed, decay in product(shape.fixed, recipe.decays):
        objective = Objective(learn, judge, len(inputs))
        found, held_out = descend(start, objective, recipe, decay, fixed)
        better = held_out < lowest
        lowest = np.where(better, held_out, lowest)
        best = {
            name: np.where(better.reshape(-1, *[1] * (array.ndim - 1)), array, best[name])
            for name, array in found.items()
        }
    return best, lowest


def fit_target(
    shape: NetworkConfig,
    start: Weights,
    inputs: Inputs,
    goal: AnyArray,
    fold: IntArray,
    recipe: TrainingSettings,
) -> Weights:
    """Train the hidden layers to predict the target first: a classifier, or a regressor.

    Parameters
    ----------
    shape, start
        Sizes of a member, and first weights.
    inputs, goal
        Points, and their class codes or standardised quantities, shape ``(n,)``.
    fold
        The fold of each point; member ``m`` is judged on fold ``m`` and learns from the others.
    recipe
        How to train.
    """
    torch = load_torch()
    view = seen(shape, inputs)
    if shape.is_regression:
        view[:, -1] = 0.0  # the target itself
    data = tensors({"seen": view, "goal": goal}, recipe.device)
    n_members, width = start["bias_1"].shape[0], shape.width
    end = {"target": np.zeros((n_members, width, shape.n_classes))}
    end["bias"] = np.zeros((n_members, 1, shape.n_classes))

    def losses(weights: Mapping[str, Any], part: IntArray) -> Any:
        at = torch.as_tensor(part, device=recipe.device)
        out = hidden(weights, data["seen"][at]) @ weights["target"] + weights["bias"]
        if shape.is_regression:
            return (out[..., 0] - data["goal"][at]) ** 2
        return -out.log_softmax(dim=-1)[:, torch.arange(len(part)), data["goal"][at]]

    def mean(weights: Mapping[str, Any], part: IntArray, *, inside: bool) -> Any:
        is_own = fold[part] == np.arange(n_members)[:, None]
        used = torch.as_tensor(is_own == inside, device=recipe.device)
        return (losses(weights, part) * used).sum(dim=1) / used.sum(dim=1).clamp(min=1)

    everyone = np.arange(len(inputs))
    objective = Objective(
        lambda weights, part: mean(weights, part, inside=False),
        lambda weights: mean(weights, everyone, inside=True),
        len(inputs),
    )
    weights, _ = descend({**start, **end}, objective, recipe, min(recipe.decays))
    return {name: weights[name] for name in start}


def descend(
    start: Weights,
    objective: Objective,
    recipe: TrainingSettings,
    decay: float,
    fixed: tuple[str, ...] = (),
) -> tuple[Weights, FloatArray]:
    """Minimise the members' losses; return each member's weights at its lowest held-out loss.

    Parameters
    ----------
    start
        First weights, with a leading axis of members.
    objective
        What is minimised.
    recipe, decay
        How to train.
    fixed
        Names of the weights that stay as they are.
    """
    torch = load_torch()
    learn, judge, n_points = objective
    weights = {  # a tensor may share the memory of its array, and another training begins there too
        name: tensor.clone().requires_grad_(name not in fixed)
        for name, tensor in tensors(start, recipe.device).items()
    }
    kept = {name: tensor.detach().clone() for name, tensor in weights.items()}
    groups = [
        {"params": [tensor], "weight_decay": 0.0 if name.startswith(_FREE) else decay}
        for name, tensor in weights.items()
        if name not in fixed
    ]
    adam = torch.optim.AdamW(groups, lr=recipe.learning_rate)
    with torch.no_grad():
        lowest = judge(weights)
    step = last = 0
    for _ in range(recipe.epochs):
        is_whole = n_points <= _BATCH
        order = np.arange(n_points) if is_whole else recipe.rng.permutation(n_points)
        for part in _parts(order):
            adam.zero_grad()
            learn(weights, part).sum().backward()
            _clip(weights)
            adam.step()
            step += 1
        recipe.tracker.advance(1)
        if step % _JUDGED and is_whole:
            continue
        with torch.no_grad():
            held_out = judge(weights)
            better = held_out < lowest - _GAIN
            if better.any():
                last = step
                lowest = torch.where(better, held_out, lowest)
                for name, tensor in weights.items():
                    kept[name][better] = tensor[better]
        if step - last > recipe.patience:
            break
    found = {name: tensor.double().cpu().numpy() for name, tensor in kept.items()}
    return found, np.asarray(lowest.double().cpu().numpy())


def _clip(weights: Mapping[str, Any]) -> None:
    """Scale each member's gradient down to the largest norm allowed."""
    torch = load_torch()
    gradients = [tensor.grad for tensor in weights.values() if tensor.grad is not None]
    norm = sum((g**2).flatten(1).sum(dim=1) for g in gradients) ** 0.5
    factor = torch.clamp(_CLIP / (norm + 1e-12), max=1.0)
    for g in gradients:
        g.mul_(factor.reshape(-1, *[1] * (g.dim() - 1)))


def _parts(order: IntArray) -> Iterator[IntArray]:
    for begin in range(0, len(order), _BATCH):
        yield order[begin : begin + _BATCH]
