"""The command line as ``python -m apiece``."""

from apiece.cli import main

if __name__ == "__main__":
    main()
