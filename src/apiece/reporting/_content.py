r"""Everything that a report shows, gathered into one description and some arrays.

The page computes values and intervals itself, for any size, as `Laws.interval` does: it holds the
local coordinates, their covariances, and the terms of the family. Of a family without terms it
holds curves at some sizes instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

import numpy as np

from apiece._base.check import some
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset, FilePath
from apiece.errors import DataError
from apiece.estimators import Aggregate
from apiece.laws import Family, FitStatus, Laws, quantile
from apiece.laws.beyond import quiet
from apiece.laws.provenance import plain, version
from apiece.losses import is_squared
from apiece.records import Table, caveat
from apiece.reporting import _details, _overview, _samples
from apiece.reporting._head import head
from apiece.reporting._payload import packed_size
from apiece.reporting._why import why
from apiece.store import Run
from apiece.uses import Advice, Quality

if TYPE_CHECKING:
    import pandas as pd

FORMAT: Final = 1
_ROOM: Final = 17_500_000  # bytes before base64, which keeps the file below 25 MB
_REACH: Final = 20  # how far beyond the sampled sizes the slider goes
_LOSS_REACH: Final = 2  # how far beyond the largest measured size the law of the loss goes
_MOST_LABELS: Final = 1000
_CURVE_ENTRIES: Final = 500_000  # numbers in curves that the page does not compute: 2 MB
_FEWEST_SIZES: Final = 9
_MOST_SIZES: Final = 65


class ReportOptions(TypedDict, total=False):
    """Options of `gather`, described in `apiece.report`."""

    dataset: Dataset | None
    rows: pd.DataFrame | FilePath | None
    ids: str | None
    images: Any
    advice: Advice | pd.DataFrame | None
    quality: Quality | None
    slices: Any
    aggregate: Aggregate | None
    notes: Sequence[str]
    title: str | None
    level: float


def gather(
    run: Run | None,
    table: Table,
    laws: Laws,
    *,
    dataset: Dataset | None = None,
    rows: pd.DataFrame | FilePath | None = None,
    ids: str | None = None,
    images: Any = None,
    advice: Advice | pd.DataFrame | None = None,
    quality: Quality | None = None,
    slices: Any = None,
    aggregate: Aggregate | None = None,
    notes: Sequence[str] = (),
    title: str | None = None,
    level: float = 0.9,
) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the description and the arrays of a report, ready for `pack`.

    ``table`` holds the contributions of ``run``, in memory or streamed; the options are those of
    `apiece.report`.
    """
    points = _samples.places(table, laws.ids)
    metric = laws.provenance.metric or "loss"
    known = None if rows is None else _details.keyed_rows(laws, rows, ids)
    known_rows = None if known is None else known.reindex([str(i) for i in laws.ids.tolist()])
    text = _details.text_column(known_rows)
    advised = advice if isinstance(advice, Advice) else None
    advice = advised.table() if advised is not None else advice
    description: dict[str, Any] = {
        "format": FORMAT,
        "version": version(),
        "title": title or _title(laws, run),
        "metric": metric,
        "level": level,
        "z": float(quantile(level)),
        **_described_laws(laws),
        "head": head(laws, run, dataset, quality, advised),
        "text": text,
        "curve_k": None,
        "facts": _overview.facts(laws, table, points, run, level),
        "advice_counts": _overview.advice_counts(advice),
        "loss": _loss(table, aggregate, level, metric),
    }
    arrays = _law_arrays(laws, level)
    if description["terms"] is None:
        k, curves = _curves(laws, description["k_reach"], level)
        description["curve_k"] = k.tolist()
        arrays |= curves
    _add_labels(description, arrays, laws)
    _add_advice(description, arrays, laws, advice)
    _add_samples(description, arrays, table, points)
    near = _details.neighbourhood(laws, dataset, known_rows)
    description |= near.description
    arrays |= near.arrays
    taken = sum(packed_size(array.tobytes()) for array in arrays.values())
    taken += packed_size("\n".join(description["ids"]).encode("utf-8"))
    room = _details.Room(_ROOM - taken)
    if dataset is not None and quality is not None:
        part = why(laws, dataset, quality, known, slices, text)
        if room.take(sum(packed_size(array.tobytes()) for array in part.arrays.values())):
            description |= part.description
            arrays |= part.arrays
    for part in (
        _details.columns(laws, dataset, known_rows, room),
        _details.pictures(laws, images, room),
    ):
        description |= part.description
        arrays |= part.arrays
    description["notes"] = [*notes, *room.notes]
    return dict(plain(description, "report")), arrays


