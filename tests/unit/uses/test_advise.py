from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm
from scipy.stats import t as student

from apiece.errors import PlanError
from apiece.laws import FitStatus, Laws
from apiece.uses import ADVICE, doubted
from apiece.uses import advice_from_laws as advise


def laws_at(values, errors, k=1000):
    """Laws that are worth ``values`` at size k, with these standard errors, and no slope."""
    values, errors = np.asarray(values, float), np.asarray(errors, float)
    cov = np.zeros((len(values), 2, 2))
    cov[:, 0, 0] = errors**2
    return Laws.from_arrays(c=values, alpha=0.0, cov=cov, k_range=(100, k))


def test_each_decision_follows_from_its_probability():
    laws = laws_at([5.0, 1.0, -1.0, 0.1, -0.1], [0.1, 0.1, 0.1, 1.0, 1.0])
    table = advise(laws, best=0.2)
    assert table["advice"].tolist() == ["more like this", "keep", "drop", "uncertain", "uncertain"]
    assert_allclose(table["probability"][3:], norm.cdf(0.1))
    assert table["reason"][3].startswith("may help at 1,000 points, but only with probability 0.54")
    assert table["reason"][4].startswith("may harm")


def test_few_degrees_of_freedom_make_decisions_harder():
    normal = laws_at([1.5], [1.0])
    few = replace(normal, df=np.array([2.0]))
    assert_allclose(advise(normal)["probability"], norm.cdf(1.5))
    assert_allclose(advise(few)["probability"], student.cdf(1.5, 2))
    assert advise(normal)["advice"].item() != advise(few)["advice"].item() == "uncertain"


def test_a_point_without_a_law_is_uncertain_and_says_why():
    laws = Laws.from_arrays(c=[np.nan, 1.0], alpha=[np.nan, 1.0])
    table = advise(laws)
    assert table["advice"].tolist() == ["uncertain", "uncertain"]
    assert table["probability"].isna().all()
    assert str(FitStatus.TOO_FEW) in table["reason"][0]
    assert table["reason"][1] == "no uncertainty is known"


def test_the_size_decides():
    cov = np.tile(np.diag([1e-12, 1e-12]), (2, 1, 1))
    laws = Laws.from_arrays(c=[1.0, 1.0], alpha=[0.1, 3.0], cov=cov)
    assert advise(laws, at=100)["value"].tolist() == pytest.approx([100**-0.1, 1e-6])
    assert "at 100 points" in advise(laws, at=100)["reason"][0]


@given(
    values=st.lists(st.floats(-1, 1), min_size=1, max_size=8),
    level=st.floats(0.55, 0.99),
    seed=st.integers(0, 9),
)
def test_a_decision_is_as_probable_as_the_level_and_others_are_less(values, level, seed):
    errors = np.random.default_rng(seed).uniform(0.01, 1, len(values))
    table = advise(laws_at(values, errors), level=level)
    decided = (table["advice"] != "uncertain").to_numpy()
    assert (table["probability"][decided] >= level).all()
    assert (table["probability"][~decided] < level).all()
    assert set(table["advice"]) <= set(ADVICE)
    helps = norm.cdf(np.array(values) / errors)
    assert ((table["advice"] == "drop") == (1 - helps >= level)).all()


def test_a_label_is_doubted_where_others_are_sure_of_another():
    plausible = pd.DataFrame(
        {
            "label": ["cat"] * 4,
            "plausibility": [0.1, 0.3, 0.9, 0.2],
            "likeliest": ["dog", "dog", "cat", "dog"],
            "p_likeliest": [0.9, 0.7, 0.9, 0.75],
        },
        index=["a", "b", "c", "d"],
    )
    assert doubted(plausible).index.tolist() == ["a", "d"]


def test_doubted_points_are_advised_their_new_label_with_its_probability():
    laws = laws_at([-1.0, -1.0, 1.0, 0.1], [0.1, 0.1, 0.1, 1.0])
    found = pd.DataFrame(
        {
            "label": ["cat", "cat"],
            "relabel_to": ["dog", "cow"],
            "gain": [2.0, -0.1],
            "p_likeliest": [0.97, 0.8],
        },
        index=[0, 3],
    )
    table = advise(laws, relabelled=found)
    assert table["advice"].tolist() == ["relabel", "drop", "more like this", "relabel"]
    assert table["probability"][[0, 3]].tolist() == [0.97, 0.8]
    assert table.loc[0, "reason"] == (
        "is rather dog than cat to models that have not seen it, and worth more so"
    )
    assert table.loc[3, "reason"].endswith(
        "rather cow than cat to models that have not seen it, and worth less so"
    )
    assert table["relabel_to"].isna().tolist() == [False, True, True, False]
    assert table["gain"].isna().tolist() == [False, True, True, False]


@pytest.mark.parametrize("wrong", [{"level": 0.4}, {"level": 1.0}, {"best": 0.0}, {"best": 1.0}])
def test_a_level_or_share_out_of_range_is_refused(wrong):
    with pytest.raises(PlanError, match=next(iter(wrong))):
        advise(laws_at([1.0], [1.0]), **wrong)
