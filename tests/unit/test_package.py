from __future__ import annotations

import subprocess
import sys

import pytest

import apiece


def test_the_table_of_contents_is_sorted_and_complete():
    assert apiece.__all__ == sorted(
        apiece.__all__, key=lambda name: (name.lower() != name, name)
    ) or (apiece.__all__ == sorted(apiece.__all__))
    for name in apiece.__all__:
        assert getattr(apiece, name) is not None
    assert set(apiece._HOMES) | {"__version__"} == set(apiece.__all__)


def test_importing_apiece_leaves_heavy_libraries_unloaded():
    heavy = ["pandas", "sklearn", "scipy", "pyarrow", "matplotlib", "torch", "joblib", "rich"]
    code = f"import sys, apiece; print([m for m in {heavy} if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="colect"):
        _ = apiece.colect


def test_every_error_is_an_apiece_error_and_a_builtin():
    for name in apiece.__all__:
        thing = getattr(apiece, name)
        if isinstance(thing, type) and issubclass(thing, Exception) and name.endswith("Error"):
            assert issubclass(thing, apiece.ApieceError)
            assert thing.exit_code in (1, 2)
