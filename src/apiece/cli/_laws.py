"""``fit``, ``show``, ``value`` and ``select``: from stored contributions to laws and their uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from apiece.cli._common import (
    OUT,
    Numbers,
    Sizes,
    common,
    deliver,
    emit,
    note,
    plain,
    records,
    show_table,
    write_table,
)
from apiece.cli._data import read_all, reading
from apiece.errors import DataError
from apiece.valuation import KINDS

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
    default="bayes",
    show_default=True,
    help="bayes, likelihood, log_ols, amortized, or auto (chosen by a backtest).",
)
@click.option(
    "--family",
    help="power (c / k^alpha), series (a/k + b/k^1.5 + d/k^2), or its terms, such as series24.",
)
@click.option("--backtest", is_flag=True, help="Tell how well held-out sizes are foretold.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Default: RUN/laws.parquet.")
@click.option("--data", type=click.Path(path_type=Path), help="File that the run was made from.")
@MEMORY
@reading
@common
def fit(
    run: Path,
    method: str,
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
    from apiece import api
    from apiece.store import open_run

    opened = open_run(run)
    if opened.path is None and out is None:
        raise click.UsageError(
            f"{run} is in an object store, where laws are not kept: expected --out. Pass for "
            "example --out laws.parquet."
        )
    _say_if_unfinished(opened, quiet)
    settings: dict[str, Any] = {} if family is None else {"family": family}
    if data is not None:
        settings["dataset"] = read_all(data, options)
    laws = api.fit(opened, method=method, backtest=backtest, memory=memory, **settings)
    laws.save(out or run / "laws.parquet")
    if as_json:
        emit({"laws": str(out or run / "laws.parquet"), "summary": _summary(laws)})
        return
    click.echo(laws.summary())
    if laws.has_backtest:
        click.echo("\nbacktest: fitted on the smaller sizes, judged at the larger ones")
        click.echo(laws.backtest().round(3).to_string(index=False))
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
    laws = _laws(opened, run, quiet)
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
                "manifest": opened.manifest,
                "certificate": opened.progress().certificate,
                "notes": opened.progress().notes,
                "aggregate": whole and whole.table().reset_index().to_dict("records"),
                "at": size,
                "summary": _summary(laws),
                "points": records(ranked),
            }
        )
        return
    click.echo(repr(opened))
    click.echo(_engine(opened))
    if whole:
        click.echo(whole.headline())
    click.echo(laws.summary())
    click.echo()
    show_table(ranked.head(top), title=f"most helpful at k = {size:,}")
    click.echo()
    show_table(ranked.tail(top)[::-1], title=f"most harmful at k = {size:,}")


@click.command(
    epilog="""
\b
Examples:
  apiece value runs/reviews --kind shapley -o values.csv
  apiece value runs/reviews --kind beta-shapley --beta 4,1 --sizes 100:1000 --top 20
  apiece value runs/reviews --source samples --json
"""
)
@RUN
@click.option("--kind", default="shapley", show_default=True, help=f"{', '.join(KINDS)}.")
@click.option("--sizes", type=Sizes(), help="Sizes that count, 100:1000; default as sampled.")
@click.option("--n", type=int, help="Points of the game, for all kinds but shapley; the pool's.")
@click.option("--beta", default="16,1", show_default=True, help="Shape a,b of Beta Shapley.")
@click.option("--weights", type=Numbers(), help="Weights of your own: 100=0.5,1000=0.5.")
@click.option("--source", default="law", show_default=True, help="law, or samples (Monte Carlo).")
@click.option("--top", type=int, help="Also rank, with the chance to be among so many best.")
@MEMORY
@LEVEL
@OUT
@common
def value(
    run: Path,
    sizes: tuple[int, ...] | None,
    beta: str,
    weights: dict[str, float] | None,
    source: str,
    memory: str | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Value every point: a weighted sum of its contributions over sizes, in units of the loss."""
    from apiece import api
    from apiece.store import open_run

    opened = open_run(run)
    a, b = _shape(beta)
    table = api.value(
        opened if source == "samples" else _laws(opened, run, quiet, memory),
        sizes=in_range(sizes),
        weights=_size_weights(weights),
        source=source,
        memory=memory,
        a=a,
        b=b,
        **options,
    )
    deliver(table.sort_values("value", ascending=False), out, as_json, quiet)


