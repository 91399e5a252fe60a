"""Reports: a run and its laws as one page that a data team opens in a browser."""

from apiece.reporting._details import text_column
from apiece.reporting._findings import find, judged
from apiece.reporting._report import build, write
from apiece.reporting._verbs import report, serve

__all__ = ["build", "find", "judged", "report", "serve", "text_column", "write"]
