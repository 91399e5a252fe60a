"""The result of `advise`: what to do with every row, and what that does to the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from apiece._base.html import table_html
from apiece.records import POPULATION, scoped

if TYPE_CHECKING:
    import pandas as pd

ADVICE: Final = ("keep", "relabel", "drop", "check")


@dataclass(frozen=True, repr=False)
class Advice:
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

    def table(self) -> pd.DataFrame:
        """Return the advice, indexed by id.

        Returns
        -------
        pandas.DataFrame
            ``advice`` (one of `ADVICE`), ``to`` (the label, or the predicted value, that the row
            should rather have; missing for ``keep``), ``probability`` (of the label at hand, to
            models that have not seen the row; of a value, that it is right) and ``reason``.
        """
        return scoped(self.rows.copy(), self.scope)

    @property
    def scope(self) -> str:
        """What the effect is for: the population, since rows that did not choose measure it."""
        return POPULATION

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
            return (
                "Nothing to do: no change of the data was measured to make the model better."
                + check
            )
        row: dict[str, float] = self.effect.to_dict("index")["all"]  # type: ignore[assignment]
        measure = "accuracy" if "accuracy" in self.effect else "r2"
        what = " and ".join(parts)
        text = (
            f"{what[0].upper()}{what[1:]}: {self.metric.replace('_', ' ')} "
            f"{_moves(row['loss'])} by {_span(row, 'loss')}"
        )
        if measure == "accuracy":
            row = {name: 100 * part for name, part in row.items()}
            return (
                f"{text}, accuracy {_moves(row[measure])} by {_span(row, measure)} points.{check}"
            )
        if self.metric == "squared_error":  # in squared units of the target, which R2 says better
            text = f"{what[0].upper()}{what[1:]}"
            return f"{text}: R2 {_moves(row[measure])} by {_span(row, measure)}.{check}"
        return f"{text}, R2 {_moves(row[measure])} by {_span(row, measure)}.{check}"


def reason(advice: str, own: Any, to: Any) -> str:
    """Return why a row is advised so, in words."""
    if advice == "keep":
        return "nothing speaks against it"
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


def _moves(change: float) -> str:
    return "falls" if change < 0 else "rises"


def _span(row: dict[str, float], name: str) -> str:
    """Return the size of a change with its interval, counted in the direction it moves."""
    sign = -1 if row[name] < 0 else 1
    mean, low, high = (sign * row[part] for part in (name, f"{name}_low", f"{name}_high"))
    low, high = sorted((low, high))
    return f"{mean:.3g} ({low:.3g} to {high:.3g})"
