"""A run goes where its address says, or the address is refused."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from apiece.errors import StoreError
from apiece.store import FolderStore, file_system, redacted


@pytest.mark.parametrize(
    "where",
    [
        "simplecache::s3://bkt/run",
        "filecache::file:///tmp/x",
        "filecache::/tmp/x",
        Path("simplecache::s3://b/r"),
    ],
)
def test_chained_file_systems_are_refused(where):
    with pytest.raises(StoreError, match=r"cache::(s3:/|file:/)?/.* chains several file systems"):
        file_system(where)


@pytest.mark.parametrize("where", ["s3://", "s3:", "gs:///", Path("s3://")])
def test_an_address_without_a_place_is_refused(where):
    with pytest.raises(StoreError, match=r"^(s3|gs):// names no place"):
        file_system(where)


@pytest.mark.parametrize("where", ["file://runs/a", "local://tmp", "file://localhost/tmp/x"])
def test_a_file_on_another_machine_is_refused(where):
    with pytest.raises(
        StoreError, match=r"://.* names the machine '\w+': expected .*file:///folder"
    ):
        file_system(where)


@pytest.mark.parametrize("where", ["file:///tmp/x", "file:/tmp/x", Path("file:///tmp/x"), "/tmp/x"])
def test_addresses_of_files_are_folders(where):
    assert file_system(where).path == Path("/tmp/x")


@pytest.mark.parametrize("where", ["runs/a", "a:b", "run: 2", "C:/run", "a::b"])
def test_names_with_a_colon_are_folders(where):
    assert file_system(where).path == Path(where).absolute()


def test_passwords_are_not_shown():
    pytest.importorskip("fsspec")
    files = file_system("sftp://me:secret@nowhere.invalid/run")
    assert str(files) == repr(files) == "sftp://me:***@nowhere.invalid/run"
    with pytest.raises(StoreError) as refused:
        FolderStore("sftp://me:secret@nowhere.invalid/run").has_run()
    assert "secret" not in str(refused.value)
    assert redacted("ftp://a:b@c/d and s3://x/y") == "ftp://a:***@c/d and s3://x/y"


def test_marks_of_killed_collectors_leave_a_bucket_after_an_hour():
    pytest.importorskip("fsspec")
    files = file_system("memory://swept/run")
    for name in (".old.mark.tmp", ".new.mark.tmp", "manifest.json"):
        files.write(name, b"")
    memory = files._files
    for path in memory.find("/swept"):
        if not path.endswith(".new.mark.tmp"):
            memory.store[path].created = datetime.now(UTC) - timedelta(hours=2)
    files.remove_stale()
    assert sorted(files.names()) == [".new.mark.tmp", "manifest.json"]


def test_files_of_killed_collectors_leave_the_temporary_folder(tmp_path, monkeypatch):
    from apiece.collection.pools import _shared

    monkeypatch.setattr(_shared, "gettempdir", lambda: str(tmp_path))
    ours, theirs = tmp_path / f"apiece-{os.getpid()}-x", tmp_path / "apiece-999999999-x"
    young = tmp_path / "apiece-999999998-x"
    for folder in (ours, theirs, young):
        folder.mkdir()
    for folder in (ours, theirs):
        os.utime(folder, (0, 0))
    _shared.remove_abandoned()
    assert {folder.name for folder in tmp_path.iterdir()} == {ours.name, young.name}
