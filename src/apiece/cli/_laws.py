"""``fit`` and ``show``: from stored contributions to laws."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from apiece.cli._common import common
from apiece.cli._help import SectionedCommand
from apiece.cli._print import (
    OUT,
    emit,
    format_cell,
    note,
    plain,
    records,
    say,
    say_prose,
    show_ends,
    show_table,
    write_table,
)
from apiece.cli._source import run_or_table

if TYPE_CHECKING:
    import pandas as pd

    from apiece.data import Dataset
    from apiece.estimators import Aggregate, MethodName
    from apiece.laws import Laws
    from apiece.store import Run

LEVEL = click.option(
    "--level",
    default=0.9,
    show_default=True,
    type=click.FloatRange(0, 1, True, True),
    help="Coverage of the interval.",
)
MEMORY = click.option(
    "--memory", help="For a run that does not fit: what to take at once, such as 2GB."
)


_FIT_EXAMPLES = """
\b
Examples:
  apiece fit runs/reviews
  apiece fit runs/reviews --family power
  apiece fit runs/houses --method amortized --data houses.csv --target price

amortized learns from the features, which a run does not hold: name the file that collect read, with
the same options.
"""


@click.command(cls=SectionedCommand, epilog=_FIT_EXAMPLES)
@click.option(
    "--method",
    help="bayes (the default), likelihood, log_ols, amortized, or auto (chosen by a backtest).",
)
@click.option(
    "--family",
    help="power (c / k^alpha), series (a/k + b/k^1.5 + d/k^2) or its terms, such as series24; with "
    "bayes also ridge (terms 1 / (k + shift)) and blend (the mean of these).",
)
@click.option("--backtest", is_flag=True, help="Say how well held-out sizes are predicted.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Default: RUN/laws.parquet.")
@MEMORY
@common
@run_or_table(also=("dataset",))
def fit(
    run: Run,
    method: MethodName | None,
    family: str | None,
    backtest: bool,
    out: Path | None,
    dataset: Dataset | None,
    memory: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fit one law per point: its expected contribution at every size k."""
    import apiece

    if run.path is None and out is None:
        raise click.UsageError(
            "the run is in an object store, where laws are not kept: expected --out. Pass for "
            "example --out laws.parquet."
        )
    laws = apiece.fit(
        run,
        method,
        family=family,
        dataset=dataset,
        backtest=backtest,
        memory=memory,
    )
    to = out or Path(str(run.path)) / "laws.parquet"
    laws.save(to)
    if as_json:
        emit({"laws": str(to), "summary": _summary(laws)})
        return
    say_prose(laws.summary())
    if laws.has_backtest:
        say("\nbacktest: fitted on the smaller sizes, judged at the larger ones")
        say(laws.backtest().round(3).to_string(index=False))
    where = run.path
    note(f"next: apiece report {where}, apiece value {where}, apiece show {where}", quiet=quiet)


