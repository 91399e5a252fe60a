"""What counts as the same code."""

from __future__ import annotations

import functools
import importlib
import sys
import textwrap

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from apiece._base.code import changed_params, code_digest, may_be_same_code
from apiece.losses import LOSSES


def defined(source, name="f"):
    """Return what a user's module with that source defines."""
    scope = {"__name__": "users_module", "np": np}
    exec(textwrap.dedent(source), scope)
    return scope[name]


def weighted(y, p, w=1.0):
    return w * float(np.mean(y != p))


class Weighted:
    def __init__(self, w):
        self.w = w

    def __call__(self, y, p):
        return self.w * float(np.mean(y != p))


def closure(w):
    return lambda y, p: w * float(np.mean(y != p))


DIFFERENT = {
    "constant": lambda w: defined(f"def f(y, p): return {w} * y"),
    "operator": lambda w: defined(f"def f(y, p): return y {'+' if w == 1 else '-'} p"),
    "attribute": lambda w: defined(f"def f(y, p): return np.{'mean' if w == 1 else 'sum'}(y)"),
    "global": lambda w: defined(f"W = {w}\ndef f(y, p): return W * y"),
    "helper": lambda w: defined(f"def g(y): return {w} * y\ndef f(y, p): return g(y)"),
    "inner": lambda w: defined(f"def f(y, p):\n    def g(): return {w} * y\n    return g()"),
    "method": lambda w: defined(f"class f:\n    def __call__(self, y): return {w} * y")(),
    "partial": lambda w: functools.partial(weighted, w=w),
    "closure": closure,
    "default": lambda w: defined(f"def f(y, p, w={w}): return w * y"),
    "object": Weighted,
    "bound method": lambda w: Weighted(w).__call__,
    "array": lambda w: functools.partial(weighted, w=np.array([1.0, w])),
    "transformer": lambda w: FunctionTransformer(closure(w)),
    "pipeline": lambda w: make_pipeline(FunctionTransformer(closure(w)), LogisticRegression()),
    "parameter": lambda w: LogisticRegression(C=w),
    "metric of neighbours": lambda w: KNeighborsClassifier(metric=closure(w)),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_what_computes_other_numbers_has_another_digest(kind):
    make = DIFFERENT[kind]
    assert code_digest(make(1)) == code_digest(make(1))
    assert code_digest(make(1)) != code_digest(make(100))


SAME = {
    "docstring": ("def f(y): return y + 1", 'def f(y):\n    "Add one."\n    return y + 1'),
    "comment": ("def f(y): return y + 1", "def f(y):\n    # one more\n    return y + 1"),
    "name of a variable": ("def f(y): return y + 1", "def f(z): return z + 1"),
    "other globals": ("A = 1\ndef f(y): return y + 1", "A = 2\ndef f(y): return y + 1"),
}


@pytest.mark.parametrize("kind", SAME)
def test_what_computes_the_same_numbers_has_the_same_digest(kind):
    one, two = (defined(source) for source in SAME[kind])
    assert code_digest(one) == code_digest(two)


def test_functions_that_call_each_other_have_a_digest():
    source = "def g(n): return f(n - 1)\ndef f(n): return n and g(n) + {}"
    assert code_digest(defined(source.format(1))) != code_digest(defined(source.format(2)))


def test_code_of_installed_packages_counts_by_name():
    assert "-" not in code_digest(LogisticRegression(C=2.0))
    assert "-" not in code_digest(LOSSES["log_loss"])
    assert "-" not in code_digest(np.mean)
    assert len({code_digest(loss) for loss in LOSSES.values()}) == len(LOSSES)


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_code_of_packages_installed_elsewhere_counts_by_name(folder, tmp_path, monkeypatch):
    place = tmp_path / folder
    place.mkdir()
    (place / "users_package.py").write_text("def f(x):\n    return x\n")
    monkeypatch.syspath_prepend(place)
    package = importlib.import_module("users_package")
    digest = code_digest(package.f)
    del sys.modules["users_package"]
    assert "-" not in digest


def test_parameters_at_their_defaults_do_not_count():
    assert changed_params(LogisticRegression(C=2.0)) == {"C": 2.0}
    assert changed_params(LogisticRegression(C=1.0)) == {}


def test_digests_of_other_versions_of_python_are_not_compared():
    assert may_be_same_code("ab-python3.11", "cd-python3.12")
    assert not may_be_same_code("ab-python3.11", "cd-python3.11")
    assert not may_be_same_code("ab", "cd")
