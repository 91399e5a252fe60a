"""Positions, places and ids are different types."""

from __future__ import annotations

import pytest

ACCEPTED = """
from apiece._base.typing import AnyArray, IntArray, Place, Places, PointIds, Positions

def by_any(x: AnyArray) -> None: ...
def by_number(x: IntArray) -> None: ...
def by_position(x: Positions) -> None: ...
def by_place(x: Places) -> None: ...
def by_id(x: PointIds) -> None: ...

def use(number: IntArray, position: Positions, place: Places, name: PointIds) -> None:
    by_any(number), by_any(position), by_any(place), by_any(name)
    by_number(number), by_number(position)
    by_position(position)
    by_place(place)
    by_id(name)
"""
REFUSED = """
    by_number(place)
    by_number(name)
    by_position(number)
    by_position(place)
    by_position(name)
    by_place(number)
    by_place(position)
    by_place(name)
    by_id(number)
    by_id(position)
    by_id(place)
"""


@pytest.mark.slow
def test_a_position_a_place_and_an_id_are_not_taken_for_each_other(tmp_path):
    mypy = pytest.importorskip("mypy.api")
    (tmp_path / "both.py").write_text(ACCEPTED + REFUSED)
    said, _, _ = mypy.run(
        ["--config-file=", f"--cache-dir={tmp_path}", "--no-error-summary", f"{tmp_path}/both.py"]
    )
    wrong = {int(line.split(":")[1]) for line in said.splitlines() if "[arg-type]" in line}
    first = len(ACCEPTED.splitlines()) + 2
    assert wrong == set(range(first, first + len(REFUSED.split())))
