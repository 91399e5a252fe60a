"""The report of 100,000 points in a browser: bytes, time to open, sizes per second."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import apiece
from _results import Results
from apiece import synthetic
from apiece.laws import Series

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# Move the slider and wait until the new order has been drawn, over and over.
SLIDE = """
const [count, done] = arguments;
const slider = document.getElementById("slider");
const drawn = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 0)));
(async () => {
  const start = performance.now();
  for (let i = 0; i < count; i++) {
    slider.value = (137 * i) % 1000;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await drawn();
  }
  done((performance.now() - start) / count);
})();
"""


def make(family: str, n_points: int, samples: int) -> tuple[Any, Any]:
    """Make laws with uncertainty, and contributions, of many points."""
    truth = synthetic.random_laws(n_points, family=family, random_state=0)
    drawn = synthetic.sample(truth, samples=samples, random_state=0)
    rng = np.random.default_rng(0)
    p = truth.params.shape[1]
    local = truth.family.to_local(truth.params, truth.k_ref)
    root = 0.2 * rng.standard_normal((n_points, p, p)) * np.abs(local)[:, :, None]
    columns = {
        "sigma": truth.sigma,
        "beta": truth.beta,
        "r2": rng.random(n_points),
        "n_samples": np.full(n_points, samples),
        "labels": np.array(["benign", "malignant"])[rng.integers(0, 2, n_points)],
        "ids": np.array([f"review-{i}" for i in range(n_points)]),
    }
    laws = apiece.Laws.from_arrays(
        family=Series() if family == "series" else "power",
        params=truth.params,
        cov=root @ root.transpose(0, 2, 1),
        **columns,
    )
    return laws, apiece.Contributions(**{**vars(drawn), "ids": laws.ids})


def browser() -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        sys.exit("this benchmark needs chromium and chromedriver on the PATH.")
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs[0])
    for flag in (*FLAGS, f"--user-data-dir={tempfile.mkdtemp()}", "--window-size=1440,1000"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(str(programs[1])))


def measure(driver: Any, url: str, n_moves: int) -> tuple[float, float, float]:
    """Return milliseconds to the first ranking drawn, of one move, and of the page's own thread.

    The last is processor time, which a busy machine does not stretch.
    """
    driver.get("about:blank")
    driver.get(url)
    while not driver.execute_script("return document.documentElement.dataset.ready"):
        time.sleep(0.02)
    opened = float(driver.execute_script("return document.documentElement.dataset.ready"))
    before = _busy(driver)
    moved = float(driver.execute_async_script(SLIDE, n_moves))
    return opened, moved, (_busy(driver) - before) / n_moves


def _busy(driver: Any) -> float:
    """Return the milliseconds for which the page's thread has worked so far."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--family", choices=("power", "series"), help="both by default")
    options = parser.parse_args()
    print(f"{options.points:,} points, {options.samples} contributions each")
    columns = {"family": "{}", "columns": "{}", "MB": "{:.1f}", "s to write": "{:.1f}"}
    columns |= {"s to open": "{:.2f}", "sizes per second": "{:.0f}", "ms of thread": "{:.0f}"}
    results = Results("report", columns, options)
    driver = browser()
    driver.set_script_timeout(120)
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    try:
        for family in ("power", "series") if options.family is None else (options.family,):
            laws, drawn = make(family, options.points, options.samples)
            table = _columns(laws, options.features)
            for rows, name in ((None, "none"), (table, f"{options.features} numbers, a text")):
                with tempfile.TemporaryDirectory() as folder:
                    start = time.perf_counter()
                    path = apiece.report(drawn, laws, to=Path(folder) / "report.html", rows=rows)
                    wrote = time.perf_counter() - start
                    size = path.stat().st_size / 1e6
                    rounds = [measure(driver, path.as_uri(), 30) for _ in range(options.rounds)]
                opened, moved, busy = (min(r[i] for r in rounds) for i in (0, 1, 2))
                results.add(family, name, size, wrote, opened / 1000, 1000 / moved, busy)
    finally:
        driver.quit()


def _columns(laws: Any, n_features: int) -> Any:
    import pandas as pd

    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        rng.standard_normal((laws.n_points, n_features)),
        columns=[f"feature {j}" for j in range(n_features)],
        index=laws.ids,
    )
    words = np.array(
        ["the", "film", "was", "good", "bad", "long", "short", "plot", "never", "again"]
    )
    table.insert(
        0, "review", [" ".join(w) for w in words[rng.integers(0, len(words), (len(table), 40))]]
    )
    return table


if __name__ == "__main__":
    main()
