"""The report in a browser: what a reader does, and that the page's numbers are the library's."""

from __future__ import annotations

import csv
import re
import time
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import apiece
from apiece import synthetic
from apiece.laws import Family, Ridge, Series, ShapePrior
from apiece.reporting._samples import means_by_size

N = 300
LABELS = np.array(["spam", "ham", "egg"])[np.arange(N) % 3]


def fitted(family, n=N):
    """Laws with real uncertainty: fitted for power laws, made up for sums of terms."""
    truth = synthetic.random_laws(
        n, family="power" if family == "power" else "series", random_state=1
    )
    samples = synthetic.sample(truth, samples=30, design="grid", random_state=1)
    if family == "power":
        laws = apiece.fit(samples, method="likelihood", family="power")
    else:
        rng = np.random.default_rng(0)
        root = rng.normal(size=(n, 3, 3)) * np.abs(truth.params[:, None, :])
        params = truth.params.copy()
        params[7] = np.nan
        laws = apiece.Laws.from_arrays(
            family=Series() if family == "series" else Ridge((0, 30, 1000)),
            params=params,
            cov=root @ root.transpose(0, 2, 1) / 9,
        )
    names = np.array([f"p{i:03d}" for i in range(n)])
    laws = apiece.Laws(**{**vars(laws), "ids": names, "labels": LABELS[:n]})
    return laws, apiece.Contributions(**{**vars(samples), "ids": names})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def power(folder):
    laws, samples = fitted("power")
    rows = pd.DataFrame(
        {"length": np.arange(N), "review": [f"A text about item {i}. " * 4 for i in range(N)]},
        index=laws.ids,
    )
    advice = pd.DataFrame(
        {
            "advice": np.where(laws.mean(1000) > 0, "keep", "relabel"),
            "reason": "because",
            "probability": 0.75,
        },
        index=laws.ids,
    )
    images = {"p005": np.linspace(0, 1, 48).reshape(4, 4, 3)}
    path = apiece.report(
        samples, laws, to=folder / "power.html", rows=rows, advice=advice, images=images
    )
    return laws, samples, path.as_uri()


@pytest.fixture(scope="module")
def series(folder):
    laws, samples = fitted("series")
    return laws, samples, apiece.report(samples, laws, to=folder / "series.html").as_uri()


@pytest.fixture(scope="module")
def ridge(folder):
    laws, samples = fitted("ridge")
    return laws, samples, apiece.report(samples, laws, to=folder / "ridge.html").as_uri()


@pytest.fixture(params=["power", "series", "ridge"])
def either(request):
    return request.getfixturevalue(request.param)


def test_a_report_opens_without_a_complaint_or_a_request(page, either):
    _, _, url = either
    page.open(url)
    page.slide_to(3000)
    page.element("#table tbody tr[data-index]").click()
    assert page.complaints() == []
    assert page.requests() == []


@pytest.mark.parametrize("k", [1, 60, 316, 1000, 12345])
def test_values_and_intervals_are_those_of_python(page, either, k):
    laws, _, url = either
    page.open(url)
    value, low, high = page.js(
        "laws.evaluate(arguments[0], value, lows, highs);"
        "return [value, lows, highs].map((column) => Array.from(column))",
        k,
    )
    # Equal but for the last digits: pow and the order of sums are the browser's own.
    scale = np.abs(laws.params) @ (k ** -np.array([1.0, 1.5, 2.0]))[: laws.params.shape[1]]
    assert_allclose(np.array(value, float), laws.mean(k), rtol=1e-12, atol=1e-15 * np.nanmax(scale))
    ends = np.array(laws.interval(k))
    half = np.diff(ends, axis=0) / 2
    assert_allclose((np.array([low, high], float) - ends) / half, 0 * ends, atol=1e-9)


class Offset(Family):
    """Power laws that do not end at zero, c k^-alpha + d."""

    name = "offset"
    parameters = ("c", "d", "alpha")
    coordinates = ("psi_ref", "d", "alpha")
    shapes: ClassVar = {"alpha": ShapePrior(0.0, 3.0, 1.0, 0.3)}
    page_terms: ClassVar = [("relative", "alpha"), ("power", 0.0)]

    def curve(self, params, k):
        c, d, alpha = np.moveaxis(params, -1, 0)
        return c * k**-alpha + d

    def to_local(self, params, k_ref):
        c, d, alpha = np.moveaxis(params, -1, 0)
        return np.stack([c * k_ref**-alpha, d, alpha], axis=-1)

    def from_local(self, local, k_ref):
        height, d, alpha = np.moveaxis(local, -1, 0)
        return np.stack([height * k_ref**alpha, d, alpha], axis=-1)


class Sampled(Offset):
    name = "sampled"
    page_terms = None


# Searches for extremes on an ellipsoid start elsewhere; between sizes curves are cubic.
@pytest.mark.parametrize(("family", "tolerance"), [(Offset(), 1e-5), (Sampled(), 5e-3)])
def test_curves_of_a_family_that_the_page_does_not_know_are_those_of_python(
    page, folder, family, tolerance
):
    rng = np.random.default_rng(3)
    local = rng.normal(size=(30, 3)) * [1.0, 0.2, 0.3] + [0.0, 0.0, 1.0]
    root = rng.normal(size=(30, 3, 3)) * [[[0.1], [0.05], [0.1]]]
    laws = apiece.Laws.from_arrays(
        family=family,
        params=family.from_local(local, np.sqrt(100 * 1000)),
        cov=root @ root.transpose(0, 2, 1),
        sigma=0.1,
        beta=0.0,
    )
    samples = synthetic.sample(laws, samples=5)
    page.open(apiece.report(samples, laws, to=folder / f"{family.name}.html").as_uri())
    for k in (60, 316, 1000, 12345):
        value, low, high = page.js(
            "laws.evaluate(arguments[0], value, lows, highs);"
            "return [value, lows, highs].map((column) => Array.from(column))",
            k,
        )
        ends = np.array(laws.interval(k))
        half = np.diff(ends, axis=0) / 2
        assert_allclose((value - laws.mean(k)) / half[0], 0, atol=tolerance)
        assert_allclose((np.array([low, high]) - ends) / half, 0, atol=tolerance)
    assert page.complaints() == []


def test_the_order_of_numbers_is_that_of_numpy(page, power):
    keys = [3.0, -1.0, None, 0.0, -0.0, 3.0, 1e-300, -1e300, 2.5]
    page.open(power[2])
    for falling in (False, True):
        order = page.js(
            "const keys = Float64Array.from(arguments[0], (x) => x ?? NaN);"
            "return Array.from(orderOf(keys, arguments[1]))",
            keys,
            falling,
        )
        numbers = np.array(keys, float)
        expected = np.argsort(-numbers if falling else numbers, kind="stable")
        assert order == expected.tolist()


def test_the_points_that_are_surely_worth_most_come_first(page, either):
    laws, _, url = either
    page.open(url)
    k = page.slide_to(400)
    low, high = laws.interval(k, level=0.9)
    assert page.listed()[:20] == laws.ids[np.argsort(-low, kind="stable")][:20].tolist()
    page.js("document.querySelector('th.interval button').click()")
    page.js("document.querySelector('th.interval button').click()")
    assert page.listed()[:20] == laws.ids[np.argsort(-low, kind="stable")][:20].tolist()
    page.js("document.querySelector('th.interval button').click()")
    assert page.listed()[:20] == laws.ids[np.argsort(high, kind="stable")][:20].tolist()


def test_the_slider_ranks_the_points_anew(page, either):
    laws, _, url = either
    page.open(url)
    page.js("document.querySelector('th.value button').click()")
    orders = []
    for wanted in (110, 900, 15_000):
        k = page.slide_to(wanted)
        best = laws.ids[np.argsort(-laws.mean(k), kind="stable")]
        best = best[~np.isnan(np.sort(-laws.mean(k)))]
        assert page.listed()[: len(best)] == best.tolist()
        assert page.ids()[:5] == best[:5].tolist()
        assert page.rows()[0]["Rank"] == "1"
        orders.append(tuple(best))
    assert len(set(orders)) == 3


