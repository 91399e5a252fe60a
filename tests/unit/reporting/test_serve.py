from __future__ import annotations

import contextlib
import http.client
import json
import signal
import threading

import pytest

import apiece
from apiece.errors import StoreError
from apiece.reporting._payload import unpack
from apiece.reporting._serve import Follower, Server, serve

from conftest import make_blobs


def collect(to, samples):
    return apiece.collect(
        make_blobs(), sizes=(8, 40), samples=samples, random_state=0, to=to, progress=False
    )


@pytest.fixture
def run(tmp_path):
    collect(tmp_path / "run", samples=10)
    return tmp_path / "run"


@pytest.fixture
def server(run):
    follower = Follower(run)
    follower.update()
    with Server(follower, 0) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield served
        served.shutdown()


def ask(server, path, host=None, method="GET", token=None):
    token = server.token if token is None else token
    path += f"?token={token}" if token else ""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    headers = {} if host is None else {"Host": host}
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_it_listens_on_this_machine_only(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.url.startswith("http://127.0.0.1:")


def test_page_progress_and_data_are_there(server, run):
    answer, body = ask(server, "/")
    assert answer.status == 200
    assert b"connect-src 'self'" in body
    news = json.loads(ask(server, "/progress")[1])
    assert news["version"] == 1
    assert news["stored"] == news["planned"] == len(apiece.open(run).contributions())
    description, arrays = unpack(ask(server, "/data")[1])
    assert len(description["ids"]) == len(arrays["param_a2"]) == 60


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "", "[::1]"])
def test_a_request_that_names_another_host_is_refused(server, host):
    for path in ("/", "/progress", "/data"):
        answer, body = ask(server, path, host=host)
        assert answer.status == 421
        assert b"alone" in body


@pytest.mark.parametrize("token", ["", "x", "wrong" * 9, "%C3%A9", "%00", "&token=&token="])
def test_a_request_without_the_token_is_refused(server, token):
    for path in ("/", "/progress", "/data", "/elsewhere"):
        for method in ("GET", "HEAD"):
            answer, body = ask(server, path, method=method, token=token)
            assert answer.status == 403
            assert b"apiece" in body or method == "HEAD"
    assert ask(server, f"/?token=wrong&token={server.token}&", token="")[0].status == 403


def test_the_address_holds_a_token_of_its_own(server, run):
    assert server.url.endswith(f"/?token={server.token}")
    assert len(server.token) >= 40
    with Server(Follower(run), 0) as other:
        assert other.token != server.token
        assert ask(server, "/data", token=other.token)[0].status == 403


def test_no_cookie_carries_the_token_to_other_ports(server):
    assert "Set-Cookie" not in ask(server, "/")[0].headers


def test_localhost_by_name_is_answered(server):
    assert ask(server, "/progress", host=f"localhost:{server.server_port}")[0].status == 200


def test_answers_may_not_be_framed_read_elsewhere_or_kept(server):
    answer, _ = ask(server, "/data")
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_other_paths_and_methods_are_refused(server):
    assert ask(server, "/../manifest.json")[0].status == 404
    assert ask(server, "/data", method="POST")[0].status == 501
    answer, body = ask(server, "/", method="HEAD")
    assert (answer.status, body) == (200, b"")


def test_laws_are_fitted_anew_only_when_the_run_has_grown(run):
    follower = Follower(run)
    assert follower.update()
    assert not follower.update()
    samples = unpack(follower.data)[1]["n_samples"].min()
    errors = [entry["relative_error"] for entry in follower.news["history"]]
    collect(run, samples=80)
    assert follower.update()
    assert follower.news["version"] == 2
    assert unpack(follower.data)[1]["n_samples"].min() > samples
    history = follower.news["history"]
    assert [entry["samples"] for entry in history] == sorted(e["samples"] for e in history)
    assert history[-1]["relative_error"] < errors[0]


def test_laws_kept_with_the_run_are_shown_as_they_are(run):
    laws = apiece.fit(apiece.open(run), method="log_ols")
    laws.save(run / "laws.parquet")
    follower = Follower(run)
    follower.update()
    facts = dict(unpack(follower.data)[0]["facts"]["Quality of the fits"])
    assert facts["estimator"] == "log_ols"


def test_a_run_that_cannot_be_read_is_reported_and_the_last_version_stays(run):
    follower = Follower(run)
    follower.update()
    data = follower.data
    shard = next((run / "shards").iterdir())
    shard.write_bytes(b"broken")
    assert not follower.update()
    assert "shard" in follower.news["trouble"]
    assert follower.data == data


def test_a_taken_port_is_reported(server, run):
    with pytest.raises(StoreError, match="--port 0"):
        Server(Follower(run), server.server_port)


def test_a_folder_that_is_no_run_is_reported_at_once(tmp_path):
    with pytest.raises(StoreError, match="is not a run"):
        serve(tmp_path, port=0, ready=print)


def test_serving_ends_on_request(run):
    stop, heard = threading.Event(), []

    def ready(url):
        heard.append(url)
        stop.set()

    serve(run, port=0, ready=ready, stop=stop, every=0.01)
    connection = http.client.HTTPConnection(heard[0][7:].partition("/")[0], timeout=5)
    with pytest.raises(ConnectionError):
        connection.request("GET", "/")


def test_an_interrupt_that_is_lost_ends_serving_all_the_same(run):
    def ready(url):
        with contextlib.suppress(KeyboardInterrupt):  # as Python does in a finaliser
            signal.raise_signal(signal.SIGINT)

    stop = threading.Event()
    late = threading.Timer(20, stop.set)  # so that the test fails, and does not go on for ever
    late.start()
    with pytest.raises(KeyboardInterrupt):
        serve(run, port=0, ready=ready, stop=stop, every=0.1)
    late.cancel()
