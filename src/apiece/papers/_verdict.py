"""The claims of the paper, and whether the measured numbers agree: the opening of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pandas as pd

from apiece.papers._ceiling import ENOUGH
from apiece.papers._runs import PAPER_LOSS, TITLES

_FITS: Final = 0.9  # of the R² that noise allows, from which a law is said to hold
_ACCURATE: Final = 0.9  # correlation from which an estimator is said to be accurate
_HEAD: Final = ("here", "by which number", "points and samples")
_RULES: Final = (
    "Numbers are the lowest and the highest over datasets; samples are per size. *Yes* and *no* "
    f"without names are about all of them. A law holds from {_FITS} of the R² that noise allows, "
    f"and is too noisy to judge where that is less than {ENOUGH}. An estimator is accurate from a "
    f"correlation of {_ACCURATE}. A choice helps most if no other is better by more than a "
    "standard error."
)
Tables = Callable[[str], pd.DataFrame]


def verdict(tables: Tables) -> list[tuple[str, str, str, str]]:
    """Judge every claim by the measured rows, which ``tables`` returns by name.

    Returns
    -------
    list of tuple
        The claim, the answer, the numbers behind it, and their points and samples.
    """
    parts = (_power_laws, _exponents, _models, _boundary, _values, _additions, _beyond, _variance)
    return [row for part in parts for row in part(tables)]


def markdown_verdict(tables: Tables) -> str:
    """Return the verdict as a section of a page; nothing if no row can be judged."""
    rows = verdict(tables)
    if not rows:
        return ""
    return "\n".join(["## Verdict", "", *_lines("claim of the paper", rows), "", _RULES, ""])


def _lines(head: str, rows: list[tuple[str, str, str, str]]) -> list[str]:
    lines = [(head, *_HEAD), ("---",) * (len(_HEAD) + 1), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _power_laws(tables: Tables) -> Iterator[tuple[str, str, str, str]]:
    table = tables("table1")
    table = table[table["loss"] == PAPER_LOSS] if len(table) else table
    for title in TITLES.values():
        rows = table[table["model"] == title] if len(table) else table
        if rows.empty:
            continue
        known = rows[rows["ceiling by noise"] >= ENOUGH]
        noisy = rows[rows["ceiling by noise"] < ENOUGH]
        fits = known["measured"] >= _FITS * known["ceiling by noise"]
        holds, fails = list(known["data"][fits]), list(known["data"][~fits])
        said = f"yes on {_list(holds)}" if holds else ""
        said = "yes" if len(holds) == len(rows) else said
        said += f"{'; ' if said else ''}not on {_list(fails)}" if fails else ""
        if len(noisy):
            said += f"{'; ' if said else ''}not shown on {_list(noisy['data'])}, too noisy"
        cells = [
            f"{row['data']} {row['measured']:.2f} of {row['ceiling by noise']:.2f}"
            for row in rows.to_dict("records")
        ]
        yield (
            f"power laws: {title} (Table 1)",
            said,
            f"R², of what noise allows: {', '.join(cells)}",
            _scale(rows),
        )


def _exponents(tables: Tables) -> Iterator[tuple[str, str, str, str]]:
    spread, crossing = tables("figure4"), tables("figure5")
    if spread.empty or crossing.empty:
        return
    spread = spread[spread["model"] == TITLES["logistic"]]
    width = spread["upper quartile"] - spread["lower quartile"]
    share = crossing["share of pairs that change places"]
    yield (
        "the exponent differs between points, so curves cross (figures 4, 5)",
        "yes" if share.min() > 0.05 else "in part",
        f"middle half of alpha {_span(width)} wide; {_span(share)} of pairs change places",
        _scale(spread),
    )


def _models(tables: Tables) -> Iterator[tuple[str, str, str, str]]:
    table = tables("table2")
    known = table[table["measured"].notna()] if len(table) else table
    if known.empty:
        return
    high = known[known["measured"] > 0.5]
    answer = "yes" if high.empty else f"yes, but not on {_list(high['data'])}"
    pairs = _list(known["models"])
    yield (
        "exponents of different models agree little, correlations up to 0.50 (Table 2)",
        answer,
        f"correlation {_span(known['measured'])}; {pairs}",
        f"{_span(known['points'])} points",
    )


def _boundary(tables: Tables) -> Iterator[tuple[str, str, str, str]]:
    table = tables("figure6")
    if table.empty:
        return
    slower = table[table["low"] > 0]
    yield (
        "points nearer to the boundary decay more slowly (figure 6)",
        f"yes on {_list(slower['data'])}" if len(slower) else "no",
        f"rank correlation of alpha with the distance {_span(table['Spearman correlation'])}",
        _scale(table),
    )


def _values(tables: Tables) -> Iterator[tuple[str, str, str, str]]:
    few, more = tables("table3"), tables("table4")
    if few.empty or more.empty:
        return
    few, more = (part[part["method"] != "bayes"] for part in (few, more))
    wide = few.pivot_table(index="data", columns="method", values="measured", sort=False)
    best = [name for name, row in wide.iterrows() if row.idxmax() == "amortized"]
    if "amortized" in wide:
        yield (
            "with 10 samples the amortized estimator is best (Table 3)",
            f"on {_list(best)}; elsewhere averaging is as good or better" if best else "no",
            f"correlation {_span(wide['amortized'])}; Monte Carlo {_span(wide['Monte Carlo'])}",
            _truth(few),
        )
    yield (
        "with 10 samples the likelihood is unreliable (Table 3)",
        "yes" if (wide["likelihood"] < wide["Monte Carlo"]).mean() > 0.5 else "no",
        f"correlation {_span(wide['likelihood'])}",
        _truth(few),
    )
    low = more[more["measured"] < _ACCURATE]
    yield (
        "with 50 samples all estimators are accurate (Table 4)",
        "yes" if low.empty else f"all but {_list(low['method'] + ' on ' + low['data'])}",
        f"correlation {_span(more['measured'])}",
        _truth(more),
    )


def _additions(tables: Tables) -> Iterator[tuple[str, str, str, str]]:
    sizes = {"table5": "100", "table6": "1000", "table7": "200", "table8": "2000"}
    for name, size in sizes.items():
        table, method = tables(name), f"scaling {size}"
        rows = table[table["method"].isin(_RIVALS | {method})] if len(table) else table
        if rows.empty or method not in set(rows["method"]):
            continue
        wide = rows.pivot_table(index="data", columns="method", values="measured", sort=False)
        error = rows.groupby("data", sort=False)["± of the mean"].max()
        is_best = wide[method] >= wide.max(axis=1) - error[wide.index]
        yes, no = list(wide.index[is_best]), list(wide.index[~is_best])
        yield (
            f"points chosen for {int(size):,} rows help most there ({_title(name)})",
            (f"yes on {_list(yes)}; no on {_list(no)}" if no else "yes") if yes else "no",
            f"rise {_span(wide[method])} %, random {_span(wide['random'])} %",
            f"{_span(rows['repeats'])} repeats",
        )


_RIVALS: Final = {
    *("scaling 100", "scaling 1000", "scaling 200", "scaling 2000", "shapley", "random"),
}


def _beyond(tables: Tables) -> Iterator[tuple[str, str, str, str]]:
    table = tables("figure15")
    table = table[table["method"] == "likelihood"] if len(table) else table
    if table.empty or "beyond" not in set(table["sizes"]):
        return
    most = table[table["samples"] == table["samples"].max()]
    inside, outside = (most[most["sizes"] == where] for where in ("fitted", "beyond"))
    holds = outside["Pearson"].min() > 0.7 and outside["R²"].min() < inside["R²"].min()
    yield (
        "beyond the fitted sizes correlations stay high and R² falls (figures 7, 15)",
        "yes" if holds else "in part",
        "; ".join(
            f"{name} {_span(inside[measure])} within, {_span(outside[measure])} beyond"
            for name, measure in (("correlation", "Pearson"), ("R²", "R²"))
        ),
        f"{_list(most['data'])}; likelihood with {most['samples'].max():,} samples",
    )


def _variance(tables: Tables) -> Iterator[tuple[str, str, str, str]]:
    table = tables("figure12")
    if table.empty:
        return
    for title, low, high in (
        (TITLES["logistic"], 2, 4),
        (TITLES["svm"], 1, 2),
        (TITLES["mlp"], 1, 2),
    ):
        rows = table[(table["model"] == title) & table["median"].notna()]
        if rows.empty:
            continue
        inside = rows["median"].between(low, high)
        yes, no = rows["data"][inside], rows["data"][~inside]
        answer = f"yes on {_list(yes)}; no on {_list(no)}"
        if not (len(yes) and len(no)):
            answer = "yes" if len(yes) else "no"
        yield (
            f"beta, the decay of the variance, is {low} to {high}: {title} (figure 12)",
            answer,
            f"median beta {_span(rows['median'])}",
            _scale(rows),
        )


def ours(tables: Tables) -> Iterator[tuple[str, str, str, str]]:
    """Judge what this package adds to the paper, from the same runs."""
    table = tables("table1")
    known = table[table["ceiling by noise"] >= ENOUGH] if len(table) else table
    if len(known):
        better = known["series law"] > known["measured"]
        yield (
            "a2/k + a3/k^1.5 + a4/k², by likelihood, fits the means better than the paper's lines",
            f"in {better.sum()} of {len(known)} rows of Table 1 that noise lets judge",
            f"R² {_span(known['series law'])}; lines {_span(known['measured'])}",
            _scale(known),
        )
    for name, samples in (("table3", 10), ("table4", 50)):
        rows = tables(name)
        if rows.empty or "bayes" not in set(rows["method"]):
            continue
        wide = rows.pivot_table(index="data", columns="method", values="measured", sort=False)
        best = wide.drop(columns="bayes").max(axis=1)
        is_best = wide["bayes"] >= best
        yield (
            f"with {samples} samples `bayes` is best ({_title(name)})",
            f"on {is_best.sum()} of {len(wide)} datasets"
            + (f"; not on {_list(wide.index[~is_best])}" if not is_best.all() else ""),
            f"correlation {_span(wide['bayes'])}; best of the others {_span(best)}",
            _truth(rows),
        )
    speed = tables("speed")
    if len(speed):
        for model, rows in speed.groupby("model", sort=False):
            yield (
                f"contributions take less time than two refits: {model} (Speed)",
                "yes" if rows["times faster"].min() > 1 else "in part",
                f"{_span(rows['times faster'].round().astype(int))} times faster",
                f"{len(rows)} runs",
            )


def _scale(rows: pd.DataFrame) -> str:
    return f"{_span(rows['points'])} points, {_span(rows['samples per size'])} samples"


def _truth(rows: pd.DataFrame) -> str:
    return f"{_span(rows['points'])} points, truth from {_span(rows['true from'])} samples"


def _title(name: str) -> str:
    return name.capitalize().replace("Table", "Table ")


def _list(names: Any) -> str:
    return ", ".join(dict.fromkeys(names))


def _span(values: pd.Series[Any]) -> str:
    """Return the least and the largest number."""
    low, high = values.min(), values.max()
    if values.dtype.kind == "i" or low > 100:
        ends = [f"{low:,.0f}", f"{high:,.0f}"]
    else:
        ends = [f"{low:.2f}", f"{high:.2f}"]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)
