r"""How a quantity spreads over points: $\alpha$, $\log_{10}|c|$, R², values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apiece._check import unknown_name
from apiece._typing import FloatArray
from apiece.laws import Laws
from apiece.plots._style import new_axes, signs, style
from apiece.records import caveat

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def spread(laws: Laws, of: str = "alpha") -> FloatArray:
    r"""Return a quantity of every point that has it, with the sign of its law, shape ``(2, n)``.

    Parameters
    ----------
    laws
        Fitted laws.
    of
        A parameter (``alpha``, ``c``, ``a2``, ...), ``log|c|`` (base 10), ``sigma``, ``beta`` or
        ``r2``.

    Returns
    -------
    FloatArray
        The quantity, and the sign (1 or -1) of $\psi_k$ in the middle of the sampled sizes.
    """
    known = ("log|c|", *laws.family.parameters, "sigma", "beta", "r2")
    if of not in known or (of == "log|c|" and "c" not in known):
        raise unknown_name("quantity", of, known)
    if of == "log|c|":
        with np.errstate(divide="ignore"):  # c = 0 is left out below
            values = np.log10(np.abs(laws.c))
    elif of in laws.family.parameters:
        values = laws.params[:, laws.family.parameters.index(of)]
    else:
        values = getattr(laws, of)
    keep = np.isfinite(values) & laws.has_law
    sign = np.where(laws.mean(laws.k_ref) >= 0, 1.0, -1.0)
    return np.stack([values[keep], sign[keep]])


def plot_histogram(
    laws: Laws, of: str = "alpha", *, bins: int = 30, ax: Axes | None = None
) -> Axes:
    """Plot how a quantity spreads over the points, those that help and those that harm stacked.

    The bins span the middle 99 % of the points; those beyond are counted in the outermost bins.

    Parameters
    ----------
    laws
        Fitted laws.
    of
        The quantity; see `spread`.
    bins
        How many bins.
    ax
        Axes to draw on; a new figure by default.
    """
    values, sign = spread(laws, of)
    with style():
        ax = ax if ax is not None else new_axes()
        low, high = np.quantile(values, [0.005, 0.995]) if len(values) else (0.0, 1.0)
        high = high if high > low else low + 1.0
        inside = np.clip(values, low, high)
        (blue, _), (orange, _) = signs()
        ax.hist(
            [inside[sign > 0], inside[sign < 0]],
            bins=np.linspace(low, high, bins + 1).tolist(),
            stacked=True,
            color=[blue, orange],
            hatch=["", "///"],
            edgecolor="white",
            linewidth=0.3,
            label=[f"helps ({(sign > 0).sum():,})", f"harms ({(sign < 0).sum():,})"],
        )
        if len(values):
            middle = float(np.median(values))
            ax.axvline(middle, color="0.5", linestyle=":", label=f"median {middle:.3g}")
        ax.set_xlabel({"log|c|": "log10 |c|", "r2": "R²"}.get(of, of))
        ax.set_ylabel("points")
        ax.legend(title=caveat(laws.attrs))
    return ax
