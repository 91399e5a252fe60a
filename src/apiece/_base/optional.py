"""Optional libraries, imported when first needed and explained when missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from apiece.errors import MissingExtraError


def optional(module: str, *, extra: str, purpose: str) -> Any:
    """Import ``module``, or say which extra of apiece brings it.

    >>> optional("json", extra="none", purpose="Nothing").__name__
    'json'
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} need {library}, which is not installed. "
            f"Install it with: pip install 'apiece[{extra}]'"
        ) from error
