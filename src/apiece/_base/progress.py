"""Progress of long work: for a callback, for a bar on a terminal or in a notebook, and for the log.

A verb opens a `tracking` block; the code inside counts steps with `track`, wherever it is, or with
the tracker that the block yields. Decisions and messages also go to ``logging`` under the name
``apiece``.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from apiece._base.text import printable

if TYPE_CHECKING:
    from rich.console import Console

log: Final = logging.getLogger("apiece")
log.addHandler(logging.NullHandler())  # what is logged is shown by those who ask for it

HEARTBEAT: Final = 2.0  # seconds after which an event is sent though no step has been done
_NEARLY: Final = 0.8  # share of a batch that may count as done before it is
_T = TypeVar("_T")


@dataclass(frozen=True)
class ProgressEvent:
    """The progress of a piece of work, as ``on_progress`` receives it.

    Parameters
    ----------
    title
        What is being done, such as ``collecting``.
    done, total
        Steps that are done, and steps altogether; a total of 0 is not known yet.
    unit
        What a step is, such as ``contributions``.
    elapsed
        Seconds since the work began.
    remaining
        Estimate of the seconds that are left, or nan.
    message
        A message for people, or an empty text.

    Examples
    --------
    >>> event = ProgressEvent("collecting", 5, 10, "contributions", 1.0, 1.0, "")
    >>> event.done / event.total
    0.5
    """

    title: str
    done: int
    total: int
    unit: str
    elapsed: float
    remaining: float
    message: str = ""

    def __str__(self) -> str:
        """Return the event as a line for people.

        >>> print(ProgressEvent("collecting", 500, 2000, "contributions", 30.0, 90.0))
        collecting: 500 of 2,000 contributions, 0:30 elapsed, 1:30 left
        """
        if self.message:
            return self.message
        line = f"{self.title}: {self.done:,} of {self.total:,} {self.unit}" if self.total else ""
        line = f"{line or self.title}, {clock(self.elapsed)} elapsed"
        return line if math.isnan(self.remaining) else f"{line}, {clock(self.remaining)} left"


OnProgress = Callable[[ProgressEvent], object]


def clock(seconds: float) -> str:
    """Return a time for people: minutes and seconds, with hours if there are any.

    >>> clock(75)
    '1:15'
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def duration(seconds: float) -> str:
    """Return an estimated time in words.

    >>> duration(0.2), duration(40), duration(226), duration(8000)
    ('1 second', '40 seconds', '4 minutes', '2 hours 13 minutes')
    """
    whole = max(1, round(seconds))
    if whole < 90:
        return _counted(whole, "second")
    hours, minutes = divmod(round(seconds / 60), 60)
    parts = [_counted(hours, "hour")] if hours else []
    parts += [_counted(minutes, "minute")] if minutes else []
    return " ".join(parts)


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


class Tracker:
    """Counts the steps of one piece of work and sends events to listeners.

    An event is sent after each step, with each message, and every two seconds. An exception that a
    listener raises ends the work.
    """

    def __init__(
        self, listeners: Sequence[OnProgress] = (), *, title: str = "", unit: str = "steps"
    ) -> None:
        self.title, self.unit = title, unit
        self.is_muted = False  # whether messages go to the log alone
        self.deadline: float | None = None  # when work ends that is not done with its steps
        self.expected: float | None = None  # seconds of all steps, until some are done
        self._listeners = tuple(listeners)
        self._total = self._done = self._first = self._batches = 0
        self._began = self._started = self._latest = time.monotonic()
        self._error: BaseException | None = None
        self._lock = threading.RLock()
        self._is_over = threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)

    @property
    def is_followed(self) -> bool:
        """Whether anybody receives events."""
        return bool(self._listeners)

    def __enter__(self) -> Self:
        if self._listeners:
            self._heart.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for listener in self._listeners:
            if isinstance(listener, Bar):
                listener.close()

    def start(self, total: int, done: int = 0) -> None:
        """Begin to count: ``total`` steps, of which some may be done already."""
        with self._lock:
            self._total, self._done, self._first, self._batches = total, done, done, 0
            self._started = self._latest = time.monotonic()
            self._send()

    def advance(self, count: int = 1) -> None:
        """Count steps that are done."""
        with self._lock:
            self._done += count
            self._batches += 1
            self._latest = time.monotonic()
            self._send()

    def say(self, message: str) -> None:
        """Send a message, and log it."""
        log.info(message)
        if not self.is_muted:
            with self._lock:
                self._send(message)

    def _send(self, message: str = "") -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        now = time.monotonic()
        event = ProgressEvent(
            self.title,
            self._done,
            self._total,
            self.unit,
            now - self._began,
            self._remaining(now),
            message,
        )
        for listener in self._listeners:
            listener(event)

    def _remaining(self, now: float) -> float:
        """Return the seconds that are left at the pace so far.

        Where more steps may follow they are not known, but for those up to a deadline of
        ``time.monotonic``. Before the first step is done they are as expected, if that is known.

        Steps come in batches. A part of the batch under way counts as done, in proportion to its
        time, so that the pace does not seem to slow down between batches.
        """
        if self.deadline is not None:
            return max(0.0, self.deadline - now) if self.deadline < math.inf else math.nan
        counted, spent = self._done - self._first, self._latest - self._started
        if not counted:
            if self.expected is None or not self._total:
                return math.nan
            so_far = now - self._started
            return max(self.expected - so_far, so_far * (1 / _NEARLY - 1))
        usual = counted / self._batches
        since = (now - self._latest) * self._batches / spent if spent > 0 else 0.0
        left = max(0, self._total - self._done)
        under_way = min(since, _NEARLY) * min(usual, left)
        pace = (now - self._started) / (counted + under_way)
        return pace * (left - under_way)

    def _beat(self) -> None:
        while not self._is_over.wait(HEARTBEAT):
            with self._lock:
                if self._is_over.is_set():
                    return
                try:
                    self._send()
                except BaseException as error:  # raised in the thread that does the work
                    self._error = error
                    return


