"""``apiece demo``: everything once, on built-in data with something to find in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from apiece.cli._common import common
from apiece.cli._print import emit, note, records, say, say_prose, show_table

if TYPE_CHECKING:
    import pandas as pd

    from apiece.laws import Laws
    from apiece.records import Contributions

_SIZES = (30, 240)
_SAMPLES = 200
_FLIPPED = 0.1


@click.command()
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the run, the laws, the figure and the report.",
)
@click.option("--jobs", default=-1, show_default=True, help="Worker processes; -1: one per core.")
@common
def demo(to: Path, jobs: int, as_json: bool, quiet: bool) -> None:
    """Value 369 tumours, a tenth of them with a flipped label, and find those. Seconds.

    The data is the Wisconsin breast cancer table that scikit-learn bundles. The demo collects
    contributions, fits a law for every point, and shows which points help, which harm, how many of
    the flipped labels are among the harmful ones, what to relabel and what that gains, and two
    points of which one is worth more in small datasets and the other in large ones.
    """
    import apiece
    from apiece.data import load_demo
    from apiece.laws import FitStatus
    from apiece.uses import crossings

    dataset, flipped = load_demo(flipped=_FLIPPED, random_state=0)
    note(
        f"{dataset.n_pool} points, of which {len(flipped)} carry a flipped label; "
        f"{len(dataset.y_val)} clean points to score on",
        quiet=quiet,
    )
    run = apiece.collect(
        dataset,
        sizes=_SIZES,
        samples=_SAMPLES,
        random_state=0,
        n_jobs=jobs,
        to=to,
        progress=not quiet,
    )
    laws = apiece.fit(run)
    laws.save(to / "laws.parquet")

    values = apiece.value(laws)
    values.insert(0, "label", laws.labels)
    values["flipped"] = np.isin(np.arange(len(values)), flipped)
    ranked = values.sort_values("value")
    worst = ranked.head(len(flipped))
    is_clear = (laws.mean(laws.k_range) > 0).all(axis=1) & (laws.status == FitStatus.OK)
    pair = crossings(laws.select(is_clear), most=1)
    contributions = run.contributions()
    figure = _draw(laws, values, pair, contributions, to / "demo.png", quiet)
    advice = apiece.advise(dataset, progress=False if quiet else None)
    is_relabelled = (advice["advice"] == "relabel").to_numpy()
    n_right = int(np.isin(np.flatnonzero(is_relabelled), flipped).sum())
    report = apiece.report(
        run,
        laws,
        to=to / "report.html",
        dataset=dataset,
        advice=advice,
        title="What 369 tumours are worth, some of them with a flipped label",
    )
    if as_json:
        emit(
            {
                "run": str(to),
                "n_points": len(values),
                "n_flipped": len(flipped),
                "n_found": int(worst["flipped"].sum()),
                "advice": advice.headline(),
                "n_relabelled": int(is_relabelled.sum()),
                "n_relabelled_flipped": n_right,
                "most_helpful": records(ranked.tail(5)[::-1]),
                "most_harmful": records(ranked.head(5)),
                "crossing": pair.to_dict("records"),
                "figure": figure,
                "report": str(report),
                "scope": laws.scope,
            }
        )
        return
    low, high = laws.k_range
    say(laws.summary())
    say()
    show_table(ranked.tail(5)[::-1], title=f"most helpful (mean contribution, k = {low} to {high})")
    say()
    show_table(ranked.head(5), title="most harmful")
    say()
    say(
        f"flipped labels: {int(worst['flipped'].sum())} of the {len(flipped)} are among the "
        f"{len(flipped)} most harmful points (at random: {len(flipped) ** 2 / len(values):.0f})"
    )
    say_prose(f"advice: {advice.headline()}")
    say_prose(
        f"{n_right} of the {is_relabelled.sum()} rows to relabel are flipped. Advice needs no rows "
        f"with right labels; the values above were scored on {len(dataset.y_val)} such rows."
    )
    for row in pair.itertuples(index=False):
        say(
            f"crossing: point {row.first} is worth more than point {row.second} up to k = "
            f"{row.at:.0f}, and less beyond"
        )
    say(f"the run is in {to}: apiece show {to}")
    if figure:
        say(f"open {figure}")
    say(f"open {report}")


def _draw(
    laws: Laws,
    values: pd.DataFrame,
    pair: pd.DataFrame,
    contributions: Contributions,
    path: Path,
    quiet: bool,
) -> str | None:
    """Draw the demo's figure, or say what is missing for it."""
    from apiece import plots
    from apiece._base.optional import optional
    from apiece.errors import MissingExtraError

    try:
        figures: Any = optional("matplotlib.figure", extra="plots", purpose="Plots")
    except MissingExtraError as error:
        note(str(error), quiet=quiet)
        return None
    with plots.style():
        figure = figures.Figure(figsize=(10, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        ids = [] if pair.empty else [pair["first"].iloc[0], pair["second"].iloc[0]]
        if ids:
            plots.plot_curves(
                laws, ids, contributions=contributions, until=2 * laws.k_range[1], ax=left
            )
        left.set_title("Which point is worth more depends on the size")
        plots.plot_detection(values["value"], values["flipped"], ax=right)
        right.set_title("Flipped labels are found among the harmful points")
        figure.savefig(path)
    return str(path)
