"""The page's scripts, run by node: their numbers are those that Python computes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import apiece
from apiece import synthetic
from apiece.laws import Ridge, Series
from apiece.plots import exponent
from apiece.reporting._content import gather
from apiece.reporting._payload import pack
from apiece.uses import crossings

PAGE = Path(__file__).parent / "page"
ASSETS = files("apiece.reporting") / "assets"
SIZES = [60, 100, 316, 1000, 12345]
KEYS = [3.0, -1.0, None, 0.0, -0.0, 3.0, 1e-300, -1e300, 2.5]
N = 60

node = shutil.which("node")
needs_node = pytest.mark.skipif(node is None, reason="node is not installed")


def laws_of(family):
    truth = synthetic.random_laws(N, family="power" if family == "power" else "series")
    rng = np.random.default_rng(0)
    if family == "power":
        return apiece.fit(synthetic.sample(truth, samples=20), "likelihood", family="power")
    root = rng.normal(size=(N, 3, 3)) * np.abs(truth.params[:, None, :])
    return apiece.Laws.from_arrays(
        family=Series() if family == "series" else Ridge((0, 30, 1000)),
        params=truth.params,
        cov=root @ root.transpose(0, 2, 1) / 9,
    )


@pytest.fixture(scope="module", params=["power", "series", "ridge"])
def computed(request, tmp_path_factory):
    """Laws, pairs of points that cross, the page's data, and what its scripts make of it."""
    if node is None:
        pytest.skip("node is not installed")
    laws = laws_of(request.param)
    samples = synthetic.sample(laws_of("power"), samples=5)
    samples = apiece.Contributions(**{**vars(samples), "ids": laws.ids})
    found = crossings(laws, most=5)
    pairs = [[laws.place(a), laws.place(b)] for a, b in found[["first", "second"]].values]
    description, arrays = gather(None, samples, laws)
    file = tmp_path_factory.mktemp("page") / "data"
    file.write_bytes(pack(description, arrays))
    asked = {"sizes": SIZES, "pairs": pairs, "point": 3, "keys": KEYS}
    words = [node, PAGE / "evaluate.mjs", ASSETS, file, json.dumps(asked)]
    ran = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return laws, found, arrays, json.loads(ran.stdout)


def test_values_and_intervals_at_every_size_are_those_of_python(computed):
    laws, _, _, page = computed
    for k, found in zip(SIZES, page["at"], strict=True):
        low, high = laws.interval(k)
        half = (high - low) / 2
        for name, expected in (("value", laws.mean(k)), ("low", low), ("high", high)):
            got = np.array(found[name], dtype=float)
            # Equal but for the last digits: pow and the order of sums are the engine's own.
            assert_allclose((got - expected) / half, 0, atol=1e-9)


def test_the_order_at_every_size_is_that_of_python(computed):
    laws, _, _, page = computed
    for k, found in zip(SIZES, page["at"], strict=True):
        assert np.argsort(found["value"]).tolist() == np.argsort(laws.mean(k)).tolist()


def test_curves_cross_where_python_says(computed):
    _, found, _, page = computed
    assert len(found)
    for at, sizes in zip(found["at"], page["crossings"], strict=True):
        assert np.min(np.abs(np.array(sizes) / at - 1)) < 1e-6


def test_values_fade_as_fast_as_python_says(computed):
    laws, _, _, page = computed
    expected = exponent(laws, laws.k_ref)
    got = np.array(page["exponents"], dtype=float)
    assert_allclose(got[np.isfinite(expected)], expected[np.isfinite(expected)], rtol=1e-5)


def test_the_nearest_points_are_those_of_a_plain_search(computed):
    *_, arrays, page = computed
    space = arrays["near"].reshape(N, -1).astype(float)
    distance = ((space - space[3]) ** 2).sum(axis=1)
    distance[3] = np.inf
    assert_allclose(distance[page["near"]], np.sort(distance)[:6])


def test_numbers_sort_as_numpy_sorts_them(computed):
    page = computed[-1]
    keys = np.array(KEYS, dtype=float)
    assert page["rising"] == np.argsort(keys, kind="stable").tolist()
    assert page["falling"] == np.argsort(-keys, kind="stable").tolist()


def test_exports_are_csv_without_formulas(computed):
    assert computed[-1]["csv"] == '\'=1+1,"a""b",-5,3\r\n'


@needs_node
def test_scripts_pass_the_type_checker():
    tsc = os.environ.get("TSC") or shutil.which("tsc")
    if tsc is None:
        pytest.skip("the TypeScript compiler is not installed: npm install -g typescript")
    ran = subprocess.run([tsc, "-p", PAGE], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout
