"""A headless Chromium, and a page object with the words of a reader of the report."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shutil
import time

import pytest

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MISSING = (
    "the browser tests need Chromium and its driver: install them with `apt-get install chromium "
    "chromium-driver` (or put `chromium` and `chromedriver` on the PATH), and selenium with "
    "`pip install --group test`"
)


def _programs():
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    return chromium, shutil.which("chromedriver")


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """One browser for all tests of a process; without one they are skipped, in CI they fail."""
    chromium, chromedriver = _programs()
    if None in (chromium, chromedriver, importlib.util.find_spec("selenium")):
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(chromedriver))
    yield browser
    browser.quit()


class Page:
    """An open report."""

    def __init__(self, driver, folder):
        self.driver = driver
        self.folder = folder

    def open(self, url, *, width=1440, height=1000):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self.driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior",
            {"behavior": "allow", "downloadPath": str(self.folder)},
        )
        self.driver.get("about:blank")  # what the page before asked for is not ours
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.driver.get(url)
        self.until("document.documentElement.dataset.ready !== undefined")
        return self

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def until(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not self.js(f"return Boolean({condition})"):
            assert time.monotonic() < end, f"never came true: {condition}"
            time.sleep(0.05)

    def element(self, selector):
        return self.driver.find_element("css selector", selector)

    def text(self, selector):
        return self.element(selector).text

    def rows(self):
        """The texts of the rows that are drawn, cell by cell, by the columns' titles."""
        return self.js("""
            const heads = [...document.querySelectorAll('#table thead th')].map(h => h.textContent);
            return [...document.querySelectorAll('#table tbody tr[data-index]')].map(row =>
              Object.fromEntries([...row.cells].map((cell, j) => [heads[j], cell.textContent])));
        """)

    def ids(self):
        return [row["Point"] for row in self.rows()]

    def listed(self):
        return self.js("return Array.from(listed, (i) => report.ids[i])")

    def slide_to(self, k):
        """Move the slider as a reader does, to the notch nearest to a size; return that size."""
        self.js(
            """
            const [low, high] = report.k_reach;
            const slider = document.getElementById('slider');
            slider.value = Math.round(1000 * Math.log(arguments[0] / low) / Math.log(high / low));
            slider.dispatchEvent(new Event('input', {bubbles: true}));
            """,
            k,
        )
        self.js("return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
        return self.js("return state.k")

    def choose(self, name, text):
        from selenium.webdriver.support.ui import Select

        Select(self.element(f"#{name}")).select_by_visible_text(text)

    def screenshot(self, path):
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self):
        """What the console said that a reader should not have to see."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """What was asked for, other than the file, data it carries, and the browser's own pages."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return [
            url
            for url in found
            if not url.startswith(("file:", "data:", "blob:", "chrome:", "about:"))
        ]


@pytest.fixture
def page(driver, tmp_path):
    return Page(driver, tmp_path)
