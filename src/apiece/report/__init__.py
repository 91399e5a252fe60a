"""Reports: a run and its laws as one page that a data team opens in a browser."""

from apiece.report._findings import find
from apiece.report._report import build, write
from apiece.report._serve import serve

__all__ = ["build", "find", "serve", "write"]