@click.command(
    cls=SectionedCommand,
    epilog="\b\nExamples:\n  apiece show runs/reviews\n  apiece show runs/reviews --point 17",
)
@click.option("--point", help="Id of one point: its law, and what it is worth at some sizes.")
@click.option(
    "--at", type=int, help="Size at which points are ranked; default the size of the pool."
)
@click.option("--top", default=10, show_default=True, help="How many points at either end.")
@LEVEL
@OUT
@common
@run_or_table()
def show(
    run: Run,
    point: str | None,
    at: int | None,
    top: int,
    level: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show what a run holds and what its points are worth, or the law of one point.

    With -o, the law of every point and its value at a size are written, or the curve of one point.
    """
    laws = run.laws()
    if point is not None:
        _show_point(run, laws, point, level, out, as_json)
        return
    size = at or laws.default_at()
    ranked = _at(laws, size, level).sort_values("value", ascending=False)
    if out is not None:
        write_table(ranked.join(laws.table().drop(columns=ranked.columns, errors="ignore")), out)
    whole = _aggregate(run)
    if as_json:
        emit(
            {
                "run": str(run.path),
                "manifest": run.manifest.to_json(),
                "certificate": run.progress().certificate,
                "notes": run.progress().notes,
                "aggregate": whole and whole.table().reset_index().to_dict("records"),
                "at": size,
                "summary": _summary(laws),
                "points": records(ranked),
            }
        )
        return
    say_prose(repr(run))
    if whole:
        say_prose(whole.headline())
    say()
    show_ends(ranked, top, level, at=size)
    say()
    say_prose(_engine(run))
    say_prose(laws.summary())


def _aggregate(run: Run) -> Aggregate | None:
    """Return the law of the loss, or None where the run's tasks do not determine it."""
    import apiece
    from apiece.errors import FitError

    try:
        return apiece.aggregate(run)
    except FitError:
        return None


def _engine(run: Run) -> str:
    """Say what computed the contributions, and how far from the optimum it may have stopped."""
    progress, engine = run.progress(), run.manifest.engine
    words = ["exact" if engine.is_exact else "approximate"]
    if math.isfinite(progress.certificate):
        words.append(f"largest error left {progress.certificate:.0e}")
    words += [f"{count:,} {name}" for name, count in sorted(progress.notes.items())]
    return f"engine {engine.name}: {', '.join(words)}"


def _at(laws: Laws, k: int, level: float) -> pd.DataFrame:
    import pandas as pd

    from apiece.records import marked

    low, high = laws.interval(k, level=level)
    table = pd.DataFrame({"value": laws.mean(k), "low": low, "high": high}, index=laws.ids)
    if laws.labels is not None:
        table.insert(0, "label", laws.labels)
    table["status"] = [str(status) for status in laws.status_at(k)]
    return marked(table.rename_axis("point"), laws.attrs)


def _summary(laws: Laws) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for status in laws.status:
        counts[str(status)] = counts.get(str(status), 0) + 1
    summary = {"n_points": laws.n_points, "k_range": laws.k_range, "status": counts}
    summary |= {"scope": laws.scope}
    return dict(plain({**summary, "diagnostics": laws.diagnostics, "attrs": laws.attrs}))


def _place(run: Run, laws: Laws, point: str) -> int:
    """Return the place of a point, or say that its row was set aside to score on."""
    from apiece.data import read_again
    from apiece.errors import ApieceError, PlanError, UnknownNameError

    try:
        return laws.place(point)
    except UnknownNameError:
        data = run.manifest.dataset
        try:
            aside = read_again(data.source, data.fingerprint).ids_val
        except ApieceError:
            aside = None
        if aside is None or point not in set(map(str, aside.tolist())):
            raise
    raise PlanError(
        f"row {point} was set aside to score on, so it has no law: expected one of the "
        f"{laws.n_points:,} points. Collect without --validation, and every row is valued."
    )


def _show_point(
    run: Run, laws: Laws, point: str, level: float, out: Path | None, as_json: bool
) -> None:
    import numpy as np
    import pandas as pd

    from apiece.collection import log_spaced
    from apiece.records import in_words

    one = laws.select(np.array([_place(run, laws, point)]))
    low_k, high_k = laws.k_range
    sizes = np.array(sorted({*log_spaced(low_k, high_k, 5), one.default_at()}))
    low, high = one.interval(sizes, level=level)
    curve = pd.DataFrame(
        {"value": one.mean(sizes)[0], "low": low[0], "high": high[0]},
        index=pd.Index(sizes, name="k"),
    )
    law = one.table().iloc[0]
    if out is not None:
        write_table(curve, out)
    if as_json:
        emit(
            {
                "point": one.ids[0],
                "law": law.to_dict(),
                "level": level,
                "scope": laws.scope,
                "curve": curve.reset_index().to_dict("records"),
            }
        )
        return
    label = "" if laws.labels is None else f", label {format_cell(law['label'])}"
    say_prose(f"point {one.ids[0]}{label}")
    about = in_words(laws.scope)
    show_table(curve, title=f"expected contribution with its {level:.0%} interval, {about}")
    if sizes[-1] > high_k:
        is_known = not laws.is_beyond(sizes[-1])
        known = f"a backtest covers sizes up to {laws.reach:,}" if is_known else "not known"
        say_prose(
            f"k = {sizes[-1]:,} lies beyond the sampled sizes {low_k:,} to {high_k:,}: {known}"
        )
    say("law")
    for name, item in law.drop("label", errors="ignore").items():
        if item == item:  # what was not estimated is nan
            say(f"  {name:<10} {format_cell(item)}")
