"""Text from data, made safe for a terminal and for a spreadsheet.

Ids, labels and column names come from files that others wrote. A terminal obeys escape sequences in
them (they clear the screen, change its title, fill the clipboard), and a spreadsheet computes cells
that look like formulas.
"""

from __future__ import annotations

import math
import re
import shlex
from typing import Any, Final

# control characters but tab and line feed, marks that reverse text, halves of characters
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_FORMULA: Final = re.compile("[=@\t\r\n\uff1d\uff0b\uff0d\uff20+-]")


def printable(text: str) -> str:
    r"""Write characters that a terminal would obey as escapes such as ``\u001b``.

    Lines and tabs stay. JSON stays JSON with the same meaning.

    >>> printable("id \x1b[2J")
    'id \\u001b[2J'
    """
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable_line(text: str) -> str:
    r"""As `printable`, for text that must stay within one line.

    >>> printable_line("a\nb")
    'a\\u000ab'
    """
    return printable(text).replace("\n", "\\u000a").replace("\t", "\\u0009")


def in_shell(word: Any) -> str:
    """Write a word so that a shell takes it as one, such as the name of a column.

    >>> in_shell("Größe"), in_shell("Größe (m²)")
    ('Größe', "'Größe (m²)'")
    """
    text = str(word)
    return text if re.fullmatch(r"[\w@%+=:,./-]+", text) else shlex.quote(text)


def change_in_words(mean: float, low: float, high: float, unit: str = "") -> str:
    """Write a change with its sign and its interval, with as many decimals each.

    >>> change_in_words(-0.00807, -0.0162, 6.44e-06), change_in_words(0.592, -0.484, 1.5, " points")
    ('-0.0081 (-0.0162 to +0.0000)', '+0.59 points (-0.48 to +1.50)')
    """
    mean_, low_, high_ = equally_long(mean, low, high, sign="+")
    return f"{mean_}{unit} ({low_} to {high_})"


def equally_long(*numbers: float, sign: str = "-") -> list[str]:
    """Write numbers with as many decimals each, of which the largest has three digits.

    >>> equally_long(0.0198, 0.00822, 0.0314), equally_long(1.0, 0.5, 1.5)
    (['0.0198', '0.0082', '0.0314'], ['1.0', '0.5', '1.5'])
    >>> equally_long(12345.6, 3.0, sign="+")
    ['+12,346', '+3']
    """
    largest = max((abs(x) for x in numbers if math.isfinite(x)), default=0.0)
    decimals = max(0, 2 - math.floor(math.log10(largest))) if largest else 0
    while decimals and all(round(x, decimals) == round(x, decimals - 1) for x in numbers):
        decimals -= 1
    return [f"{round(x, decimals) + 0.0:{sign},.{decimals}f}" for x in numbers]


def amount(x: float) -> str:
    """Write a quantity of the user's with six digits, and large ones without an exponent.

    >>> amount(33181.8251), amount(2_000_000.5), amount(0.1)
    ('33,181.8', '2,000,000', '0.1')
    """
    return f"{x:,.0f}" if 1e5 <= abs(x) < 1e12 else f"{x:,.6g}"


def first_line(error: BaseException) -> str:
    r"""Return the first line of an error's message, or the name of its class without a message.

    >>> first_line(ValueError("no such column.\nSee below")), first_line(KeyError())
    ('no such column', 'KeyError')
    """
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".")[:200] if lines else type(error).__name__


def without_formula(cell: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would compute; numbers stay.

    >>> [without_formula(cell) for cell in ("=1+2", "-5", "-5+cmd", "plain", -5)]
    ["'=1+2", '-5', "'-5+cmd", 'plain', -5]
    """
    if not isinstance(cell, str) or not _FORMULA.match(cell):
        return cell
    return cell if _is_number(cell) else f"'{cell}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()
