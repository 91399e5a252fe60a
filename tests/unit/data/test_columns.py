from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import apiece
from apiece.data._columns import Roles, as_names, check_names, decide_roles


def role_of(values, **options):
    table = pd.DataFrame({"col": values})
    settings = {"text": (), "categorical": (), "skip": ()} | options
    roles = decide_roles(table, **settings)
    return next(
        role for role in ("numeric", "boolean", "categorical", "text") if getattr(roles, role)
    )


@pytest.mark.parametrize(
    ("values", "role"),
    [
        ([1, 2, 3], "numeric"),
        ([1.5, None], "numeric"),
        (np.array([1, 2], dtype=np.float16), "numeric"),
        (pd.array([1, None], dtype="Int64"), "numeric"),
        (pd.Series([1, None, 2.5], dtype=object), "numeric"),
        (pd.Series([Decimal("1.5"), None]), "numeric"),
        ([None, None], "numeric"),
        ([True, False], "boolean"),
        (pd.array([True, None], dtype="boolean"), "boolean"),
        (pd.Series([True, None], dtype=object), "boolean"),
        (["a", "b", None], "categorical"),
        (pd.array(["a", None], dtype="string"), "categorical"),
        (pd.Series(["a", "b"], dtype=object), "categorical"),
        (pd.Categorical([1, 2]), "categorical"),
        (pd.Categorical([True, False]), "categorical"),
        (["01", "02"], "categorical"),
        (["x", "y", "z", "1"], "categorical"),
        # At least half of the values are numbers: a numeric column with a mistake in it.
        (["x", "y", "2", "1"], "numeric"),
        (["x", "2", "1", None], "numeric"),
    ],
)
def test_the_dtype_decides_what_a_column_is(values, role):
    assert role_of(values) == role


def test_the_caller_decides_first():
    many = [f"text number {i}" for i in range(80)]
    assert role_of(many, text=("col",)) == "text"
    assert role_of(many, categorical=("col",)) == "categorical"
    assert role_of([1, 2, 1], categorical=("col",)) == "categorical"


def test_columns_are_grouped_in_the_tables_order(table):
    roles = decide_roles(table, text=("review",), categorical=("count",), skip=("label", "code"))
    assert roles == Roles(("age",), ("is_new",), ("count", "city"), ("review",))
    assert roles.columns == ("age", "is_new", "count", "city", "review")


def test_strings_that_hardly_repeat_are_refused_with_three_remedies(complaint):
    said = complaint(role_of, [f"a review, number {i}" for i in range(51)])
    assert "51 distinct strings" in said
    assert "'a review, number 0'" in said
    for remedy in ("text='col' (--text col)", "ids='col' (--ids col)", "drop=['col'] (--drop col)"):
        assert remedy in said


def test_strings_that_repeat_or_are_few_are_categories():
    assert role_of([f"c{i}" for i in range(50)]) == "categorical"
    assert role_of([f"c{i % 60}" for i in range(100)]) == "categorical"
    assert role_of([f"c{i}" for i in range(60)] + ["c0"] * 10) == "categorical"


def test_numbers_kept_as_distinct_strings_should_become_numbers(complaint):
    assert "numeric" in complaint(role_of, [f"{i}.5" for i in range(60)])


@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(["2020-01-01", "2021-01-01"]),
        pd.to_datetime(["2020-01-01", "2021-01-01"], utc=True),
        pd.to_timedelta([1, 2], unit="D"),
        pd.period_range("2020", periods=2, freq="D"),
        [datetime.date(2020, 1, 1), None],
        [str(day.date()) for day in pd.date_range("2020", periods=60)],
        [f"{1 + i % 28}.{1 + i // 28}.2020" for i in range(60)],
    ],
)
def test_dates_are_refused_with_a_way_out(complaint, values):
    said = complaint(role_of, values)
    assert "dates or times" in said
    assert "drop=['col'], --drop col" in said


@pytest.mark.parametrize(
    "values", [[[1.0, 2.0], [3.0]], [{"a": 1}, {"a": 2}], [b"ab", b"cd"], [1j, 2j]]
)
def test_values_that_are_no_cells_are_refused(complaint, values):
    assert "'col'" in complaint(role_of, pd.Series(values))


def test_saved_row_numbers_are_no_feature(complaint):
    table = pd.DataFrame({"Unnamed: 0": [0, 1], "a": [1, 2]})
    said = complaint(decide_roles, table, text=(), categorical=(), skip=())
    assert "drop=['Unnamed: 0']" in said
    roles = decide_roles(table, text=(), categorical=(), skip=("Unnamed: 0",))
    assert roles.columns == ("a",)


def test_a_table_without_features_is_refused(complaint, table):
    said = complaint(decide_roles, table[["label"]], text=(), categorical=(), skip=("label",))
    assert "'label'" in said


@pytest.mark.parametrize(
    ("option", "name", "offer"),
    [
        ("target", "lable", "target='label' (--target label)"),
        ("ids", "Code", "ids='code' (--ids code)"),
        ("text", "reviews", "text='review' (--text review)"),
        ("drop", "cty", "drop=['city'] (--drop city)"),
        ("categorical", "cuont", "categorical=['count'] (--categorical count)"),
    ],
)
def test_a_misspelt_column_offers_the_nearest(complaint, table, option, name, offer):
    said = complaint(check_names, table, {option: (name,)})
    assert repr(name) in said
    assert f"Did you mean {offer}?" in said


def test_a_name_like_no_column_lists_them(complaint, table):
    said = complaint(check_names, table, {"target": ("zzzzzz",)})
    assert "'age', 'count'" in said
    assert "Did you mean" not in said


def test_a_column_has_one_role(complaint, table):
    said = complaint(check_names, table, {"target": ("label",), "drop": ("label",)})
    assert "target= and by drop=" in said
    check_names(table, {"drop": ("age", "age")})


def test_names_are_one_or_several():
    assert as_names(["a", "b"]) == ("a", "b")
    assert as_names("ab") == ("ab",)
    assert as_names(()) == ()
    assert as_names(5) == ("5",)


def test_a_feature_that_counts_the_rows_is_pointed_out():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"row": range(7, 107), "a": rng.normal(size=100), "y": [0, 1] * 50})
    with pytest.warns(apiece.ApieceWarning, match=r"'row' counts the rows.*--ids row"):
        apiece.Dataset.from_pandas(table, target="y")
    for as_named in ({"ids": "row"}, {"drop": ["row"]}):
        apiece.Dataset.from_pandas(table, target="y", **as_named)  # and no warning
    shuffled = table.assign(row=rng.permutation(table["row"]))
    apiece.Dataset.from_pandas(shuffled, target="y")


def test_all_columns_that_cannot_be_features_are_named_at_once(complaint):
    table = pd.DataFrame(
        {"Kunde (neu)": [f"K{i}" for i in range(90)], "Tag": ["03.12.2024"] * 90, "n": range(90)}
    )
    table["Tag"] = [f"{1 + i % 28:02}.{1 + i // 28:02}.2024" for i in range(90)]
    said = complaint(decide_roles, table, text=(), categorical=(), skip=())
    assert said.startswith("2 columns cannot be features:\ncolumn 'Kunde (neu)' holds 90")
    assert "--ids 'Kunde (neu)'" in said  # as a shell needs it
    assert "\ncolumn 'Tag' holds dates" in said
    many = pd.DataFrame({f"d{i}": table["Tag"] for i in range(9)})
    said = complaint(decide_roles, many, text=(), categorical=(), skip=())
    assert said.startswith("9 columns cannot")
    assert said.endswith("4 more columns are like these.")
