"""Whether single precision can carry the training of networks: errors and times of three ways.

The two large products of a step, W X and G X, bound the MLP engine's speed. For one D, this trains
networks that differ by one point in double precision, as the engine does, and in three other ways:

- single: everything in single precision;
- difference: only what differs from a network without the point is multiplied in single precision;
- increment: after some steps in double precision, W X is advanced by the change of W, multiplied in
  single precision, and G X is in single precision, since gradients are small by then.

All but the products stays in double precision in the last two. Printed are errors of contributions
relative to their mean size, how many are above 1e-4, and processor time relative to the engine's.
The shift is the mean of the signed errors, with its standard error over networks; the variance is
that of the contributions, relative to that in double precision.
With --decisions also: how many networks had some ReLU on where double precision has it off, or the
reverse, and the largest error among the others (the time is then that of counting, too).

    OMP_NUM_THREADS=1 python benchmarks/network_precision.py --data DIR [--name imdb] [--n 64]

DIR holds higgs.npz, imdb.npz or others, with X and y (see docs/explanation/engines.md).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from _results import Results
from apiece import Dataset
from apiece.engines import _mlp_training as training
from apiece.engines import resolve_model
from apiece.engines._mlp_training import Networks, Recipe, initial_network

N_POOL, N_VALIDATION = 3_000, 1_000
WIDTH = 16  # networks in a block, as in the engine


class Products:
    """The two products of a step in double precision, for one block of networks after another."""

    leads = False  # whether the first network is a reference, without a point of its own

    def __init__(self, X: np.ndarray, start: Networks) -> None:
        self.rows, self.columns = training._with_ones(X), training._columns(X)
        self.rows_32 = self.rows.astype(np.float32)
        self.columns_32 = self.columns.astype(np.float32)
        h, d = start.first.shape[1:]
        self.first_32 = np.empty((WIDTH, h, d), np.float32)
        self.hidden_32 = np.empty((WIDTH, h, len(X)), np.float32)
        self.change, self.moved = np.empty_like(self.first_32), np.empty_like(self.hidden_32)

    def forward(self, t: int, block: int, W: np.ndarray) -> np.ndarray:
        """Return -W X of a block's networks in step t, shape ``(c, h, k)``."""
        return (training._stack(W) @ self.columns).reshape(*W.shape[:2], -1)

    def backward(self, t: int, block: int, G: np.ndarray) -> np.ndarray:
        """Return G X, shape ``(c, h, d + 1)``."""
        return (training._stack(G) @ self.rows).reshape(*G.shape[:2], -1)


class Differences(Products):
    """W X = W' X + (W - W') X with the reference's W'; the last product in single precision."""

    leads = True

    def forward(self, t: int, block: int, W: np.ndarray) -> np.ndarray:
        """Return -W X; the reference comes first in every step."""
        if block == 0:
            self.W, self.s = W[0].copy(), W[0] @ self.columns
            return self.s[None]
        return self.s + in_single(W, self.W, self.first_32, self.columns_32, self.moved)

    def backward(self, t: int, block: int, G: np.ndarray) -> np.ndarray:
        """Return G X."""
        if block == 0:
            self.G, self.g = G[0].copy(), G[0] @ self.rows
            return self.g[None]
        return self.g + in_single(G, self.G, self.hidden_32, self.rows_32, self.change)


class Increments(Products):
    """W X grows by (W - W_before) X, in single precision after ``n_double`` steps, as is G X."""

    def __init__(self, X: np.ndarray, start: Networks, n_double: int) -> None:
        super().__init__(X, start)
        self.n_double = n_double
        self.before: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def forward(self, t: int, block: int, W: np.ndarray) -> np.ndarray:
        """Return -W X, carried along in double precision."""
        if t < self.n_double:
            s = super().forward(t, block, W)
        else:
            W_before, s = self.before[block]
            s += in_single(W, W_before, self.first_32, self.columns_32, self.moved)
        self.before[block] = W.copy(), s
        return s

    def backward(self, t: int, block: int, G: np.ndarray) -> np.ndarray:
        """Return G X."""
        if t < self.n_double:
            return super().backward(t, block, G)
        return in_single(G, np.float64(0), self.hidden_32, self.rows_32, self.change)


