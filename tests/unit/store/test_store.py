from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext, suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from apiece.errors import StoreError
from apiece.store import FolderStore, Manifest, Run, make_shard, open_run
from apiece.store._filesystem import LocalFolder

STORED = {
    "schema_version": 1,
    "created": "2026-01-01T00:00:00+00:00",
    "dataset": {"fingerprint": "3f9a0000", "n_pool": 4},
    "points": {"n_valued": 3, "digest": "aa"},
    "model": {"name": "logistic", "class": "L", "params": {"C": 1.0}},
    "metric": "log_loss",
    "engine": {"name": "refit", "is_exact": True},
    "design": {"name": "uniform", "sizes": [2, 3], "share": None},
    "samples": 2,
    "seed": 0,
    "n_contributions": 6,
    "layout": {"n_tasks": 2, "tasks_per_shard": 1, "parts_per_task": 1},
    "versions": {"python": "3.11"},
}
MANIFEST = Manifest.from_json(STORED)
POINTS = pd.DataFrame(
    {
        "id": ["a", "b", "c", "d"],
        "label": [0, 1, 0, 1],
        "role": ["pool"] * 4,
        "valued": [True, False, True, True],
    }
)


def a_shard(index, n_points=3):
    points = np.array([0, 2, 3])[:n_points]
    rows = [(index, 2 + index, points, np.arange(n_points) + 10.0 * index, 0.5)]
    return make_shard(index, rows, end_task=index + 1)


def test_points_are_mapped_to_the_valued_ones(tmp_path):
    store = FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    store.write(a_shard(0))
    contributions = Run(store).contributions()
    assert contributions.ids.tolist() == ["a", "c", "d"]
    assert contributions.point.tolist() == [0, 1, 2]
    assert contributions.table()["point"].tolist() == ["a", "c", "d"]


def test_a_run_knows_how_far_it_is(tmp_path):
    store = FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    store.write(a_shard(1))
    run = open_run(tmp_path / "run")
    assert not run.is_complete
    assert (run.progress().n_contributions, run.progress().n_planned) == (3, 6)
    store.write(a_shard(0))
    assert run.is_complete
    assert run.contributions().task.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"dataset": {"fingerprint": "81c2ffff", "n_pool": 4}},
            "another dataset .fingerprint 3f9a0000…, this",
        ),
        ({"model": {"name": "ridge", "class": "R", "params": {}}}, "another model .logistic, not"),
        (
            {"model": {"name": "logistic", "class": "L", "params": {"C": 2.0}}},
            "another model .C=1.0, now 2.0",
        ),
        ({"metric": "brier"}, "another metric"),
        ({"seed": 1}, "another seed .0, now 1"),
        ({"design": {"name": "grid", "sizes": [2], "share": None}}, "another design"),
        ({"points": {"n_valued": 2, "digest": "bb"}}, "another choice of points"),
        ({"engine": {"name": "ridge", "is_exact": True}}, "another engine"),
    ],
)
def test_another_run_is_refused_with_what_differs(tmp_path, change, words):
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    with pytest.raises(StoreError, match=words):
        FolderStore.create(tmp_path / "run", Manifest.from_json({**STORED, **change}), POINTS)


def test_the_name_of_a_model_is_not_its_identity(tmp_path):
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    model = {"name": "LogisticRegression", "class": "L", "params": {"C": 1.0}}
    same = Manifest.from_json({**STORED, "model": model})
    FolderStore.create(tmp_path / "run", same, POINTS)


def test_a_run_can_grow_and_never_shrinks(tmp_path):
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    layout = replace(MANIFEST.layout, n_tasks=5)
    grown = replace(MANIFEST, samples=5, n_contributions=15, layout=layout)
    assert FolderStore.create(tmp_path / "run", grown, POINTS).layout.n_tasks == 5
    assert FolderStore.create(tmp_path / "run", MANIFEST, POINTS).layout.n_tasks == 5
    assert open_run(tmp_path / "run").manifest.samples == 5


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(StoreError, match="files that are not a run"):
        FolderStore.create(tmp_path, MANIFEST, POINTS)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(StoreError, match="cannot write"):
        FolderStore.create(tmp_path / "run", MANIFEST, POINTS)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema_version": 99}', "\x00\xff"])
