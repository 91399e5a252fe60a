"""Plots: results on axes. They need matplotlib, the extra ``apiece[plots]``."""

from apiece.plots._curves import Curves, binned_means, curves, plot_curves
from apiece.plots._found import found, plot_found
from apiece.plots._style import style

__all__ = ["Curves", "binned_means", "curves", "found", "plot_curves", "plot_found", "style"]
