from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import apiece


def test_the_table_of_contents_is_sorted_and_complete():
    assert apiece.__all__ == sorted(apiece.__all__)
    for name in apiece.__all__:
        assert getattr(apiece, name) is not None
    assert set(apiece._HOMES) | {"__version__"} == {*apiece.__all__, "open"}


def test_a_star_import_leaves_the_builtin_open_alone():
    namespace: dict[str, object] = {}
    exec("from apiece import *", namespace)
    assert "open" not in namespace
    assert apiece.open is apiece.open_run


def test_packages_are_reached_without_another_import_and_verbs_stay_verbs():
    code = (
        "import apiece, apiece.reporting; apiece.estimators.Bayes(); assert callable(apiece.report)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    listed = {file.parent.name for file in Path(apiece.__file__).parent.glob("*/__init__.py")}
    public = {name for name in listed if not name.startswith("_")} - {"cli"}
    assert public | {"errors", "synthetic"} <= set(apiece.__all__)


def test_importing_apiece_leaves_heavy_libraries_unloaded():
    heavy = ["pandas", "sklearn", "scipy", "pyarrow", "matplotlib", "torch", "joblib", "rich"]
    code = f"import sys, apiece; print([m for m in {heavy} if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_importing_the_verbs_leaves_libraries_that_few_runs_need_unloaded():
    heavy = ["pandas", "sklearn", "pyarrow", "scipy.spatial", "scipy.sparse", "scipy.stats"]
    code = (
        "import sys; from apiece import Dataset, collect, fit, select, value; "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
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


def test_the_oldest_versions_tested_are_the_oldest_allowed():
    import re
    import tomllib

    root = Path(__file__).parents[2]
    allowed = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    pins = (root / "tests/oldest.txt").read_text()
    oldest = dict(re.findall(r"^([\w-]+)==([\d.]+)", pins, re.MULTILINE))
    for name, least in (line.split(">=") for line in allowed):
        assert oldest[name].startswith(least), name


def test_the_default_method_is_the_one_that_the_help_names():
    from apiece import synthetic
    from apiece.cli import cli
    from apiece.estimators import DEFAULT_METHOD

    (method,) = (option for option in cli.commands["fit"].params if option.name == "method")
    assert f"{DEFAULT_METHOD} (the default)" in method.help
    table = synthetic.sample(synthetic.random_laws(5), samples=20)
    assert apiece.fit(table).attrs["estimator"] == DEFAULT_METHOD


def test_the_package_runs_as_a_module():
    words = [sys.executable, "-m", "apiece", "fit", "no/such/run"]
    said = subprocess.run(words, capture_output=True, text=True)
    assert said.returncode == 1
    assert "no/such/run is not a run" in said.stderr
    words[3:] = ["--help"]
    said = subprocess.run(words, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("Usage: python -m apiece ")


# Commands have --help, and a server runs until it is stopped.
WITHOUT_EXAMPLE = {"apiece.cli.main", "apiece.reporting.serve"}


def public_callables():
    """Every function and class that a package lists in ``__all__``, by its public name."""
    packages = [
        f"apiece.{module.name}" for module in pkgutil.iter_modules(apiece.__path__) if module.ispkg
    ]
    for package in ("apiece", *packages, "apiece.collection.pools"):
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isroutine(thing) or inspect.isclass(thing):
                yield f"{package}.{name}", thing


def test_every_public_callable_has_an_example():
    # doctest runs the examples; errors and protocols have none, since they are not called
    missing = [
        name
        for name, thing in public_callables()
        if ">>>" not in (thing.__doc__ or "")
        and not (inspect.isclass(thing) and issubclass(thing, BaseException))
        and not getattr(thing, "_is_protocol", False)
        and thing.__module__.startswith("apiece")
    ]
    assert set(missing) <= WITHOUT_EXAMPLE


@pytest.mark.parametrize("name", ["Contributions", "DataValuer", "Dataset", "Laws", "Run"])
def test_every_method_of_a_noun_is_called_in_an_example_of_it(name):
    ours = [base for base in getattr(apiece, name).__mro__ if base.__module__.startswith("apiece")]
    lines = [line for base in ours for line in inspect.getsource(base).splitlines()]
    examples = "\n".join(line for line in lines if re.match(r"\s+(>>>|\.\.\.) ", line))
    methods = [
        word
        for base in ours
        for word, method in vars(base).items()
        if inspect.isfunction(getattr(method, "__func__", method))
        and method.__name__ == word  # no alias
        and not word.startswith("_")
    ]
    assert [word for word in methods if f".{word}(" not in examples] == []


def test_no_public_verb_takes_settings_that_an_editor_cannot_complete():
    verbs = {name: thing for name, thing in public_callables() if inspect.isfunction(thing)}
    for name, noun in public_callables():
        for word, method in vars(noun).items() if inspect.isclass(noun) else ():
            method = getattr(method, "__func__", method)
            if inspect.isfunction(method) and noun.__module__.startswith("apiece"):
                verbs[f"{name}.{word}"] = method
    loose = {
        name
        for name, verb in verbs.items()
        if not name.rpartition(".")[2].startswith("_")
        for parameter in inspect.signature(verb).parameters.values()
        if parameter.kind is parameter.VAR_KEYWORD and "Unpack" not in str(parameter.annotation)
    }
    assert loose == {"apiece.engines.Model.with_settings"}  # settings of any model


# Parameters of verbs that take words of a closed set, or objects.
CLOSED = {"design", "engine", "kind", "method", "metric", "redundancy", "scoring", "source"}


def test_verbs_list_the_words_of_a_closed_set_for_an_editor():
    loose = [
        f"{name}({parameter})"
        for name, thing in public_callables()
        if inspect.isfunction(thing) and name.count(".") == 1
        for parameter in inspect.signature(thing).parameters.values()
        if parameter.name in CLOSED and re.match(r"(str|Any)\b", str(parameter.annotation))
    ]
    assert loose == []


SOURCE = Path(apiece.__file__).parent


def compared_names(tree):
    """Yield the words that a module compares something with, by ==, != or in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                yield from (
                    (part.value, node.lineno)
                    for part in ast.walk(side)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )


def types_in_tests(tree):
    """Yield the names of the types that a module tests for with isinstance or type."""
    for node in ast.walk(tree):
        is_test = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
        is_type = (
            isinstance(node, ast.Compare)
            and getattr(getattr(node.left, "func", None), "id", "") == "type"
        )
        parts = node.args[1:] if is_test else node.comparators if is_type else ()
        for part in parts:
            for name in ast.walk(part):
                if isinstance(name, ast.Name | ast.Attribute):
                    yield getattr(name, "id", getattr(name, "attr", "")), node.lineno


def test_no_module_but_its_own_compares_the_name_of_a_metric():
    metrics = set(apiece.losses.LOSSES)
    found = [
        f"{file.relative_to(SOURCE)}:{line} {word}"
        for file in SOURCE.rglob("*.py")
        if file.parent.name != "losses"
        for word, line in compared_names(ast.parse(file.read_text(encoding="utf-8")))
        if word in metrics
    ]
    # what scikit-learn's networks minimise has the same name as one of our losses
    assert [place for place in found if "engines/_mlp.py" not in place] == []


def test_no_module_but_its_own_tests_the_type_of_a_family():
    families = {
        name
        for name, thing in vars(apiece.laws).items()
        if inspect.isclass(thing) and issubclass(thing, apiece.laws.Family)
    }
    assert len(families) >= 5
    found = []
    for file in SOURCE.rglob("*.py"):
        if file.parent.name == "laws":
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("apiece.laws")
            for alias in node.names
        }
        found += [
            f"{file.relative_to(SOURCE)}:{line} {word}"
            for word, line in types_in_tests(tree)
            if word in families & imported
        ]
    assert found == []


def test_every_check_that_is_silenced_says_why():
    found = [
        f"{file.relative_to(SOURCE)}: {line.strip()}"
        for file in SOURCE.rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.search(r"# (noqa|type: ignore|pragma: no)(?!.*  # \w)", line)
    ]
    assert found == []


PRIVATE_WORDS = (
    r"\b(fore)?told\b|\bforetell|\bhears\b|\bmend(s|ed|ing)?\b|\bdear(er)?\b|\bbeside\b"
    r"|\bin the middle\b|\bvouch|\bat hand\b|\banew\b|\bunasked\b|\blikewise\b|\bif need be\b"
    r"|\b[Tt]ells? (apart|how|which|what|whether|the|of|more|nothing)\b|\bdealt\b|\bsays? of\b"
)


def test_code_uses_common_words():
    found = [
        f"{file.relative_to(SOURCE)}: {hit[0]}"
        for file in SOURCE.rglob("*.py")
        for hit in re.finditer(PRIVATE_WORDS, file.read_text(encoding="utf-8"))
    ]
    assert found == []
