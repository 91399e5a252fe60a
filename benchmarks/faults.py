"""Faults that are done to runs on purpose, for every design.

    python benchmarks/faults.py --faults 1000

Each fault damages a small run in a random place or at a random moment. A reader must get the right
contents or a clear error, and collecting again must end with the right contents, bit by bit, or
say what to restore. `tests/faults.py` holds the faults.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

from _results import ROOT, Results

sys.path.insert(0, str(ROOT / "tests"))
import faults

COLUMNS = {
    "fault": "{}",
    "run": "{}",
    "times": "{}",
    "harmless": "{}",
    "repaired or continued": "{}",
    "refused with a clear error": "{}",
    "wrong": "{}",
}


def outcome(fault, bench, rng) -> str:
    """Do a fault and return what came of it, as a column."""
    try:
        words = fault(bench, rng)
    except Exception as error:
        print(f"  {fault.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        return "wrong"
    if words in ("harmless", "it had finished"):
        return "harmless"
    return "refused with a clear error" if "refused" in words else "repaired or continued"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=1000, help="over all designs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results, n_wrong = Results("faults", COLUMNS, options), 0
    for design in faults.DESIGNS:
        rng = random.Random(f"{design}-{options.seed}")
        with tempfile.TemporaryDirectory() as folder:
            bench = faults.Bench(folder, design)
            for fault, share in faults.SHARES.items():
                times = max(1, round(share * options.faults / len(faults.DESIGNS)))
                counts = Counter(outcome(fault, bench, rng) for _ in range(times))
                for copy in Path(folder).glob("run-*"):
                    shutil.rmtree(copy)
                words = fault.__doc__.rstrip(".")
                results.add(words, design, times, *(counts[name] for name in list(COLUMNS)[3:]))
                n_wrong += counts["wrong"]
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
