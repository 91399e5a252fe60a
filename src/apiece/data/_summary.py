"""A dataset in plain words: what was read, what is predicted, and whether there is enough of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from apiece._base.text import amount

if TYPE_CHECKING:
    from apiece.data._points import PointSet

FEW_SCORING_ROWS: Final = 100
FEW_OF_A_CLASS: Final = 10
_MOST_LABELS: Final = 5


def count(n: int, noun: str, plural: str = "s") -> str:
    """Return a number with its noun.

    >>> count(1, "class", "es"), count(1200, "row")
    ('1 class', '1,200 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else plural}"


def describe_target(dataset: PointSet, *, is_guess: bool = True) -> str:
    """Return one line about the target: its kind, its range, and how to change the kind.

    Parameters
    ----------
    dataset
        The points.
    is_guess
        Whether the kind was decided from the values, so that the line says how to change it.
    """
    name, classes = dataset.target_name, dataset.classes
    name = "target" if name == "target" else f"target {name}"
    if classes is None:
        low, high = float(dataset.points_y.min()), float(dataset.points_y.max())
        is_whole = bool((np.floor(dataset.points_y) == dataset.points_y).all())
        change = "; kind='classification' (--task classification) if it is a class"
        hint = change if is_guess and is_whole else ""
        return f"{name}: a quantity from {amount(low)} to {amount(high)}{hint}"
    is_number = classes.dtype.kind in "if"
    if is_number and len(classes) > 2:
        labels = f"{classes[0]}..{classes[-1]}"
    else:
        labels = ", ".join(str(label)[:20] for label in classes[:_MOST_LABELS])
        labels += ", …" if len(classes) > _MOST_LABELS else ""
    change = "; kind='regression' (--task regression) if it is a quantity"
    hint = change if is_guess and is_number and len(classes) > 2 else ""
    return f"{name}: {count(len(classes), 'class', 'es')} ({labels}){hint}"


def n_copies(dataset: PointSet) -> int:
    """Return how many points have the features and the target of an earlier one.

    Rows that are not dense arrays are not compared.

    >>> from apiece.data import Dataset
    >>> n_copies(Dataset.from_arrays([[0.0], [1.0], [1.0], [1.0]], [3, 5, 5, 3]))
    1
    """
    rows = dataset.rows
    if not isinstance(rows, np.ndarray):
        return 0
    targets = dataset.points_y.tolist()
    different = {hash((row.tobytes(), y)) for row, y in zip(rows, targets, strict=True)}
    return len(rows) - len(different)


def small_data(dataset: PointSet) -> str | None:
    """Return in plain words why results will be noisy; None if there is enough data.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> small_data(load_demo()[0]) is None
    True
    """
    reasons = []
    n_scoring = dataset.n_validation or dataset.n_pool  # without a validation set all rows score
    if n_scoring < FEW_SCORING_ROWS:
        of_what = " to score on" if dataset.n_validation else ""
        reasons.append(
            f"only {count(n_scoring, 'row')}{of_what} (at least {FEW_SCORING_ROWS} are better), so "
            "values depend on which rows these are"
        )
    if dataset.classes is not None:
        counts = np.bincount(dataset.y, minlength=dataset.n_classes)
        rare = np.flatnonzero(counts < FEW_OF_A_CLASS)
        if len(rare):
            first = f"{dataset.classes[rare[0]].item()!r} has {count(int(counts[rare[0]]), 'row')}"
            more = f" (and {count(len(rare) - 1, 'class', 'es')})" if len(rare) > 1 else ""
            reasons.append(
                f"class {first} in the pool{more}, fewer than {FEW_OF_A_CLASS}, so little is known "
                "about it"
            )
    if not reasons:
        return None
    return f"small data: {'; '.join(reasons)}. Add rows if you can, and trust intervals over values"
