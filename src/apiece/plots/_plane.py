r"""Every point as a place in the plane of its law: $\alpha$ against $c$, or early against late."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.laws import Laws
from apiece.plots._style import axes, signs
from apiece.records import small_print

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MANY = 5_000  # points beyond which markers are drawn small and as one image


class Plane(NamedTuple):
    """The numbers behind the plot; every field but the last two has shape ``(n,)``.

    Examples
    --------
    >>> plane(Laws.from_arrays(c=[0.5, -0.2], alpha=[1.0, 0.5])).names
    ('alpha', '|c|')
    """

    ids: AnyArray
    x: FloatArray
    y: FloatArray
    helps: AnyArray
    names: tuple[str, str]
    has_log_y: bool = False


def exponent(laws: Laws, k: float) -> FloatArray:
    r"""Return how fast each point's value fades at a size, shape ``(n_points,)``.

    $$\alpha_i(k) = -\frac{\mathrm{d} \log|\psi_k|}{\mathrm{d} \log k}$$

    For a power law this is $\alpha$ at every size; where a curve passes zero it has no bound.

    Examples
    --------
    >>> exponent(Laws.from_arrays(c=[2.0], alpha=[1.5]), 300).round(6)
    array([1.5])
    """
    step = 1e-4
    below, at, above = laws.mean(k * np.exp(np.array([-step, 0.0, step]))).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((below - above) / (2 * step * at))


def plane(laws: Laws) -> Plane:
    r"""Place every point that has a law.

    Laws with a scale and a decay, as power laws have them, are placed by $(\alpha, |c|)$; others by
    what the point is worth at the smallest and at the largest sampled size.

    Examples
    --------
    >>> plane(Laws.from_arrays(c=[0.5, -0.2], alpha=[1.0, 0.5])).y
    array([0.5, 0.2])
    """
    known = laws.has_law
    helps = np.asarray(laws.mean(laws.k_ref) > 0)[known]
    scale, decay = laws.family.scale, laws.family.decay
    if scale is not None and decay is not None:
        x, y = laws.parameter(decay)[known], np.abs(laws.parameter(scale)[known])
        return Plane(laws.ids[known], x, y, helps, (decay, f"|{scale}|"), has_log_y=True)
    low, high = laws.k_range
    ends = laws.mean(np.array([low, high]))[known]
    names = (f"contribution at k = {low:,}", f"contribution at k = {high:,}")
    return Plane(laws.ids[known], ends[:, 0], ends[:, 1], helps, names)


def plot_plane(laws: Laws, *, ax: Axes | None = None) -> Axes:
    r"""Plot every point in the plane of its law; helpful and harmful ones by colour and marker.

    For power laws $|c|$ is on a log axis: points on a line of slope $\log k$ are worth the same at
    size $k$.

    Parameters
    ----------
    laws
        Fitted laws.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> plot_plane(Laws.from_arrays(c=[0.5, -0.2], alpha=[1.0, 0.5])).get_xlabel()
    'alpha'
    """
    numbers = plane(laws)
    many = len(numbers.ids) > _MANY
    with axes(ax) as ax:
        for (color, marker), where, word in zip(
            signs(), (numbers.helps, ~numbers.helps), ("helps", "harms"), strict=True
        ):
            ax.scatter(
                numbers.x[where],
                numbers.y[where],
                s=4 if many else 18,
                alpha=0.3 if many else 0.7,
                color=color,
                marker=marker,
                linewidths=0,
                rasterized=many,
                label=f"{word} ({where.sum():,})",
            )
        ax.set(xlabel=numbers.names[0], ylabel=numbers.names[1])
        if numbers.has_log_y:
            ax.set_yscale("log")
        else:
            ax.locator_params(nbins=6)
            ax.axhline(0, color="0.5", linewidth=0.8)
            ax.axvline(0, color="0.5", linewidth=0.8)
        ax.legend(title=small_print(laws.attrs))
    return ax
