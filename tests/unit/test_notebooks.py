"""How objects look in a notebook, and how one law is picked out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import apiece
from apiece.errors import UnknownNameError


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    frame["<i>kind</i>"] = np.where(frame["a"] > 0, "<b>yes</b>", "no")
    frame.index = [f"<u>{i}</u>" for i in range(60)]
    data = apiece.Dataset.from_pandas(frame, target="<i>kind</i>", validation=20)
    return data, apiece.collect(data, sizes=(8, 20), samples=10, random_state=0, progress=False)


def test_objects_show_their_facts_in_a_notebook_and_escape_them(run):
    data, held = run
    laws = held.laws()
    shown = {
        "Dataset": data._repr_html_(),
        "Run": held._repr_html_(),
        "Laws": laws._repr_html_(),
        "Aggregate": apiece.aggregate(held)._repr_html_(),
        "Contributions": held.contributions()._repr_html_(),
    }
    for name, html in shown.items():
        assert html.startswith(f"<b>{name}")
        assert html.count("<table") == html.count("</table>") == 1
        for tag in ("<i>", "<u>", "<b>yes"):
            assert tag not in html
    assert "&lt;i&gt;kind&lt;/i&gt;" in shown["Dataset"]
    assert "&lt;u&gt;" in shown["Laws"]
    assert "logistic" in shown["Run"]
    assert "<th>sizes</th><td>8 to 20</td>" in shown["Contributions"]
    assert "<td>logistic</td>" in shown["Contributions"]


def test_the_law_of_one_point_is_found_by_its_id(run):
    laws = run[1].laws()
    point = laws.ids[3]
    assert laws[point].ids.tolist() == [point]
    assert_array_equal(laws[point].params, laws.params[3:4])
    assert [law.ids[0] for law in laws] == laws.ids.tolist()
    with pytest.raises(UnknownNameError, match="Did you mean '<u>"):
        laws["<u>3<u>"]


def test_a_run_is_a_table_of_contributions(run):
    table = run[1].table()
    assert table.equals(run[1].contributions().table())
    assert {"point", "k", "delta"} <= set(table.columns)
