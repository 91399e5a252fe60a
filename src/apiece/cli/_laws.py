"""``fit`` and ``show``: from stored contributions to laws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from apiece.cli._common import common
from apiece.cli._data import read_all, reading
from apiece.cli._print import OUT, emit, note, plain, records, say, show_table, write_table

if TYPE_CHECKING:
    import pandas as pd

    from apiece.estimators import Aggregate
    from apiece.laws import Laws
    from apiece.store import Run

RUN = click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
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
  apiece fit runs/reviews --method amortized --data reviews.csv --target label --text review

\b
amortized learns from the features, which a run does not hold: name the file that collect read, with
the same options.
"""


@click.command(epilog=_FIT_EXAMPLES)
@RUN
@click.option(
    "--method",
    help="bayes (the default), likelihood, log_ols, amortized, or auto (chosen by a backtest).",
)
@click.option(
    "--family",
    help="power (c / k^alpha), series (a/k + b/k^1.5 + d/k^2) or its terms, such as series24; with "
    "bayes also ridge (terms 1 / (k + shift)) and blend (the mean of these).",
)
@click.option("--backtest", is_flag=True, help="Tell how well held-out sizes are predicted.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Default: RUN/laws.parquet.")
@click.option("--data", type=click.Path(path_type=Path), help="File that the run was made from.")
@MEMORY
@reading
@common
def fit(
    run: Path,
    method: str | None,
    family: str | None,
    backtest: bool,
    out: Path | None,
    data: Path | None,
    memory: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Fit one law per point: its expected contribution at every size k."""
    import apiece
    from apiece import estimators
    from apiece.store import open_run

    opened = open_run(run)
    if opened.path is None and out is None:
        raise click.UsageError(
            f"{run} is in an object store, where laws are not kept: expected --out. Pass for "
            "example --out laws.parquet."
        )
    note_if_unfinished(opened, quiet)
    laws = apiece.fit(
        opened,
        method or estimators.DEFAULT_METHOD,
        family=family,
        dataset=None if data is None else read_all(data, options),
        backtest=backtest,
        memory=memory,
    )
    laws.save(out or run / "laws.parquet")
    if as_json:
        emit({"laws": str(out or run / "laws.parquet"), "summary": _summary(laws)})
        return
    say(laws.summary())
    if laws.has_backtest:
        say("\nbacktest: fitted on the smaller sizes, judged at the larger ones")
        say(laws.backtest().round(3).to_string(index=False))
    note(f"next: apiece show {run}, apiece value {run}, apiece select {run} --at ...", quiet=quiet)


@click.command(
    epilog="\b\nExamples:\n  apiece show runs/reviews\n  apiece show runs/reviews --point 17"
)
@RUN
@click.option("--point", help="Id of one point: its law, and what it is worth at some sizes.")
@click.option(
    "--at", type=int, help="Size at which points are ranked; default the largest sampled."
)
@click.option("--top", default=10, show_default=True, help="How many points at either end.")
@LEVEL
@OUT
@common
def show(
    run: Path,
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
    from apiece.store import open_run

    opened = open_run(run)
    laws = opened.laws()
    if point is not None:
        _show_point(laws, point, level, out, as_json)
        return
    size = at or laws.k_range[1]
    ranked = _at(laws, size, level).sort_values("value", ascending=False)
    if out is not None:
        write_table(ranked.join(laws.table().drop(columns=ranked.columns, errors="ignore")), out)
    whole = _aggregate(opened)
    if as_json:
        emit(
            {
                "run": str(run),
                "manifest": opened.manifest.to_json(),
                "certificate": opened.progress().certificate,
                "notes": opened.progress().notes,
                "aggregate": whole and whole.table().reset_index().to_dict("records"),
                "at": size,
                "summary": _summary(laws),
                "points": records(ranked),
            }
        )
        return
    say(repr(opened))
    say(_engine(opened))
    if whole:
        say(whole.headline())
    say(laws.summary())
    say()
    show_table(ranked.head(top), title=f"most helpful at k = {size:,}")
    say()
    show_table(ranked.tail(top)[::-1], title=f"most harmful at k = {size:,}")


def _aggregate(run: Run) -> Aggregate | None:
    """Return the law of the loss, or None where the run's tasks do not determine it."""
    import apiece
    from apiece.errors import FitError

    try:
        return apiece.aggregate(run)
    except FitError:
        return None


def note_if_unfinished(run: Run, quiet: bool) -> None:
    """Say how much of a run is there, if not all of it."""
    progress = run.progress()
    if not progress.is_complete:
        note(
            f"this run is unfinished: {progress.n_contributions:,} of {progress.n_planned:,} "
            "contributions are used. Repeat its collect command to complete it.",
            quiet=quiet,
        )


def _engine(run: Run) -> str:
    """Say what computed the contributions, and how far from the optimum it may have stopped."""
    progress, engine = run.progress(), run.manifest.engine
    words = ["exact" if engine.is_exact else "approximate"]
    if np.isfinite(progress.certificate):
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
    table["status"] = [str(status) for status in laws.status]
    return marked(table.rename_axis("point"), laws.attrs)


def _summary(laws: Laws) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for status in laws.status:
        counts[str(status)] = counts.get(str(status), 0) + 1
    summary = {"n_points": laws.n_points, "k_range": laws.k_range, "status": counts}
    return dict(plain({**summary, "diagnostics": laws.diagnostics, "attrs": laws.attrs}))


def _show_point(laws: Laws, point: str, level: float, out: Path | None, as_json: bool) -> None:
    import pandas as pd

    from apiece.collection import log_spaced

    one = laws.select(np.array([laws.position(point)]))
    low_k, high_k = laws.k_range
    sizes = np.array((*log_spaced(low_k, high_k, 5), 5 * high_k))
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
                "curve": curve.reset_index().to_dict("records"),
            }
        )
        return
    say(f"point {one.ids[0]}")
    for name, item in law.items():
        say(f"  {name:<10} {item:.4g}" if isinstance(item, float) else f"  {name:<10} {item}")
    show_table(curve, title=f"expected contribution with its {level:.0%} interval")
    say(f"  k = {sizes[-1]:,} lies beyond the sampled sizes {low_k:,} to {high_k:,}")
