from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import apiece
from apiece import synthetic
from apiece.errors import DataError, PlanError
from apiece.reporting import build
from apiece.reporting._page import SCRIPTS, STYLES, asset, page
from apiece.reporting._payload import unpack

from conftest import make_blobs, make_line

LAWS = synthetic.random_laws(10, random_state=0)
SAMPLES = synthetic.sample(LAWS, samples=10)


class Parts(HTMLParser):
    """Collects elements with their attributes, and the texts of scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.texts, self._open = [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = (tag, dict(attrs)) if tag in ("script", "style", "title") else None

    def handle_data(self, data):
        if self._open:
            self.texts.append((*self._open, data))

    def handle_endtag(self, tag):
        self._open = None


def data_of(html):
    found = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', html)
    return unpack(base64.b64decode(found[1]))


def test_the_policy_names_exactly_the_scripts_and_styles_of_the_page():
    parts = Parts(build(SAMPLES, LAWS))
    policy = next(a["content"] for t, a in parts.elements if a.get("http-equiv"))
    digests = {
        tag: {
            base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            for name, attrs, text in parts.texts
            if name == tag and "type" not in attrs
        }
        for tag in ("script", "style")
    }
    for tag, found in digests.items():
        allowed = re.search(rf"{tag}-src ([^;]*)", policy)[1]
        assert set(re.findall(r"'sha256-([^']*)'", allowed)) == found
        assert "unsafe" not in allowed
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy


def test_no_element_reaches_out_or_carries_a_handler():
    for tag, attrs in Parts(build(SAMPLES, LAWS)).elements:
        assert not any(name.startswith("on") for name in attrs), tag
        assert "style" not in attrs, tag
        for name in ("src", "href"):
            assert attrs.get(name, "#").startswith(("#", "data:")), (tag, attrs)


def test_own_scripts_never_turn_text_into_markup_or_code():
    words = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(")
    for name in SCRIPTS:
        if not name.startswith("vendor/"):
            assert not any(word in asset(name) for word in words), name


def test_no_asset_can_end_its_own_element():
    for name in (*SCRIPTS, *STYLES):
        assert not re.search(r"</(script|style)|<!--", asset(name), re.IGNORECASE), name


def test_a_title_is_text_even_if_it_looks_like_a_place_or_a_tag():
    title = "{{data}}</title><script>alert(1)</script>{{style}}"
    parts = Parts(page(b"", title))
    assert ("title", {}, title) in parts.texts
    assert sum(tag == "script" for tag, _ in parts.elements) == len(SCRIPTS) + 1


def test_a_live_page_may_ask_its_own_server_only():
    policy = re.search(r'content="(default-src[^"]*)"', page(b"", "x", is_live=True))[1]
    assert "connect-src 'self'" in policy


def test_the_vendored_library_comes_with_its_licence_and_version():
    assert "v1.6.32" in asset(SCRIPTS[0])[:100]
    assert "MIT License" in asset("vendor/uPlot-1.6.32.LICENSE")


def test_parameters_and_covariances_are_kept_to_the_last_digit():
    laws = replace(apiece.fit(SAMPLES, family="power"), df=None)
    _, arrays = data_of(build(SAMPLES, laws))
    np.testing.assert_array_equal(arrays["param_c"], laws.c)
    np.testing.assert_array_equal(arrays["param_alpha"], laws.alpha)
    np.testing.assert_array_equal(arrays["cov_01"], laws.cov[:, 0, 1])


def test_covariances_are_widened_to_the_intervals_of_few_degrees_of_freedom():
    laws = replace(apiece.fit(SAMPLES), df=np.full(len(SAMPLES.ids), 3.0))
    _, arrays = data_of(build(SAMPLES, laws))
    wider = student.ppf(0.95, 3) / norm.ppf(0.95)
    np.testing.assert_allclose(arrays["cov_01"], wider**2 * laws.cov[:, 0, 1])


def test_the_overview_tells_what_was_run(tmp_path):
    run = apiece.collect(
        make_blobs(), sizes=(8, 40), samples=6, random_state=3, to=tmp_path / "run", progress=False
    )
    description, _ = data_of(build(run, apiece.fit(run)))
    said = dict(fact for facts in description["facts"].values() for fact in facts)
    assert said["model"] == "logistic"
    assert said["metric"] == "log_loss"
    assert said["engine"] == "logistic, exact"
    assert said["seed"] == "3"
    assert said["points"] == "60"
    k_min, k_max = run.contributions().k_range
    assert said["sizes"] == f"{k_min} to {k_max} (uniform, all points share a draw)"
    assert said["contributions"] == f"{len(run.contributions()):,}"
    assert sum(count for _, count in description["status_counts"]) == 60
    assert len(description["loss"]["k"]) > 0


def test_clear_signs_are_those_whose_interval_leaves_out_zero():
    laws = apiece.fit(SAMPLES)
    low, high = laws.interval(laws.k_ref, level=0.8)
    description, _ = data_of(build(SAMPLES, laws, level=0.8))
    said = dict(description["facts"]["Quality of the fits"])
    share = 100 * ((low > 0) | (high < 0)).mean()
    assert said[f"sign clear at k = {round(laws.k_ref):,}"] == f"{share:.0f} % of the points"


def test_a_backtest_is_shown_of_the_laws_own_kind():
    truth = synthetic.random_laws(30, random_state=2)
    samples = synthetic.sample(truth, samples=60)
    laws = apiece.fit(samples, method="auto")
    said = dict(data_of(build(samples, laws))[0]["facts"]["Quality of the fits"])
    table = laws.backtest()
    own = table[(table["method"] == laws.attrs["estimator"])].sort_values("k").iloc[-1]
    words = said[f"predicted at k = {own['k']:,.0f}"]
    assert words.startswith("R² ")
    assert words.endswith("% of 90 % intervals right")
    assert said["estimator"].endswith("chosen by a backtest")
    plain = dict(
        data_of(build(samples, apiece.fit(samples, method="likelihood")))[0]["facts"][
            "Quality of the fits"
        ]
    )
    assert not any(name.startswith("predicted") for name in plain)


@pytest.mark.slow
def test_an_unfinished_run_says_how_much_is_missing(tmp_path):
    run = apiece.collect(
        make_blobs(),
        model="tree",
        sizes=(8, 40),
        samples=20,
        random_state=3,
        to=tmp_path / "run",
        progress=False,
    )
    max((tmp_path / "run" / "shards").iterdir()).unlink()
    run = apiece.open(tmp_path / "run")
    description, _ = data_of(build(run, apiece.fit(run)))
    assert "planned" in dict(description["facts"]["Budget spent"])["contributions"]


def test_quantities_are_labels_as_they_are(tmp_path):
    run = apiece.collect(make_line(), model="ridge", sizes=(8, 40), samples=6, progress=False)
    description, arrays = data_of(build(run, apiece.fit(run)))
    assert "labels" not in description
    np.testing.assert_array_equal(arrays["label_number"], run.labels)


def test_a_law_of_the_loss_is_drawn_with_its_interval_if_there_is_one():
    run = apiece.collect(make_blobs(), sizes=(8, 40), samples=6, random_state=0, progress=False)
    law = apiece.aggregate(run)
    loss = data_of(build(run, apiece.fit(run), aggregate=law, level=0.8))[0]["loss"]
    k = np.array(loss["curve_k"])
    assert k[0] == law.k_range[0]
    assert k[-1] == pytest.approx(2 * law.k_known)
    np.testing.assert_allclose(loss["curve"], law.mean(k))
    ends = np.array([loss["low"], loss["high"]])[:, [0, -1]]
    np.testing.assert_allclose(ends, law.interval(k[[0, -1]], level=0.8))


def test_advice_is_matched_by_id_and_may_lack_points():
    advice = pd.DataFrame({"advice": ["drop", "keep"]}, index=[7, 2])
    description, arrays = data_of(build(SAMPLES, LAWS, advice=advice))
    words = [description["advices"][code] for code in arrays["advice"]]
    assert (words[7], words[2], words[0]) == ("drop", "keep", "")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"advice": pd.DataFrame({"verdict": ["keep"]})}, DataError, "expected advice"),
        ({"level": 1.5}, PlanError, "level=1.5"),
        ({"dataset": make_blobs(n=4)}, DataError, "lacks 6 of the points"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(options, error, words, tmp_path):
    with pytest.raises(error, match=words):
        apiece.report(SAMPLES, LAWS, to=tmp_path / "report.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_report_is_a_verb_even_after_its_room_was_imported():
    import apiece.reporting

    assert callable(apiece.report)
    assert apiece.reporting.__name__ == "apiece.reporting"


def test_approximate_contributions_are_named_next_to_the_results():
    engine = {"name": "first-order", "is_exact": False, "correlation": 0.97}
    laws = apiece.Laws(**{**vars(LAWS), "attrs": {"engine": engine}})
    description, _ = data_of(build(SAMPLES, laws))
    assert description["caveat"].startswith("approximate: engine first-order")
    assert data_of(build(SAMPLES, LAWS))[0]["caveat"] is None


def test_the_page_has_the_colours_of_the_figures():
    styles = Path(apiece.plots.__file__).parent
    css = asset("report.css")
    light, dark = css.split("@media (prefers-color-scheme: dark)")
    for sheet, part in (("apiece.mplstyle", light), ("apiece-dark.mplstyle", dark)):
        cycle = re.search(r"prop_cycle: cycler\('color', \[(.*?)\]", (styles / sheet).read_text())
        colours = re.findall(r"'(\w{6})'", cycle[1])
        for name, colour in zip(("helps", "harms", "second"), colours, strict=False):
            assert re.search(rf"--{name}: #(\w+)", part)[1].upper() == colour


def test_a_report_without_laws_fits_them(tmp_path):
    run = apiece.collect(make_blobs(), sizes=(8, 40), samples=6, progress=False)
    path = apiece.report(run, to=tmp_path / "deep" / "report.html")
    description, _ = data_of(path.read_text("utf-8"))
    assert len(description["ids"]) == 60
