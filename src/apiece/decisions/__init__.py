"""From laws to decisions: keep, drop, relabel, or find more points like this one."""

from apiece.decisions._advise import ADVICE, advise, doubted
from apiece.decisions._plausible import plausibility
from apiece.decisions._relabel import relabel

__all__ = ["ADVICE", "advise", "doubted", "plausibility", "relabel"]
