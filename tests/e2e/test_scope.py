"""Every result says what it is for: the population, or the given scoring rows."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import apiece
from apiece import plots, uses
from apiece.cli import cli
from apiece.records import in_words, scope_of
from apiece.reporting._overview import facts

WORDS = {
    "population": "for the population the rows come from",
    "scoring rows": "for the given scoring rows",
}
SETTINGS = {"sizes": (15, 60), "samples": 8, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] + rng.normal(size=120) > 0, "yes", "no")
    file = tmp_path_factory.mktemp("scope") / "table.csv"
    pd.DataFrame(X, columns=list("abc")).assign(label=y).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module", params=[None, 0.3])
def study(request, table):
    dataset = apiece.Dataset.from_csv(table, target="label", validation=request.param)
    scope = "population" if request.param is None else "scoring rows"
    return dataset, apiece.collect(dataset, **SETTINGS), scope


def test_every_table_carries_its_scope(study):
    dataset, run, scope = study
    laws = run.laws()
    assert dataset.scope == run.scope == laws.scope == scope_of(laws.attrs) == scope
    pair = laws.ids[:2].tolist()
    found = {
        "value": apiece.value(run),
        "ranks": apiece.value(run, top=5),
        "samples": apiece.value(run, source="samples"),
        "picks": apiece.select(run, take=2, at=30, dataset=dataset),
        "picks alone": apiece.select(run, take=2, at=30, redundancy="none"),
        "laws": laws.table(),
        "crossings": uses.crossings(laws, most=2),
        "movers": uses.movers(laws),
        "exchange": uses.exchange(laws, at=30, pairs=[pair]),
        "neighbours": uses.knn_shapley(dataset),
        "theory": uses.theory(dataset),
    }
    assert {name: table.attrs.get("scope") for name, table in found.items()} == dict.fromkeys(
        found, scope
    )


def test_words_plots_and_the_report_say_it(study):
    _, run, scope = study
    laws = run.laws()
    assert WORDS[scope] == in_words(scope)
    for words in (repr(laws), laws.summary(), run._repr_html_()):
        assert WORDS[scope] in words
    for draw in (plots.plot_histogram, plots.plot_plane):
        ax = draw(laws)
        assert WORDS[scope] in ax.get_legend().get_title().get_text()
        plt.close(ax.figure)
    listed = facts(laws, run.contributions(), np.arange(len(laws.ids)), run, 0.9)
    assert ("results are", WORDS[scope]) in listed["What was run"]


def test_laws_of_unknown_origin_promise_nothing():
    laws = apiece.Laws.from_arrays(c=[1.0], alpha=[1.0])
    assert "for the" not in laws.summary()
    assert "scope" not in laws.table().attrs


@pytest.mark.parametrize("scope", ["population", "scoring rows"])
def test_commands_end_with_the_scope_and_json_has_it(table, tmp_path, scope):
    def call(*words):
        result = CliRunner().invoke(cli, [str(word) for word in words])
        assert result.exit_code == 0, result.output
        return result

    run = tmp_path / "run"
    options = ["--target", "label", "--sizes", "15:60", "--samples", 6, "--random-state", 0]
    options += [] if scope == "population" else ["--validation", 0.3]
    collected = call("collect", table, "--to", run, "--jobs", 1, *options)
    assert collected.stdout.strip().splitlines()[-1].endswith(WORDS[scope])
    commands = {
        "value": ["value", run],
        "select": ["select", run, "--at", 30, "--take", 2],
        "crossings": ["crossings", run],
    }
    for words in commands.values():
        assert WORDS[scope] in "\n".join(call(*words).output.strip().splitlines()[-2:])
        rows = json.loads(call(*words, "--json", "--quiet").stdout)
        assert {row["scope"] for row in rows} <= {scope}
    shown = json.loads(call("show", run, "--json", "--quiet").stdout)
    assert shown["summary"]["scope"] == scope
    assert WORDS[scope] in call("show", run).output