class Bar:
    """A line that shows the latest event, with a bar on a terminal.

    Where standard error is neither a terminal nor a notebook, only messages are printed.

    Parameters
    ----------
    delay
        Seconds of work before it appears.
    console
        Where it appears; standard error by default.
    """

    def __init__(self, delay: float = 0.0, *, console: Console | None = None) -> None:
        if console is None:
            from rich.console import Console

            console = Console(stderr=True, highlight=False)
        self._delay = delay
        self._console = console
        self._shown: Any = None  # rich's bar, or the notebook's display
        self._task: Any = None
        self._is_notebook = in_notebook()

    def __call__(self, event: ProgressEvent) -> None:
        """Show an event."""
        if event.message:
            is_wrapped = self._console.is_terminal  # between words; a pipe gets whole lines
            self._console.print(printable(event.message), markup=False, soft_wrap=not is_wrapped)
        elif event.elapsed >= self._delay:
            if self._is_notebook:
                self._show_in_notebook(str(event))
            elif self._console.is_terminal:
                self._show_on_terminal(event)

    def _show_in_notebook(self, line: str) -> None:
        if self._shown is None:
            display = import_module("IPython.display").display
            self._shown = display({"text/plain": line}, raw=True, display_id=True)
        else:
            self._shown.update({"text/plain": line}, raw=True)

    def _show_on_terminal(self, event: ProgressEvent) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        if self._shown is None:
            self._shown = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[words]}"),
                console=self._console,
                transient=True,
            )
            self._shown.start()
            self._task = self._shown.add_task(event.title, total=None, words="")
        words = bar_words(event, self._console.width - len(event.title) - 23)
        self._shown.update(self._task, total=event.total or None, completed=event.done, words=words)

    def close(self) -> None:
        """Remove the bar."""
        if self._shown is not None and not self._is_notebook:
            self._shown.stop()


def bar_words(event: ProgressEvent, width: int) -> str:
    """Return the text next to a bar, how much is done and the time, in ``width`` characters.

    >>> event = ProgressEvent("collecting", 500, 2000, "contributions", 30.0, 90.0)
    >>> bar_words(event, 60), bar_words(event, 40)
    ('500 of 2,000 contributions, 0:30 elapsed, 1:30 left', '25 %, 0:30 elapsed, 1:30 left')
    """
    time_spent = f"{clock(event.elapsed)} elapsed"
    if not event.total:
        return time_spent
    if not math.isnan(event.remaining):
        time_spent += f", {clock(event.remaining)} left"
    whole = f"{event.done:,} of {event.total:,} {event.unit}, {time_spent}"
    return whole if len(whole) <= width else f"{100 * event.done // event.total} %, {time_spent}"


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    kernel = shell.get_ipython() if shell is not None else None
    return type(kernel).__name__ == "ZMQInteractiveShell"


_current: ContextVar[Tracker | None] = ContextVar("tracker", default=None)


@contextmanager
def tracking(
    progress: bool | None,
    on_progress: OnProgress | None = None,
    *,
    title: str,
    unit: str,
) -> Iterator[Tracker]:
    """Track a piece of work for a ``with`` block, for `track` inside it too.

    Parameters
    ----------
    progress
        True for a bar on standard error, False for none, None for a bar on a terminal or in a
        notebook if the work takes more than two seconds, unless a surrounding block tracks it.
    on_progress
        Receives every `ProgressEvent`, at least every two seconds, never two at a time, and perhaps
        in another thread. An exception that it raises ends the work.
    title, unit
        What is being done, and in what it is counted.
    """
    outer = _current.get()
    if outer is not None and progress is None and on_progress is None:
        yield outer  # the surrounding work is tracked already
        return
    listeners: list[OnProgress] = [] if on_progress is None else [on_progress]
    if progress or (progress is None and (sys.stderr.isatty() or in_notebook())):
        listeners.append(Bar(0.0 if progress else HEARTBEAT))
    with Tracker(listeners, title=title, unit=unit) as tracker:
        token = _current.set(tracker)
        try:
            yield tracker
        finally:
            _current.reset(token)


def current_tracker() -> Tracker:
    """Return the tracker of the surrounding `tracking` block, or one without listeners."""
    return _current.get() or Tracker()


def track(items: Sequence[_T]) -> Iterator[_T]:
    """Yield items, and count each one when it is done, if a caller is tracking.

    >>> events = []
    >>> with tracking(False, events.append, title="adding", unit="numbers"):
    ...     sum(track([1, 2, 3]))
    6
    >>> [event.done for event in events]
    [0, 1, 2, 3]
    """
    tracker = current_tracker()
    tracker.start(len(items))
    for item in items:
        yield item
        tracker.advance()
