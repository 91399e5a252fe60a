"""Exit codes: 2 for wrong usage, 1 for a failed run, 130 for an interrupt."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from apiece.cli._common import common
from apiece.errors import FitError, PlanError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PlanError("no"), 2),
        (FitError("no"), 1),
        (KeyboardInterrupt(), 130),
        (RuntimeError("no"), 1),
        (click.UsageError("no"), 2),
    ],
)
def test_every_command_ends_with_the_documented_code(error, code):
    @click.command()
    @common
    def command(as_json, quiet):
        raise error

    assert CliRunner().invoke(command, []).exit_code == code
