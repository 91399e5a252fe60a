"""The report on localhost, following a collection that is under way.

The page asks ``/progress`` every second or so, and ``/data`` when there is a newer version. Laws
are fitted again whenever shards have arrived.

The server listens on 127.0.0.1 only and answers no request that names another host, so that a page
elsewhere cannot reach it by renaming itself. Other users of the machine reach 127.0.0.1 too, so the
address holds a secret token, and requests without it are refused. The token is no cookie: browsers
send cookies to every port of a host, and other ports may belong to other users.
"""

from __future__ import annotations

import hmac
import json
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any, Final
from urllib.parse import parse_qs

import numpy as np

from apiece.errors import ApieceError, FitError, StoreError
from apiece.estimators import Estimator, rebuilt
from apiece.laws import Laws
from apiece.laws.provenance import plain
from apiece.records import Contributions, Table
from apiece.reporting._content import gather
from apiece.reporting._page import page
from apiece.reporting._payload import pack
from apiece.store import Run, open_run

Find = Callable[[Run, Laws], dict[str, Any]]

_ADDRESS: Final = "127.0.0.1"
_EARLIER: Final = (0.125, 0.25, 0.5)  # shares of the tasks whose laws begin the history
_MOST_EARLIER: Final = 500_000  # contributions up to which that history is worth its time


@dataclass
class Follower:
    """The newest laws of a run, as the server tells them.

    Parameters
    ----------
    path
        The folder of the run.
    method
        How laws are fitted; None for the estimator of the stored laws, or the default.
    find
        Returns the options of the report that follow from the run and its laws.
    memory
        What contributions may take at once; None reads all of them.
    """

    path: Path
    method: Estimator | None = None
    find: Find | None = None
    memory: int | str | None = None
    data: bytes = b""
    news: dict[str, Any] = field(
        default_factory=lambda: {"version": 0, "stored": 0, "planned": 0, "history": []}
    )
    _seen: object = None

    def update(self) -> bool:
        """Look at the run, and fit again if it has grown; return whether there is a new version."""
        try:
            shards, stored_laws = self._signature()
            if (shards, stored_laws) == self._seen:
                return False
            run = open_run(self.path)
            progress = run.progress()
            self._tell(
                stored=progress.n_contributions,
                planned=progress.n_planned,
                is_complete=progress.is_complete,
                trouble=None,
            )
            self._seen = shards, stored_laws
            if not progress.n_contributions:
                return False
            laws = run.laws(self.method, memory=self.memory)
            self._seen = shards, self._signature()[1]  # which `laws` may have written
            with run.opened(self.memory) as table:
                return self._refit(run, table, laws)
        except FitError:
            return False  # too little to fit: the page shows progress alone
        except ApieceError as error:
            self._tell(trouble=str(error))
            return False

    def _refit(self, run: Run, table: Table, laws: Laws) -> bool:
        is_new = not self.news["history"] and len(table) <= _MOST_EARLIER
        if is_new and isinstance(table, Contributions):
            self._look_back(laws, table)
        options = self.find(run, laws) if self.find else {}
        description, arrays = gather(run, table, laws, **options)
        self.data = pack(description, arrays)
        history = [*self.news["history"], convergence(laws, table)]
        self._tell(version=self.news["version"] + 1, fitted=len(table), history=plain(history))
        return True

    def _look_back(self, laws: Laws, contributions: Contributions) -> None:
        """Begin the history with what the first tasks alone would have given."""
        recipe = laws.provenance.recipe
        if recipe is None or recipe.features:
            return
        estimator = rebuilt(recipe)
        tasks = np.unique(contributions.task)
        history = []
        for share in _EARLIER:
            last = tasks[: int(share * len(tasks))]
            part = contributions.where(np.isin(contributions.task, last))
            if len(last) and len(part) >= 3 * contributions.n_points:
                history.append(convergence(estimator.fit(part), part))
        self._tell(history=plain(history))

    def _signature(self) -> tuple[object, object]:
        """Return what differs after a change of the run or of its stored laws."""
        files = [*sorted((self.path / "shards").glob("shard-*.parquet"))]
        files += [self.path / "manifest.json"]
        return _times(files), _times([self.path / "laws.parquet"])

    def _tell(self, **news: Any) -> None:
        self.news = {**self.news, **news}  # in one step: requests see the old or the new


