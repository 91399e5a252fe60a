from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from apiece.errors import StoreError
from apiece.laws import Blend, Laws, Power, Ridge, Series


@pytest.fixture
def laws():
    rng = np.random.default_rng(0)
    n = 200
    return Laws.from_arrays(
        c=rng.normal(size=n),
        alpha=rng.normal(size=n),
        cov=np.broadcast_to(np.array([[2.0, 0.5], [0.5, 1.0]]), (n, 2, 2)),
        sigma=rng.random(n),
        ids=np.array([f"p{j}" for j in range(n)]),
    )


def test_a_saved_file_reads_as_a_plain_table(laws, tmp_path):
    laws.save(tmp_path / "laws.parquet")
    table = pd.read_parquet(tmp_path / "laws.parquet")
    assert table["point"].tolist() == laws.ids.tolist()
    assert_array_equal(table["alpha"], laws.alpha)
    assert_array_equal(table["cov_psi_ref_alpha"], laws.cov[:, 0, 1])
    assert set(table["status"]) == {"OK"}


@pytest.mark.parametrize(
    "family",
    [
        Power(),
        Series((2, 4)),
        Ridge((0, 30, 1000)),
        Blend(Ridge((0, 30, 1000))),
    ],
)
def test_a_file_remembers_the_family_and_its_terms(family, tmp_path):
    p = len(family.parameters)
    laws = Laws.from_arrays(family=family, params=np.ones((3, p)), cov=np.array([np.eye(p)] * 3))
    laws.save(tmp_path / "laws.parquet")
    again = Laws.load(tmp_path / "laws.parquet")
    assert again.family == family
    assert_array_equal(again.stderr([10, 100]), laws.stderr([10, 100]))


def test_paths_may_be_text(laws, tmp_path):
    laws.save(str(tmp_path / "laws.parquet"))
    assert_array_equal(Laws.load(str(tmp_path / "laws.parquet")).c, laws.c)


def test_the_file_holds_a_schema_version_in_its_metadata(laws, tmp_path):
    laws.save(tmp_path / "laws.parquet")
    meta = pq.read_schema(tmp_path / "laws.parquet").metadata[b"apiece.laws"]
    assert json.loads(meta)["schema_version"] == 2


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_interrupted_write_leaves_the_old_file_whole(laws, tmp_path, monkeypatch, step):
    path = tmp_path / "laws.parquet"
    laws.save(path)

    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(StoreError, match="no space left"):
        laws.select([0]).save(path)
    monkeypatch.undo()
    assert Laws.load(path).n_points == laws.n_points
    assert [file.name for file in tmp_path.iterdir()] == ["laws.parquet"]


def test_a_folder_that_does_not_exist_is_named(laws, tmp_path):
    with pytest.raises(StoreError, match="nowhere"):
        laws.save(tmp_path / "nowhere" / "laws.parquet")


def test_a_missing_file_says_what_to_do(tmp_path):
    with pytest.raises(StoreError, match=r"no laws at .*missing"):
        Laws.load(tmp_path / "missing.parquet")


@pytest.mark.parametrize("size", [0, 10, 0.5, 0.99])
def test_a_truncated_file_is_refused(laws, tmp_path, size):
    path = tmp_path / "laws.parquet"
    laws.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: size if isinstance(size, int) else int(size * len(whole))])
    with pytest.raises(StoreError, match="cannot be read"):
        Laws.load(path)


def test_a_flipped_bit_in_the_numbers_is_noticed(laws, tmp_path):
    path = tmp_path / "laws.parquet"
    laws.save(path)
    column = pq.read_metadata(path).row_group(0).column(1)
    assert column.path_in_schema == "c"
    damaged = bytearray(path.read_bytes())
    damaged[column.data_page_offset + column.total_compressed_size // 2] ^= 0x10
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match=r"Restore it from a copy, or fit again"):
        Laws.load(path)


def test_another_parquet_file_is_refused(tmp_path):
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "other.parquet")
    with pytest.raises(StoreError, match="holds no laws: it is a Parquet file of x"):
        Laws.load(tmp_path / "other.parquet")


@pytest.mark.parametrize(("version", "remedy"), [(99, "Upgrade apiece"), (1, "Fit again")])
def test_a_file_of_another_version_says_what_to_do(laws, tmp_path, version, remedy):
    path = tmp_path / "laws.parquet"
    laws.save(path)
    rewrite_metadata(path, schema_version=version)
    with pytest.raises(StoreError, match=f"schema version {version}.*{remedy}"):
        Laws.load(path)


def test_a_file_with_a_wrong_description_is_refused(laws, tmp_path):
    path = tmp_path / "laws.parquet"
    laws.save(path)
    rewrite_metadata(path, family="exponential")
    with pytest.raises(StoreError, match="damaged"):
        Laws.load(path)
    laws.save(path)
    rewrite_metadata(path, parameters=None)
    with pytest.raises(StoreError, match="damaged"):
        Laws.load(path)


def test_ids_of_mixed_types_are_refused_with_a_remedy(tmp_path):
    ids = np.array([1, "two"], dtype=object)
    laws = Laws.from_arrays(c=[1.0, 2.0], alpha=[1.0, 1.0], ids=ids)
    with pytest.raises(StoreError, match=r"ids of types int, str.*astype\(str\)"):
        laws.save(tmp_path / "laws.parquet")


def rewrite_metadata(path, **changes):
    table = pq.read_table(path)
    meta = json.loads(table.schema.metadata[b"apiece.laws"]) | changes
    pq.write_table(table.replace_schema_metadata({"apiece.laws": json.dumps(meta)}), path)
