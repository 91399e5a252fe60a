"""``apiece demo``: everything once, on built-in data with something to find in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from apiece.cli._common import common
from apiece.cli._print import emit, note, records, say, say_prose, show_table

if TYPE_CHECKING:
    import pandas as pd

    from apiece.laws import Laws
    from apiece.records import Contributions
    from apiece.uses import Advice

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
    import numpy as np

    import apiece
    from apiece.data import load_demo

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
    pair = _crossing(laws)
    figure = _draw(laws, values, pair, run.contributions(), to / "demo.png", quiet)
    advice = apiece.advise(dataset, progress=False if quiet else None)
    report = apiece.report(
        run,
        laws,
        to=to / "report.html",
        dataset=dataset,
        advice=advice,
        title="What 369 tumours are worth, some of them with a flipped label",
    )
    facts = _Facts(laws, values.sort_values("value"), pair, advice)
    files = {"run": str(to), "figure": figure, "report": str(report)}
    if as_json:
        emit(facts.to_json() | files)
        return
    facts.show(n_clean=len(dataset.y_val))
    say(f"the run is in {to}: apiece show {to}")
    for file in filter(None, (figure, report)):
        say(f"open {file}")


class _Facts(NamedTuple):
    """What the demo shows: laws, points from worst to best, a crossing, and advice."""

    laws: Laws
    ranked: pd.DataFrame
    pair: pd.DataFrame
    advice: Advice

    @property
    def n_flipped(self) -> int:
        return int(self.ranked["flipped"].sum())

    @property
    def n_found(self) -> int:
        """How many flipped labels are among as many of the lowest values."""
        return int(self.ranked["flipped"].head(self.n_flipped).sum())

    def relabelled(self) -> tuple[int, int]:
        """Return how many rows to relabel there are, and how many of them are flipped."""
        names = self.advice.rows.index[self.advice["advice"] == "relabel"]
        return len(names), int(self.ranked["flipped"].reindex(names).sum())

    def to_json(self) -> dict[str, Any]:
        n_relabelled, n_right = self.relabelled()
        return {
            "n_points": len(self.ranked),
            "n_flipped": self.n_flipped,
            "n_found": self.n_found,
            "advice": self.advice.headline(),
            "n_relabelled": n_relabelled,
            "n_relabelled_flipped": n_right,
            "most_helpful": records(self.ranked.tail(5)[::-1]),
            "most_harmful": records(self.ranked.head(5)),
            "crossing": self.pair.to_dict("records"),
            "scope": self.laws.scope,
        }

    def show(self, n_clean: int) -> None:
        low, high = self.laws.k_range
        best = f"most helpful (mean contribution, k = {low} to {high})"
        say_prose(self.laws.summary())
        say()
        show_table(self.ranked.tail(5)[::-1], title=best)
        say()
        show_table(self.ranked.head(5), title="most harmful")
        say()
        n = self.n_flipped
        say(
            f"flipped labels: {self.n_found} of the {n} are among the {n} most harmful points "
            f"(at random: {n**2 / len(self.ranked):.0f})"
        )
        n_relabelled, n_right = self.relabelled()
        say_prose(f"advice: {self.advice.headline()}")
        say_prose(
            f"{n_right} of the {n_relabelled} rows to relabel are flipped. Advice needs no rows "
            f"with right labels; the values above were scored on {n_clean} such rows."
        )
        for row in self.pair.itertuples(index=False):
            say(
                f"crossing: point {row.first} is worth more than point {row.second} up to k = "
                f"{row.at:.0f}, and less beyond"
            )


def _crossing(laws: Laws) -> pd.DataFrame:
    """Return two points that help at all sizes, and the size at which their order changes."""
    from apiece.laws import FitStatus
    from apiece.uses import crossings

    is_clear = (laws.mean(laws.k_range) > 0).all(axis=1) & (laws.status == FitStatus.OK)
    return crossings(laws.select(is_clear), most=1)


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
