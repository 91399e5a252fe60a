r"""How a quantity spreads over points: $\alpha$, $\log_{10}|c|$, R², how fast values fade."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apiece._base.check import unknown_name
from apiece._base.typing import FloatArray
from apiece.laws import Laws
from apiece.plots._plane import exponent
from apiece.plots._style import axes, signs
from apiece.records import small_print

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def distribution(laws: Laws, of: str | None = None) -> FloatArray:
    r"""Return a quantity of every point that has it, with the sign of its law, shape ``(2, n)``.

    Parameters
    ----------
    laws
        Fitted laws.
    of
        A parameter (``alpha``, ``c``, ``a2``, ...), ``log|c|`` (base 10), ``exponent`` (how fast
        the value fades at the middle of the sampled sizes, for any family), ``sigma``, ``beta``
        or ``r2``; by default ``alpha`` where laws have it, else ``exponent``.

    Returns
    -------
    FloatArray
        The quantity, and the sign (1 or -1) of $\psi_k$ at the geometric mean of the sampled sizes.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[0.5, -0.2], alpha=[1.0, 0.5])
    >>> distribution(laws, "alpha")
    array([[ 1. ,  0.5],
           [ 1. , -1. ]])
    """
    of = _default(laws) if of is None else of
    known = ("exponent", *laws.family.parameters, "sigma", "beta", "r2")
    known = ("log|c|", *known) if "c" in known else known
    if of not in known:
        raise unknown_name("quantity", of, known)
    if of == "log|c|":
        with np.errstate(divide="ignore"):  # c = 0 is left out below
            values = np.log10(np.abs(laws.c))
    elif of == "exponent":
        values = exponent(laws, laws.k_ref)
    elif of in laws.family.parameters:
        values = laws.params[:, laws.family.parameters.index(of)]
    else:
        values = getattr(laws, of)
    keep = np.isfinite(values) & laws.has_law
    sign = np.where(laws.mean(laws.k_ref) >= 0, 1.0, -1.0)
    return np.stack([values[keep], sign[keep]])


def plot_histogram(
    laws: Laws, of: str | None = None, *, bins: int = 30, ax: Axes | None = None
) -> Axes:
    """Plot how a quantity spreads over the points, those that help and those that harm stacked.

    The bins span the middle 98 % of the points; those beyond are counted in the outermost bins.

    Parameters
    ----------
    laws
        Fitted laws.
    of
        The quantity; see `distribution`.
    bins
        How many bins.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[0.5, -0.2], alpha=[1.0, 0.5])
    >>> plot_histogram(laws, "alpha").get_ylabel()
    'points'
    """
    of = _default(laws) if of is None else of
    values, sign = distribution(laws, of)
    words = {"log|c|": "log10 |c|", "r2": "R²", "exponent": f"exponent at k = {laws.k_ref:,.0f}"}
    with axes(ax) as ax:
        low, high = np.quantile(values, [0.01, 0.99]) if len(values) else (0.0, 1.0)
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
        ax.set_xlabel(words.get(of, of))
        ax.set_ylabel("points")
        ax.legend(title=small_print(laws.attrs))
    return ax


def _default(laws: Laws) -> str:
    return laws.family.decay or "exponent"