def _times(files: list[Path]) -> list[tuple[str, int]]:
    return [(file.name, file.stat().st_mtime_ns) for file in files if file.exists()]


def convergence(laws: Laws, table: Table) -> dict[str, float]:
    r"""Return how settled the laws are: the median of $\mathrm{se}(\psi_k) / |\psi_k|$ over points.

    At the size $k$ = ``laws.k_ref``; ``samples`` is the mean number per point.
    """
    mean, error = laws.mean(laws.k_ref), laws.stderr(laws.k_ref)
    known = np.isfinite(mean + error) & (mean != 0)
    relative = np.abs(error[known] / mean[known])
    return {
        "samples": len(table) / max(1, table.n_points),
        "relative_error": float(np.median(relative)) if len(relative) else float("nan"),
    }


class Server(ThreadingHTTPServer):
    """Serves a follower's report to browsers on this machine.

    Parameters
    ----------
    follower
        What to serve.
    port
        Port to listen on, 0 for any free one.

    Raises
    ------
    StoreError
        If the port is taken.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, follower: Follower, port: int) -> None:
        self.follower, self.token = follower, secrets.token_urlsafe(32)
        self.html = page(b"", "apiece", is_live=True).encode("utf-8")
        try:
            super().__init__((_ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise StoreError(
                f"port {port} of {_ADDRESS} cannot be listened on ({error}): expected a free one. "
                "Pass another with --port, or --port 0 for any that is free."
            ) from error

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        return f"http://{_ADDRESS}:{self.server_port}/?token={self.token}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.headers.get("Host") not in self._hosts():
            self._send(b"This server answers to 127.0.0.1 alone.", "text/plain", 421)
            return
        path, _, query = self.path.partition("?")
        follower = self.server.follower
        if not self._knows_token(query):
            self._send(
                b"Open the address that apiece serve printed: it holds a token, which is missing "
                b"here or of another server.",
                "text/plain",
                HTTPStatus.FORBIDDEN,
            )
        elif path == "/":
            self._send(self.server.html, "text/html; charset=utf-8")
        elif path == "/progress":
            self._send(json.dumps(follower.news).encode("ascii"), "application/json")
        elif path == "/data":
            self._send(follower.data, "application/octet-stream")
        else:
            self._send(b"There is nothing here.", "text/plain", HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET

    def _knows_token(self, query: str) -> bool:
        given = parse_qs(query).get("token", [""])[0]
        return hmac.compare_digest(given.encode(), self.server.token.encode())

    def _hosts(self) -> tuple[str, str]:
        port = self.server.server_port
        return f"{_ADDRESS}:{port}", f"localhost:{port}"

    def _send(self, body: bytes, kind: str, code: int = HTTPStatus.OK) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "apiece"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: standard error belongs to the command."""


def serve(
    path: Path,
    *,
    port: int,
    ready: Callable[[str], None],
    method: Estimator | None = None,
    stop: threading.Event | None = None,
    every: float = 2.0,
    find: Find | None = None,
    memory: int | str | None = None,
) -> None:
    """Serve the report of a run until interrupted, looking for news every few seconds.

    Parameters
    ----------
    path
        The folder of the run.
    port
        Port to listen on, 0 for any free one.
    ready
        Called with the address once it answers.
    method
        How laws are fitted; None for the estimator of the stored laws, or the default.
    stop
        Ends serving when set.
    every
        Seconds between looks at the run.
    find
        Returns the options of the report that follow from the run and its laws.
    memory
        What contributions may take at once; None reads all of them.
    """
    open_run(path)  # a folder that is no run is refused at once
    follower = Follower(path, method, find, memory)
    ended = stop or threading.Event()
    with Server(follower, port) as server, _interrupts_end(ended):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            ready(server.url)
            follower.update()
            while not ended.wait(every):
                follower.update()
        finally:
            server.shutdown()


@contextmanager
def _interrupts_end(ended: threading.Event) -> Iterator[None]:
    """Set an event when the user interrupts, and raise the interrupt if it was lost.

    Python drops an interrupt that is raised inside a finaliser, and serving would go on.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        ended.set()
        before(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted:
        raise KeyboardInterrupt
