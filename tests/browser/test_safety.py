"""Nothing that a user wrote can run, and nothing can leave the page."""

from __future__ import annotations

import http.server
import threading

import numpy as np
import pandas as pd
import pytest

import apiece
from apiece import synthetic
from apiece.reporting._page import SCRIPTS

PAYLOADS = [
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    '"><svg onload="window.pwned = 1">',
    "' onmouseover='window.pwned = 1' x='",
    "javascript:window.pwned=1",
    "<!--<script>window.pwned = 1</script>",
    "]]><script>window.pwned = 1</script>",
    "{{data}}${window.pwned = 1}{{constructor.constructor('window.pwned = 1')()}}",
    "line\u2028separator\u2029window.pwned=1//",
    "</style><script>window.pwned = 1</script>",
    "\u202eevil\u202c<iframe srcdoc='<script>parent.pwned = 1</script>'>",
    "&lt;script&gt;window.pwned = 1&lt;/script&gt;",
    "back\\slash\" 'quotes' \x00 \x1b[31m",
]


@pytest.fixture(scope="module")
def malicious(tmp_path_factory):
    n = len(PAYLOADS)
    ids = np.array(PAYLOADS, dtype=object)
    laws = synthetic.random_laws(n, random_state=0)
    samples = synthetic.sample(laws, samples=20)
    laws = apiece.Laws(
        **{
            **vars(laws),
            "ids": ids,
            "labels": ids[::-1],
            "attrs": {"metric": PAYLOADS[1], "model": PAYLOADS[0], "seed": PAYLOADS[2]},
        }
    )
    # The laws are of these contributions, so that both have the same seed.
    attrs = {**samples.attrs, "seed": PAYLOADS[2]}
    samples = apiece.Contributions(**{**vars(samples), "ids": ids, "attrs": attrs})
    rows = pd.DataFrame(dict.fromkeys(PAYLOADS, ids), index=ids)
    rows["number " + PAYLOADS[1]] = np.arange(n)
    advice = pd.DataFrame({"advice": ids, "reason": ids, "probability": 0.5}, index=ids)
    path = apiece.report(
        samples,
        laws,
        to=tmp_path_factory.mktemp("safety") / "malicious.html",
        rows=rows,
        advice=advice,
        title=PAYLOADS[0],
    )
    return path.as_uri()


def counts(page):
    """How many elements there are of the kinds that a payload would add."""
    return page.js("""
        return ['script', 'iframe', 'svg', 'img', '[onerror]', '[onload]', '[onmouseover]']
          .map((kind) => document.querySelectorAll(kind).length)
    """)


def test_payloads_stay_text_wherever_they_are_shown(page, malicious):
    page.open(malicious)
    before = counts(page)
    for i in range(len(PAYLOADS)):
        page.js("openPoint(arguments[0])", i)
        page.js("compare((arguments[0] + 1) % report.ids.length)", i)
        page.js("const s = document.getElementById('search'); s.value = report.ids[arguments[0]];"
                "s.dispatchEvent(new Event('input'))", i)  # fmt: skip
    page.element("#all-columns").click()
    for button in page.driver.find_elements("css selector", "#table th button"):
        button.click()
    page.js("document.getElementById('search').value = ''; list()")
    page.js("exported()")
    assert page.js("return window.pwned") is None
    assert counts(page) == before == [len(SCRIPTS), 0, 0, 0, 0, 0, 0]
    assert page.complaints() == []
    assert page.requests() == []
    assert page.js("return document.title") == PAYLOADS[0]
    shown = page.js("return report.ids")
    assert shown[:12] == PAYLOADS[:12]
    assert set(page.ids()) <= set(shown)


def test_the_policy_stops_what_would_get_in_anyway(page, malicious):
    page.open(malicious)
    page.js("""
        const image = '<img src="data:," onerror="window.pwned = 1">';
        document.body.insertAdjacentHTML('beforeend', image);
        const script = document.createElement('script');
        script.textContent = 'window.pwned = 2';
        document.body.append(script);
    """)
    assert page.js("return window.pwned") is None
    # Later, when the driver's own leave to evaluate text has passed.
    page.js("""
        setTimeout(() => {
          try { eval('window.pwned = 3') } catch (error) { window.caught = error.name }
        }, 0)
    """)
    page.until("window.caught !== undefined || window.pwned !== undefined")
    assert page.js("return [window.caught, window.pwned]") == ["EvalError", None]
    assert len(page.complaints()) >= 2


def test_the_policy_allows_no_network(page, malicious):
    asked = []

    class Ear(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)

    with http.server.HTTPServer(("127.0.0.1", 0), Ear) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.open(malicious)
        url = f"http://127.0.0.1:{server.server_port}/"
        said = page.driver.execute_async_script(
            """
            const [url, done] = arguments;
            new Image().src = url + 'image';
            const link = document.createElement('link');
            Object.assign(link, { rel: 'stylesheet', href: url + 'style' });
            document.head.append(link);
            fetch(url + 'fetch').then(() => done('answered'), (error) => done(error.name));
            """,
            url,
        )
        server.shutdown()
    assert said == "TypeError"
    assert asked == []
    page.complaints()


def test_exported_csv_holds_no_formula(page, malicious):
    page.open(malicious)
    texts = ["=1+1", "+cmd", "-2+3", "@SUM(1)", "\t=1", "-5", "-1e3", "plain"]
    fields = page.js("return arguments[0].map(csvField)", texts)
    assert fields == ["'=1+1", "'+cmd", "'-2+3", "'@SUM(1)", "'\t=1", "-5", "-1e3", "plain"]
