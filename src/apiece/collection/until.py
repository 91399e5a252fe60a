"""When to stop collecting: criteria that are looked at after each round of work.

A criterion is passed to ``collect(..., until=...)``. ``a | b`` stops when one of the two is met,
``a & b`` when both are. Rounds are the same in every call. A limit of time may make the last round
smaller; without one, what a run holds does not depend on the clock or the machine.

Examples
--------
>>> from apiece import until
>>> until.minutes(10) | until.top(20, probability=0.95)
10 minutes or the top 20 known with probability 0.95
>>> until.parse("2h or top 20")
120 minutes or the top 20 known with probability 0.9
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from apiece._base.typing import BoolArray, FloatArray
from apiece.collection._findings import LEVEL, Round
from apiece.errors import PlanError

__all__ = [
    "Criterion",
    "Round",
    "minutes",
    "parse",
    "seconds",
    "signs",
    "stable",
    "top",
    "width",
]

_DRAWS: Final = 400
_SURE: Final = 0.005  # chance of being wrong that settles whether a point is among the best


class Criterion(ABC):
    """Says whether a run is good enough. Subclasses define `is_met`."""

    needs_laws: bool = True
    """Whether laws are fitted after each round."""

    limit: float = math.inf
    """Seconds after which it is met in any case."""

    at: float | None = None
    """The size that it is about; None for the middle of the sampled ones."""

    def telling(self, now: Round) -> float | None:
        """Return the size that most training sets of the next round have; None for no one."""
        return now.telling(self.at)

    def undecided(self, now: Round) -> BoolArray | None:
        """Return which points can still change whether it is met; None for all.

        Later rounds value the others rarely.
        """
        return None

    @abstractmethod
    def is_met(self, now: Round) -> bool:
        """Whether to stop after this round."""

    def reason(self, now: Round) -> str:
        """Return in words what is met, if it is."""
        return repr(self)

    def __or__(self, other: Criterion) -> Criterion:
        """Stop when one of the two is met."""
        return _Both(self, other, is_and=False)

    def __and__(self, other: Criterion) -> Criterion:
        """Stop when both are met."""
        return _Both(self, other, is_and=True)


@dataclass(frozen=True, repr=False)
class _Both(Criterion):
    one: Criterion
    other: Criterion
    is_and: bool

    @property
    def needs_laws(self) -> bool:  # type: ignore[override]  # a constant of others
        return self.one.needs_laws or self.other.needs_laws

    @property
    def limit(self) -> float:  # type: ignore[override]  # a constant of others
        return (max if self.is_and else min)(self.one.limit, self.other.limit)

    def telling(self, now: Round) -> float | None:
        found = {each.telling(now) for each in (self.one, self.other) if each.needs_laws}
        return found.pop() if len(found) == 1 else None

    def __repr__(self) -> str:
        return f"{self.one!r} {'and' if self.is_and else 'or'} {self.other!r}"

    def reason(self, now: Round) -> str:
        if self.is_and:
            return repr(self)
        met = [each.reason(now) for each in (self.one, self.other) if each.is_met(now)]
        return " and ".join(met)

    def undecided(self, now: Round) -> BoolArray | None:
        found = [each.undecided(now) for each in (self.one, self.other) if each.needs_laws]
        masks = [mask for mask in found if mask is not None]
        return np.any(masks, axis=0) if masks and len(masks) == len(found) else None

    def is_met(self, now: Round) -> bool:
        if self.is_and:
            return self.one.is_met(now) and self.other.is_met(now)
        return self.one.is_met(now) or self.other.is_met(now)


@dataclass(frozen=True, repr=False)
class _Seconds(Criterion):
    limit: float = math.inf
    needs_laws = False

    def __repr__(self) -> str:
        is_long = self.limit >= 60
        return f"{self.limit / 60:g} minutes" if is_long else f"{self.limit:g} seconds"

    def is_met(self, now: Round) -> bool:
        return now.elapsed + now.expected > self.limit


@dataclass(frozen=True, repr=False)
class _Width(Criterion):
    relative: float
    at: float | None = None

    def __repr__(self) -> str:
        return f"intervals of a relative width of {self.relative:g}{_at(self.at)}"

    def is_met(self, now: Round) -> bool:
        low, high = now.laws.interval(now.size(self.at), level=LEVEL)
        return bool(np.nanmedian(high - low) / 2 <= self.relative * now.mean(self.at).std())


@dataclass(frozen=True, repr=False)
class _Top(Criterion):
    m: int
    probability: float
    at: float | None = None

    def __repr__(self) -> str:
        return f"the top {self.m}{_at(self.at)} known with probability {self.probability:g}"

    def is_met(self, now: Round) -> bool:
        mean = now.mean(self.at)
        best = np.argsort(-mean, kind="stable")[: min(self.m, len(mean))]
        return bool(self._chances(now)[best].mean() >= self.probability)

    def undecided(self, now: Round) -> BoolArray:
        chance = self._chances(now)
        return np.asarray((chance > _SURE) & (chance < 1 - _SURE))

    def _chances(self, now: Round) -> FloatArray:
        """Return the probability of each point to be among the best, shape ``(n_points,)``."""
        laws = now.laws
        draws = laws.draws(_DRAWS, random_state=0)
        m, k = min(self.m, draws.shape[1]), np.array([now.size(self.at)])
        curves = np.stack([np.nan_to_num(laws.family.mean(draw, k)[:, 0]) for draw in draws])
        among = np.argpartition(-curves, m - 1, axis=1)[:, :m]
        return np.bincount(among.ravel(), minlength=draws.shape[1]) / _DRAWS


@dataclass(frozen=True, repr=False)
class _Signs(Criterion):
    gain: float
    at: float | None = None

    def __repr__(self) -> str:
        return f"all signs{_at(self.at)} that can be known"

    def is_met(self, now: Round) -> bool:
        if now.before is None or now.before.before is None:
            return False  # four samples, or six, know hardly any signs of a noisy table
        has_sign = now.has_sign(self.at)
        fresh = has_sign & ~now.before.has_sign(self.at)
        return bool(has_sign.any() and fresh.mean() < self.gain)

    def undecided(self, now: Round) -> BoolArray:
        return ~now.has_sign(self.at)


@dataclass(frozen=True, repr=False)
class _Stable(Criterion):
    agreement: float

    def __repr__(self) -> str:
        return f"an order of points that stays the same ({self.agreement:g})"

    def is_met(self, now: Round) -> bool:
        rounds = [now, now.before, None if now.before is None else now.before.before]
        return all(
            one is not None
            and two is not None
            and _ranks_agree(one.mean(), two.mean(), self.agreement)
            for one, two in pairwise(rounds)
        )


def _ranks_agree(one: FloatArray, two: FloatArray, agreement: float) -> bool:
    from scipy.stats import spearmanr

    if np.ptp(one) == 0 or np.ptp(two) == 0:
        return False
    return float(spearmanr(one, two).statistic) >= agreement


def seconds(limit: float) -> Criterion:
    """Stop in time for a number of seconds: before a round that would end later.

    Examples
    --------
    >>> seconds(30)
    30 seconds
    """
    return _Seconds(_positive("seconds", limit))


def minutes(limit: float) -> Criterion:
    """Stop in time for a number of minutes.

    Examples
    --------
    >>> minutes(10)
    10 minutes
    """
    return _Seconds(60 * _positive("minutes", limit))


def width(relative: float, *, at: float | None = None) -> Criterion:
    """Stop when 90 % intervals are narrow.

    Met when half of the median width is at most ``relative`` times the standard deviation of the
    points' expected contributions, at the size ``at``, or at the middle of the sampled sizes. Most
    training sets of later rounds have the size that says most about it.

    Examples
    --------
    >>> width(0.5)
    intervals of a relative width of 0.5
    """
    return _Width(_positive("relative", relative), _size(at))


def top(m: int, probability: float = 0.9, *, at: float | None = None) -> Criterion:
    """Stop when the best points are known.

    Met when, of the ``m`` points that seem best, this share is expected to be among the ``m`` best,
    at the size ``at``, or at the middle of the sampled sizes. Most training sets of later rounds
    have the size that says most about it.

    Examples
    --------
    >>> top(20)
    the top 20 known with probability 0.9
    >>> top(20, at=1000)
    the top 20 at size 1,000 known with probability 0.9
    """
    if m != int(m) or m < 1:
        raise PlanError(f"top({m!r}): expected a whole number of at least 1, such as top(20).")
    if not 0 < probability < 1:
        raise PlanError(
            f"probability={probability!r}: expected a number between 0 and 1, such as 0.9."
        )
    return _Top(int(m), float(probability), _size(at))


def signs(gain: float = 0.02, *, at: float | None = None) -> Criterion:
    """Stop when all signs that can be known are known.

    Met when the last round added the sign of less than a share ``gain`` of all points: their 90 %
    intervals no longer held zero, at the size ``at``, or at the middle of the sampled sizes. There
    are three rounds at least. Most training sets of later ones have the size that says most about
    it.

    Examples
    --------
    >>> signs()
    all signs that can be known
    """
    return _Signs(_positive("gain", gain), _size(at))


def stable(agreement: float = 0.98) -> Criterion:
    """Stop when the answer no longer changes.

    Met when the rank correlation of values with those of the round before is at least
    ``agreement``, twice in a row.

    Examples
    --------
    >>> stable()
    an order of points that stays the same (0.98)
    """
    return _Stable(_positive("agreement", agreement))


_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}
_WORDS: Final[dict[str, Any]] = {"top": top, "width": width, "signs": signs, "stable": stable}


def parse(words: str) -> Criterion:
    """Return the criterion that words of the command line stand for.

    Parameters
    ----------
    words
        ``30s``, ``10m``, ``2h``, ``top 20``, ``top 20 0.95``, ``top 20 at 1000``, ``width 0.3``,
        ``signs``, ``stable``; several joined by ``or`` and ``and`` (which binds more strongly).
    """
    whole: Criterion | None = None
    for part in re.split(r"\s+or\s+|\s*\|\s*", words.strip()):
        both: Criterion | None = None
        for word in re.split(r"\s+and\s+|\s*&\s*", part):
            one = _parse_one(word.strip())
            both = one if both is None else both & one
        assert both is not None
        whole = both if whole is None else whole | both
    assert whole is not None
    return whole


def _parse_one(word: str) -> Criterion:
    time = re.fullmatch(r"([0-9.]+)\s*([smh])[a-z]*", word)
    name, *numbers = word.split() or [""]
    about: dict[str, float] = {}
    try:
        if name != "stable" and numbers[-2:-1] == ["at"]:
            about, numbers = {"at": float(numbers[-1].replace(",", ""))}, numbers[:-2]
        if time:
            return seconds(float(time[1]) * _UNITS[time[2]])
        if name in _WORDS:
            given = [int(n) if name == "top" and not i else float(n) for i, n in enumerate(numbers)]
            found: Criterion = _WORDS[name](*given, **about)
            return found
    except (ValueError, TypeError):
        pass
    raise PlanError(
        f"{word!r} does not say when to stop: expected 30s, 10m, 2h, 'top 20', 'width 0.3', signs "
        "or stable, joined by 'or' and 'and'. Pass for example until='10m or top 20'."
    )


def as_criterion(until: object) -> Criterion:
    """Return a criterion as it is, or the one that words stand for."""
    if isinstance(until, Criterion):
        return until
    if isinstance(until, str):
        return parse(until)
    raise PlanError(
        f"until={until!r} does not say when to stop: expected a criterion of apiece.until or its "
        "words. Pass for example until=apiece.until.minutes(10), or until='10m'."
    )


def _size(at: object) -> float | None:
    return None if at is None else _positive("at", at)


def _at(at: float | None) -> str:
    return "" if at is None else f" at size {at:,g}"


def _positive(name: str, number: Any) -> float:
    if not isinstance(number, int | float | np.number) or not number > 0:
        raise PlanError(f"{name}={number!r}: expected a number above 0, such as 10.")
    return float(number)
