"""Help is quick: it loads no library, and its words are those that the library accepts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from apiece.cli import _words, cli
from apiece.collection import DESIGNS
from apiece.engines import ENGINES, MODELS
from apiece.losses import LOSSES
from apiece.uses import KINDS


@pytest.mark.parametrize(
    ("listed", "accepted"),
    [
        (_words.MODELS, MODELS),
        (_words.ENGINES, ENGINES),
        (_words.LOSSES, LOSSES),
        (_words.DESIGNS, DESIGNS),
        (_words.KINDS, KINDS),
    ],
)
def test_the_words_of_options_are_those_that_the_library_accepts(listed, accepted):
    assert listed == tuple(accepted)


def test_no_help_loads_a_heavy_library():
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from apiece.cli import cli\n"
        f"for name in {['', *cli.commands]}:\n"
        "    asked = CliRunner().invoke(cli, [*name.split(), '--help'])\n"
        "    assert asked.exit_code == 0, name\n"
        "print(sorted({'numpy', 'scipy', 'pandas', 'sklearn', 'rich'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
