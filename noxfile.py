#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Tasks in environments of their own, for example ``nox -s tests-3.13`` or ``nox -s lint``.

``make matrix`` runs the quick tests on every supported Python that is installed. The tasks of one
environment, which ``make test`` and ``make lint`` use, are in the Makefile.
"""

from __future__ import annotations

import nox

PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)
QUICK = ("-m", "not slow", "tests/unit", "tests/contracts", "tests/property")

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the quick tests, or those that follow ``--``."""
    session.install("-e", ".[plots]", *nox.project.dependency_groups(PROJECT, "test"))
    session.run("python", "-m", "pytest", "-n", "2", *(session.posargs or QUICK))


@nox.session
def lint(session: nox.Session) -> None:
    """Check format, code, types and the order of imports."""
    session.install("-e", ".[plots]", *nox.project.dependency_groups(PROJECT, "lint"), "pytest")
    session.run("ruff", "format", "--check")
    session.run("ruff", "check")
    session.run("mypy")
    session.run("lint-imports")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation; warnings are errors."""
    session.install("-e", ".[plots]", *nox.project.dependency_groups(PROJECT, "docs"))
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})


if __name__ == "__main__":
    nox.main()
