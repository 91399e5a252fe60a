"""Every result with a table can be read by whatever reads Arrow's C stream."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import apiece
from apiece import uses
from apiece.data import load_demo
from apiece.experiments import Experiment

SAMPLES = pd.DataFrame(
    {"repeat": [0, 0], "at": [9, 9], "method": ["law", "random"], "gain": [0.3, 0.1]}
)


@pytest.fixture(scope="module")
def results():
    """Return one result of each kind."""
    dataset, _ = load_demo()
    settings = {"sizes": (40, 200), "random_state": 0, "progress": False}
    run = apiece.collect(dataset, samples=3, **settings)
    reused = apiece.collect(dataset, engine="reuse", trainings=30, **settings)
    laws = run.laws()
    return {
        "run": run,
        "contributions": run.contributions(),
        "trainings": reused.contributions(),
        "laws": laws,
        "aggregate": apiece.aggregate(run),
        "value": apiece.value(laws),
        "quality": uses.quality(dataset),
        "advice": apiece.advise(dataset, progress=False),
        "experiment": Experiment("addition", SAMPLES, "at", {"gain": "fall of the loss"}),
    }


NAMES = ("run", "contributions", "trainings", "laws", "aggregate")
NAMES += ("value", "quality", "advice", "experiment")


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_an_arrow_table_with_the_rows_and_columns_of_its_frame(results, name):
    result = results[name]
    frame = result if isinstance(result, pd.DataFrame) else result.table()
    table = pa.table(result)
    assert table.num_rows == len(frame)
    assert set(frame.columns) <= set(table.column_names)
    assert {part for part in frame.index.names if part} <= set(table.column_names)