def test_extrapolation_is_marked_with_its_distance(page, power):
    page.open(power[2])
    assert page.text("#size-note") == "within the sampled sizes"
    k = page.slide_to(5000)
    assert f"{k / 1000:.2g} \u00d7 beyond" in page.text("#size-note")
    assert "extrapolated" in page.element("#size").get_attribute("class")
    page.slide_to(60)
    assert "below the sampled sizes" in page.text("#size-note")


def test_a_size_can_be_typed(page, power):
    laws, _, url = power
    page.open(url)
    box = page.element("#size-number")
    box.clear()
    box.send_keys("777\t")
    assert page.js("return state.k") == 777
    assert page.ids()[0] == laws.ids[np.argmax(laws.mean(777))]


@pytest.mark.parametrize(("typed", "taken"), [("0", 50), ("-5", 50), ("1e9", 20_000)])
def test_sizes_beyond_the_page_are_not_taken(page, power, typed, taken):
    page.open(power[2])
    box = page.element("#size-number")
    box.clear()
    box.send_keys(f"{typed}\t")
    assert page.js("return state.k") == taken
    assert box.get_attribute("value") == str(taken)
    assert "sizes go from 50 to 20,000" in page.text("#size-note")


@pytest.mark.parametrize(("title", "parameter"), [("\u03b1", "alpha"), ("c", "c")])
def test_a_heading_sorts_and_sorts_the_other_way(page, power, title, parameter):
    laws, _, url = power
    page.open(url)
    page.element("#all-columns").click()
    heading = f"//table[@id='table']//th/button[text()='{title}']"
    button = page.driver.find_element("xpath", heading)
    button.click()
    numbers = getattr(laws, parameter)
    assert page.ids()[0] == laws.ids[np.argmax(numbers)]
    assert button.find_element("xpath", "..").get_attribute("aria-sort") == "descending"
    button.click()
    assert page.ids()[0] == laws.ids[np.argmin(numbers)]
    assert button.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"


def test_search_and_filters_narrow_the_list(page, power):
    page.open(power[2])
    page.element("#search").send_keys("item 42.")
    assert page.listed() == ["p042"]
    page.element("#search").clear()
    page.element("#search").send_keys("P01")
    assert sorted(page.listed()) == [f"p{i:03d}" for i in range(10, 20)]
    page.choose("label", "ham")
    assert {row["Label"] for row in page.rows()} == {"ham"}
    page.element("#search").clear()
    page.element("#search").send_keys("zebra")
    assert page.listed() == []
    assert "No point fits" in page.text("#table")


def test_signs_are_clear_at_the_size_of_the_slider(page, power):
    laws, _, url = power
    page.open(url)
    low, high = laws.interval(1000)
    for name, expected in [
        ("helps, clearly", low > 0),
        ("harms, clearly", high < 0),
        ("unclear", (low <= 0) & (high >= 0)),
        ("below zero", laws.mean(1000) < 0),
    ]:
        page.choose("sign", name)
        assert sorted(page.listed()) == sorted(laws.ids[expected])


def test_advice_is_a_column_a_filter_and_a_reason(page, power):
    laws, _, url = power
    page.open(url)
    page.choose("advice", "relabel")
    assert sorted(page.listed()) == sorted(laws.ids[laws.mean(1000) <= 0])
    page.element("#table tbody tr[data-index]").click()
    said = page.text("#point-advice")
    assert "relabel, probability 0.75" in said
    assert "because" in said


def test_the_overview_counts_advice_and_a_click_lists_it(page, power):
    laws, _, url = power
    page.open(url)
    harmful = laws.ids[laws.mean(1000) <= 0]
    line = next(
        button
        for button in page.driver.find_elements("css selector", "#do-counts button")
        if button.text.endswith("relabel")
    )
    assert line.text == f"{len(harmful):,} relabel"
    line.click()
    assert sorted(page.listed()) == sorted(harmful)
    assert page.ids()[0] == laws.ids[np.argmin(laws.mean(1000))]  # the worst comes first


