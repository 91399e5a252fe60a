from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from apiece._base.machine import total_memory
from apiece.data import _readers
from apiece.data._readers import format_of, read_csv, read_npz, read_parquet, read_table

FRAME = pd.DataFrame({"a": [1.5, 0.1 + 0.2, -3.0], "b": ["x", "y", "z"], "label": [0, 1, 0]})


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return to


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a.csv", "csv"),
        ("A.CSV", "csv"),
        ("a.b.tsv", "csv"),
        ("a.csv.gz", "csv"),
        ("a.tsv.gz", "csv"),
        ("a.parquet", "parquet"),
        ("dir.csv/a.npz", "npz"),
    ],
)
def test_the_suffix_tells_the_format(name, found):
    assert format_of(name) == found


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.gz", "csv"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(complaint, name):
    said = complaint(format_of, name)
    assert ".csv, .tsv" in said
    assert "from_pandas" in said


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.gz"])
def test_text_tables_come_back_to_the_last_bit(tmp_path, name):
    FRAME.to_csv(tmp_path / name, index=False, sep="\t" if "tsv" in name else ",")
    assert_frame_equal(read_table(tmp_path / name), FRAME)


def test_parquet_comes_back_and_a_named_index_is_a_column(tmp_path):
    FRAME.to_parquet(tmp_path / "t.parquet")
    assert_frame_equal(read_table(tmp_path / "t.parquet"), FRAME)
    FRAME.set_index("b").to_parquet(tmp_path / "i.parquet")
    assert sorted(read_parquet(tmp_path / "i.parquet").columns) == ["a", "b", "label"]


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.feather", "t.arrow"])
def test_json_lines_and_arrow_files_come_back(tmp_path, name):
    rows = FRAME.assign(code=["007", "08", "9"], created_at=["2024-01-05", "b", "c"])
    if "jsonl" in name:
        rows.to_json(tmp_path / name, orient="records", lines=True, double_precision=15)
    else:
        rows.to_feather(tmp_path / name)
    found = read_table(tmp_path / name)
    assert_frame_equal(found, rows, check_dtype=False)
    assert found["code"].tolist() == ["007", "08", "9"]  # strings stay strings


@pytest.mark.parametrize(("name", "what"), [("t.jsonl", "JSON lines"), ("t.feather", "Arrow")])
def test_a_file_that_is_something_else_is_refused(complaint, write, name, what):
    assert f"expected a whole {what} file" in complaint(read_table, write(name, "a,b\n1,2\n"))


def test_a_byte_order_mark_is_no_part_of_the_first_name(write):
    assert read_csv(write("t.csv", "\ufeffa,b\n1,2\n")).columns.tolist() == ["a", "b"]


def test_npz_arrays_come_back(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.ones((3, 2), np.float16), y=np.array(["a", "b", "a"]))
    arrays = read_npz(tmp_path / "t.npz")
    assert arrays["X"].dtype == np.float16
    assert arrays["y"].tolist() == ["a", "b", "a"]


@pytest.mark.parametrize("read", [read_csv, read_parquet, read_npz])
def test_a_missing_file_offers_the_nearest(complaint, tmp_path, read):
    (tmp_path / "reviews.csv").write_text("a\n1\n")
    said = complaint(read, tmp_path / "review.csv")
    assert "there is no file" in said
    assert "reviews.csv" in said
    assert "Check the path" in complaint(read, tmp_path / "nowhere" / "x.csv")


@pytest.mark.parametrize("read", [read_csv, read_parquet, read_npz])
def test_a_folder_is_no_file(complaint, tmp_path, read):
    assert "is a folder" in complaint(read, tmp_path)


@pytest.mark.parametrize("read", [read_csv, read_parquet, read_npz])
def test_an_empty_file_is_refused(complaint, write, read):
    assert "is empty" in complaint(read, write("t.csv", b""))


def test_blank_lines_are_an_empty_file(complaint, write):
    assert "is empty" in complaint(read_csv, write("t.csv", "\n\n"))


