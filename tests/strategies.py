"""Hypothesis strategies: tables of contributions, plain and nasty, and laws."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from apiece.laws import FitStatus, Laws, Power, Series
from apiece.records import Contributions

SIZES = ((100, 1000), (10, 50), (1, 10_000), (500, 503))


@st.composite
def contributions(draw, max_points=4, max_samples=30):
    """Noisy power laws over a range of sizes: what a run looks like."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_points = draw(st.integers(1, max_points))
    samples = draw(st.integers(5, max_samples))
    k_min, k_max = draw(st.sampled_from(SIZES[:3]))
    noise = 10.0 ** draw(st.floats(-3, 1))
    alpha = rng.uniform(0.3, 2.5, n_points)
    k = rng.integers(k_min, k_max, (samples, 1), endpoint=True) * np.ones((1, n_points), int)
    k[0], k[1] = k_min, k_max
    height = rng.standard_normal(n_points)
    error = noise * rng.standard_normal(k.shape) * (k / k_max) ** -1.2
    delta = height * (k / k_max) ** -alpha + error
    return Contributions.from_arrays(
        task=np.repeat(np.arange(samples), n_points),
        k=k.ravel(),
        point=np.tile(np.arange(n_points), samples),
        delta=delta.ravel(),
    )


@st.composite
def nasty_contributions(draw, max_points=4, max_samples=10, scales=(1.0, 1e150, 1e-150)):
    """Whatever can go wrong: constants, zeros, one size, ties, outliers, extreme units."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    points, sizes, deltas = [], [], []
    for point in range(draw(st.integers(1, max_points))):
        m = draw(st.integers(3, max_samples))
        k_min, k_max = draw(st.sampled_from(SIZES))
        k = rng.integers(k_min, k_max, m, endpoint=True)
        if draw(st.booleans()):
            k = rng.choice([k_min, k_max], m)
        kind = draw(st.sampled_from(_KINDS))
        delta = _values(kind, rng, k)
        if kind == "one size":
            k[:] = k[0]
        points += [point] * m
        sizes += k.tolist()
        deltas += np.clip(delta * draw(st.sampled_from(scales)), -1e150, 1e150).tolist()
    return Contributions.from_arrays(point=points, k=sizes, delta=deltas)


_KINDS = (
    "noise",
    "constant",
    "zeros",
    "mostly zeros",
    "one size",
    "ties",
    "cancelling",
    "outlier",
    "exact",
    "nearly exact",
    "wild scales",
)


def _values(kind, rng, k):
    noise = rng.standard_normal(len(k))
    exact = k ** -rng.uniform(0, 4)
    match kind:
        case "constant":
            return np.full(len(k), noise[0])
        case "zeros":
            return np.zeros(len(k))
        case "mostly zeros":
            return np.where(np.arange(len(k)) == 0, noise, 0.0)
        case "ties":
            return rng.integers(-2, 3, len(k)).astype(float)
        case "cancelling":
            return np.where(np.arange(len(k)) % 2 == 0, 1.0, -1.0)
        case "outlier":
            return noise * np.where(np.arange(len(k)) == 0, 1e6, 1.0)
        case "exact":
            return exact
        case "nearly exact":
            return exact * (1 + 1e-9 * noise)
        case "wild scales":
            return noise * 10.0 ** rng.integers(-30, 30, len(k))
        case _:
            return noise


@st.composite
def laws(draw):
    """Laws of either family, with names, labels, gaps and uncertainty in all combinations."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(0, 6))
    terms = st.sampled_from([(2,), (2, 4), (2, 3, 4)])
    family = draw(st.one_of(st.just(Power()), terms.map(Series)))
    p = len(family.parameters)
    params = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-30, 30, (n, p))
    if family == Power():
        params[:, 1] = rng.normal(1.2, 1.0, n)
    has_law = rng.random(n) < 0.8
    params[~has_law] = np.nan
    root = rng.standard_normal((n, p, p))
    cov = root @ root.transpose(0, 2, 1) if draw(st.booleans()) else None
    names = draw(st.sampled_from([np.arange, _text, _objects]))
    return Laws.from_arrays(
        family=family,
        params=params,
        cov=cov if cov is None else (cov + cov.transpose(0, 2, 1)) / 2,
        df=draw(st.sampled_from([None, 7.0, np.inf])),
        sigma=rng.exponential(size=n),
        beta=rng.normal(2, 1, n),
        r2=np.where(rng.random(n) < 0.5, np.nan, rng.random(n)),
        n_samples=rng.integers(0, 1000, n),
        status=[rng.choice(list(FitStatus)) if ok else FitStatus.TOO_FEW for ok in has_law],
        ids=names(n),
        labels=draw(st.sampled_from([None, np.arange(n) % 2, _text(n), np.linspace(0, 1, n)])),
        k_range=draw(st.sampled_from(SIZES)),
        attrs={"seed": 3, "design": {"sizes": [1, 2], "word": "grid"}, "nothing": None},
        diagnostics={"overall_r2": 0.1 + 0.2},
    )


def _text(n):
    return np.array([f"point é {j}" for j in range(n)], dtype=str)


def _objects(n):
    column = np.empty(n, dtype=object)
    column[:] = [f"row-{j}" for j in range(n)]
    return column


@st.composite
def harmed(draw, whole):
    """Bytes of a file after a few changes: overwritten, cut out, doubled or cut short."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        end = min(len(data), at + draw(st.integers(1, 16)))
        how = draw(st.sampled_from(["overwrite", "remove", "double", "cut"]))
        if how == "overwrite":
            data[at:end] = draw(st.binary(min_size=end - at, max_size=end - at))
        elif how == "remove":
            del data[at:end]
        elif how == "double":
            data[at:at] = data[at:end]
        else:
            del data[at:]
    return bytes(data)