def test_a_broken_manifest_is_an_error_with_its_path(tmp_path, text):
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    (tmp_path / "run" / "manifest.json").write_text(text)
    with pytest.raises(StoreError, match=r"manifest\.json"):
        open_run(tmp_path / "run")


def test_a_folder_without_a_run_says_how_to_start_one(tmp_path):
    with pytest.raises(StoreError, match=r"not a run.*collect"):
        open_run(tmp_path)
    with pytest.raises(StoreError, match="not a run"):
        open_run(tmp_path / "nowhere")


def test_a_broken_table_of_points_is_an_error_with_its_path(tmp_path):
    store = FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    (tmp_path / "run" / "points.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(StoreError, match=r"points\.parquet"):
        _ = store.points


def test_a_shard_under_another_name_is_refused(tmp_path):
    store = FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    store.write(a_shard(0))
    shards = tmp_path / "run" / "shards"
    (shards / "shard-00000001.parquet").write_bytes(
        (shards / "shard-00000000.parquet").read_bytes()
    )
    with pytest.raises(StoreError, match="holds shard 0: expected shard 1"):
        store.read(1)


def test_what_killed_collectors_left_is_swept_once_it_is_old(tmp_path):
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    (tmp_path / "run" / "shards").mkdir(exist_ok=True)
    old, new = (tmp_path / "run" / "shards" / f".shard-{name}.tmp" for name in ("old", "new"))
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    assert not old.exists()
    assert new.exists()


def test_a_full_disk_leaves_what_was_stored_and_no_half_file(tmp_path, monkeypatch):
    store = FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    store.write(a_shard(0))

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="the disk is full"):
        store.write(a_shard(1))
    monkeypatch.undo()
    assert store.indices() == [0]
    assert sorted(file.name for file in (tmp_path / "run" / "shards").iterdir()) == [
        "shard-00000000.parquet"
    ]


def test_the_manifest_is_json_for_people(tmp_path):
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    text = (tmp_path / "run" / "manifest.json").read_text()
    assert STORED.items() <= json.loads(text).items()
    assert "\n  " in text


def test_a_shard_beyond_the_layout_is_none_of_the_runs(tmp_path):
    store = FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    for index in (0, 1, 7):
        store.write(a_shard(index))
    assert store.indices() == [0, 1]
    assert len(open_run(tmp_path / "run").contributions()) == 6


@pytest.mark.parametrize(
    ("old", "new"), [('"seed": 0', '"seed": 3'), ('"n_tasks": 2', '"n_tasks": 7')]
)
def test_a_manifest_that_was_altered_is_refused(tmp_path, old, new):
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    file = tmp_path / "run" / "manifest.json"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(StoreError, match="do not match its digest"):
        open_run(tmp_path / "run")


def test_another_table_of_points_is_refused(tmp_path):
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    FolderStore.create(tmp_path / "other", MANIFEST, POINTS.assign(label=[1, 0, 1, 0]))
    other = (tmp_path / "other" / "points.parquet").read_bytes()
    (tmp_path / "run" / "points.parquet").write_bytes(other)
    with pytest.raises(StoreError, match="do not match the digest in the manifest"):
        open_run(tmp_path / "run").contributions()


def test_runs_from_before_digests_are_still_read(tmp_path):
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(STORED))
    assert open_run(tmp_path / "run").ids.tolist() == ["a", "c", "d"]


def test_a_temporary_file_that_was_removed_is_written_again(tmp_path, monkeypatch):
    store = FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    real, calls = os.link, []

    def swept_once(source, target):
        calls.append(source)
        if len(calls) == 1:
            os.unlink(source)
        real(source, target)

    monkeypatch.setattr(os, "link", swept_once)
    store.write(a_shard(0))
    assert store.read(0).index == 0
    assert len(calls) == 2


