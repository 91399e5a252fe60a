"""Laws for people: a table, a few lines, one line."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from apiece._base.typing import FloatArray
from apiece.laws.status import FitStatus
from apiece.records import caveat, in_words, marked, scope_of

if TYPE_CHECKING:
    import pandas as pd

    from apiece.laws._laws import Laws


def table(laws: Laws) -> pd.DataFrame:
    """Return one row for each point, indexed by its id."""
    import pandas as pd

    columns: dict[str, Any] = {} if laws.labels is None else {"label": laws.labels}
    columns |= {name: laws.params[:, j] for j, name in enumerate(laws.family.parameters)}
    columns |= {"sigma": laws.sigma, "beta": laws.beta, "r2": laws.r2}
    columns |= {"n_samples": laws.n_samples, "status": [str(member) for member in laws.status]}
    return marked(pd.DataFrame(columns, index=pd.Index(laws.ids, name="point")), laws.attrs)


def headline(laws: Laws) -> str:
    """Describe the laws in one line."""
    parts = [f"{int(laws.has_law.sum()):,} fitted"]
    if laws.has_law.any():
        decay = laws.family.decay
        if decay is not None:
            parts.append(f"median {decay} {np.nanmedian(laws.parameter(decay)):.2f}")
        helpful, _ = _signs(laws)
        parts.append(f"{100 * helpful:.0f} % helpful at {round(laws.k_ref):,} training points")
    scope, weakness = in_words(scope_of(laws.attrs)), caveat(laws.attrs)
    end = (f", {scope}" if scope else "") + (f" ({weakness})" if weakness else "")
    return f"{_title(laws)}: {', '.join(parts)}{end}"


def summary(laws: Laws) -> str:
    """Describe the laws in a few lines."""
    k_min, k_max = laws.k_range
    scope = in_words(scope_of(laws.attrs))
    rows = [] if scope is None else [("results are", scope)]
    rows += [
        ("points", f"{laws.n_points:,}, of which {int(laws.has_law.sum()):,} have a law"),
        ("sizes", f"{k_min:,} to {k_max:,}"),
    ]
    if laws.n_samples.any():
        low, high = int(laws.n_samples.min()), int(laws.n_samples.max())
        spread = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        rows.append(("contributions", f"{spread} per point"))
    if laws.has_law.any():
        helpful, harmful = _signs(laws)
        shares = f"{100 * helpful:.0f} % helpful, {100 * harmful:.0f} % harmful"
        rows.append((f"at {round(laws.k_ref):,}", shares))
    for key, words in (("overall_r2", "overall R²"), ("overall_r2_variance", "R² of variance")):
        if laws.diagnostics.get(key) is not None:
            rows.append((words, f"{laws.diagnostics[key]:.3f}"))
    weakness = caveat(laws.attrs)
    if weakness:
        rows.append(("caveat", weakness))
    counts = Counter(FitStatus(member) for member in laws.status)
    rows += [
        ("status" if j == 0 else "", f"{counts[member]:>7,}  {member}")
        for j, member in enumerate(sorted(counts, key=lambda member: -counts[member]))
    ]
    if laws.has_law.any():
        rows += [
            (name, _quantiles(laws.params[:, j]))
            for j, name in enumerate(laws.family.parameters)
            if name != laws.family.scale  # its size says nothing: it extrapolates to one point
        ]
    width = max(len(name) for name, _ in rows)
    return "\n".join([_title(laws), *(f"  {name:<{width}}  {text}" for name, text in rows)])


def _title(laws: Laws) -> str:
    by = laws.attrs.get("estimator")
    return f"{laws.n_points:,} {laws.family.name} laws" + (f" by {by}" if by else "")


def _quantiles(values: FloatArray) -> str:
    low, middle, high = np.nanquantile(values, [0.05, 0.5, 0.95])
    return f"median {middle:.3g}, 90 % of points {low:.3g} to {high:.3g}"


def _signs(laws: Laws) -> tuple[float, float]:
    """Return the shares of helpful and harmful points at the middle size, among those fitted."""
    psi = laws.mean(laws.k_ref)[laws.has_law]
    return float((psi > 0).mean()), float((psi < 0).mean())
