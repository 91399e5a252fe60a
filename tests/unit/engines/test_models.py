from __future__ import annotations

import json
import subprocess
import sys
import types

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from apiece.engines import MODELS, CoupledFolds, resolve_model
from apiece.errors import MissingExtraError, ModelError, UnknownNameError

SHAPE = {"n_features": 4, "n_classes": 2}


LIBRARIES = ("xgboost", "lightgbm", "catboost")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_built_in_model_trains_on_the_kinds_of_data_it_is_for(name):
    if name in LIBRARIES:
        pytest.importorskip(name)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    served = 0
    for kind, y in (("classification", np.arange(30) % 2), ("regression", np.exp(X[:, 0]))):
        try:
            model = resolve_model(name, kind=kind, **SHAPE)
        except ModelError:
            continue
        served += 1
        estimator = model.seeded(1)
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prediction = estimator.fit(X, y).predict(X)
        assert np.isfinite(prediction).all()
        if kind == "classification":
            assert model.has_proba
    assert served


def test_the_papers_settings():
    logistic = resolve_model("logistic", kind="classification", **SHAPE).estimator
    assert (logistic.C, logistic.fit_intercept) == (1.0, True)
    mlp = resolve_model("mlp", kind="classification", **SHAPE).estimator
    assert mlp.hidden_layer_sizes == (32,)
    assert (mlp.alpha, mlp.learning_rate_init, mlp.max_iter) == (0.01, 0.01, 200)
    svm = resolve_model("svm", kind="classification", **SHAPE).estimator
    assert (svm.estimator.kernel, svm.estimator.C) == ("rbf", 1.0)


def test_the_mlp_trains_for_exactly_200_full_batches():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), np.arange(300) % 2
    model = resolve_model("mlp", kind="classification", **SHAPE).seeded(0)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert model.n_iter_ == 200
    assert model.t_ == 200 * 300  # scikit-learn counts samples; one batch per epoch:
    assert model._optimizer.t == 200


def test_open_random_states_are_seeded_and_chosen_ones_stay():
    pipeline = make_pipeline(LogisticRegression())
    seeded = resolve_model(pipeline, kind="classification", **SHAPE).seeded(5)
    assert seeded.get_params()["logisticregression__random_state"] == 5
    chosen = resolve_model(LogisticRegression(random_state=3), kind="classification", **SHAPE)
    assert chosen.seeded(5).random_state == 3
    assert pipeline.get_params()["logisticregression__random_state"] is None


def test_adding_a_point_leaves_the_calibration_folds_as_they_were():
    y = np.random.default_rng(0).integers(3, size=40)
    folds = CoupledFolds(5)
    for label in range(3):
        assert np.array_equal(folds.assign(np.append(y, label))[:-1], folds.assign(y))
    held_out = np.concatenate([test for _, test in folds.split(y[:, None], y)])
    assert sorted(held_out) == list(range(40))


def test_folds_hold_the_classes_evenly():
    y = np.repeat([0, 1], [23, 9])
    fold = CoupledFolds(5).assign(y)
    for label in (0, 1):
        counts = np.bincount(fold[y == label], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_a_description_is_json_and_equal_to_itself_even_with_nan():
    model = resolve_model(
        make_pipeline(SimpleImputer(), LogisticRegression()), kind="classification", **SHAPE
    )
    described = model.describe()
    assert json.loads(json.dumps(described, allow_nan=False)) == described


def test_a_description_is_the_same_in_another_process():
    code = (
        "import json; from sklearn.preprocessing import FunctionTransformer; import numpy as np;"
        "from sklearn.linear_model import LogisticRegression;"
        "from sklearn.pipeline import make_pipeline; from apiece.engines import resolve_model;"
        "m = make_pipeline(FunctionTransformer(np.tanh), LogisticRegression(C=0.5));"
        "print(json.dumps(resolve_model(m, kind='classification', n_features=2, n_classes=2)"
        ".describe()))"
    )
    said = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        for _ in range(2)
    }
    assert len(said) == 1


def test_other_parameters_make_another_description():
    one, two = (
        resolve_model(LogisticRegression(C=C), kind="classification", **SHAPE).describe()
        for C in (1.0, 2.0)
    )
    assert one != two


