"""A run in an object store: the same files, written by workers themselves."""

from __future__ import annotations

import socket

import pytest

import apiece
from apiece.engines import RefitEngine
from apiece.errors import ApieceError, StoreError

from conftest import make_blobs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
SETTINGS = {"model": "tree", "sizes": (6, 12), "samples": 15, "random_state": 1, "progress": False}


@pytest.fixture(scope="module")
def server():
    from moto.server import ThreadedMotoServer

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def files(server, monkeypatch):
    """A bucket of the imitation, found as any user's is: through the environment."""
    import fsspec

    monkeypatch.setattr(RefitEngine, "rows_per_shard", 24)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    fsspec.filesystem("s3").clear_instance_cache()
    files = fsspec.filesystem("s3", use_listings_cache=False)
    if not files.exists("bucket"):
        files.mkdir("bucket")
    return files


def shards(files, uri):
    return {name.rpartition("/")[2]: files.cat_file(name) for name in files.ls(f"{uri}/shards")}


def local(folder):
    return {file.name: file.read_bytes() for file in (folder / "shards").iterdir()}


def test_a_run_in_a_bucket_holds_the_files_of_a_local_one(files, tmp_path):
    dataset = make_blobs(n=24)
    alone = apiece.collect(dataset, to=tmp_path / "alone", **SETTINGS)
    uri = "s3://bucket/one"
    run = apiece.collect(dataset, to=uri, n_jobs=2, **SETTINGS)
    assert shards(files, uri) == local(tmp_path / "alone")
    assert not [name for name in files.ls(uri) if name.endswith(".tmp")]
    assert repr(run).startswith(f"<Run at {uri}: tree on 24 points")
    assert run.path is None

    files.rm_file(files.ls(f"{uri}/shards")[0])
    files.pipe_file(files.ls(f"{uri}/shards")[0], b"broken")
    with pytest.raises(StoreError, match=r"s3://bucket/one/shards/shard-.* is damaged"):
        apiece.open(uri).contributions()
    apiece.collect(dataset, to=uri, **SETTINGS)
    assert shards(files, uri) == local(tmp_path / "alone")
    laws, expected = apiece.fit(apiece.open(uri), memory="1MB"), apiece.fit(alone, memory="1MB")
    assert (laws.params == expected.params).all()


def test_another_run_in_the_bucket_is_refused(files):
    dataset = make_blobs(n=24)
    apiece.collect(dataset, to="s3://bucket/two", **SETTINGS)
    with pytest.raises(StoreError, match="s3://bucket/two belongs to another seed"):
        apiece.collect(dataset, to="s3://bucket/two", **{**SETTINGS, "random_state": 2})
    files.pipe_file("bucket/thesis/chapter.tex", b"precious")
    with pytest.raises(StoreError, match="holds files that are not a run"):
        apiece.collect(dataset, to="s3://bucket/thesis", **SETTINGS)


@pytest.mark.parametrize("uri", ["s3://nowhere/run", "gopher://hole/run"])
def test_an_address_that_leads_nowhere_is_an_error_of_ours(files, uri):
    with pytest.raises(ApieceError, match=r"nowhere|gopher"):
        apiece.collect(make_blobs(n=24), to=uri, **SETTINGS)
    with pytest.raises(StoreError, match=r"is not a run|cannot"):
        apiece.open(uri)
