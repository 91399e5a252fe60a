"""The command line as ``python -m apiece``, and as the script ``apiece``."""

from __future__ import annotations

import atexit
import os
import signal


def main() -> None:
    """Run the command line; commands themselves are interrupted in `apiece.cli._common`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as under nohup
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the last to run
        signal.signal(signal.SIGINT, end_at_once)
    from apiece.cli import main as run

    run()


def end_at_once(*_: object) -> None:
    """End with the exit code of an interrupt: nothing has begun, or all is done."""
    os._exit(130)


if __name__ == "__main__":
    main()
