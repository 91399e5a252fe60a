r"""Records that packages exchange: tasks, outcomes, plans and tables of contributions.

A *task* is one draw of a training set $D$ of $k$ points. It yields one *contribution*

$$\Delta(z, D) = L(f_D) - L(f_{D \cup z})$$

for every valued point $z$ that is not in $D$: positive when the point helps, in units of the loss.
"""

from __future__ import annotations

from apiece.records._anchor import Anchor
from apiece.records._caveat import caveat, marked, small_print
from apiece.records._contributions import Contributions, Theory, blocks_of
from apiece.records._moments import Moments
from apiece.records._provenance import (
    DesignRecord,
    EngineRecord,
    Provenance,
    Recipe,
    Snapshot,
)
from apiece.records._scope import (
    ALL_ROWS,
    POPULATION,
    SCORING_ROWS,
    in_words,
    scope_of,
    scoped,
)
from apiece.records._stages import CHANCE, Stage, chances, extra_sizes, focused, stage_size
from apiece.records._table import Stored, StoredTrainings, Table, Trained
from apiece.records._tasks import Outcome, Plan, Task
from apiece.records._trainings import Lists, Trainings

__all__ = [
    "ALL_ROWS",
    "CHANCE",
    "POPULATION",
    "SCORING_ROWS",
    "Anchor",
    "Contributions",
    "DesignRecord",
    "EngineRecord",
    "Lists",
    "Moments",
    "Outcome",
    "Plan",
    "Provenance",
    "Recipe",
    "Snapshot",
    "Stage",
    "Stored",
    "StoredTrainings",
    "Table",
    "Task",
    "Theory",
    "Trained",
    "Trainings",
    "blocks_of",
    "caveat",
    "chances",
    "extra_sizes",
    "focused",
    "in_words",
    "marked",
    "scope_of",
    "scoped",
    "small_print",
    "stage_size",
]
