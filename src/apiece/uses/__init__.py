"""What laws are for: values, picks, advice, comparisons and analyses."""

from __future__ import annotations

from apiece.uses import baselines, interop
from apiece.uses._advice import ADVICE, Advice
from apiece.uses._advising import advise
from apiece.uses._agreement import agreement
from apiece.uses._baselines import leave_one_out, random_values
from apiece.uses._boundary import boundary, boundary_relation
from apiece.uses._crossings import crossing, crossings
from apiece.uses._exchange import exchange
from apiece.uses._gain import gain
from apiece.uses._kinds import (
    KINDS,
    Banzhaf,
    BetaShapley,
    DataShapley,
    Distributional,
    GivenWeights,
    Kind,
    LeaveOneOut,
    Semivalue,
    Weighting,
    as_semivalue,
)
from apiece.uses._means import means
from apiece.uses._models import compare_laws
from apiece.uses._movers import movers
from apiece.uses._neighbours import knn_shapley
from apiece.uses._plausible import plausibility
from apiece.uses._quality import Quality, quality
from apiece.uses._redundancy import GreedySelector
from apiece.uses._rules import Limits, Quotas, Rules, make_rules
from apiece.uses._run_data import data_again, data_of
from apiece.uses._samples import value_samples
from apiece.uses._selecting import Redundancy, select
from apiece.uses._sequence import sequence
from apiece.uses._theory import theory
from apiece.uses._valuing import Source, compare, value
from apiece.uses._weights import SizeWeights

__all__ = [
    "ADVICE",
    "KINDS",
    "Advice",
    "Banzhaf",
    "BetaShapley",
    "DataShapley",
    "Distributional",
    "GivenWeights",
    "GreedySelector",
    "Kind",
    "LeaveOneOut",
    "Limits",
    "Quality",
    "Quotas",
    "Redundancy",
    "Rules",
    "Semivalue",
    "SizeWeights",
    "Source",
    "Weighting",
    "advise",
    "agreement",
    "as_semivalue",
    "baselines",
    "boundary",
    "boundary_relation",
    "compare",
    "compare_laws",
    "crossing",
    "crossings",
    "data_again",
    "data_of",
    "exchange",
    "gain",
    "interop",
    "knn_shapley",
    "leave_one_out",
    "make_rules",
    "means",
    "movers",
    "plausibility",
    "quality",
    "random_values",
    "select",
    "sequence",
    "theory",
    "value",
    "value_samples",
]
