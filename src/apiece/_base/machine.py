"""The machine: its processor and linear algebra, which decide last digits, and its memory."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe_machine() -> dict[str, str]:
    """Return the processor and the linear algebra of this process.

    ``kernels`` names each BLAS library with its version and the processor type that its code was
    chosen for: where these agree, contributions agree bit by bit.
    """
    from threadpoolctl import threadpool_info

    libraries = {
        f"{library['internal_api']} {library.get('version')} {library.get('architecture', '')}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "kernels": "; ".join(sorted(name.strip() for name in libraries)),
    }


def _processor() -> str:
    """Return the processor's name as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()


def total_memory() -> int | None:
    """Return the bytes of memory that this process may use, or None if the system does not say."""
    try:
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # Windows
        return None
    for file in ("memory.max", "memory/memory.limit_in_bytes"):  # of a container
        try:
            limits.append(int((Path("/sys/fs/cgroup") / file).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits)
