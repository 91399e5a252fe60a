"""A run holds the numbers of one model and one metric: others are refused, harmless changes not."""

from __future__ import annotations

import functools
import json
import logging
import textwrap

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import apiece
from apiece.errors import ApieceWarning, StoreError
from apiece.losses import FunctionLoss
from apiece.store import Manifest
from apiece.store._manifest import encode_manifest

SETTINGS = {"sizes": (8, 20), "samples": 4, "random_state": 1, "progress": False}


def defined(source, name="f"):
    """Return what a user's module with that source defines."""
    scope = {"__name__": "users_module", "np": np}
    exec(textwrap.dedent(source), scope)
    return scope[name]


def brier(y, p, w=1.0):
    return w * float(np.mean((y - p[:, 1]) ** 2))


class Weighted:
    def __init__(self, w):
        self.w = w

    def __call__(self, y, p):
        return brier(y, p, self.w)


def raised_by(power):
    return lambda X: np.sign(X) * np.abs(X) ** power


def edited(w):
    return defined(f"def f(y, p): return {w} * float(np.mean((y - p[:, 1]) ** 2))")


def logistic_of(function):
    return make_pipeline(FunctionTransformer(function), LogisticRegression())


METRICS = {
    "partial": lambda w: functools.partial(brier, w=w),
    "closure": lambda w: lambda y, p: brier(y, p, w),
    "default": lambda w: defined(f"def f(y, p, w={w}): return w * float(np.mean(p[:, 1]))"),
    "callable object": Weighted,
    "edited function": edited,
    "object of the same name": lambda w: FunctionLoss("mine", "proba", edited(w)),
}
MODELS = {
    "function transformer": lambda w: logistic_of(raised_by(w)),
    "partial transformer": lambda w: logistic_of(functools.partial(np.multiply, w)),
    "edited transformer": lambda w: logistic_of(defined(f"def f(X): return X ** {int(w) % 7}")),
    "metric of neighbours": lambda w: KNeighborsClassifier(
        metric=lambda a, b: float((np.abs(a - b) ** w).sum())
    ),
}


@pytest.mark.parametrize("kind", [*METRICS, *MODELS])
def test_another_metric_or_model_is_refused_and_the_same_one_is_not(blobs, tmp_path, kind):
    word, make = ("metric", METRICS[kind]) if kind in METRICS else ("model", MODELS[kind])
    request = {"model": "logistic", **SETTINGS}
    apiece.collect(blobs, to=tmp_path / "run", **{**request, word: make(1.0)})
    again = apiece.collect(blobs, to=tmp_path / "run", **{**request, word: make(1.0)})
    assert again.is_complete
    with pytest.raises(StoreError, match=f"another {word}"):
        apiece.collect(blobs, to=tmp_path / "run", **{**request, word: make(3.0), "samples": 9})
    assert apiece.open(tmp_path / "run").manifest.samples == 4


def edit(folder, change):
    """Change a stored manifest, as another version would have written it."""
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["digest"]
    change(manifest)
    file.write_bytes(encode_manifest(Manifest.from_json(manifest)))


def older(manifest):
    manifest["versions"] |= {"scikit-learn": "1.6.1"}
    manifest["model"]["params"] |= {"penalty": "l2", "multi_class": "auto"}
    del manifest["model"]["params"]["l1_ratio"]


@pytest.mark.parametrize("engine", ["auto", "refit"])
def test_an_upgrade_that_changes_no_number_is_accepted_and_said(blobs, tmp_path, caplog, engine):
    caplog.set_level(logging.INFO, logger="apiece")
    settings = {**SETTINGS, "model": "logistic", "engine": engine}
    apiece.collect(blobs, to=tmp_path / "run", **settings)
    edit(tmp_path / "run", older)
    run = apiece.collect(blobs, to=tmp_path / "run", **{**settings, "samples": 8})
    assert run.is_complete
    assert "started with scikit-learn 1.6.1, now" in caplog.text
    assert "a test task gives the same numbers" in caplog.text


def test_an_upgrade_that_changes_numbers_is_refused(blobs, tmp_path):
    settings = {**SETTINGS, "model": "logistic"}
    apiece.collect(blobs, to=tmp_path / "run", **settings)

    def other_numbers(manifest):
        older(manifest)
        manifest["probe"]["delta"][0] += 1e-6

    edit(tmp_path / "run", other_numbers)
    with pytest.raises(StoreError, match=r"computes other numbers than when the run in .* started"):
        apiece.collect(blobs, to=tmp_path / "run", **{**settings, "samples": 8})
    assert apiece.open(tmp_path / "run").manifest.samples == 4


def test_a_run_that_is_continued_on_another_machine_says_so(blobs, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="apiece")
    settings = {**SETTINGS, "model": "logistic"}
    run = apiece.collect(blobs, to=tmp_path / "run", **settings)
    assert set(run.manifest.machine) == {"system", "processor", "kernels"}
    assert "another kind of machine" not in caplog.text

    def elsewhere(manifest):
        manifest["machine"] |= {"processor": "abacus"}
        manifest["probe"]["loss"] *= 1 + 1e-7  # such a machine rounds differently

    edit(tmp_path / "run", elsewhere)
    apiece.collect(blobs, to=tmp_path / "run", **settings)
    assert "started on another kind of machine (abacus" in caplog.text
    assert "not bit by bit" in caplog.text


class Dice(ClassifierMixin, BaseEstimator):
    """Predicts other probabilities each time, and takes no seed."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def predict_proba(self, X):
        p = np.random.default_rng().uniform(0.1, 0.9, size=len(X))
        return np.column_stack([p, 1 - p])


def test_a_model_without_a_seed_can_be_resumed_with_a_warning(blobs, tmp_path):
    settings = {**SETTINGS, "model": Dice()}
    for _ in range(2):
        with pytest.warns(ApieceWarning, match="computes other numbers each time"):
            apiece.collect(blobs, to=tmp_path / "run", **settings)
