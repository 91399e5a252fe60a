"""The data, model and metric of a run, looked up again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from apiece.data import Dataset, read_again
from apiece.engines import is_model_name
from apiece.errors import ApieceError, ApieceWarning, PlanError
from apiece.losses import LOSSES, LossLike
from apiece.store import Run


def data_of(run: Run) -> Dataset | None:
    """Read the data of a run again, or return None if it is not in the file where it was.

    Examples
    --------
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> data, _ = load_demo()
    >>> run = apiece.collect(data, sizes=(20, 40), samples=3, progress=False)
    >>> data_of(run).fingerprint == data.fingerprint
    True
    """
    data = run.manifest.dataset
    try:
        return read_again(data.source, data.fingerprint)
    except ApieceError as error:
        if data.source:
            warnings.warn(
                f"the data of the run cannot be read again, so points are ranked one by one: "
                f"{error}",
                ApieceWarning,
                stacklevel=3,
            )
        return None


def data_again(run: Run, what: str) -> Dataset:
    r"""Read the data of a run again.

    Parameters
    ----------
    run
        A run of data from a file.
    what
        Needs the data, for the error.

    Raises
    ------
    PlanError
        If the data are not in the file where they were.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import apiece
    >>> file = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = file.write_text("x,y\n" + "0.5,no\n1.5,yes\n" * 30)
    >>> data = apiece.Dataset.from_csv(file, target="y")
    >>> run = apiece.collect(data, sizes=(10, 20), samples=3, random_state=0, progress=False)
    >>> data_again(run, "advice").n_points
    60
    """
    data = run.manifest.dataset
    try:
        return read_again(data.source, data.fingerprint)
    except ApieceError as error:
        raise PlanError(
            f"{what} needs the rows of the run, which cannot be read again: {error} Pass them as "
            "dataset= (--data)."
        ) from error


def trained_by(model: Any, metric: LossLike, attrs: dict[str, Any]) -> tuple[Any, LossLike]:
    """Return the model and metric that are given, or those of the run if they have known names."""
    return (
        _named("model", model, attrs, is_model_name),
        _named("metric", metric, attrs, LOSSES.__contains__),
    )


def _named(what: str, given: Any, attrs: dict[str, Any], is_known: Callable[[str], bool]) -> Any:
    result = attrs.get(what) if given is None else given
    if given is None and isinstance(result, str) and not is_known(result):
        raise PlanError(
            f"the run used the {what} {result!r}, which has no name that could be looked up: "
            f"expected the same {what} again. Pass {what}= (--{what})."
        )
    return result