def test_series_laws_show_how_fast_they_fade_at_the_size_of_the_slider(page, series):
    laws, _, url = series
    page.open(url)
    k = page.slide_to(300)
    shown = page.js("return Array.from(exponents(state.k))")
    known = laws.has_law
    assert_allclose(
        np.array(shown, dtype=float)[known], apiece.plots.exponent(laws, k)[known], rtol=1e-5
    )
    assert "\u03b1(k)" in page.rows()[0]
    page.choose("axes", f"how fast it fades, and its value, at {round(laws.k_ref):,}")
    assert page.js("return pick.yLog")
    assert page.complaints() == []


def test_a_click_opens_a_point_with_its_curve_row_and_text(page, power):
    laws, samples, url = power
    page.open(url)
    page.element("#search").send_keys("p005")
    page.element("#table tbody tr[data-index]").click()
    assert page.text("#point-title") == "Point p005"
    assert "A text about item 5." in page.text("#point-what")
    assert "A text about item 5." in page.rows()[0]["review"]
    assert page.element("#point-what img").get_attribute("naturalWidth") == "4"
    drawn = page.js(
        "const c = curveOf(state.open, '#000000'); return [c.means.mean, [...c.samples.delta]]"
    )
    mine = samples.delta[samples.point == 5]
    assert_allclose(drawn[1], mine, rtol=1e-6)
    assert_allclose(drawn[0], means_by_size(samples).mean[5], rtol=1e-6)
    assert page.js("return charts.curve.chart.data.length") == 5
    said = page.text("#point-lead").replace("\u2212", "-")
    number = float(said.split(" by ")[1].split(" ")[0])
    assert number == pytest.approx(abs(laws.mean(1000)[5]), rel=0.005)


def test_the_nearest_points_are_those_of_the_columns(page, power):
    page.open(power[2])
    page.js("openPoint(report.ids.indexOf('p100'))")
    near = [item.text for item in page.driver.find_elements("css selector", "#near li bdi")]
    assert set(near) == {"p097", "p098", "p099", "p101", "p102", "p103"}
    page.element("#near li button").click()
    assert page.text("#point-title").startswith("Point p")
    page.js("openPoint(report.ids.indexOf('p006'))")
    pictures = page.driver.find_elements("css selector", "#near li img")
    assert [each.get_attribute("alt") for each in pictures] == ["Picture of point p005"]
    assert pictures[0].size["height"] <= 32


def test_two_points_cross_where_python_says(page, power):
    laws, _, url = power
    found = apiece.uses.crossings(laws, sizes=(60, 15_000), most=1).iloc[0]
    page.open(url)
    page.js("openPoint(report.ids.indexOf(arguments[0]))", found["first"])
    box = page.element("#other")
    box.send_keys(f"{found['second']}\n")
    said = page.text("#crossing")
    assert said == (
        f"Point {found['first']} is worth more than point {found['second']} up to "
        f"k = {round(found['at']):,}, and less beyond."
    )
    assert page.js("return charts.curve.chart.data.length") == 9
    box.clear()
    box.send_keys("nobody\n")
    assert page.text("#crossing") == "There is no point nobody."


def test_points_that_change_places_with_one_are_listed(page, power):
    laws, _, url = power
    first = apiece.uses.crossings(laws, most=1)["first"].iloc[0]
    pairs = [(first, other) for other in laws.ids if other != first]
    all_of_them = apiece.uses.crossings(laws, pairs=pairs)
    low, high = laws.k_range
    swaps = all_of_them[(all_of_them["at"] > low) & (all_of_them["at"] < high)]
    best = swaps.sort_values("z", ascending=False).head(5)
    page.open(url)
    page.js("openPoint(report.ids.indexOf(arguments[0]))", first)
    lines = [item.text for item in page.driver.find_elements("css selector", "#swaps li")]
    assert [line.split()[0] for line in lines] == best["second"].tolist()
    for line, at in zip(lines, best["at"], strict=True):
        assert f"k = {round(at):,}" in line
    page.element("#swaps li button.quiet").click()
    assert f"k = {round(best['at'].iloc[0]):,}" in page.text("#crossing")


