from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import apiece
from apiece import Dataset
from apiece.errors import DataError
from apiece.uses import interop


@pytest.fixture(scope="module")
def advised():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 4)) + 2.2 * y[:, None]
    y[:20] = 1 - y[:20]
    dataset = Dataset.from_arrays(X, y, validation=0)
    return X, y, apiece.advise(dataset, progress=False)


class Rows:
    """What this module uses of datasets.Dataset."""

    def __init__(self, columns):
        self.columns = columns

    @property
    def column_names(self):
        return list(self.columns)

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name):
        return self.columns[name]

    def add_column(self, name, values):
        assert len(values) == len(self)
        return Rows(self.columns | {name: values})


class Samples:
    """What this module uses of a FiftyOne dataset."""

    def __init__(self):
        self.fields = {}

    def set_values(self, field, values, key_field=None):
        self.fields[field] = (values, key_field)


def test_columns_are_added_by_row_number_or_by_id():
    values = pd.DataFrame(
        {"value": [0.5, np.nan, 2.0], "label": ["a", None, "c"]},
        index=pd.Index([2, 0, 1], name="point"),
    )
    added = interop.add_columns(Rows({"text": ["x", "y", "z"]}), values)
    assert added.columns["apiece_value"] == [None, 2.0, 0.5]
    assert added.columns["apiece_label"] == [None, "c", "a"]
    named = values.set_axis(["r2", "r0", "r1"])
    rows = Rows({"name": ["r1", "other", "r2"]})
    added = interop.add_columns(rows, named, ids="name", columns=["value"], prefix="")
    assert added.columns["value"] == [2.0, None, 0.5]
    assert "label" not in added.columns


def test_columns_of_advice_are_matched_though_ids_are_text_in_the_dataset(advised):
    _, _, advice = advised
    rows = Rows({"name": [str(i) for i in range(200)]})
    added = interop.add_columns(rows, advice, ids="name", columns=["advice"])
    assert added.columns["apiece_advice"] == advice["advice"].tolist()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ids": "id"}, "no column 'id'"),
        ({"columns": ["worth"]}, "no column 'worth'"),
        ({"ids": "text"}, "no id of the table"),
    ],
)
def test_columns_that_cannot_be_added_are_refused(options, words):
    values = pd.DataFrame({"value": [1.0]}, index=["r0"])
    with pytest.raises(DataError, match=words):
        interop.add_columns(Rows({"text": ["x"]}), values, **options)


def test_fields_are_set_by_id(advised):
    _, _, advice = advised
    samples = Samples()
    interop.set_fields(samples, advice, columns=["advice", "to"], key_field="name")
    values, key = samples.fields["apiece_advice"]
    assert key == "name"
    assert values == {str(name): word for name, word in advice["advice"].items()}
    assert samples.fields["apiece_to"][0]["199"] is None or advice["advice"][199] != "keep"


def test_datalab_gets_scores_and_issues(advised):
    pytest.importorskip("cleanlab")
    X, y, advice = advised
    manager = interop.datalab_issue_manager()(SimpleNamespace(labels=y))
    manager.find_issues(advice=advice)
    table = advice.table()
    assert manager.issues["is_apiece_issue"].tolist() == (table["advice"] != "keep").tolist()
    np.testing.assert_allclose(manager.issues["apiece_score"], table["probability"])
    assert manager.issues["apiece_score"][:20].mean() < manager.issues["apiece_score"][20:].mean()
    assert manager.summary["issue_type"].tolist() == ["apiece"]
    assert manager.info["headline"] == advice.headline()
    again = interop.datalab_issue_manager()(SimpleNamespace(labels=y))
    again.find_issues(features=X)
    pd.testing.assert_frame_equal(again.issues, manager.issues)
    with pytest.raises(DataError, match="200 rows, and the lab has 3"):
        type(manager)(SimpleNamespace(labels=y[:3])).find_issues(advice=advice)
    with pytest.raises(DataError, match="neither advice nor features"):
        manager.find_issues()
