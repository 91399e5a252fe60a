"""The result of `advise`: what to do with every row, and what that does to the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from apiece._base.arrow import ArrowTable
from apiece._base.html import table_html
from apiece._base.text import change_in_words, equally_long
from apiece.losses import is_squared
from apiece.records import POPULATION, scoped

if TYPE_CHECKING:
    import pandas as pd

ADVICE: Final = ("keep", "relabel", "drop", "check")


@dataclass(frozen=True, repr=False)
class Advice(ArrowTable):
    """What to do with every row, and the measured effect of doing it.

    Parameters
    ----------
    rows
        The table that `table` returns.
    effect
        One row for each part of the advice (``relabel``, ``drop``) and for ``all`` of it: how many
        ``rows`` it is about, and the change of the ``loss`` (negative is better) and of
        ``accuracy`` or ``r2`` (positive is better) if it is followed, each with ``_low`` and
        ``_high``. Measured by refitting, on rows that had no part in choosing.
    metric
        The loss, by name.
    level
        Coverage of the intervals.
    scope
        What the effect is for: the ``population`` that the rows come from, or, with a validation
        set, ``all rows``, since these score besides those of the table.

    Examples
    --------
    `apiece.advise` makes it; the tables are plain frames:

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"advice": ["keep", "drop"]}, index=["a", "b"])
    >>> advice = Advice(rows, effect=pd.DataFrame(), metric="log_loss", level=0.9)
    >>> advice["advice"].to_dict()
    {'a': 'keep', 'b': 'drop'}
    """

    rows: pd.DataFrame
    effect: pd.DataFrame
    metric: str
    level: float
    scope: str = POPULATION

    def table(self) -> pd.DataFrame:
        """Return the advice, indexed by id.

        Returns
        -------
        pandas.DataFrame
            ``advice`` (one of `ADVICE`), ``label`` (the given target), ``to`` (the label, or the
            predicted value, that the row should rather have; missing for ``keep``),
            ``probability`` (of the given label, to models that have not seen the row; of a value,
            that it is right) and ``reason``.
        """
        return scoped(self.rows.copy(), self.scope)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> pd.Series:
        return self.rows[column]

    def __repr__(self) -> str:
        return f"Advice({self.headline()})"

    def _repr_html_(self) -> str:
        changed = self.rows[self.rows["advice"] != "keep"]
        return table_html(self.headline(), self.effect) + changed.head(20).to_html(border=0)

    def headline(self) -> str:
        """Return what to do and what it would gain, in one to three sentences."""
        count = self.rows["advice"].value_counts()
        n_check = int(count.get("check", 0))
        check = f" {_rows(n_check)} may be wrong: check them by hand." if n_check else ""
        parts = [
            f"{word} {_rows(int(count[word]))}" for word in ("relabel", "drop") if word in count
        ]
        if not parts:
            nothing = "Nothing to relabel or drop: no such change was measured to help the model."
            return nothing + check
        what = " and ".join(parts)
        return f"{what[0].upper()}{what[1:]}: {self.changes('all')}.{check}"

    def changes(self, part: str) -> str:
        """Return what following a part of the advice does to the model, in words.

        A change whose interval holds zero has signs: its direction is not known.

        Parameters
        ----------
        part
            A row of ``effect``: ``relabel``, ``drop`` or ``all``.

        Examples
        --------
        >>> import pandas as pd
        >>> numbers = {"r2": 0.02, "r2_low": -0.01, "r2_high": 0.05}
        >>> effect = pd.DataFrame([numbers], index=["all"])
        >>> Advice(pd.DataFrame(), effect, metric="squared_error", level=0.9).changes("all")
        'R2 changes by +0.02 (-0.01 to +0.05)'
        """
        row: dict[Any, Any] = dict(self.effect.loc[part].items())
        loss = self.metric.replace("_", " ")
        if "accuracy" in self.effect:
            accuracy = {name: 100 * value for name, value in row.items()}
            moves = _change(accuracy, "accuracy", " points")
            return f"{loss} {_change(row, 'loss')}, accuracy {moves}"
        if is_squared(self.metric):  # R2 is easier to read
            return f"R2 {_change(row, 'r2')}"
        return f"{loss} {_change(row, 'loss')}, R2 {_change(row, 'r2')}"


def reason(advice: str, own: Any, to: Any) -> str:
    """Return why a row is advised so, in words."""
    if advice == "keep":
        return "no reason to change it"
    if isinstance(to, float):
        said = f"{own:.4g} is far from {to:.4g}, which models predict that have not seen the row"
    else:
        said = f"models that have not seen the row say {to}, not {own}"
    return {
        "relabel": f"{said}, and with all such labels changed the model predicts better",
        "drop": f"{said}, and without all such rows the model predicts better",
        "check": f"{said}; changing it was not measured to help",
    }[advice]


def _rows(n: int) -> str:
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def _change(row: dict[str, float], name: str, unit: str = "") -> str:
    """Return a change with its interval: in the direction it moves, with signs if that is open."""
    mean, low, high = (row[part] for part in (name, f"{name}_low", f"{name}_high"))
    if low == high == 0:
        return "does not change"
    if low <= 0 <= high:
        return f"changes by {change_in_words(mean, low, high)}{unit}"
    least, most = sorted((abs(low), abs(high)))
    said = equally_long(abs(mean), least, most)
    return f"{'falls' if mean < 0 else 'rises'} by {said[0]} ({said[1]} to {said[2]}){unit}"
