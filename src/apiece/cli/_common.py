"""What all commands share: their common options, and how errors end."""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from apiece._base.progress import tracking
from apiece.cli._print import say, say_prose
from apiece.cli._words import MODELS
from apiece.errors import ApieceError, ApieceWarning

if TYPE_CHECKING:
    from collections.abc import Iterator


_OF_THE_SYSTEM = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.EMFILE, errno.ENFILE, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG),
)

Command = TypeVar("Command", bound=Callable[..., Any])

MODEL_HELP: Final = (
    f"{', '.join(MODELS)}; 'logistic(C=0.1)' sets what scikit-learn calls C; module:name is your "
    "own. auto: logistic for classes, ridge for quantities."
)


class Numbers(click.ParamType[dict[str, float]]):
    """Named numbers, ``cat=10,dog=5``."""

    name = "name=number,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, float]:
        """Turn the words into a mapping."""
        if isinstance(value, dict):
            return value
        try:
            pairs = [part.rsplit("=", 1) for part in str(value).split(",")]
            return {name.strip(): float(number) for name, number in pairs}
        except ValueError:
            self.fail(f"{value!r} does not name numbers: expected for example a=10,b=5.")


class Sizes(click.ParamType[tuple[int, ...]]):
    """A range ``100:1000``, or a list ``100,200,400``."""

    name = "sizes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Turn the words into numbers."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(part) for part in str(value).replace(":", ",").split(","))
        except ValueError:
            self.fail(f"{value!r} is not a range of sizes: expected 100:1000, or 100,200,400.")


def common(command: Command) -> Command:
    """Add ``--json``, ``--quiet`` and ``--debug``, and let errors end without a traceback."""

    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
    @click.option("--quiet", "-q", is_flag=True, help="Print no progress and no messages.")
    @click.option("--debug", is_flag=True, help="Show the traceback of an error.")
    @wraps(command)
    def run(*args: Any, debug: bool, **options: Any) -> Any:
        try:
            quiet = options["quiet"]
            silence = tracking(False, title="", unit="") if quiet else nullcontext()
            with _interruptible(), silence, _warnings_as_lines(quiet), _log_as_lines(quiet):
                result = command(*args, **options)
                sys.stdout.flush()
                return result
        except (click.exceptions.Exit, click.Abort):
            raise
        except click.ClickException as error:
            say_prose(f"error: {error.format_message()}", err=True)
            sys.exit(error.exit_code)
        except BrokenPipeError:  # the reader of a pipe, such as head, has seen enough
            _leave_stdout()
            sys.exit(0)
        except KeyboardInterrupt:
            say("interrupted", err=True)
            exec("")  # else Python ends `-m apiece` by a signal if code of exec was interrupted
            sys.exit(130)
        except Exception as error:
            if debug:
                raise
            _leave_stdout()
            say_prose(f"error: {_words(error)}", err=True)
            sys.exit(error.exit_code if isinstance(error, ApieceError) else 1)

    return run  # type: ignore[return-value]  # the same command, with three more options


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let an interrupt reach a command; before and after it the process just ends.

    An interrupt inside an import of compiled code comes out as another error, or is lost. So it is
    remembered: however the command then ends, it was interrupted.
    """
    outside, before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    if getattr(outside, "__name__", "") != "end_at_once":  # of `apiece.__main__`
        yield
        return
    interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    def lost(unraisable: Any) -> None:
        if not interrupted:
            before(unraisable)

    sys.unraisablehook = lost
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except (Exception, SystemExit) as error:
        if not interrupted or getattr(error, "code", None) == 130:  # the command has said it
            raise
    finally:
        signal.signal(signal.SIGINT, outside)
        sys.unraisablehook = before
    if interrupted:
        raise KeyboardInterrupt


def _words(error: Exception) -> str:
    """Say what was wrong; errors that are neither ours nor the system's ask for a report."""
    if isinstance(error, ApieceError):
        return str(error)
    if isinstance(error, MemoryError):
        return (
            "out of memory: expected the data to fit this machine. Free memory, use a machine "
            "with more, or take fewer rows; fit, show and report take --memory."
        )
    if isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM:
        return (
            f"{error}. Stored results are intact. Expected files that can be read and written, and "
            "space for them (temporary files go to TMPDIR): make room, then repeat the command."
        )
    return (
        f"{type(error).__name__}: {error}\nUnexpected error. Stored results are intact. Repeat the "
        "command with --debug and report what it prints."
    )


def _leave_stdout() -> None:
    """Send what is still to be printed nowhere: its reader is gone, or its disk is full."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _warnings_as_lines(quiet: bool) -> Iterator[None]:
    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        words = re.sub(r"[\d.,]+", "", str(message))  # once, however often its numbers change
        if not quiet and words not in said:
            said.add(words)
            say_prose(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ApieceWarning)
        warnings.showwarning = show
        yield


class _Lines(logging.Handler):
    """Writes log messages to standard error, a line each."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        say_prose(record.getMessage(), err=True)


@contextmanager
def _log_as_lines(quiet: bool) -> Iterator[None]:
    """Print what is logged about laws; progress prints its messages itself."""
    log, handler = logging.getLogger("apiece.laws"), _Lines()
    before = log.level, log.propagate
    log.setLevel(logging.CRITICAL + 1 if quiet else logging.INFO)
    log.propagate = False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]
