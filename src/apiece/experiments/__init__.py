"""Experiments: do values and selections do what they promise, on your data, against baselines?

Each trains for real, on test rows that had no part in valuing or picking, repeats, and compares
methods in pairs on the same draws.
"""

from apiece.experiments._addition import acquire, addition
from apiece.experiments._mislabel import detection, mislabel
from apiece.experiments._removal import removal
from apiece.experiments._result import Experiment

__all__ = ["Experiment", "acquire", "addition", "detection", "mislabel", "removal"]
