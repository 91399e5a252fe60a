"""The command line as ``python -m apiece``, and as the script ``apiece``."""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Run the command line; an interrupt while it is loaded ends it without a traceback."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # not where interrupts are ignored, as under nohup
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from apiece.cli import main as run

    signal.signal(signal.SIGINT, usual)
    run()


if __name__ == "__main__":
    main()
