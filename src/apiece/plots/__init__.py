"""Plots: results on axes. They need matplotlib, the extra ``apiece[plots]``.

Each ``plot_<noun>`` takes ``ax=`` and returns it; a function beside it returns its numbers.
"""

from apiece.plots._agreement import matched, plot_agreement
from apiece.plots._curves import Curves, binned_means, curves, plot_curves
from apiece.plots._found import found, plot_found
from apiece.plots._histogram import plot_histogram, spread
from apiece.plots._plane import Plane, plane, plot_plane
from apiece.plots._ranks import plot_ranks, ranks
from apiece.plots._style import look, style

__all__ = [
    "Curves",
    "Plane",
    "binned_means",
    "curves",
    "found",
    "look",
    "matched",
    "plane",
    "plot_agreement",
    "plot_curves",
    "plot_found",
    "plot_histogram",
    "plot_plane",
    "plot_ranks",
    "ranks",
    "spread",
    "style",
]
