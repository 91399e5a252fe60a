"""Models: built-in names with the paper's settings, and any scikit-learn estimator as it is."""

from __future__ import annotations

import ast
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from apiece._base.check import unknown_name
from apiece._base.typing import AnyArray, IntArray
from apiece.errors import MissingExtraError, ModelError


@dataclass(frozen=True)
class CoupledFolds:
    """Folds that adding a point does not reshuffle, for the calibration of an SVM.

    The j-th point of a class goes to fold ``j mod n_folds``. Training sets come in random order, so
    the folds are random; a point appended at the end leaves the others where they were.

    Examples
    --------
    >>> CoupledFolds(2).assign(np.array([0, 0, 1, 0, 1]))
    array([0, 1, 0, 0, 1])
    """

    n_folds: int = 5

    def assign(self, y: AnyArray) -> IntArray:
        """Return the fold of every point, shape ``(n,)``.

        >>> CoupledFolds(2).assign(np.array([0, 0, 1, 0, 1]))
        array([0, 1, 0, 0, 1])
        """
        fold = np.empty(len(y), dtype=np.int64)
        for label in np.unique(y):
            is_member = y == label
            fold[is_member] = np.arange(is_member.sum()) % self.n_folds
        return fold

    def split(
        self, X: AnyArray, y: AnyArray, groups: AnyArray | None = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the training and held-out positions of each fold that is not empty."""
        fold = self.assign(np.asarray(y))
        for number in range(fold.max() + 1):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

    def get_n_splits(self, X: AnyArray, y: AnyArray, groups: AnyArray | None = None) -> int:
        """Return how many folds ``split`` yields."""
        return int(self.assign(np.asarray(y)).max()) + 1


def _logistic(n_features: int, n_classes: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    # C = 1 with an unpenalised intercept, as in the paper, solved to convergence: scikit-learn's
    # default tolerance leaves an error of 8 to 22 % on a typical contribution.
    n_parameters = n_features * (n_classes if n_classes > 2 else 1)
    if n_parameters <= 512:
        return LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1_000)
    return LogisticRegression(tol=1e-8, max_iter=10_000)


_FULL_BATCH = 10**9  # scikit-learn clips it to the number of points

_PAPER_MLP: dict[str, Any] = {
    "hidden_layer_sizes": (32,),
    "learning_rate_init": 0.01,
    "alpha": 0.01,
    "max_iter": 200,
    "batch_size": _FULL_BATCH,
    "n_iter_no_change": 200,
    "random_state": 0,
}


def _svm_classifier(n_features: int, n_classes: int) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    return CalibratedClassifierCV(SVC(C=1.0), ensemble=False, cv=CoupledFolds())


def _from(module: str, name: str, **settings: Any) -> Callable[[int, int], Any]:
    def build(n_features: int, n_classes: int) -> Any:
        from importlib import import_module

        return getattr(import_module(f"sklearn.{module}"), name)(**settings)

    return build


def _installed(library: str, name: str, **settings: Any) -> Callable[[int, int], Any]:
    """Return a builder of an estimator of a library that apiece does not bring."""

    def build(n_features: int, n_classes: int) -> Any:
        from importlib import import_module

        try:
            module = import_module(library)
        except ImportError as error:
            raise MissingExtraError(
                f"model {library!r} needs the library {library}, which is not installed. Install "
                f"it with: pip install {library}. Or pass model='boosting' (--model boosting)."
            ) from error
        return getattr(module, name)(**settings)

    return build


# Trainings run in processes next to each other, so each takes one thread.
_BUILDERS: dict[str, dict[str, Callable[[int, int], Any]]] = {
    "logistic": {"classification": _logistic},
    "linear": {"regression": _from("linear_model", "LinearRegression")},
    "ridge": {"regression": _from("linear_model", "Ridge")},
    "poisson": {
        "regression": _from(
            "linear_model", "PoissonRegressor", solver="newton-cholesky", tol=1e-10, max_iter=1_000
        )
    },
    "mlp": {
        "classification": _from("neural_network", "MLPClassifier", **_PAPER_MLP),
        "regression": _from("neural_network", "MLPRegressor", **_PAPER_MLP),
    },
    "svm": {"classification": _svm_classifier, "regression": _from("svm", "SVR")},
    "knn": {
        "classification": _from("neighbors", "KNeighborsClassifier"),
        "regression": _from("neighbors", "KNeighborsRegressor"),
    },
    "tree": {
        "classification": _from("tree", "DecisionTreeClassifier"),
        "regression": _from("tree", "DecisionTreeRegressor"),
    },
    "forest": {
        "classification": _from("ensemble", "RandomForestClassifier"),
        "regression": _from("ensemble", "RandomForestRegressor"),
    },
    "boosting": {
        "classification": _from("ensemble", "HistGradientBoostingClassifier"),
        "regression": _from("ensemble", "HistGradientBoostingRegressor"),
    },
    "xgboost": {
        "classification": _installed("xgboost", "XGBClassifier", n_jobs=1),
        "regression": _installed("xgboost", "XGBRegressor", n_jobs=1),
    },
    "lightgbm": {
        "classification": _installed("lightgbm", "LGBMClassifier", n_jobs=1),
        "regression": _installed("lightgbm", "LGBMRegressor", n_jobs=1),
    },
    "catboost": {
        "classification": _installed("catboost", "CatBoostClassifier", thread_count=1),
        "regression": _installed("catboost", "CatBoostRegressor", thread_count=1),
    },
}

# Libraries whose estimators print, or write files, by default: settings that stop this,
# each with the settings by which a user has decided already.
_QUIET: dict[str, tuple[tuple[str, Any, set[str]], ...]] = {
    "lightgbm": (("verbose", -1, {"verbose", "verbosity"}),),
    "catboost": (
        ("verbose", False, {"verbose", "silent", "logging_level", "verbose_eval"}),
        ("allow_writing_files", False, {"allow_writing_files"}),
    ),
}

MODELS = tuple(_BUILDERS)
_DEFAULT = {"classification": "logistic", "regression": "ridge"}


@dataclass(frozen=True)
class Model:
    """An estimator that has not been fitted, and its name.

    Parameters
    ----------
    name
        A built-in name, or the class of the estimator.
    estimator
        Anything with scikit-learn's ``fit``, ``predict`` and ``get_params``.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = Model("tree", DecisionTreeClassifier())
    >>> model.has_proba, model.seeded(3).random_state
    (True, 3)
    """

    name: str
    estimator: Any

    @property
    def has_proba(self) -> bool:
        """Whether it predicts class probabilities."""
        return hasattr(self.estimator, "predict_proba")

    def uncalibrated(self) -> Model:
        """Return the model whose decision values it calibrates; itself if it does not."""
        from sklearn.calibration import CalibratedClassifierCV

        if type(self.estimator) is not CalibratedClassifierCV or self.estimator.ensemble:
            return self
        inner = self.estimator.estimator
        return self if inner is None else Model(self.name, inner)

    def seeded(self, seed: int) -> Any:
        """Return a copy in which every open ``random_state`` is ``seed``, and which prints nothing.

        A ``random_state`` that is an integer already stays: it is the same with and without the
        added point, which is all that coupling needs.
        """
        from sklearn.base import clone

        copy = clone(self.estimator)
        is_open = {
            name: seed
            for name, value in copy.get_params(deep=True).items()
            if name.rpartition("__")[2] == "random_state"
            and not isinstance(value, int | np.integer)
        }
        library, given = type(copy).__module__.partition(".")[0], copy.get_params().keys()
        if library == "catboost" and not is_open:
            # CatBoost lists only those parameters that were set
            is_set = {"random_state", "random_seed"} & given
            is_open = {} if is_set else {"random_state": seed}
        for name, value, decided in _QUIET.get(library, ()):
            is_open |= {} if decided & given else {name: value}
        return copy.set_params(**is_open) if is_open else copy

    def has_stopped_early(self, caught: Iterable[warnings.WarningMessage]) -> bool:
        """Whether the warnings of a fit say so; the built-in network has a fixed length."""
        from sklearn.exceptions import ConvergenceWarning

        is_short = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        return is_short and base_name(self.name) != "mlp"

    def with_settings(self, **settings: Any) -> Model:
        """Return a copy with some settings of the estimator changed."""
        from sklearn.base import clone

        return Model(self.name, clone(self.estimator).set_params(**settings))

    def describe(self) -> dict[str, Any]:
        """Return the class and its parameters, for a manifest; the same in every process."""
        return {"name": self.name, **_describe(self.estimator)}


def _describe(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)  # JSON has no nan, and nan is not equal to itself
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return _describe(value.item())
    if isinstance(value, np.ndarray):
        return _describe(value.tolist())
    if isinstance(value, list | tuple):
        return [_describe(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _describe(item) for key, item in value.items()}
    kind = value if isinstance(value, type) or callable(value) else type(value)
    name = f"{kind.__module__}.{getattr(kind, '__qualname__', type(kind).__qualname__)}"
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False)
        return {"class": name, "params": {key: _describe(params[key]) for key in sorted(params)}}
    return {"class": name, "params": _describe(vars(value))} if hasattr(value, "__dict__") else name


def weight_option(estimator: Any) -> str:
    """Return the keyword by which an estimator's ``fit`` takes sample weights.

    In a pipeline it is that of the last step.

    Raises
    ------
    ModelError
        If it takes none.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> weight_option(make_pipeline(Ridge()))
    'ridge__sample_weight'
    """
    from sklearn.utils.validation import has_fit_parameter

    if hasattr(estimator, "steps"):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_option(last)}"
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ModelError(
            f"{type(estimator).__name__} takes no sample_weight, and the data has weights: "
            "expected a model whose fit takes them, such as logistic or ridge. Pass another model, "
            "or read the data without sample_weight."
        )
    return "sample_weight"


def _imported(words: str) -> Any:
    """Return the estimator that ``module:name`` stands for, or that the function there returns.

    Modules in the current folder are found too.
    """
    from importlib import import_module

    module, _, name = words.partition(":")
    if (folder := os.getcwd()) not in sys.path:
        sys.path.append(folder)  # stays, so that worker processes find the module too
    try:
        found = getattr(import_module(module), name)
        return found() if not hasattr(found, "fit") or isinstance(found, type) else found
    except Exception as error:  # whatever the user's module raises
        raise ModelError(
            f"model {words!r} could not be made: {type(error).__name__}: {error}. Expected "
            "module:name, where name is an estimator, its class, or a function without arguments "
            "that returns one, in a module that can be imported or in a file of this folder."
        ) from error


def is_model_name(word: object) -> bool:
    """Return whether a word names a built-in model, with or without settings.

    >>> is_model_name("logistic(C=0.1)"), is_model_name("LogisticRegression")
    (True, False)
    """
    try:
        return isinstance(word, str) and _parsed(word)[0] in _BUILDERS
    except ModelError:
        return False


def base_name(word: str) -> str:
    """Return the name of a model without its settings.

    >>> base_name("logistic(C=0.1)")
    'logistic'
    """
    return word.partition("(")[0].strip()


def _parsed(word: str) -> tuple[str, dict[str, Any]]:
    """Split ``logistic(C=0.1)`` into its name and settings, which are numbers, words or lists."""
    name, has_settings, _ = word.partition("(")
    if not has_settings:
        return word, {}
    try:
        call = ast.parse(word.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or call.args or None in [k.arg for k in call.keywords]:
            raise ValueError("settings need names")
        settings = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise ModelError(
            f"model {word!r} cannot be read: expected a name with settings in brackets, such as "
            "logistic(C=0.1) or knn(n_neighbors=7, weights='distance'). Write it so (in a shell "
            "with quotes around it), or pass an estimator object in Python."
        ) from error
    return name.strip(), settings


def _with_settings(name: str, estimator: Any, settings: dict[str, Any]) -> Any:
    """Return an estimator with other settings; those of a calibrated model are its inner ones."""
    # CatBoost lists only those parameters that were set; its signature has all.
    known = {*estimator.get_params(deep=True), *signature(type(estimator)).parameters}
    inner = {setting: f"estimator__{setting}" for setting in settings if setting not in known}
    for setting, full in inner.items():
        if full not in known:
            choice = sorted(key for key in known if "__" not in key)
            raise unknown_name(f"setting of {name}", setting, choice)
    return estimator.set_params(**{inner.get(k, k): value for k, value in settings.items()})


def resolve_model(model: Any, *, kind: str, n_features: int, n_classes: int) -> Model:
    """Turn a built-in name or an estimator into a model that fits the data.

    Parameters
    ----------
    model
        A name such as ``logistic`` or ``logistic(C=0.1)``, ``auto`` for logistic regression or
        ridge regression by the kind of data, ``module:name`` of an estimator or of a function that
        makes one, or an estimator with scikit-learn's interface.
    kind
        ``classification`` or ``regression``.
    n_features, n_classes
        The data's shape, from which ``logistic`` picks its solver.

    Examples
    --------
    >>> resolve_model("auto", kind="regression", n_features=3, n_classes=0).estimator
    Ridge()
    >>> resolve_model("ridge(alpha=10)", kind="regression", n_features=3, n_classes=0).estimator
    Ridge(alpha=10)
    """
    if isinstance(model, str) and ":" in model and "(" not in model:
        model = _imported(model)
    if isinstance(model, str):
        word = _DEFAULT[kind] if model == "auto" else model
        model, settings = _parsed(word)
        if model not in _BUILDERS:
            raise unknown_name("model", model, MODELS)
        builders = _BUILDERS[model]
        if kind not in builders:
            fitting = ", ".join(name for name, known in _BUILDERS.items() if kind in known)
            raise ModelError(
                f"model {model!r} is for {next(iter(builders))}, but the data is a {kind}: "
                f"expected one of {fitting}. Pick one of these, or say what the target is with "
                "kind= (--task) when reading the data."
            )
        estimator = builders[kind](n_features, n_classes)
        return Model(word, _with_settings(model, estimator, settings) if settings else estimator)
    missing = [name for name in ("fit", "predict", "get_params") if not hasattr(model, name)]
    if missing or isinstance(model, type):
        what = "a class" if isinstance(model, type) else f"without {', '.join(missing)}"
        raise ModelError(
            f"model is {model!r}, {what}: expected a name ({', '.join(MODELS)}) or an estimator "
            "object with scikit-learn's fit, predict and get_params. Pass for example "
            "model='logistic' or model=LogisticRegression()."
        )
    resolved = Model(type(model).__name__, model)
    _check_kind(resolved, kind)
    return resolved


def _check_kind(model: Model, kind: str) -> None:
    from sklearn.base import is_classifier, is_regressor

    try:
        fits = {"classification": is_classifier, "regression": is_regressor}
        is_other = not fits[kind](model.estimator) and any(
            test(model.estimator) for test in fits.values()
        )
    except (AttributeError, TypeError):  # an estimator without scikit-learn's tags
        return
    if is_other:
        raise ModelError(
            f"{model.name} does not fit the data, which is a {kind}: expected a "
            f"{'classifier' if kind == 'classification' else 'regressor'}. Pass one, or say what "
            "the target is with kind= (--task) when reading the data."
        )
