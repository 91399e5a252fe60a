"""Make the pictures of the report: ``python docs/images/report.py`` (needs Chromium).

One demo run, its report at desktop and phone width, in light and dark; written next to this file.
"""

from __future__ import annotations

import base64
import io
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image

import apiece
from apiece.data import load_demo

HERE = Path(__file__).parent
# Width, height, colours, pixels per point, and how far down the page.
SHOTS = {
    "report.png": (1200, 900, "light", 1.5, "size"),
    "report-dark.png": (1200, 900, "dark", 1.5, "size"),
    "report-top.png": (1200, 770, "light", 1.5, None),
    "report-top-dark.png": (1200, 770, "dark", 1.5, None),
    "report-phone.png": (375, 812, "light", 2, None),
    "report-phone-dark.png": (375, 812, "dark", 2, None),
}
SCENE = """
const [point, place] = arguments;
openPoint(report.ids.indexOf(point));
for (const point of listed.slice(0, 3)) toggle(point);
window.scrollTo(0, place ? document.getElementById(place).offsetTop : 0);
"""


def make(path: Path) -> str:
    """Write the demo's report, and return a point to relabel."""
    dataset, _ = load_demo(flipped=0.1, random_state=0)
    run = apiece.collect(dataset, sizes=(30, 240), samples=200, random_state=0)
    laws = run.laws()
    advice = apiece.advise(run, dataset=dataset)
    apiece.report(run, laws, to=path, dataset=dataset, advice=advice)
    rows = advice.table().loc[laws.ids]
    return str(rows.index[rows["advice"] == "relabel"][0])


def browser() -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        sys.exit("the pictures need chromium and chromedriver on the PATH.")
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs[0])
    flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    for flag in (*flags, f"--user-data-dir={tempfile.mkdtemp()}"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(str(programs[1])))


def main() -> None:
    driver = browser()
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            point = make(path)
            for name, (width, height, scheme, scale, place) in SHOTS.items():
                metrics = {"width": width, "height": height, "deviceScaleFactor": scale}
                driver.execute_cdp_cmd(
                    "Emulation.setDeviceMetricsOverride", {**metrics, "mobile": width < 600}
                )
                media = [{"name": "prefers-color-scheme", "value": scheme}]
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
                driver.get(path.as_uri())
                while not driver.execute_script("return document.documentElement.dataset.ready"):
                    time.sleep(0.05)
                driver.execute_script(SCENE, point, place)
                time.sleep(1)
                shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
                with Image.open(io.BytesIO(base64.b64decode(shot["data"]))) as image:
                    image.convert("RGB").quantize(160).save(HERE / name, optimize=True)
                print(f"wrote {HERE / name}")
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
