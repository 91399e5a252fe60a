"""The verbs: collect contributions, fit laws, use them. The command line says the same words."""

from apiece.api._collect import collect
from apiece.api._fit import DEFAULT_METHOD, aggregate, fit
from apiece.api._report import report, serve
from apiece.api._uses import advise, compare, data_of, select, value

__all__ = [
    "DEFAULT_METHOD",
    "advise",
    "aggregate",
    "collect",
    "compare",
    "data_of",
    "fit",
    "report",
    "select",
    "serve",
    "value",
]
