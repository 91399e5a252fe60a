"""Numbers that the paper reports, by table: Covert, Ji, Hashimoto and Zou, ICML 2024.

Measured numbers are shown next to them. The paper uses MiniBooNE; it reports nothing for HIGGS and
MAGIC.
"""

from __future__ import annotations

from typing import Final, NamedTuple

DATASETS: Final = ("miniboone", "cifar10", "imdb")  # the columns of most tables


class Spread(NamedTuple):
    """A mean and a standard deviation over repeats."""

    mean: float
    std: float


def _columns(*values: float) -> dict[str, float]:
    return dict(zip(DATASETS, values, strict=True))


def _spreads(*values: float) -> dict[str, Spread]:
    pairs = zip(values[::2], values[1::2], strict=True)
    return dict(zip(DATASETS, (Spread(*pair) for pair in pairs), strict=True))


# Table 1: overall R² of predicted expected contributions.
OVERALL_R2: Final = {
    "logistic": _columns(0.993, 0.944, 0.985),
    "mlp": _columns(0.963, 0.942, 0.956),
    "svm": _columns(0.929, 0.963, 0.946),
}

# Table 2: Pearson correlation of alpha between models.
ALPHA_CORRELATION: Final = {
    ("logistic", "mlp"): _columns(-0.01, 0.38, 0.49),
    ("logistic", "svm"): _columns(0.18, 0.26, 0.50),
    ("svm", "mlp"): _columns(-0.04, 0.34, 0.27),
}

# Tables 3 and 4: Pearson correlation of values with true values, by number of samples per point.
VALUATION: Final = {
    10: {
        "Monte Carlo": _columns(0.967, 0.857, 0.916),
        "likelihood": _columns(0.858, 0.077, 0.342),
        "amortized": _columns(0.994, 0.893, 0.930),
    },
    50: {
        "Monte Carlo": _columns(0.988, 0.965, 0.981),
        "likelihood": _columns(0.995, 0.936, 0.985),
        "amortized": _columns(0.996, 0.931, 0.986),
    },
}

# Tables 5 to 8: rise of accuracy in percent, by points added and size of the set they join, and the
# accuracy before.
ADDITION: Final = {
    (20, 100): {
        "scaling 1000": _spreads(0.21, 1.03, 1.99, 0.97, 0.88, 0.96),
        "scaling 100": _spreads(0.47, 1.02, 3.28, 1.09, 2.22, 0.86),
        "shapley": _spreads(0.28, 1.02, 2.06, 0.92, 0.77, 1.20),
        "random": _spreads(0.44, 0.91, 2.01, 1.09, 1.00, 0.85),
        "preceding": _spreads(80.76, 1.58, 75.50, 1.97, 78.77, 1.64),
    },
    (20, 1000): {
        "scaling 1000": _spreads(0.20, 0.39, 0.17, 0.14, 0.13, 0.10),
        "scaling 100": _spreads(0.21, 0.34, 0.05, 0.06, 0.06, 0.05),
        "shapley": _spreads(0.22, 0.36, 0.18, 0.14, 0.11, 0.09),
        "random": _spreads(0.03, 0.20, 0.04, 0.13, 0.03, 0.10),
        "preceding": _spreads(83.92, 0.46, 85.38, 0.40, 85.45, 0.35),
    },
    (50, 200): {
        "scaling 2000": _spreads(0.27, 0.95, 1.51, 0.58, 0.71, 0.68),
        "scaling 200": _spreads(0.33, 0.98, 2.04, 0.59, 1.55, 0.61),
        "shapley": _spreads(0.28, 0.99, 1.50, 0.58, 1.19, 0.67),
        "random": _spreads(0.44, 0.68, 1.16, 0.57, 0.73, 0.53),
        "preceding": _spreads(81.99, 0.97, 80.51, 0.97, 81.71, 0.94),
    },
    (50, 2000): {
        "scaling 2000": _spreads(0.15, 0.33, 0.16, 0.13, 0.09, 0.09),
        "scaling 200": _spreads(0.14, 0.32, 0.11, 0.10, 0.06, 0.06),
        "shapley": _spreads(0.14, 0.32, 0.14, 0.13, 0.08, 0.06),
        "random": _spreads(0.01, 0.17, 0.05, 0.13, 0.03, 0.09),
        "preceding": _spreads(84.51, 0.37, 86.39, 0.35, 86.38, 0.24),
    },
}
