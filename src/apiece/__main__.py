"""The command line as ``python -m apiece``, and as the script ``apiece``."""

from __future__ import annotations

import atexit
import os
import signal


def main() -> None:
    """Run the command line; an interrupt while it is loaded or ends leaves no traceback."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler:  # interrupts are ignored, as under nohup
        from apiece.cli import main as run

        run()
        return
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the last to run: all is done
    signal.signal(signal.SIGINT, _quit)
    from apiece.cli import main as run

    try:
        signal.signal(signal.SIGINT, usual)
        run()
    except KeyboardInterrupt:
        os._exit(130)
    finally:
        signal.signal(signal.SIGINT, _quit)


def _quit(*_: object) -> None:
    """End at once with the exit code of an interrupt."""
    os._exit(130)


if __name__ == "__main__":
    main()
