"""No file, however broken, ends in anything but a result or an error of ours."""

from __future__ import annotations

import io
import json
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import apiece
from apiece.errors import ApieceError
from apiece.estimators import Amortized, AmortizedNetwork
from apiece.store import FolderStore, open_run

from conftest import make_line
from strategies import harmed

FUZZ = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def table(n=40):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"]).round(3)
    return frame.assign(word=["x", "y"] * (n // 2), label=["no", "yes"] * (n // 2))


def as_csv(separator):
    return table().to_csv(index=False, sep=separator).encode()


def as_parquet():
    buffer = io.BytesIO()
    table().to_parquet(buffer)
    return buffer.getvalue()


def as_npz():
    buffer = io.BytesIO()
    frame = table()
    np.savez(buffer, X=frame[["a", "b", "c"]].to_numpy(), y=frame["label"].to_numpy("U3"))
    return buffer.getvalue()


READERS = {
    "csv": (as_csv(","), lambda file: apiece.Dataset.from_csv(file, target="label")),
    "tsv": (as_csv("\t"), lambda file: apiece.Dataset.from_csv(file, target="label")),
    "parquet": (as_parquet(), lambda file: apiece.Dataset.from_parquet(file, target="label")),
    "npz": (as_npz(), lambda file: apiece.Dataset.from_npz(file)),
}


@pytest.mark.parametrize("kind", READERS)
@FUZZ
@given(data=st.data())
def test_a_broken_table_is_read_or_refused(tmp_path, kind, data):
    whole, read = READERS[kind]
    file = tmp_path / f"data.{kind}"
    file.write_bytes(data.draw(st.one_of(harmed(whole), st.binary(max_size=300))))
    with suppress(ApieceError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = read(file)
        assert np.isfinite(dataset.X).all()
        assert len(dataset.ids) == dataset.n_points


def test_pickled_objects_are_never_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    np.savez(tmp_path / "data.npz", X=np.array([Trap()] * 4, dtype=object), y=np.arange(4))
    with pytest.raises(ApieceError):
        apiece.Dataset.from_npz(tmp_path / "data.npz")
    with pytest.raises(ApieceError):
        AmortizedNetwork.load(tmp_path / "data.npz")
    assert not (tmp_path / "sprung").exists()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz") / "run"
    settings = {"model": "ridge", "sizes": (6, 12), "samples": 6, "random_state": 0}
    return apiece.collect(make_line(n=24), to=folder, progress=False, **settings)


@FUZZ
@given(data=st.data())
def test_a_broken_shard_is_read_as_it_was_or_refused(run, data):
    file = next((run.path / "shards").iterdir())
    whole, before = file.read_bytes(), run.store.read(0)
    try:
        file.write_bytes(data.draw(st.one_of(harmed(whole), st.binary(max_size=300))))
        with suppress(ApieceError):
            run.progress()
        with suppress(ApieceError):
            after = run.store.read(0)
            for name, column in before.columns.items():
                assert np.array_equal(after.columns[name], column)
    finally:
        file.write_bytes(whole)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def _without_source(run):
    return replace(run.manifest, dataset=replace(run.manifest.dataset, source=None))


@FUZZ
@given(data=st.data())
@example(data=None)
def test_a_broken_manifest_is_refused(run, data):
    file = run.path / "manifest.json"
    whole = file.read_bytes()
    manifest = json.loads(whole)
    try:
        if data is None:
            file.write_bytes(b"[" * 100_000)  # deeper than the parser goes
        else:
            key = data.draw(st.sampled_from(sorted(set(manifest) - {"digest"})))
            altered = json.dumps({**manifest, key: data.draw(JSON)}).encode()
            file.write_bytes(data.draw(st.one_of(harmed(whole), st.just(altered))))
        if file.read_bytes() != whole:
            with suppress(ApieceError):
                assert _without_source(open_run(run.path)) == _without_source(run)
    finally:
        file.write_bytes(whole)


@FUZZ
@given(data=st.data())
def test_a_manifest_of_any_words_without_a_digest_ends_in_no_other_error(run, data):
    file = run.path / "manifest.json"
    whole = file.read_bytes()
    manifest = json.loads(whole)
    manifest.pop("digest")
    key = data.draw(st.sampled_from(sorted(manifest)))
    try:
        file.write_text(json.dumps({**manifest, key: data.draw(JSON)}))
        with suppress(ApieceError):
            opened = open_run(run.path)
            repr(opened)
            opened.contributions()
    finally:
        file.write_bytes(whole)


@FUZZ
@given(data=st.data())
def test_a_broken_table_of_points_is_read_as_it_was_or_refused(run, data):
    file = run.path / "points.parquet"
    whole, before = file.read_bytes(), run.points
    try:
        file.write_bytes(data.draw(st.one_of(harmed(whole), st.binary(max_size=300))))
        with suppress(ApieceError):
            assert FolderStore(run.path).points.equals(before)
    finally:
        file.write_bytes(whole)


@FUZZ
@given(data=st.data())
def test_a_broken_file_of_laws_is_read_as_it_was_or_refused(run, tmp_path, data):
    laws = apiece.fit(run)
    file = tmp_path / "laws.parquet"
    laws.save(file)
    file.write_bytes(data.draw(st.one_of(harmed(file.read_bytes()), st.binary(max_size=300))))
    with suppress(ApieceError):
        again = apiece.Laws.load(file)
        assert np.array_equal(again.params, laws.params)
        assert again.attrs == laws.attrs


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    truth = apiece.Laws.from_arrays(c=np.exp(X[:, 0]), alpha=1.0, sigma=1.0, beta=2.0)
    samples = apiece.synthetic.sample(truth, samples=5)
    file = tmp_path_factory.mktemp("network") / "network.npz"
    trained = Amortized(epochs=2, folds=2, weight_decay=(0.01,)).train(samples, X, y)
    trained.save(file)
    return file.read_bytes(), trained.laws_for(X, y).params


@FUZZ
@given(data=st.data())
def test_a_broken_network_is_read_as_it_was_or_refused(network, tmp_path, data):
    whole, expected = network
    file = tmp_path / "network.npz"
    file.write_bytes(data.draw(st.one_of(harmed(whole), st.binary(max_size=300))))
    with suppress(ApieceError):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
        assert np.allclose(AmortizedNetwork.load(file).laws_for(X, y).params, expected)
