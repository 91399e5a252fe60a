"""Plots: results on axes. They need matplotlib, the extra ``apiece[plots]``.

Each ``plot_<noun>`` takes ``ax=`` and returns it; another function returns its numbers.
"""

from apiece.plots._aggregate import binned_losses, plot_aggregate
from apiece.plots._agreement import paired_values, plot_agreement
from apiece.plots._backtest import plot_backtest
from apiece.plots._calibration import coverage, plot_calibration
from apiece.plots._crossings import plot_crossings
from apiece.plots._curves import Curves, binned_means, curves, plot_curves
from apiece.plots._detection import detection_curve, plot_detection
from apiece.plots._experiment import differences, plot_experiment
from apiece.plots._histogram import distribution, plot_histogram
from apiece.plots._plane import Plane, exponent, plane, plot_plane
from apiece.plots._ranks import plot_ranks, ranks
from apiece.plots._style import style, theme

__all__ = [
    "Curves",
    "Plane",
    "binned_losses",
    "binned_means",
    "coverage",
    "curves",
    "detection_curve",
    "differences",
    "distribution",
    "exponent",
    "paired_values",
    "plane",
    "plot_aggregate",
    "plot_agreement",
    "plot_backtest",
    "plot_calibration",
    "plot_crossings",
    "plot_curves",
    "plot_detection",
    "plot_experiment",
    "plot_histogram",
    "plot_plane",
    "plot_ranks",
    "ranks",
    "style",
    "theme",
]
