r"""The amortized network: from features of a point to the coordinates of its law.

Several networks, the *members*, are evaluated together; each array of weights has a leading axis
for them. A member has two hidden layers and one head per class; for a point only the head of its
class is used. The heads give $o$, and with $x = \log(k/k_\mathrm{ref})$ the law is

$$\mu = \begin{cases} s\,o_0\,e^{-\alpha x},\ \alpha = \log(1 + e^{o_1 + 0.54}) & \text{power} \\
  s \sum_j o_j e^{-jx/2} & \text{series} \end{cases} \qquad
  v = s^2 e^{-\beta x},\ \log s = q_0,\ \beta = 2 + q_1 \in [0, e^2].$$

So heads predict the ratio of signal to noise, which is of the order of one even if contributions of
points differ by orders of magnitude. Terms linear in the point's gradient and in the size of its
effect are added to $o$. The noise $q$ is linear in the summaries, with a constant per class. Noise
heads are kept only if they lower the held-out loss; otherwise the network overfits the noise before
it learns the mean. With ``kind="paper"`` there are no such terms, the layers get the features only,
and a power law has $\mu = \tanh(o_0)\,e^{o_1 - \alpha x}$: separate heads for the sign and the
logarithm of $|c|$.

Reference: Covert et al. (ICML 2024), section 3.2 and appendix B.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from apiece._base.optional import optional
from apiece._base.typing import FloatArray
from apiece.estimators._reader import Inputs
from apiece.laws import Family

Kind = Literal["gradient", "paper"]
MOST_BETA: Final = float(np.exp(2.0))
_WIDEST: Final = 12.0  # largest change of log s, and largest log |c|


def load_torch() -> Any:
    """Return torch, or say how to install it."""
    return optional("torch", extra="torch", purpose="Amortized laws")


@dataclass(frozen=True)
class NetworkConfig:
    """The sizes of a member.

    Parameters
    ----------
    family
        Family of the laws, with ``p`` parameters.
    kind
        ``"gradient"`` or ``"paper"``.
    n_features
        Features of a point, the constant not counted.
    n_classes
        Number of heads: classes, or 1 for quantities.
    is_regression
        Whether targets are quantities.
    width
        Units of a hidden layer.
    """

    family: Family
    kind: Kind
    n_features: int
    n_classes: int
    is_regression: bool
    width: int

    @property
    def p(self) -> int:
        """Number of parameters of a law."""
        return len(self.family.parameters)

    @property
    def has_sign_head(self) -> bool:
        """Whether sign and magnitude of the one linear coordinate are predicted apart."""
        has_one = self.family.n_linear == 1 and not self.family.is_linear
        return self.kind == "paper" and has_one

    @property
    def arrays(self) -> dict[str, tuple[int, ...]]:
        """The arrays of weights by name, and their shapes without the axis of the members."""
        is_paper = self.kind == "paper"
        n_in = self.n_features + (int(self.is_regression) if is_paper else 4)
        n_out = self.p + self.has_sign_head
        layers: dict[str, tuple[int, ...]] = {
            "hidden_1": (n_in, self.width),
            "bias_1": (1, self.width),
            "hidden_2": (self.width, self.width),
            "bias_2": (1, self.width),
            "heads": (self.width, self.n_classes * n_out),
            "bias_3": (1, self.n_classes * n_out),
            "noise": (self.width, self.n_classes * 2),
            "bias_noise": (1, self.n_classes * 2),
        }
        if is_paper:
            return layers
        n_errors = 1 if self.is_regression else self.n_classes - 1
        return layers | {
            "gradient": (self.n_features + 1, n_errors * self.p),
            "size": (self.n_classes, self.p),
            "summary": (4, 2),
        }

    @property
    def fixed(self) -> tuple[tuple[str, ...], ...]:
        """Names of the arrays that keep their first values, for each way to train that is tried."""
        return ((),) if self.kind == "paper" else (("noise",), ())

    def start(
        self, n_members: int, rng: np.random.Generator, log_s: float
    ) -> dict[str, FloatArray]:
        """Draw first weights: usual for the hidden layers, small for the heads, zero elsewhere.

        The noise is ``log_s`` of all points at first.
        """
        weights = {}
        for name, shape in self.arrays.items():
            spread = {"hidden": np.sqrt(2 / shape[0]), "heads": 0.01}.get(name[:6].rstrip("_"), 0)
            weights[name] = spread * rng.standard_normal((n_members, *shape))
        weights["bias_noise"][..., ::2] = log_s
        return weights


def seen(shape: NetworkConfig, inputs: Inputs) -> FloatArray:
    """Return what the first layer sees, shape ``(n, n_in)``."""
    features = inputs.x[:, :-1]
    if shape.kind == "gradient":
        return np.column_stack([features, inputs.summary])
    return np.column_stack([features, inputs.summary[:, 0]]) if shape.is_regression else features


def hidden(weights: Mapping[str, Any], seen: Any) -> Any:
    """Return the units of the last hidden layer, shape ``(n_members, n, width)``."""
    first = (seen @ weights["hidden_1"] + weights["bias_1"]).relu()
    return (first @ weights["hidden_2"] + weights["bias_2"]).relu()


def local(
    shape: NetworkConfig, weights: Mapping[str, Any], points: Mapping[str, Any]
) -> tuple[Any, ...]:
    r"""Return coordinates of the laws, $\log s$ and $\beta$, in units of the contributions.

    Parameters
    ----------
    shape
        Sizes of a member.
    weights
        Tensors by name, with a leading axis of members.
    points
        Tensors ``seen``, ``x``, ``direction``, ``size``, ``root``, ``summary`` and ``label``.

    Returns
    -------
    tuple
        Coordinates of contributions of size one (`Family.scales`), shape ``(n_members, n, p)``;
        $\log s$ and $\beta$, ``(n_members, n)``.
    """
    torch = load_torch()
    p, label = shape.p, points["label"]
    n = len(label)
    last = hidden(weights, points["seen"])
    each = torch.arange(n, device=label.device)

    def of_label(heads: str, bias: str) -> Any:
        out = last @ weights[heads] + weights[bias]
        return out.reshape(*out.shape[:2], shape.n_classes, -1)[:, each, label]

    signal, noise = of_label("heads", "bias_3"), of_label("noise", "bias_noise")
    if shape.kind == "gradient":
        by_error = ((points["x"] / points["root"][:, None]) @ weights["gradient"]).reshape(
            len(signal), n, -1, p
        )
        signal = signal + (by_error * points["direction"][:, :, None]).sum(dim=2)
        signal = signal + points["size"][:, None] * weights["size"][:, label]
        noise = noise + points["summary"] @ weights["summary"]
    log_s = noise[..., 0].clamp(-_WIDEST, _WIDEST)
    beta = (2 + noise[..., 1]).clamp(0.0, MOST_BETA)
    if shape.has_sign_head:
        height = signal[..., :1].tanh() * signal[..., 1:2].clamp(-_WIDEST, _WIDEST).exp()
    else:
        height = signal[..., : shape.family.n_linear] * log_s.exp()[..., None]
    parts = [height]
    for j, prior in enumerate(shape.family.shapes.values()):
        at_zero = float(np.log(np.expm1(prior.typical - prior.low)))  # inverse softplus
        out = signal[..., signal.shape[-1] - len(shape.family.shapes) + j]
        parts.append((prior.low + torch.nn.functional.softplus(out + at_zero))[..., None])
    return torch.cat(parts, dim=-1), log_s, beta
