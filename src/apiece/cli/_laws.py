"""``fit``, ``show``, ``value`` and ``select``: from stored contributions to laws and their uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from apiece.cli._common import (
    OUT,
    Sizes,
    common,
    emit,
    note,
    plain,
    records,
    show_table,
    write_table,
)

if TYPE_CHECKING:
    import pandas as pd

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


@click.command(epilog="\b\nExample:\n  apiece fit runs/reviews --method likelihood")
@RUN
@click.option("--method", default="likelihood", show_default=True, help="likelihood or log_ols.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Default: RUN/laws.parquet.")
@common
def fit(run: Path, method: str, out: Path | None, as_json: bool, quiet: bool) -> None:
    """Fit one law per point: its contribution at size k is about c / k^alpha."""
    from apiece import api
    from apiece.store import open_run

    opened = open_run(run)
    _say_if_unfinished(opened, quiet)
    laws = api.fit(opened, method=method)
    laws.save(out or run / "laws.parquet")
    if as_json:
        emit({"laws": str(out or run / "laws.parquet"), "summary": _summary(laws)})
        return
    click.echo(laws.summary())
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
@common
def show(
    run: Path, point: str | None, at: int | None, top: int, level: float, as_json: bool, quiet: bool
) -> None:
    """Show what a run holds and what its points are worth, or the law of one point."""
    from apiece.store import open_run

    opened = open_run(run)
    laws = _laws(opened, run, quiet)
    if point is not None:
        _show_point(laws, point, level, as_json)
        return
    size = at or laws.k_range[1]
    ranked = _at(laws, size, level).sort_values("value", ascending=False)
    if as_json:
        emit(
            {
                "run": str(run),
                "manifest": opened.manifest,
                "certificate": opened.progress().certificate,
                "notes": opened.progress().notes,
                "at": size,
                "summary": _summary(laws),
                "points": records(ranked),
            }
        )
        return
    click.echo(repr(opened))
    click.echo(_engine(opened))
    click.echo(laws.summary())
    click.echo()
    show_table(ranked.head(top), title=f"most helpful at k = {size:,}")
    click.echo()
    show_table(ranked.tail(top)[::-1], title=f"most harmful at k = {size:,}")


@click.command(epilog="\b\nExample:\n  apiece value runs/reviews --kind shapley -o values.csv")
@RUN
@click.option("--kind", default="shapley", show_default=True, help="Which value.")
@click.option("--sizes", type=Sizes(), help="Sizes to average over, 100:1000; default as sampled.")
@LEVEL
@OUT
@common
def value(
    run: Path,
    kind: str,
    sizes: tuple[int, ...] | None,
    level: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Value every point: its mean contribution over a range of sizes, in units of the loss."""
    from apiece import api
    from apiece.store import open_run

    if sizes is not None and len(sizes) != 2:
        raise click.BadParameter("expected a range such as 100:1000.", param_hint="--sizes")
    laws = _laws(open_run(run), run, quiet)
    table = api.value(laws, kind=kind, sizes=sizes, level=level)
    _deliver(table.sort_values("value", ascending=False), out, as_json, quiet)


@click.command(epilog="\b\nExample:\n  apiece select runs/reviews --at 1000 --take 20 -o picks.csv")
@RUN
@click.option("--at", type=int, required=True, help="Size of the training set they would join.")
@click.option("--take", type=int, default=20, show_default=True, help="How many points.")
@LEVEL
@OUT
@common
def select(
    run: Path, at: int, take: int, level: float, out: Path | None, as_json: bool, quiet: bool
) -> None:
    """Select the points that help most when the training set has a given size."""
    from apiece import api
    from apiece.store import open_run

    laws = _laws(open_run(run), run, quiet)
    _deliver(api.select(laws, take=take, at=at, level=level), out, as_json, quiet)


def _laws(run: Run, path: Path, quiet: bool) -> Laws:
    """Return the laws that were fitted last, fitting and keeping them if there are none."""
    from apiece import api
    from apiece.laws import Laws

    file = path / "laws.parquet"
    if file.exists():
        return Laws.load(file)
    _say_if_unfinished(run, quiet)
    note(f"no laws yet: fitting them by {api.DEFAULT_METHOD} into {file}", quiet=quiet)
    laws = api.fit(run)
    laws.save(file)
    return laws


def _say_if_unfinished(run: Run, quiet: bool) -> None:
    progress = run.progress()
    if not progress.is_complete:
        note(
            f"this run is unfinished: {progress.n_contributions:,} of {progress.n_planned:,} "
            "contributions are used. Repeat its collect command to complete it.",
            quiet=quiet,
        )


def _deliver(table: pd.DataFrame, out: Path | None, as_json: bool, quiet: bool) -> None:
    if "caveat" in table.attrs:
        note(table.attrs["caveat"], quiet=quiet)
    if out is not None:
        write_table(table, out)
    if as_json:
        emit(records(table))
        return
    show_table(table.head(20))
    if out is not None:
        note(f"{len(table):,} points written to {out}", quiet=quiet)
    elif len(table) > 20:
        note(f"the first 20 of {len(table):,} points; -o FILE writes all", quiet=quiet)


def _engine(run: Run) -> str:
    """Say what computed the contributions, and how far from the optimum it may have stopped."""
    progress, engine = run.progress(), run.manifest["engine"]
    words = ["exact" if engine["is_exact"] else "approximate"]
    if np.isfinite(progress.certificate):
        words.append(f"largest error left {progress.certificate:.0e}")
    words += [f"{count:,} {name}" for name, count in sorted(progress.notes.items())]
    return f"engine {engine['name']}: {', '.join(words)}"


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


def _show_point(laws: Laws, point: str, level: float, as_json: bool) -> None:
    import pandas as pd

    from apiece.sampling import log_spaced

    one = laws.select(np.array([laws.position(point)]))
    low_k, high_k = laws.k_range
    sizes = np.array((*log_spaced(low_k, high_k, 5), 5 * high_k))
    low, high = one.interval(sizes, level=level)
    curve = pd.DataFrame(
        {"value": one.mean(sizes)[0], "low": low[0], "high": high[0]},
        index=pd.Index(sizes, name="k"),
    )
    law = one.table().iloc[0]
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
    click.echo(f"point {one.ids[0]}")
    for name, item in law.items():
        click.echo(
            f"  {name:<10} {item:.4g}" if isinstance(item, float) else f"  {name:<10} {item}"
        )
    show_table(curve, title=f"expected contribution with its {level:.0%} interval")
    click.echo(f"  k = {sizes[-1]:,} lies beyond the sampled sizes {low_k:,} to {high_k:,}")