@click.command(
    epilog="""
\b
Examples:
  apiece select runs/reviews --at 1000 --take 20 -o picks.csv
  apiece select runs/reviews --at 1000 --until 5000 --quotas cat=10,dog=10
  apiece select runs/reviews --at 1000 --costs prices.csv --budget 250
  apiece select runs/reviews --at 1000 --data reviews.csv --target label
  apiece select runs/reviews --at 1000 --redundancy none
"""
)
@RUN
@click.option("--at", type=int, required=True, help="Size of the training set they would join.")
@click.option("--take", type=int, help="How many; 20 unless quotas or a budget say.")
@click.option("--until", type=int, help="Size it will grow to: ranks by the mean on the way.")
@click.option("--quotas", help="How many of each class, cat=10,dog=5; or balanced.")
@click.option("--costs", type=click.Path(path_type=Path), help="CSV with columns point, cost.")
@click.option("--budget", type=float, help="What the picks may cost together.")
@click.option(
    "--redundancy",
    default="auto",
    show_default=True,
    help="aware: value picks together, by training; none: one by one; auto: aware if quick.",
)
@click.option(
    "--data", type=click.Path(path_type=Path), help="The file given to collect, if moved."
)
@click.option("--draws", default=20, show_default=True, help="Training sets a pick, if aware.")
@click.option("--shortlist", type=int, help="Points valued together, if aware; 10 a pick.")
@click.option("--random-state", default=0, show_default=True, help="Seed of what is drawn.")
@reading
@LEVEL
@OUT
@common
def select(
    run: Path,
    take: int | None,
    quotas: str | None,
    costs: Path | None,
    budget: float | None,
    data: Path | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Select the points that help most when the training set has a given size.

    Options from --target on say how --data is read, and are those of collect.
    """
    from apiece import api
    from apiece.store import open_run

    opened = open_run(run)
    laws = _laws(opened, run, quiet)
    dataset = api.data_of(opened) if data is None else read_all(data, options)
    table = api.select(
        laws,
        take=20 if take is None and quotas is None and budget is None else take,
        quotas=quotas if quotas in (None, "balanced") else _counts(str(quotas)),
        costs=None if costs is None else _costs(costs),
        budget=budget,
        dataset=dataset,
        **{name: options[name] for name in _SELECT_OPTIONS},
    )
    deliver(table, out, as_json, quiet)
    if not as_json:
        total = f"expected gain of all {len(table):,} picks"
        how = "together" if "alone" in table else "one by one, as if they shared nothing"
        note(f"{total}, {how}: {table['value'].sum():.4g}", quiet=quiet)


_SELECT_OPTIONS = ("at", "until", "redundancy", "draws", "shortlist", "random_state", "level")


def in_range(sizes: tuple[int, ...] | None) -> tuple[int, int] | None:
    """Return a range of sizes, or complain of a list of them."""
    if sizes is None:
        return None
    if len(sizes) != 2:
        raise click.BadParameter("expected a range such as 100:1000.", param_hint="--sizes")
    return sizes[0], sizes[1]


def _size_weights(weights: dict[str, float] | None) -> dict[int, float] | None:
    try:
        return None if weights is None else {int(k): w for k, w in weights.items()}
    except ValueError:
        raise click.BadParameter(
            "expected sizes and weights such as 100=0.5,1000=0.5.", param_hint="--weights"
        ) from None


def _shape(beta: str) -> tuple[float, float]:
    try:
        a, b = (float(part) for part in beta.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{beta!r} is no shape: expected two numbers such as 16,1.", param_hint="--beta"
        ) from None
    return a, b


def _counts(quotas: str) -> dict[str, int]:
    named = Numbers().convert(quotas, None, None)
    if any(count != int(count) for count in named.values()):
        raise click.BadParameter(f"{quotas!r}: expected whole numbers.", param_hint="--quotas")
    return {name: int(count) for name, count in named.items()}


def _costs(path: Path) -> pd.Series:
    """Read a CSV file of costs by point."""
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype={"point": str})
        return table.set_index("point")["cost"]
    except (OSError, KeyError, ValueError) as error:
        raise DataError(
            f"{path} holds no costs ({str(error).splitlines()[0]}): expected a CSV file with the "
            "columns point and cost. Name them so."
        ) from error


def fitted(path: Path, quiet: bool) -> Laws:
    """Return the laws of the run in a folder, fitting them if there are none."""
    from apiece.store import open_run

    return _laws(open_run(path), path, quiet)


def _laws(run: Run, path: Path, quiet: bool, memory: str | None = None) -> Laws:
    """Return the laws that were fitted last, fitting and keeping them if there are none."""
    from apiece import api
    from apiece.laws import Laws

    file = path / "laws.parquet"
    if file.exists():
        return Laws.load(file)
    _say_if_unfinished(run, quiet)
    note(f"no laws yet: fitting them by {api.DEFAULT_METHOD} into {file}", quiet=quiet)
    laws = api.fit(run, memory=memory)
    laws.save(file)
    return laws


def _aggregate(run: Run) -> Aggregate | None:
    """Return the law of the loss, or None where the run's tasks do not determine it."""
    from apiece import api
    from apiece.errors import FitError

    try:
        return api.aggregate(run)
    except FitError:
        return None


def _say_if_unfinished(run: Run, quiet: bool) -> None:
    progress = run.progress()
    if not progress.is_complete:
        note(
            f"this run is unfinished: {progress.n_contributions:,} of {progress.n_planned:,} "
            "contributions are used. Repeat its collect command to complete it.",
            quiet=quiet,
        )


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


def _show_point(laws: Laws, point: str, level: float, out: Path | None, as_json: bool) -> None:
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
    click.echo(f"point {one.ids[0]}")
    for name, item in law.items():
        click.echo(
            f"  {name:<10} {item:.4g}" if isinstance(item, float) else f"  {name:<10} {item}"
        )
    show_table(curve, title=f"expected contribution with its {level:.0%} interval")
    click.echo(f"  k = {sizes[-1]:,} lies beyond the sampled sizes {low_k:,} to {high_k:,}")