def test_a_disk_without_hard_links_still_keeps_the_first_manifest(tmp_path, monkeypatch):
    def never(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", never)
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    assert FolderStore.create(tmp_path / "run", MANIFEST, POINTS).manifest.seed == 0
    with pytest.raises(StoreError, match="another seed"):
        FolderStore.create(tmp_path / "run", replace(MANIFEST, seed=1), POINTS)
    assert not list((tmp_path / "run").glob(".*"))


def test_where_the_data_came_from_may_be_removed_from_a_manifest(tmp_path):
    data = replace(MANIFEST.dataset, source={"path": "/home/me/secret.csv"})
    FolderStore.create(tmp_path / "run", replace(MANIFEST, dataset=data), POINTS)
    file = tmp_path / "run" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["dataset"]["source"] = None
    file.write_text(json.dumps(manifest))
    assert open_run(tmp_path / "run").manifest.dataset.source is None


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize("moment", range(6))
def test_a_rival_at_any_moment_of_the_start_finds_or_is_the_run(
    tmp_path, monkeypatch, moment, is_same
):
    rival = MANIFEST if is_same else replace(MANIFEST, seed=5)
    rivals_points = POINTS if is_same else POINTS.assign(label=[1, 0, 1, 0])
    calls = iter(range(1_000))

    def refused():
        return nullcontext() if is_same else suppress(StoreError)

    def interrupted(method):
        def wrapper(*args, **kwargs):
            if next(calls) == moment:
                with refused():
                    FolderStore.create(tmp_path / "run", rival, rivals_points).write(a_shard(0))
            return method(*args, **kwargs)

        return wrapper

    for name in ("names", "has", "read", "write", "remove_stale"):
        monkeypatch.setattr(LocalFolder, name, interrupted(getattr(LocalFolder, name)))
    with refused():
        FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    assert next(calls) > moment
    run = open_run(tmp_path / "run")  # whoever's it is, it is whole
    winner = POINTS if run.manifest.seed == MANIFEST.seed else rivals_points
    assert run.points["label"].tolist() == winner["label"].tolist()


def test_a_table_of_points_that_is_gone_is_written_again(tmp_path):
    store = FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    (tmp_path / "run" / "points.parquet").unlink()
    with pytest.raises(StoreError, match="collect again with the same settings"):
        _ = store.points
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    assert open_run(tmp_path / "run").ids.tolist() == ["a", "c", "d"]


def test_a_manifest_of_another_schema_version_says_who_wrote_it(tmp_path):
    FolderStore.create(tmp_path / "run", MANIFEST, POINTS)
    newer = {**STORED, "schema_version": 2, "versions": {"apiece": "9.1"}, "digest": "another way"}
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(newer))
    words = r"schema version 2, written by apiece 9\.1: expected schema version 1.*new folder"
    with pytest.raises(StoreError, match=words):
        open_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"samples": 0}, "samples is 0"),
        ({"seed": True}, "seed is True"),
        ({"metric": 3}, "metric is 3"),
        ({"dataset": []}, "dataset is not an object"),
        ({"dataset": {"fingerprint": "00"}}, "dataset.n_pool is missing"),
        ({"engine": {"name": "refit", "is_exact": "yes"}}, "engine.is_exact is 'yes'"),
        ({"layout": {**STORED["layout"], "rows": 3}}, "layout.rows is not known"),
    ],
)
def test_what_is_wrong_in_a_manifest_is_named(change, complaint):
    with pytest.raises(ValueError, match=complaint):
        Manifest.from_json({**STORED, **change})


def test_what_a_manifest_does_not_know_by_name_is_kept():
    probed = {**STORED, "weather": {"wind": 0.5}}
    manifest = Manifest.from_json(probed)
    assert manifest.more == {"weather": {"wind": 0.5}}
    assert manifest.model.more == {"class": "L", "params": {"C": 1.0}}
    assert manifest.to_json() == probed