def _described_laws(laws: Laws) -> dict[str, Any]:
    """Return what the page needs to know of the laws as a whole."""
    family, (k_min, k_max) = laws.family, laws.k_range
    return {
        "family": family.word,
        "parameters": list(family.parameters),
        "scale": family.scale,
        "decay": family.decay,
        "terms": _terms(family),
        "k_range": [k_min, k_max],
        "k_ref": laws.k_ref,
        "k_reach": [max(1, k_min // 2), max(_REACH * k_max, laws.k_pool)],
        "k_pool": laws.k_pool,
        "reach": laws.reach,
        "widening": 1.0 if laws.beyond is None else laws.beyond.widening,
        "n_pool": laws.provenance.n_pool,
        "ids": [str(name) for name in laws.ids.tolist()],
        "statuses": [str(member) for member in FitStatus],
        "status_counts": _overview.status_counts(laws),
        "caveat": caveat(laws.attrs),
    }


def _title(laws: Laws, run: Run | None) -> str:
    what = f"What {laws.n_points:,} points are worth"
    if run is None:
        return what
    file = (run.manifest.dataset.source or {}).get("file")
    name = "" if file is None else f"{Path(str(file)).name}: "
    target = run.manifest.dataset.target
    what = f"{what[0].lower() if name else 'W'}{what[1:]}"
    return f"{name}{what}" if target == "target" else f"{name}{what} for {target}"


def _law_arrays(laws: Laws, level: float) -> dict[str, AnyArray]:
    """Return parameters by name, coordinates that differ, covariances, and the rest.

    Covariances are upper triangles, widened so that the page, which knows one quantile, draws
    Student's intervals.
    """
    arrays: dict[str, AnyArray] = {
        f"param_{name}": laws.params[:, j] for j, name in enumerate(laws.family.parameters)
    }
    local = laws.family.to_local(laws.params, laws.k_ref)
    names = zip(laws.family.coordinates, laws.family.parameters, strict=True)
    arrays |= {f"local_{j}": local[:, j] for j, (one, two) in enumerate(names) if one != two}
    if laws.cov is not None:
        p = len(laws.family.parameters)
        wider = (quantile(level, laws.df) / quantile(level)) ** 2
        arrays |= {f"cov_{a}{b}": wider * laws.cov[:, a, b] for a in range(p) for b in range(a, p)}
    members = list(FitStatus)
    arrays["status"] = np.array(
        [members.index(FitStatus(status)) for status in laws.status], np.uint8
    )
    arrays["n_samples"] = laws.n_samples.astype(np.uint32)
    for name in ("sigma", "beta", "r2"):
        if np.isfinite(getattr(laws, name)).any():
            arrays[name] = getattr(laws, name).astype(np.float32)
    return arrays


def _terms(family: Family) -> list[dict[str, Any]] | None:
    """Return the terms that the page evaluates, each with a number or the place of a coordinate."""
    if family.page_terms is None:
        return None
    places = {name: {"coordinate": j} for j, name in enumerate(family.coordinates)}
    return [
        {"kind": kind} | (places[number] if isinstance(number, str) else {"number": number})
        for kind, number in family.page_terms
    ]


def _curves(
    laws: Laws, reach: Sequence[int], level: float
) -> tuple[FloatArray, dict[str, AnyArray]]:
    """Return sizes, equally far apart on a log scale, and curves with their intervals there."""
    count = int(np.clip(_CURVE_ENTRIES // max(1, laws.n_points), _FEWEST_SIZES, _MOST_SIZES))
    k = np.geomspace(reach[0], reach[1], count)
    with quiet():  # the page says what is extrapolated
        arrays = {"curve_mean": laws.mean(k).astype(np.float32)}
        low, high = laws.interval(k, level=level)
    if laws.cov is not None:
        arrays |= {"curve_low": low.astype(np.float32), "curve_high": high.astype(np.float32)}
    return k, arrays


def _add_labels(description: dict[str, Any], arrays: dict[str, AnyArray], laws: Laws) -> None:
    """Add labels as codes into a list of names, or quantities as they are."""
    if laws.labels is None:
        return
    names, codes = np.unique(laws.labels.astype(str), return_inverse=True)
    kind = laws.labels.dtype.kind
    if kind == "f" or (kind in "iu" and len(names) > _MOST_LABELS):
        arrays["label_number"] = laws.labels.astype(np.float64)
        return
    description["labels"] = names.tolist()
    arrays["label"] = _small(codes)


def _add_advice(
    description: dict[str, Any], arrays: dict[str, AnyArray], laws: Laws, advice: Any
) -> None:
    """Add a word of advice for each point, with its reason and probability where given."""
    if advice is None:
        return
    if "advice" not in advice.columns:
        raise DataError(
            f"the advice has the columns {some(advice.columns.tolist())}: expected advice, and "
            "perhaps reason and probability, indexed by point id. Pass what apiece.advise returns."
        )
    table = advice.set_axis(advice.index.map(str), axis=0)
    table = table[~table.index.duplicated()].reindex([str(name) for name in laws.ids.tolist()])
    for name, plural in (("advice", "advices"), ("reason", "reasons")):
        if name not in table.columns:
            continue
        words = np.array(["" if w is None or w != w else str(w) for w in table[name]], dtype=object)
        names, codes = np.unique(words.astype(str), return_inverse=True)
        description[plural] = names.tolist()
        arrays[name] = _small(codes)
    if "probability" in table.columns:
        arrays["probability"] = np.asarray(table["probability"], dtype=np.float32)


def _small(codes: IntArray) -> AnyArray:
    """Return codes in the smallest type that holds them."""
    return codes.astype(np.min_scalar_type(int(codes.max(initial=0))))


def _add_samples(
    description: dict[str, Any], arrays: dict[str, AnyArray], table: Table, points: IntArray
) -> None:
    """Add means by size of every point, and every contribution where they are few."""
    means = _samples.means_by_size(table).of(points)
    description["bins"] = means.k.tolist()
    arrays["bin_mean"] = means.mean.astype(np.float32)
    arrays["bin_error"] = means.error.astype(np.float32)
    one_by_one = _samples.raw(table, points)
    if one_by_one is not None:
        arrays["sample_start"] = one_by_one.start.astype(np.uint32)
        arrays["sample_k"] = one_by_one.k.astype(np.uint32)
        arrays["sample_delta"] = one_by_one.delta.astype(np.float32)


def _loss(
    table: Table, aggregate: Aggregate | None, level: float, metric: str
) -> dict[str, Any] | None:
    """Return mean losses by size, and the aggregate law with its interval if there is one.

    Squared errors become their roots, which are in units of the target.
    """
    means = _samples.loss_by_size(table)
    if not len(means.k):
        return None
    listed = {"k": means.k, "mean": means.mean[0], "error": means.error[0]}
    found: dict[str, Any] = {name: numbers.tolist() for name, numbers in listed.items()}
    if aggregate is not None:
        k_min, k_max = aggregate.k_range[0], aggregate.k_known
        anchor = aggregate.anchor
        if anchor is not None:
            for name, number in (("k", anchor.k), ("mean", anchor.loss), ("error", anchor.stderr)):
                found[name].append(float(number))
        k = np.unique(np.append(np.geomspace(k_min, _LOSS_REACH * k_max, 60), float(k_max)))
        low, high = aggregate.interval(k, level=level)
        curves = {"curve_k": k, "curve": aggregate.mean(k), "low": low, "high": high}
        found |= {name: numbers.tolist() for name, numbers in curves.items()}
        found["k_range"] = [k_min, k_max]
    found["name"] = metric.replace("_", " ")
    return _rooted(found) if is_squared(metric) else found


def _rooted(loss: dict[str, Any]) -> dict[str, Any]:
    """Turn squared errors by size into their roots."""
    mean = np.sqrt(np.maximum(loss["mean"], 0.0))
    error = np.asarray(loss["error"]) / (2 * np.maximum(mean, 1e-300))
    curves = {
        name: np.sqrt(np.maximum(loss[name], 0.0)).tolist()
        for name in ("curve", "low", "high")
        if name in loss
    }
    return (
        loss
        | curves
        | {"mean": mean.tolist(), "error": error.tolist(), "name": "RMSE", "is_root": True}
    )
