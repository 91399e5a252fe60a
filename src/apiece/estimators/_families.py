"""The family of laws as a setting: a word, or a family with its terms."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from apiece._base.typing import FloatArray
from apiece.errors import FitError
from apiece.laws import Blend, Family, Linear, Power, Ridge, Series

FamilyLike = str | Family


def chosen_family(family: FamilyLike) -> Power | Series:
    """Return the family that a setting names.

    ``"series"`` has all three terms; ``"series24"`` has the terms 2 and 4.

    >>> chosen_family("series24")
    Series(terms=(2, 4))
    """
    if isinstance(family, (Power, Series)):
        return family
    if family == "power":
        return Power()
    if isinstance(family, str) and family.startswith("series"):
        digits = family.removeprefix("series")
        if not digits:
            return Series()
        if digits.isdigit():
            return Series(tuple(int(digit) for digit in digits))
    raise FitError(
        f"family={family!r} is not a family that this method fits: expected 'power', 'series', "
        "or the series with some of its terms such as 'series24'; with bayes also 'ridge' and "
        "'blend'. Pass one of these words, or Series(terms=...)."
    )


def family_over(family: FamilyLike, k_range: tuple[int, int]) -> Power | Series | Ridge | Blend:
    """Return the family that a setting names, ``"ridge"`` and ``"blend"`` as the sizes want them.

    >>> family_over("ridge", (100, 1000))
    Ridge(shifts=(0, 30, 95, 300, 949, 3000, 9487))
    """
    if isinstance(family, (Ridge, Blend)):
        return family
    if family == "blend":
        return Blend(Ridge.over(k_range))
    return Ridge.over(k_range) if family == "ridge" else chosen_family(family)


def described(family: Family) -> str:
    """Return the word that names a family: what ``chosen_family`` takes.

    >>> described(Series(terms=(2, 4)))
    'series24'
    """
    if isinstance(family, Series) and family != Series():
        return "series" + "".join(str(term) for term in family.terms)
    return family.name


def curve_at(family: Family, params: FloatArray, k: npt.ArrayLike) -> FloatArray:
    """Evaluate law ``j`` at size ``k[j]`` alone: ``(n, p)`` and ``(n,)`` give ``(n,)``."""
    sizes = np.asarray(k, dtype=np.float64)
    if isinstance(family, Linear):
        return np.asarray((params * family.basis(sizes)).sum(axis=1))
    return np.asarray(params[:, 0] * sizes ** -params[:, 1])