def test_a_header_alone_is_refused(complaint, write, tmp_path):
    assert "no rows" in complaint(read_csv, write("t.csv", "a,b\n"))
    FRAME.head(0).to_parquet(tmp_path / "t.parquet")
    assert "no rows" in complaint(read_parquet, tmp_path / "t.parquet")


def test_a_binary_file_is_no_csv(complaint, write, tmp_path):
    assert "NUL bytes" in complaint(read_csv, write("t.csv", b"a,b\n\x00\x01\x02\n"))
    assert "UTF-8" in complaint(read_csv, write("u.csv", b"a,b\n\xff\xfe1,2\n"))
    assert "UTF-16" in complaint(read_csv, write("v.csv", "a,b\n1,2\n".encode("utf-16")))
    FRAME.to_parquet(tmp_path / "w.parquet")
    complaint(read_csv, write("w.csv", (tmp_path / "w.parquet").read_bytes()))


def test_undecodable_bytes_deep_in_a_file_are_refused(complaint, write):
    content = b"a,b\n" + b"1,2\n" * 100_000 + b"caf\xe9,2\n"
    assert "UTF-8" in complaint(read_csv, write("t.csv", content))


def test_rows_that_do_not_fit_the_header_are_refused(complaint, write):
    assert "line 3" in complaint(read_csv, write("t.csv", "a,b\n1,2\n3,4,5\n"))
    assert "header" in complaint(read_csv, write("u.csv", "a,b\n1,2,3\n4,5,6\n"))
    assert "header" in complaint(read_csv, write("v.csv", 'a,b\n1,"2\n3,4\n'))


def test_duplicate_names_in_a_header_are_refused(complaint, write):
    assert "'a'" in complaint(read_csv, write("t.csv", "a,b,a\n1,2,3\n"))


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_the_header_says_what_separates_cells(write, mark, suffix):
    content = f'a{mark}"b,; |"{mark}c\n1{mark}2{mark}"x,; |"\n'
    frame = read_csv(write(f"t.{suffix}", content))
    assert frame.to_dict("list") == {"a": [1], "b,; |": [2], "c": ["x,; |"]}


def test_between_semicolons_decimals_may_have_commas_or_points(write):
    content = "a;b;c;d\n1,5;1.5;2,0;3\n-0,25;2.5;;x,y\n"
    frame = read_csv(write("t.csv", content))
    assert frame[["a", "b"]].to_numpy().tolist() == [[1.5, 1.5], [-0.25, 2.5]]
    assert frame["c"].iloc[0] == 2.0
    assert np.isnan(frame["c"].iloc[1])
    assert frame["d"].tolist() == ["3", "x,y"]


def test_another_encoding_says_how_to_read_it(complaint, write):
    said = complaint(read_csv, write("t.csv", "a,b\nKöln,1\n".encode("cp1252")))
    assert "encoding='cp1252'" in said