def test_a_region_of_the_plane_lists_its_points(page, either):
    from selenium.webdriver import ActionChains

    laws, _, url = either
    page.open(url)
    over = page.element("#plane-chart .u-over")
    page.js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", over)
    width, height = over.size["width"], over.size["height"]
    start = (int(0.2 * width) - width // 2, int(0.2 * height) - height // 2)
    drag = ActionChains(page.driver).move_to_element_with_offset(over, *start)
    drag.click_and_hold().move_by_offset(width // 2, height // 2).release().perform()
    region = page.js("return state.region")
    if laws.family.name == "power":
        x, y = laws.alpha, np.abs(laws.c)
    else:
        x, y = laws.mean(100), laws.mean(1000)
    inside = (x >= region["x"][0]) & (x <= region["x"][1])
    inside &= (y >= region["y"][0]) & (y <= region["y"][1])
    assert 0 < inside.sum() < len(laws)
    assert sorted(page.listed()) == sorted(laws.ids[inside])
    assert page.element("#only-region").is_selected()
    page.js("document.getElementById('region-box').open = true")
    page.element("#region-clear").click()
    assert len(page.listed()) == len(laws)


def test_a_finger_draws_a_region_when_asked_to(page, power):
    laws, _, url = power
    page.open(url, width=375, height=812)
    over = page.element("#plane-chart .u-over")
    page.js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", over)
    box = page.js("const b = arguments[0].getBoundingClientRect(); return [b.x, b.y]", over)
    width, height = over.size["width"], over.size["height"]

    def drag():
        for kind, share in (("touchStart", 0.2), ("touchMove", 0.5), ("touchMove", 0.8)):
            place = {"x": box[0] + share * width, "y": box[1] + share * height}
            page.driver.execute_cdp_cmd(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [place]}
            )
        page.driver.execute_cdp_cmd(
            "Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []}
        )

    page.js("document.getElementById('draw-region').click()")
    assert page.element("#draw-region").get_attribute("aria-pressed") == "true"
    drag()
    page.until("state.region !== null")
    region = page.js("return state.region")
    inside = (laws.alpha >= region["x"][0]) & (laws.alpha <= region["x"][1])
    inside &= (np.abs(laws.c) >= region["y"][0]) & (np.abs(laws.c) <= region["y"][1])
    assert sorted(page.listed()) == sorted(laws.ids[inside])
    page.js("document.getElementById('draw-region').click(); setRegion(null)")
    drag()  # now it scrolls
    assert page.js("return state.region") is None
    assert page.complaints() == []


def test_a_region_can_be_given_in_numbers(page, power):
    laws, _, url = power
    page.open(url)
    page.js("document.getElementById('region-box').open = true")
    page.element("#x-low").send_keys("1.5\t")
    assert sorted(page.listed()) == sorted(laws.ids[laws.alpha >= 1.5])


def test_selected_ids_are_exported_as_csv(page, power):
    laws, _, url = power
    page.open(url)
    page.element("#search").send_keys("p01")
    page.element("#select-all").click()
    page.element("#search").clear()
    page.element("#search").send_keys("p200")
    page.element("#table tbody tr[data-index] input").click()
    assert "11 selected" in page.text("#count")
    page.element("#export").click()
    file = page.folder / "points-at-1000.csv"
    end = time.monotonic() + 10
    while not file.exists():
        assert time.monotonic() < end, "nothing was downloaded"
        time.sleep(0.05)
    with open(file, newline="") as text:
        rows = list(csv.DictReader(text))
    assert [row["point"] for row in rows] == [f"p{i:03d}" for i in [*range(10, 20), 200]]
    low, high = laws.interval(1000)
    for row in rows:
        i = laws.place(row["point"])
        assert_allclose(float(row["value"]), laws.mean(1000)[i], rtol=1e-12)
        assert_allclose([float(row["low"]), float(row["high"])], [low[i], high[i]], rtol=1e-9)


def test_quantities_have_separators_on_the_page_and_none_in_an_export(page, folder):
    laws, samples = fitted("series")
    prices = np.linspace(-50_000.0, 450_000.5, len(laws.ids))
    laws = apiece.Laws(**{**vars(laws), "labels": prices})
    page.open(apiece.report(samples, laws, to=folder / "prices.html").as_uri())
    page.element("#search").send_keys("p00")
    shown = {row.split()[1]: row for row in page.js(ROWS)}
    assert "\u221250,000" in shown["p000"]
    page.element("#export").click()
    file = page.folder / "points-at-1000.csv"
    end = time.monotonic() + 10
    while not file.exists():
        assert time.monotonic() < end, "nothing was downloaded"
        time.sleep(0.05)
    with open(file, newline="") as text:
        rows = {row["point"]: float(row["label"]) for row in csv.DictReader(text)}
    assert len(rows) == 10
    assert_allclose([rows[f"p{i:03d}"] for i in range(10)], prices[:10])


# The text of every row that is drawn: its rank, id, value and so on.
ROWS = """return [...document.querySelectorAll('#table tbody tr[data-index]')].map(
    (row) => [...row.cells].map((cell) => cell.textContent.trim()).filter(Boolean).join(' '))"""


def test_the_keyboard_reaches_everything(page, power):
    from selenium.webdriver.common.keys import Keys

    page.open(power[2])
    reached = set()
    page.js("document.body.focus()")
    for _ in range(60):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(page.js("const e = document.activeElement; return e.id || e.tagName"))
    assert {"slider", "size-number", "search", "label", "sign", "status", "advice"} <= reached
    assert {"select-all", "export", "other", "log-values", "axes", "TR", "BUTTON"} <= reached


def test_rows_are_walked_opened_and_selected_by_keyboard(page, power):
    from selenium.webdriver.common.keys import Keys

    page.open(power[2])
    listed = page.listed()
    page.element("#table tbody tr[data-index]").send_keys(Keys.ARROW_DOWN)
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert page.text("#point-title") == f"Point {listed[1]}"
    page.driver.switch_to.active_element.send_keys(Keys.END)
    page.driver.switch_to.active_element.send_keys(Keys.SPACE)
    assert page.js("return report.ids.filter((_, i) => selected[i])") == [listed[-1]]
    page.driver.switch_to.active_element.send_keys(Keys.HOME)
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    assert page.text("#point-title") == f"Point {listed[2]}"


def test_the_slider_moves_by_keyboard(page, power):
    from selenium.webdriver.common.keys import Keys

    page.open(power[2])
    before = page.js("return state.k")
    page.element("#slider").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.until(f"state.k > {before}")
    assert "extrapolated" in page.element("#slider").get_attribute("aria-valuetext")


@pytest.mark.parametrize("width", [375, 1440])
def test_the_page_fits_its_width_and_every_control_has_a_name(page, power, width):
    page.open(power[2], width=width, height=800)
    assert page.js("return document.documentElement.scrollWidth") <= width
    ends = page.js(
        "return [...document.querySelectorAll('#ticks span')].map((e) => "
        "[e.getBoundingClientRect().left, e.getBoundingClientRect().right])"
    )
    track = page.js("return document.querySelector('#ticks').getBoundingClientRect().right")
    assert ends == sorted(ends)
    assert ends[-1][1] <= track + 1  # a rounded pixel
    cut = page.js("""
        return [...document.querySelectorAll('td.value')].filter((e) =>
          e.scrollWidth > e.clientWidth).map((e) => e.textContent)
    """)
    assert cut == []
    nameless = page.js("""
        return [...document.querySelectorAll('input, select, button')].filter((e) =>
          e.offsetParent !== null && !e.labels?.length && !e.getAttribute('aria-label')
          && !e.textContent.trim()).map((e) => e.outerHTML)
    """)
    assert nameless == []
    small = page.js("""
        return [...document.querySelectorAll('p, td, dd, label, button')].filter((e) =>
          e.offsetParent !== null && parseFloat(getComputedStyle(e).fontSize) < 12).length
    """)
    assert small == 0


def test_colours_keep_their_contrast_in_light_and_dark(page, power):
    def contrast(one, other):
        def luminance(text):
            parts = np.array([int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)])
            linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
            return linear @ [0.2126, 0.7152, 0.0722]

        high, low = sorted([luminance(one), luminance(other)], reverse=True)
        return (high + 0.05) / (low + 0.05)

    page.open(power[2])
    for scheme in ("light", "dark"):
        page.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        found = {name: page.js("return colour(arguments[0])", name) for name in COLOURS}
        assert contrast(found["ink"], found["card"]) >= 7
        assert contrast(found["quiet"], found["card"]) >= 4.5
        assert contrast(found["helps"], found["card"]) >= 4.5
        assert contrast(found["harms"], found["card"]) >= 3.5
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


