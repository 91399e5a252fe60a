"""What the repository promises to people who build, release or cite it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import apiece

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_citation_names_the_version_of_the_project():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == PROJECT["project"]["version"]
    assert apiece.__version__ == PROJECT["project"]["version"]


def test_every_fragment_is_of_a_kind_that_a_release_gathers():
    kinds = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
    assert kinds == {"added", "changed", "fixed", "deprecated", "removed", "faster"}
    for file in (ROOT / "changes").iterdir():
        if file.name not in ("template.md", ".gitkeep"):
            assert re.fullmatch(rf"[\w-]+\.({'|'.join(kinds)})\.md", file.name), file.name
            assert file.read_text(encoding="utf-8").strip()


def test_the_continuous_integration_runs_every_promised_python():
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    matrix = set(re.findall(r'"([\d.]+)"', re.search(r"python: (\[.*\])", workflow)[1]))
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert set(promised) <= matrix
    assert promised[0] == PROJECT["project"]["requires-python"].removeprefix(">=")
    for action in re.findall(r"uses: (\S+)", workflow):
        assert re.search(r"@[0-9a-f]{40}$", action), f"{action} is not pinned to a commit"


def test_every_make_target_that_is_documented_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "SUPPORT.md", ".ci/run"]
    for text in [makefile, *((ROOT / page).read_text(encoding="utf-8") for page in pages)]:
        assert set(re.findall(r"(?:^# |`|^)make ([a-z]+)", text, re.MULTILINE)) <= targets


def test_the_source_archive_holds_tests_changelog_and_what_they_read(tmp_path):
    code = (
        "import sys; from setuptools import build_meta; "
        "build_meta.build_sdist(sys.argv[1], {'--global-option': ['--quiet']})"
    )
    copy = tmp_path / "copy"  # setuptools writes next to the source
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "site")
    shutil.copytree(ROOT, copy, ignore=ignored)
    subprocess.run(
        [sys.executable, "-c", code, tmp_path], cwd=copy, check=True, capture_output=True
    )
    (archive,) = tmp_path.glob("*.tar.gz")
    assert archive.name == f"apiece-{apiece.__version__}.tar.gz"
    with tarfile.open(archive) as tar:
        held = {name.partition("/")[2] for name in tar.getnames()}
    for name in (
        *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "mkdocs.yml"),
        "noxfile.py",
        *("tests/conftest.py", "tests/oldest.txt", "tests/unit/test_repository.py"),
        *("docs/index.md", "decisions/README.md", "benchmarks/overhead.py", "src/apiece/py.typed"),
        "src/apiece/reporting/assets/vendor/uPlot-1.6.32.LICENSE",
    ):
        assert name in held, name
    assert not [name for name in held if name.endswith(".pyc")]


def test_the_bill_of_materials_lists_what_is_installed_and_what_is_vendored(tmp_path):
    file = tmp_path / "sbom.json"
    subprocess.run([sys.executable, ROOT / "tools/sbom.py", file], check=True, capture_output=True)
    content = json.loads(file.read_text(encoding="utf-8"))
    parts = {part["name"]: part for part in content["components"]}
    for requirement in PROJECT["project"]["dependencies"]:
        assert requirement.partition(">=")[0] in parts
    assert parts["uPlot"]["licenses"][0]["license"]["id"] == "MIT"
    held = {part["name"] for part in parts["uPlot"]["components"]}
    folder = ROOT / "src/apiece/reporting/assets/vendor"
    assert held == {file.name for file in folder.iterdir() if file.suffix != ".LICENSE"}


CLEAN = {"name": "numpy", "version": "2.0", "vulns": []}
WEAK = {"name": "arrow", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}
UNKNOWN = {"name": "scipy", "skip_reason": "Dependency not found on PyPI: scipy (1.0)"}
EDITABLE = {"name": "apiece", "skip_reason": "distribution marked as editable"}


@pytest.mark.parametrize(
    ("printed", "code", "words"),
    [
        ({"dependencies": [CLEAN, EDITABLE]}, 0, "1 libraries looked up, 0 with known"),
        ({"dependencies": [CLEAN, WEAK]}, 1, "arrow 1: CVE-1, fixed in 2"),
        ({"dependencies": [CLEAN, UNKNOWN]}, 2, "1 libraries could not be looked up"),
        (None, 2, "Nothing was looked up"),
    ],
)
def test_an_audit_that_could_not_ask_says_so(tmp_path, printed, code, words):
    said = "raise OSError('no network')" if printed is None else f"print({json.dumps(printed)!r})"
    (tmp_path / "pip_audit.py").write_text(said)
    done = subprocess.run(
        [sys.executable, ROOT / "tools/audit.py"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr
