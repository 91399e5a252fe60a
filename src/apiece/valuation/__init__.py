"""From laws or contributions to values: one number for each point, and how sure it is."""

from __future__ import annotations

from apiece.valuation._agreement import agreement
from apiece.valuation._baselines import leave_one_out, random_values
from apiece.valuation._kinds import KINDS, OF_A_GAME, Weighting, size_weights
from apiece.valuation._neighbours import knn_shapley
from apiece.valuation._ranks import add_ranks, draw_values, drawn_values
from apiece.valuation._samples import value_samples
from apiece.valuation._value import value
from apiece.valuation._weights import SizeWeights, nodes

__all__ = [
    "KINDS",
    "OF_A_GAME",
    "SizeWeights",
    "Weighting",
    "add_ranks",
    "agreement",
    "draw_values",
    "drawn_values",
    "knn_shapley",
    "leave_one_out",
    "nodes",
    "random_values",
    "size_weights",
    "value",
    "value_samples",
]