class Decisions:
    """Which ReLUs were on in the first training, and which networks of a later one differ."""

    def __init__(self, n: int) -> None:
        self.first: dict[tuple[int, int], np.ndarray] = {}
        self.is_turned = np.zeros(n, dtype=bool)

    def note(self, t: int, start: int, hidden: np.ndarray) -> None:
        """Compare step t of the networks from ``start`` on; the first training is the norm."""
        is_on = np.packbits(np.signbit(hidden), axis=2)
        differs = is_on != self.first.setdefault((t, start), is_on)
        self.is_turned[start : start + len(hidden)] |= differs.any(axis=(1, 2))


def in_single(
    A: np.ndarray, less: np.ndarray, A_32: np.ndarray, B_32: np.ndarray, out: np.ndarray
) -> np.ndarray:
    """(A - less) B, the difference in double and the product in single precision."""
    A_32, out = A_32[: len(A)], out[: len(A)]
    np.subtract(A, less, out=A_32, casting="same_kind")
    np.matmul(training._stack(A_32), B_32, out=training._stack(out))
    return out


def train(
    start: Networks,
    data: tuple[np.ndarray, ...],
    recipe: Recipe,
    products: Products,
    decisions: Decisions | None,
) -> Networks:
    """`apiece.engines._mlp_training.train` for two classes and ReLUs, with other products."""
    X, y, own_X, own_y = data
    lead = int(products.leads)
    c, k = len(own_X) + lead, len(X)
    own = np.vstack([np.zeros((lead, own_X.shape[1] + 1)), training._with_ones(own_X)])
    signs = np.empty((c, 1, k + 1))
    signs[:, :, :-1] = training._encode(y, 2)
    signs[:, 0, -1] = np.r_[np.zeros(lead), training._encode(own_y, 2)[0]]  # 0: no residual
    hidden = np.empty((WIDTH, recipe.width, k + 1))
    slope, back = np.empty_like(hidden), np.empty_like(hidden)
    edges = [0] * lead + list(range(lead, c, WIDTH)) + [c]
    blocks = [slice(*ends) for ends in pairwise(edges)]
    nets = [start.copies(b.stop - b.start, np.float64) for b in blocks]
    adams = [training._Adam(part, recipe, k + 1) for part in nets]
    for t in range(recipe.n_steps):
        for i, block in enumerate(blocks):
            W, V, b = nets[i]
            H, S, B = (array[: len(W)] for array in (hidden, slope, back))
            H[:, :, :-1] = products.forward(t, i, W)
            H[:, :, -1:] = -(W @ own[block, :, None])
            if decisions and block.start >= lead:
                decisions.note(t, block.start - lead, H)
            training._relu(H, S)
            r = b - V @ H
            training._of_two(r, signs[block])
            training._mask(S, r, B)
            first = products.backward(t, i, B[:, :, :-1]) + B[:, :, -1:] * own[block, None]
            first *= V.transpose(0, 2, 1)
            first[:, :, :-1] += recipe.alpha * W[:, :, :-1]
            second = recipe.alpha * V - r @ H.transpose(0, 2, 1)
            adams[i].step(nets[i], Networks(first, second, r.sum(axis=2, keepdims=True)))
    return join(nets[lead:])


def join(nets: list[Networks]) -> Networks:
    return Networks(*(np.concatenate(parts) for parts in zip(*nets, strict=True)))


def as_the_engine(
    start: Networks, data: tuple[np.ndarray, ...], recipe: Recipe, dtype: type
) -> Networks:
    X, y, own_X, own_y = data
    blocks = [slice(i, i + WIDTH) for i in range(0, len(own_X), WIDTH)]
    return join(
        [
            training.train(start, X, y, own_X[b], own_y[b], n_classes=2, recipe=recipe, dtype=dtype)
            for b in blocks
        ]
    )


