"""Experiments: tests of values and selections on your data, against baselines.

Each experiment trains models, measures them on test rows that were not used for valuing or
selecting, repeats, and compares methods in pairs on the same draws.
"""

from apiece.experiments._addition import acquire, addition
from apiece.experiments._mislabel import detection, mislabel
from apiece.experiments._removal import removal
from apiece.experiments._result import Experiment

__all__ = ["Experiment", "acquire", "addition", "detection", "mislabel", "removal"]
