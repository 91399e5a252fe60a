"""`apiece serve` in a browser: the page follows a run that grows."""

from __future__ import annotations

import threading

import pytest

import apiece
from apiece.reporting._serve import Follower, Server

from conftest import make_blobs


def collect(to, samples):
    return apiece.collect(
        make_blobs(), sizes=(8, 40), samples=samples, random_state=0, to=to, progress=False
    )


@pytest.fixture
def served(tmp_path):
    collect(tmp_path / "run", samples=10)
    follower = Follower(tmp_path / "run")
    with Server(follower, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield tmp_path / "run", follower, server.url
        server.shutdown()


def test_the_page_follows_the_run_and_keeps_what_its_reader_chose(page, served):
    run, follower, url = served
    follower.update()
    page.open(url)
    page.until("!document.getElementById('live').hidden")
    assert page.text("#progress-text").startswith("Complete")
    before = page.js("return report.arrays.n_samples[0]")
    page.slide_to(20)
    k = page.js("return state.k")
    page.js("toggle(7); openPoint(5)")

    collect(run, samples=40)
    assert follower.update()
    page.until(f"report.arrays.n_samples[0] > {before}")
    assert page.js("return [state.k, report.ids[state.open], selected[7]]") == [k, "5", 1]
    assert page.js("return charts.history.chart.data[0].length") >= 2
    assert page.complaints() == []
    assert all(address.startswith(url.partition("?")[0]) for address in page.requests())


def test_a_run_without_contributions_is_waited_for(page, served):
    run, follower, url = served
    shards = sorted((run / "shards").iterdir())
    kept = {file: file.read_bytes() for file in shards}
    for file in shards:
        file.unlink()
    follower.update()
    page.driver.get(url)  # there is nothing to wait for yet
    page.until("document.getElementById('title').textContent.startsWith('Waiting')")
    page.until("document.getElementById('progress-text').textContent.startsWith('0 %')")
    for file, data in kept.items():
        file.write_bytes(data)
    follower.update()
    page.until("document.documentElement.dataset.ready !== undefined")
    assert len(page.ids()) > 5