def load(path: Path) -> Dataset:
    with np.load(path) as arrays:
        X, y = (arrays[name][: N_POOL + N_VALIDATION] for name in ("X", "y"))
    X = X.astype(np.float64)
    return Dataset.from_arrays(
        X[:N_POOL], y[:N_POOL], X_val=X[N_POOL:], y_val=y[N_POOL:], standardize=True
    )


def compare(
    dataset: Dataset, k: int, n: int, results: Results, count: bool, only: list[str] | None
) -> None:
    order = np.random.default_rng(k).permutation(N_POOL)
    D, points = order[:k], np.sort(order[k : k + n])
    data = dataset.X[D], dataset.y[D], dataset.X[points], dataset.y[points]
    model = resolve_model("mlp", kind="classification", n_features=1, n_classes=2)
    recipe = Recipe.of(model.seeded(0))
    start = initial_network(recipe, dataset.n_features, 1)
    sign = 2 * dataset.y_val - 1

    def losses(nets: Networks) -> np.ndarray:
        outputs = nets.outputs(dataset.X_val, recipe.activation)
        return np.array([np.logaddexp(0, -sign * output[0]).mean() for output in outputs])

    def run(way: Callable[[], Networks]) -> tuple[np.ndarray, float]:
        started = time.process_time()
        nets = way()
        return losses(nets), (time.process_time() - started) / n

    expected, engine = run(lambda: as_the_engine(start, data, recipe, np.float64))
    X, y = data[:2]
    (loss,) = losses(as_the_engine(start, (X[:-1], y[:-1], X[-1:], y[-1:]), recipe, np.float64))
    size = np.abs(loss - expected).mean()

    decisions = Decisions(n) if count else None

    def with_products(products: Products) -> Callable[[], Networks]:
        return lambda: train(start, data, recipe, products, decisions)

    ways: dict[str, Callable[[], Networks]] = {
        "double, this script": with_products(Products(X, start)),
        "difference": with_products(Differences(X, start)),
        "increment after 30": with_products(Increments(X, start, 30)),
        "increment after 50": with_products(Increments(X, start, 50)),
    }
    if decisions is None:
        ways["single"] = lambda: as_the_engine(start, data, recipe, np.float32)
    for name in ways if only is None else only:
        way = ways[name]
        found, seconds = run(way)
        error = np.abs(found - expected) / size
        above = [np.count_nonzero(error > 1e-4), n]
        signed = (expected - found) / size
        shift = [signed.mean(), signed.std(ddof=1) / n**0.5]
        cells = [k, name, np.median(error), error.max(), above, shift]
        cells += [found.var() / expected.var(), seconds / engine]
        if decisions is not None:
            is_turned = decisions.is_turned
            cells += [is_turned.sum(), error[~is_turned].max(initial=0)]
            decisions.is_turned = np.zeros(n, dtype=bool)
        results.add(*cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the .npz files")
    parser.add_argument("--name", default="imdb", help="imdb, higgs or another file")
    parser.add_argument("--n", type=int, default=64, help="how many networks")
    parser.add_argument("--k", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--ways", nargs="+", help="such as single; all by default")
    parser.add_argument("--decisions", action="store_true", help="count ReLUs that turned")
    options = parser.parse_args()
    dataset = load(options.data / f"{options.name}.npz")
    columns = {"k": "{:,}", "way": "{}", "median error": "{:.0e}", "largest": "{:.0e}"}
    columns |= {"above 1e-4": "{} of {}", "shift": "{:.0e} ± {:.0e}", "variance": "{:.4f}"}
    columns |= {"time of the engine": "{:.2f}"}
    if options.decisions:
        columns |= {"turned": "{}", "largest of the rest": "{:.0e}"}
    word = "-decisions" if options.decisions else ""
    results = Results(f"network-precision-{options.name}{word}", columns, options)
    with threadpool_limits(1):
        for k in options.k:
            compare(dataset, k, options.n, results, options.decisions, options.ways)


if __name__ == "__main__":
    main()