@pytest.mark.parametrize(
    ("model", "kind", "error", "words"),
    [
        ("logistc", "classification", UnknownNameError, "Did you mean 'logistic'"),
        ("ridge", "classification", ModelError, "logistic, mlp"),
        ("logistic", "regression", ModelError, "linear, ridge"),
        (Ridge(), "classification", ModelError, "expected a classifier"),
        (LinearSVC(), "regression", ModelError, "expected a regressor"),
        (LogisticRegression, "classification", ModelError, "a class"),
        (42, "classification", ModelError, "without fit, predict, get_params"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_in_words(model, kind, error, words):
    with pytest.raises(error, match=words):
        resolve_model(model, kind=kind, **SHAPE)


@pytest.mark.parametrize(
    ("kind", "name"), [("classification", "logistic"), ("regression", "ridge")]
)
def test_auto_is_the_linear_model_for_the_kind_of_data(kind, name):
    found = resolve_model("auto", kind=kind, n_features=3, n_classes=2)
    assert found.describe() == resolve_model(name, kind=kind, n_features=3, n_classes=2).describe()


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_model_of_a_library_that_is_missing_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=f"pip install {name}"):
        resolve_model(name, kind="classification", **SHAPE)


@pytest.mark.parametrize("name", LIBRARIES)
def test_models_of_other_libraries_are_seeded_and_print_nothing(name, capfd, tmp_path, monkeypatch):
    pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    model = resolve_model(name, kind="classification", **SHAPE)
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    one, two = (model.seeded(3).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert model.seeded(3).get_params()["random_state"] == 3
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


MODULE = """
from sklearn.tree import DecisionTreeClassifier

def make():
    return DecisionTreeClassifier(max_depth=2)

ready = DecisionTreeClassifier(max_depth=3)
broken = 1 / 1
"""


def test_a_model_can_be_named_by_its_module(tmp_path, monkeypatch):
    (tmp_path / "models_of_mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    found = [
        resolve_model(f"models_of_mine:{name}", kind="classification", **SHAPE).estimator
        for name in ("make", "ready", "DecisionTreeClassifier")
    ]
    assert [estimator.max_depth for estimator in found] == [2, 3, None]
    for words in ("models_of_mine:missing", "models_of_mine:broken", "no_such_module:make"):
        with pytest.raises(ModelError, match="xpected"):
            resolve_model(words, kind="classification", **SHAPE)


def test_settings_stand_in_brackets_after_a_name():
    model = resolve_model("logistic(C=0.1)", kind="classification", **SHAPE)
    plain = resolve_model("logistic", kind="classification", **SHAPE)
    assert model.name == "logistic(C=0.1)"
    assert model.estimator.get_params() == plain.estimator.get_params() | {"C": 0.1}
    svm = resolve_model("svm(C=10, kernel='linear')", kind="classification", **SHAPE)
    assert (svm.estimator.estimator.C, svm.estimator.estimator.kernel) == (10, "linear")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("logistic(0.1)", "cannot be read"),
        ("logistic(C=__import__('os'))", "cannot be read"),
        ("logistic(C=0.1", "cannot be read"),
        ("logistic(c=0.1)", "unknown setting of logistic 'c'.*Did you mean 'C'"),
        ("logistics(C=1)", "unknown model 'logistics'"),
    ],
)
def test_settings_that_cannot_be_read_are_refused(word, message):
    with pytest.raises((ModelError, UnknownNameError), match=message):
        resolve_model(word, kind="classification", **SHAPE)


def test_settings_and_seeds_of_a_library_that_lists_only_what_was_set(monkeypatch):
    """CatBoost lists no parameter that has its default; a stand-in does the same."""

    class CatBoostClassifier(LogisticRegression):
        def __init__(self, iterations=None, random_state=None, thread_count=None, **more):
            given = {"iterations": iterations, "random_state": random_state}
            given |= {"thread_count": thread_count, **more}
            self.given = {key: value for key, value in given.items() if value is not None}

        def get_params(self, deep=True):
            return dict(self.given)

        def set_params(self, **params):
            self.given |= params
            return self

    CatBoostClassifier.__module__ = "catboost"
    library = types.ModuleType("catboost")
    library.CatBoostClassifier = CatBoostClassifier
    monkeypatch.setitem(sys.modules, "catboost", library)
    model = resolve_model("catboost(iterations=7)", kind="classification", **SHAPE)
    assert model.estimator.given == {"iterations": 7, "thread_count": 1}
    seeded = model.seeded(3).given
    assert seeded["random_state"] == 3
    assert seeded["verbose"] is False
    with pytest.raises(UnknownNameError, match="iterations"):
        resolve_model("catboost(iteration=7)", kind="classification", **SHAPE)
