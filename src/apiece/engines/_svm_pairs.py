r"""Support vector machines for any number of classes: one for each pair of them.

Like libsvm, every pair $i < j$ of classes has a machine of its own, trained on the points of these
classes. With two classes its decision values are the model's. With more, a row gets a vote for the
class that each machine decides for, and the sum of decision values in favour of a class settles
ties: scikit-learn's ``decision_function`` is

$$f_c = v_c + \frac{s_c}{3(|s_c| + 1)}, \qquad s_c = \sum_{i < c} f_{ic} - \sum_{j > c} f_{cj} .$$

An added point joins the machines of its class. The width of the kernel is that of all classes, so
that it changes for the other machines too.

scikit-learn's ``gamma="scale"`` is $1 / (d \, v)$, where $v$ is the variance of all entries of the
training points; with a point added it changes by about $1/n$ of itself, more for an outlier. One
machine serves all points whose width is within 5 % of its own; for an outlier another machine is
trained, at the nearest of the widths $\gamma \, e^{0.1 j}$.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.engines._svm_dual import libsvm_of_pairs
from apiece.engines._svm_kernel import Rows
from apiece.engines._svm_machine import Added, Machine
from apiece.engines._svm_small import Joining, add_all, add_each

_SPACING = 0.1  # between the widths of machines, in log gamma

Pair = tuple[int, int]


class Machines:
    """The machines of all pairs, trained on the same points, at the widths that are called for.

    Parameters
    ----------
    X, y
        Training points, shape ``(n, d)``, and class codes, all of them present, shape ``(n,)``.
    X_out
        Rows at which decision values are wanted, shape ``(n_out, d)``.
    n_classes
        Number of classes.
    C, gamma
        As in scikit-learn's ``SVC``.
    """

    def __init__(
        self,
        X: Rows,
        y: AnyArray,
        X_out: Rows,
        *,
        n_classes: int,
        C: float,
        gamma: str | float,
    ) -> None:
        self._centre = X.X.mean(axis=0)  # distances lose fewer digits near the origin
        self._X, self._X_out = X.less(self._centre), X_out.less(self._centre)
        self._y, self._n_classes, self._C = y, n_classes, C
        self._rule, self._mean = gamma, float(X.X.mean())
        self._scatter = float(((X.X - self._mean) ** 2).sum())
        self._gamma = float(self._width(X.X.size, np.array(self._scatter)))
        self._machines: dict[tuple[Pair, int], Machine] = {}
        self._start: dict[int, dict[Pair, FloatArray]] = {}

    def _width(self, size: int, scatter: FloatArray) -> FloatArray:
        """Gamma by the rule, given how many entries there are and their scatter."""
        d = self._X.X.shape[1]
        if self._rule == "scale":
            with np.errstate(divide="ignore"):
                return np.where(scatter == 0, 1.0, size / (d * scatter))
        return np.full(scatter.shape, 1.0 / d if self._rule == "auto" else float(self._rule))

    def widths(self, Z: FloatArray) -> FloatArray:
        r"""Gamma with each of some points added, shape ``(len(Z),)``.

        The scatter of $N$ entries with mean $m$ and of $d$ more with mean $m_z$ is the sum of both
        and of $(m - m_z)^2 N d / (N + d)$.
        """
        n, d = self._X.X.size, Z.shape[1]
        mean = Z.mean(axis=1)
        scatter = ((Z - mean[:, None]) ** 2).sum(axis=1)
        scatter += (mean - self._mean) ** 2 * n * d / (n + d)
        return self._width(n + d, self._scatter + scatter)

    @property
    def _pairs(self) -> list[Pair]:
        return list(combinations(range(self._n_classes), 2))

    def _machine(self, pair: Pair, node: int = 0) -> Machine:
        if (pair, node) not in self._machines:
            of = np.flatnonzero((self._y == pair[0]) | (self._y == pair[1]))
            self._machines[pair, node] = Machine(
                self._X[of],
                np.where(self._y[of] == pair[1], 1.0, -1.0),
                np.full(len(of), self._C),
                self._X_out,
                C=self._C,
                gamma=self._gamma_at(node),
                reach=float(np.expm1(0.5 * _SPACING)) if self._rule == "scale" else 0.0,
                start=self._starts(node).get(pair),
            )
        return self._machines[pair, node]

    def _gamma_at(self, node: int) -> float:
        return float(self._gamma * np.exp(_SPACING * node))

    def _starts(self, node: int) -> dict[Pair, FloatArray]:
        """Weights near the optimum for all pairs of several classes, from one call of libsvm."""
        if self._n_classes == 2 or not self._are_distinct:
            return {}
        if node not in self._start:
            kernel = np.exp(-self._gamma_at(node) * self._X.squared_distances(self._X))
            self._start[node] = libsvm_of_pairs(kernel, self._y, self._C)
        return self._start[node]

    @cached_property
    def _are_distinct(self) -> bool:
        return len(np.unique(self._X.X, axis=0)) == len(self._X)

    def base(self) -> Added:
        """Decision values of the machines by themselves, one row."""
        votes = _Votes(1, self._n_classes, len(self._X_out))
        for pair in self._pairs:
            machine = self._machine(pair)
            error, is_anew = np.array([machine.error]), np.zeros(1, dtype=bool)
            added = Added(machine.decision_out[None], error, is_anew)
            votes.count(pair, added, np.arange(1))
        return votes.added()

    def decide(self, Z: Rows) -> Added:
        """Decision values of the machines themselves at other points, each a model of its own."""
        Z = Z.less(self._centre)
        votes = _Votes(len(Z), self._n_classes, 1)
        for pair in self._pairs:
            machine = self._machine(pair)
            error = np.full(len(Z), machine.error)
            added = Added(machine.decide(Z)[:, None], error, np.zeros(len(Z), dtype=bool))
            votes.count(pair, added, np.arange(len(Z)))
        return votes.added()

    def add(self, Z: Rows, y: AnyArray) -> Added:
        """Train with each of some points added.

        Decision values have the shape ``(n_added, n_columns, n_out)``, with one column for two
        classes, and one for each class beyond.
        """
        gamma = self.widths(Z.X)
        Z = Z.less(self._centre)
        nodes = np.rint(np.log(gamma / self._gamma) / _SPACING).astype(np.int64)
        votes = _Votes(len(Z), self._n_classes, len(self._X_out))
        r = gamma / (self._gamma * np.exp(_SPACING * nodes)) - 1.0
        order = np.argsort(-np.abs(r), kind="stable")
        joinings: list[tuple[Pair, IntArray, Joining]] = []
        for node in np.unique(nodes).tolist():
            at_node = order[nodes[order] == node]
            for pair in self._pairs:
                machine = self._machine(pair, node)
                joins = (y[at_node] == pair[0]) | (y[at_node] == pair[1])
                of, others = at_node[joins], at_node[~joins]
                if len(others):
                    votes.count(pair, machine.widen(gamma[others]), others)
                if len(of):
                    labels = np.where(y[of] == pair[1], 1.0, -1.0)
                    joinings.append((pair, of, Joining(machine, Z[of], labels, gamma[of])))
        train = add_all if self._n_classes > 2 else add_each
        all_added = train([joining for _, _, joining in joinings])
        for (pair, of, _), added in zip(joinings, all_added, strict=True):
            votes.count(pair, added, of)
        return votes.added()


class _Votes:
    """Decision values of many models, gathered pair by pair."""

    def __init__(self, n: int, n_classes: int, n_out: int) -> None:
        self._n_classes = n_classes
        n_columns = 1 if n_classes == 2 else n_classes
        self._votes = np.zeros((n, n_columns, n_out))
        self._sums = np.zeros((n, n_columns, n_out))
        self._error, self._is_anew = np.zeros(n), np.zeros(n, dtype=bool)

    def count(self, pair: Pair, added: Added, of: IntArray) -> None:
        """Take the decision values of a pair's machines for some of the models."""
        error = added.error
        if self._n_classes == 2:
            self._sums[of, 0] = added.decision
        else:
            first, second = pair
            is_second = added.decision > 0
            self._votes[of, first] += ~is_second
            self._votes[of, second] += is_second
            self._sums[of, first] -= added.decision
            self._sums[of, second] += added.decision
            # a vote that rounding decides is nobody's
            least = np.abs(added.decision).min(axis=1, initial=np.inf)
            error = np.where(least > 2.0 * error, error, np.inf)
        self._error[of] = np.maximum(self._error[of], error)
        self._is_anew[of] |= added.is_anew

    def added(self) -> Added:
        """Return decision values by class, with their errors."""
        if self._n_classes == 2:
            return Added(self._sums, self._error, self._is_anew)
        decision = self._votes + self._sums / (3.0 * (np.abs(self._sums) + 1.0))
        error = self._error * (self._n_classes - 1) / 3.0
        return Added(decision, error, self._is_anew)