COLOURS = ("ink", "quiet", "card", "helps", "harms")


def test_a_long_table_keeps_few_rows_and_scrolls_to_its_end(page, folder):
    laws = synthetic.random_laws(30_000, random_state=0)
    samples = synthetic.sample(laws.select(slice(0, 5)), samples=5)
    samples = apiece.Contributions(**{**vars(samples), "ids": laws.ids})
    page.open(apiece.report(samples, laws, to=folder / "long.html").as_uri())
    assert len(page.rows()) < 60
    page.js("const s = document.getElementById('scroll'); s.scrollTop = s.scrollHeight")
    page.until("document.querySelector('#table tr[data-index=\"29999\"]')")
    assert page.ids()[-1] == str(laws.ids[np.argmin(laws.mean(1000))])
    assert len(page.rows()) < 60


def test_columns_beyond_the_right_edge_fade_until_they_are_scrolled_to(page, power):
    fades = "document.querySelector('.edge').classList.contains('more')"
    page.open(power[2], width=1200, height=900)
    page.element("#all-columns").click()
    page.until(fades)
    assert page.js(f"return {fades}")
    page.js("document.getElementById('scroll').scrollLeft = 9999")
    page.until(f"!{fades}")


def test_paper_gets_the_first_rows_and_no_controls(page, power):
    page.open(power[2])
    page.js("dispatchEvent(new Event('beforeprint'))")
    assert len(page.rows()) == 40
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not page.element("#search").is_displayed()
    assert page.element("#curve-chart canvas").is_displayed()
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.fixture(scope="module")
def advised(folder):
    """A report of a file with texts and wrong labels, made as a user makes it."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    frame = pd.DataFrame(rng.normal(size=(200, 3)) + 2.5 * y[:, None], columns=list("abc"))
    frame["note"] = [f"a longer note about animal {i}" for i in range(200)]
    frame["town"] = np.where(np.arange(200) < 80, "Bern", "Chur")
    y[:20] = 1 - y[:20]
    frame["label"] = np.where(y == 1, "cat", "dog")
    file = folder / "animals.csv"
    frame.to_csv(file, index=False)
    dataset = apiece.Dataset.from_csv(file, target="label", drop=["note", "town"])
    run = apiece.collect(dataset, samples=8, random_state=0, to=folder / "animals")
    path = apiece.report(run, to=folder / "animals.html", slices="town")
    return dataset, run, path.as_uri()


def test_the_first_screen_says_what_to_do_and_how_good_the_model_is(page, advised):
    dataset, run, url = advised
    page.open(url)
    advice = apiece.advise(run)
    words = page.text("#do-words")
    assert words.replace("\u2212", "-") == advice.headline()
    assert not re.search(r"-\d", words)  # a hyphen would end a line
    assert "all 200 rows" in page.text("#do-scope")
    quality = apiece.uses.quality(dataset, "logistic")
    for name, text in quality.words():
        assert f"{text}\n{name}" in page.text("#measures")
    assert "animals.csv" in page.text("#title")
    assert "animals.csv" in page.text("#model-facts")
    assert page.text("#yours") == "your data: 200 ▲"
    mark, size = (
        page.js(f"return document.querySelector('{what}').getBoundingClientRect().toJSON()")
        for what in ("#yours", ".track input")
    )
    assert page.js("return state.k") == 200
    share = page.js("const s = document.getElementById('slider'); return s.value / s.max")
    assert abs(mark["right"] - 6 - (size["left"] + 8 + share * (size["width"] - 16))) < 12
    before = page.js("return document.getElementById('do').getBoundingClientRect().top")
    after = page.js("return document.getElementById('statistics').getBoundingClientRect().top")
    assert before < 400
    assert after > page.js("return document.getElementById('points').getBoundingClientRect().top")
    assert page.complaints() == []


def test_a_point_is_explained_by_prediction_rows_and_slices(page, advised):
    dataset, _, url = advised
    page.open(url)
    page.js("openPoint(report.ids.indexOf('3'))")  # its label was flipped
    said = page.text("#why-words")
    expected = apiece.uses.quality(dataset, "logistic").table().loc[3]
    assert f"predicts {expected['predicted']} with probability" in said
    assert f"its label is {dataset.classes[dataset.y[3]]}" in said
    lines = [item.text for item in page.driver.find_elements("css selector", "#why-rows li")]
    assert len(lines) == 6
    assert all("a longer note about animal" in line for line in lines)
    slices = [item.text for item in page.driver.find_elements("css selector", "#slices li")]
    assert [line.split(" (")[0] for line in slices] == ["Chur", "Bern"]
    assert "by town" in page.text("#slices-title")
    near = page.driver.find_elements("css selector", "#near li")
    assert "a longer note about animal" in near[0].text
    page.element("#why-rows li button").click()
    assert page.text("#point-title") != "Point 3"


def test_predictions_begin_with_their_probability_and_sort_by_class(page, advised):
    dataset, _, url = advised
    page.open(url)
    page.element("#table th.predicted button").click()
    cells = page.driver.find_elements("css selector", "#table td.predicted")
    words = [cell.text.split(" ") for cell in cells if cell.text]
    assert len(words) > 5
    classes = [word for *_, word in words]
    assert set(classes) <= set(dataset.classes)
    assert classes == sorted(classes) or classes == sorted(classes, reverse=True)
    shares = [float(word.rstrip("%\u00a0")) for word, *_ in words]
    assert all(50 <= share <= 100 for share in shares)


def test_headers_are_whole_where_texts_are_shown_too(page, advised):
    page.open(advised[2])
    assert page.js("return document.querySelector('#table th.text') !== null")
    for column in ("interval", "predicted"):
        page.js("sortBy(arguments[0])", column)
        button = f"document.querySelector('#table th.{column} button')"
        assert page.js(f"return {button}.scrollWidth <= {button}.clientWidth"), column


def test_marks_of_large_values_are_short_and_at_powers_of_ten(page, power):
    page.open(power[2])
    marks = "decadeMarks.splits({axes: [null, {scale: 'y'}], scales: {y: {asinh: %s}}}, 1, %s, %s)"
    assert page.js(f"return {marks % (5.3e5, -2e7, 3e7)}") == [-1e7, -1e6, 0, 1e6, 1e7]
    assert page.js(f"return {marks % (2e-4, -1e-5, 5e-4)}") == [0, 1e-4]
    numbers = "[4.2e8, -98765, 123456, -2.5e-5].map(brief)"
    assert page.js(f"return {numbers}") == ["420M", "\u221299,000", "120K", "\u22122.5e\u22125"]


def test_the_mark_of_your_data_sets_the_size(page, advised):
    page.open(advised[2])
    page.element("#yours").click()
    assert page.js("return state.k") == 200
