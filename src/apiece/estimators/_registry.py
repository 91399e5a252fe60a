"""The estimators by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, Literal

from apiece._base.check import one_of, unknown_name
from apiece.errors import FitError
from apiece.estimators._estimator import Estimator
from apiece.estimators.amortized import Amortized
from apiece.estimators.auto import Auto
from apiece.estimators.bayes import Bayes
from apiece.estimators.likelihood import Likelihood
from apiece.estimators.log_ols import LogOLS
from apiece.estimators.reuse import Reuse
from apiece.laws import FamilyLike
from apiece.records import Recipe, StoredTrainings

METHODS: Final[dict[str, type[Estimator]]] = {
    known.name: known for known in (Amortized, Auto, Bayes, Likelihood, LogOLS, Reuse)
}

MethodName = Literal["amortized", "auto", "bayes", "likelihood", "log_ols", "reuse"]
DEFAULT_METHOD: Final[MethodName] = "bayes"


def default_method(source: object) -> str:
    """Return the method for a run or table: ``reuse`` for one of trainings, else ``bayes``.

    Examples
    --------
    >>> from apiece.records import Contributions
    >>> default_method(Contributions.from_arrays(point=[0], k=[10], delta=[0.1]))
    'bayes'
    """
    is_reuse = isinstance(source, StoredTrainings) and source.has_trainings
    return Reuse.name if is_reuse else DEFAULT_METHOD


def as_estimator(
    method: str | Estimator | None = None, *, family: FamilyLike | None = None
) -> Estimator:
    """Return the estimator that a setting means.

    Parameters
    ----------
    method
        A name in `METHODS`, an estimator, or None for the default.
    family
        The family of laws, for a method that is given by its name.

    Examples
    --------
    >>> as_estimator("likelihood", family="series24").family
    'series24'
    """
    if isinstance(method, Estimator):
        if family is not None:
            raise FitError(
                f"family={family!r} is given with the estimator {method!r}: expected it among the "
                f"estimator's settings. Pass {type(method).__name__}(family=...)."
            )
        return method
    word = DEFAULT_METHOD if method is None else method
    return _built(word, {} if family is None else {"family": family})


def rebuilt(recipe: Recipe) -> Estimator:
    """Return the estimator whose `Estimator.recipe` is given.

    Raises
    ------
    UnknownNameError
        If the method or a setting is not known.

    Examples
    --------
    >>> from apiece.records import Recipe
    >>> rebuilt(Recipe(method="likelihood", settings={"family": "series"})).name
    'likelihood'
    """
    return _built(recipe.method, recipe.settings)


def _built(method: str, settings: Mapping[str, Any]) -> Estimator:
    if not isinstance(method, str):
        raise FitError(
            f"method={method!r} is of type {type(method).__name__}: expected a word, one of "
            f"{', '.join(METHODS)}, or an object whose class inherits from Estimator."
        )
    one_of("method", method, METHODS)
    cls: Any = METHODS[method]
    known = [setting.name for setting in fields(cls)]
    for name in settings:
        if name not in known:
            raise unknown_name(f"setting of {method},", name, known)
    estimator: Estimator = cls(**settings)
    return estimator
