"""Checks that several rooms share, and the wording of their complaints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from apiece.errors import ApieceError, DataError, PlanError, UnknownNameError


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that looks most like ``name``, or None if none comes close.

    >>> nearest("logistc", ["logistic", "ridge"])
    'logistic'
    """
    by_lower = {word.lower(): word for word in known}
    matches = get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[matches[0]] if matches else None


def unknown_name(
    what: str, name: object, known: Iterable[str], error: type[ApieceError] = UnknownNameError
) -> ApieceError:
    """Build the error for a misspelt ``name``: the nearest known one is offered first.

    >>> print(unknown_name("model", "logistc", ["logistic", "ridge"]))
    unknown model 'logistc': expected one of logistic, ridge. Did you mean 'logistic'?
    """
    words = list(known)
    close = nearest(str(name), words)
    listed = ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
    hint = f" Did you mean {close!r}?" if close else " Pick one of them."
    return error(f"unknown {what} {name!r}: expected one of {listed}.{hint}")


def one_of(what: str, name: str, known: Iterable[str]) -> str:
    """Return ``name`` if it is among ``known``, or raise an error that offers the nearest."""
    words = list(known)
    if name not in words:
        raise unknown_name(what, name, words)
    return name


def some(items: Iterable[object], most: int = 5) -> str:
    """List the first few items for a message.

    >>> some("abcdefg", most=3)
    "'a', 'b', 'c' and 4 more"
    """
    all_items = list(items)
    listed = ", ".join(repr(item) for item in all_items[:most])
    rest = len(all_items) - most
    return f"{listed} and {rest:,} more" if rest > 0 else listed


def check_text(what: str, names: Iterable[object] | None) -> None:
    r"""Raise an error that names text which no file can hold: half a character, ``\ud800``."""
    words = [] if names is None else [name for name in names if isinstance(name, str)]
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        broken = [word for word in words if word.encode(errors="ignore").decode() != word]
        raise DataError(
            f"{what} hold {some(broken)}, where a character is broken off: expected text that can "
            "be written to a file. Decode the data again, or replace those characters."
        ) from None


def as_bytes(what: str, amount: int | str) -> int:
    """Return an amount of memory in bytes.

    >>> as_bytes("memory", "1.5 GB"), as_bytes("memory", 4_000_000)
    (1500000000, 4000000)
    """
    result = re.fullmatch(r"\s*([\d.]+)\s*([kMGT]?)i?B?\s*", str(amount), re.IGNORECASE)
    try:
        number = float(result[1]) * 1000 ** " kmgt".index(result[2].lower() or " ") if result else 0
    except ValueError:
        number = 0
    if number < 1:
        raise PlanError(
            f"{what}={amount!r} is not an amount of memory: expected bytes, or words such as "
            f"'2GB' or '500 MB'. Pass for example {what}='2GB' (--{what} 2GB)."
        )
    return int(number)
