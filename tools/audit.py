"""Ask for known vulnerabilities of the installed libraries, and say what could not be asked.

    python tools/audit.py

`pip-audit` reports "no known vulnerabilities" also if it could not look up a single library, such
as behind a mirror of PyPI. This counts those. Exit code: 0 if every library was looked up and has
no known vulnerability, 1 if some has one, 2 if some could not be looked up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

COMMAND = (*("-m", "pip_audit", "--skip-editable"), *("--format", "json"))


def main() -> int:
    """Run pip-audit and print what it found."""
    done = subprocess.run(
        [sys.executable, *COMMAND, "--progress-spinner", "off"], capture_output=True, text=True
    )
    try:
        libraries: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        print(
            f"pip-audit ended with {done.returncode} and said: {said[:300]}\n"
            "Nothing was looked up. Expected access to pypi.org: repeat it with a network.",
            file=sys.stderr,
        )
        return 2
    skipped = [
        library
        for library in libraries
        if "skip_reason" in library and "editable" not in library["skip_reason"]
    ]
    known = [library for library in libraries if "vulns" in library]
    weak = [library for library in known if library["vulns"]]
    for library in weak:
        for found in library["vulns"]:
            fixed = ", ".join(found["fix_versions"]) or "no version"
            print(f"{library['name']} {library['version']}: {found['id']}, fixed in {fixed}")
    print(f"{len(known)} libraries looked up, {len(weak)} with known vulnerabilities")
    if skipped:
        print(
            f"{len(skipped)} libraries could not be looked up, so nothing is known about them. The "
            f"first: {skipped[0]['skip_reason']}. Expected access to pypi.org: repeat it there.",
            file=sys.stderr,
        )
    return 1 if weak else 2 * bool(skipped)


if __name__ == "__main__":
    sys.exit(main())