def test_a_damaged_gzip_is_refused(complaint, write):
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    complaint(read_csv, write("t.csv.gz", b"a,b\n1,2\n"))
    complaint(read_csv, write("u.csv.gz", whole[: len(whole) // 2]))


def test_a_damaged_parquet_is_refused(complaint, write, tmp_path):
    FRAME.to_parquet(tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    assert "cannot be read as Parquet" in complaint(read_parquet, write("u.parquet", content[:-20]))
    complaint(read_parquet, write("v.parquet", b"not parquet at all"))


def test_a_damaged_npz_is_refused(complaint, write, tmp_path):
    np.savez(tmp_path / "t.npz", X=np.ones((50, 5)), y=np.zeros(50))
    content = (tmp_path / "t.npz").read_bytes()
    assert "not an npz" in complaint(read_npz, write("u.npz", content[:-300]))
    assert "not an npz" in complaint(read_npz, write("v.npz", b"junk"))
    torn = bytearray(content)
    torn[300:400] = b"\xff" * 100
    assert "damaged" in complaint(read_npz, write("w.npz", bytes(torn)))


def test_a_pickle_is_never_opened(complaint, tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    np.savez(tmp_path / "t.npz", X=np.ones((3, 1)), y=np.array([Trap()] * 3, dtype=object))
    said = complaint(read_npz, tmp_path / "t.npz")
    assert "array 'y'" in said
    assert "Python objects" in said
    assert not (tmp_path / "sprung").exists()


def test_absent_arrays_are_named(complaint, tmp_path):
    np.savez(tmp_path / "t.npz", x=np.ones((3, 1)), y=np.ones(3))
    said = complaint(read_npz, tmp_path / "t.npz")
    assert "no array 'X'" in said
    assert "'x'" in said


def test_arrays_are_no_table(complaint, tmp_path):
    assert "table" in complaint(read_table, tmp_path / "t.npz")


def test_a_parquet_file_whose_notes_of_pandas_lack_a_word_is_refused(complaint, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(FRAME.set_index("b"))
    notes = table.schema.metadata[b"pandas"].replace(b"numpy_type", b"other_word")
    pq.write_table(table.replace_schema_metadata({b"pandas": notes}), tmp_path / "t.parquet")
    assert "cannot be read as Parquet" in complaint(read_parquet, tmp_path / "t.parquet")


def test_an_npz_file_of_an_unknown_compression_is_refused(complaint, write, tmp_path):
    np.savez(tmp_path / "t.npz", X=np.ones((5, 2)), y=np.zeros(5))
    content = bytearray((tmp_path / "t.npz").read_bytes())
    content[content.index(b"PK\x01\x02") + 10] = 99  # the method, in the directory of the archive
    assert "is damaged (That compression method" in complaint(read_npz, write("u.npz", content))


def test_a_gzipped_table_that_breaks_off_is_refused(complaint, write):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{a},{b}" for a, b in rng.random((200_000, 2)))
    whole = gzip.compress(f"a,b\n{rows}\n".encode(), compresslevel=1)
    said = complaint(read_csv, write("t.csv.gz", whole[: len(whole) - 50_000]))
    assert "cannot be read as a table" in said


def save_npz(path, rows_said, zeros):
    """Write an npz file whose X has a header for some rows, and some zero bytes after it."""
    header = io.BytesIO()
    said = {"descr": "<f8", "fortran_order": False, "shape": (rows_said, 1000)}
    np.lib.format.write_array_header_1_0(header, said)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("X.npy", "w", force_zip64=True) as opened:
            opened.write(header.getvalue())
            for start in range(0, zeros, 2**24):
                opened.write(bytes(min(2**24, zeros - start)))
        with archive.open("y.npy", "w") as opened:
            np.save(opened, np.arange(rows_said % 1000))


def test_an_npz_file_that_unpacks_to_more_than_memory_is_refused_unread(
    complaint, tmp_path, monkeypatch
):
    save_npz(tmp_path / "t.npz", rows_said=8_000, zeros=64_000_000)
    assert (tmp_path / "t.npz").stat().st_size < 100_000
    monkeypatch.setattr(_readers, "total_memory", lambda: 60_000_000)
    tracemalloc.start()
    said = complaint(read_npz, tmp_path / "t.npz")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert "take 0.1 GB unpacked" in said
    monkeypatch.setattr(_readers, "total_memory", lambda: 10**9)
    assert read_npz(tmp_path / "t.npz")["X"].shape == (8_000, 1_000)


def test_an_npz_file_whose_header_says_more_than_there_is_is_refused(complaint, tmp_path):
    save_npz(tmp_path / "t.npz", rows_said=10**9, zeros=8_000)
    said = complaint(read_npz, tmp_path / "t.npz")
    assert "array 'X'" in said
    assert "its header says 8,000,000,000,000 bytes" in said


def test_the_memory_of_this_machine_is_known_or_said_to_be_unknown():
    assert (total_memory() or 10**9) > 10**8
