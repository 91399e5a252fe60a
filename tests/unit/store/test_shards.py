from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

from apiece.errors import StoreError
from apiece.store import make_shard
from apiece.store._shards import decode_shard as decode
from apiece.store._shards import encode_shard as encode


def a_shard(n_points=50, n_tasks=3):
    rng = np.random.default_rng(0)
    rows = [
        (task, 10 + task, np.arange(n_points), rng.normal(size=n_points), float(task))
        for task in range(n_tasks)
    ]
    return make_shard(
        4, rows, end_task=n_tasks, certificate=1e-9, notes={"fits": 7}, failed={9: "it broke"}
    )


def test_a_shard_comes_back_as_it_was(tmp_path):
    shard = a_shard()
    file = tmp_path / "x.parquet"
    file.write_bytes(encode(shard))
    back = decode(file.read_bytes(), str(file))
    for name, column in shard.columns.items():
        assert np.array_equal(back.columns[name], column), name
        assert back.columns[name].dtype == column.dtype
    assert (back.index, back.footer.end_task, back.footer.certificate) == (4, 3, 1e-9)
    assert (back.footer.notes, back.footer.failed) == ({"fits": 7}, {9: "it broke"})


def test_a_shard_is_plain_parquet_for_duckdb_and_pandas(tmp_path):
    shard = a_shard()
    file = tmp_path / "x.parquet"
    file.write_bytes(encode(shard))
    expected = pd.DataFrame(shard.columns).drop(columns=["control", "active"])
    pd.testing.assert_frame_equal(pd.read_parquet(file), expected)
    rows = duckdb.sql(f"select * from '{file}'").df()
    pd.testing.assert_frame_equal(rows, expected)


def test_a_shard_of_a_thousand_rows_takes_at_most_twelve_bytes_each():
    assert len(encode(a_shard(n_points=1000, n_tasks=1))) <= 12_000
    assert len(encode(a_shard(n_points=256, n_tasks=1))) <= 12 * 256


def test_every_truncation_is_noticed(tmp_path):
    data = encode(a_shard())
    file = tmp_path / "x.parquet"
    for length in (0, 1, 7, len(data) // 2, len(data) - 1):
        file.write_bytes(data[:length])
        with pytest.raises(StoreError, match=r"x\.parquet is damaged"):
            decode(file.read_bytes(), str(file))


def test_an_altered_byte_is_noticed_or_changes_nothing(tmp_path):
    shard = a_shard()
    data = bytearray(encode(shard))
    file = tmp_path / "x.parquet"
    rng = np.random.default_rng(0)
    noticed = 0
    for place in rng.choice(len(data), size=300, replace=False):
        altered = bytearray(data)
        altered[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(altered)
        try:
            back = decode(file.read_bytes(), str(file))
        except StoreError:
            noticed += 1
            continue
        for name, column in shard.columns.items():
            assert np.array_equal(back.columns[name], column)
        assert (back.index, back.footer.end_task, back.footer.failed) == (4, 3, {9: "it broke"})
    assert noticed > 200


def test_parquet_of_someone_else_is_refused(tmp_path):
    file = tmp_path / "x.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(file)
    with pytest.raises(StoreError, match="damaged"):
        decode(file.read_bytes(), str(file))
