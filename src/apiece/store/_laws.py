"""The laws of a run: stored ones while they describe what it holds, else fitted now.

Laws are stored as ``laws.parquet`` in the run's folder, with the digest of the contributions they
were fitted to (``attrs["fitted_to"]``) and how to fit them again (``attrs["recipe"]``).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece.data import Dataset, read_again
from apiece.errors import ApieceError, DataError, PlanError, StoreError
from apiece.estimators import Estimator, as_estimator, default_method, fit, rebuilt
from apiece.laws import FamilyLike, Laws
from apiece.laws.provenance import plain, version
from apiece.records import Contributions, Recipe
from apiece.store._folder import FolderStore

if TYPE_CHECKING:
    from apiece.store._run import Run

_log: Final = logging.getLogger("apiece.laws")

# What laws and their run must have in common.
_IDENTITY: Final = ("dataset", "model", "metric", "design", "seed", "groups")


def laws_of(source: Laws | Run | Contributions, memory: int | str | None = None) -> Laws:
    """Return laws as they are, those of a run by `Run.laws`, or laws fitted to contributions.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[0.5], alpha=[1.0])
    >>> laws_of(laws) is laws
    True
    """
    if isinstance(source, Laws):
        return source
    if not hasattr(source, "laws") and not isinstance(source, Contributions):
        raise PlanError(
            f"laws are asked of a {type(source).__name__}: expected laws, a run or contributions. "
            "Pass apiece.open(path) for a stored run, or apiece.collect(dataset) for data."
        )
    return fit(source) if isinstance(source, Contributions) else source.laws(memory=memory)


def laws_of_run(
    run: Run,
    method: str | Estimator | None,
    family: FamilyLike | None,
    dataset: Dataset | None,
    refit: bool,
    memory: int | str | None,
) -> Laws:
    """Return the laws of a run, see `Run.laws`."""
    file = None if run.path is None else run.path / "laws.parquet"
    stored = None if refit or file is None or not file.exists() else Laws.load(file)
    state = run.snapshot()
    is_default = method is None and family is None and dataset is None
    estimator = as_estimator(method or default_method(run), family=family)
    recipe = estimator.recipe(features=dataset is not None and estimator.takes_features)
    is_asked, reason = True, ""
    if stored is not None and file is not None:
        _refuse_foreign(file, stored, run)
        is_asked = is_default or stored.attrs.get("recipe") == recipe
        reason = _outdated(stored, state)
        if is_asked and not reason:
            return stored
        if is_default:
            recipe = stored.attrs.get("recipe")
            estimator, dataset = _again(file, stored.provenance.recipe, run, reason)
            _log.warning("%s %s: fitting them again by %s", file, reason, estimator.name)
    key = json.dumps([state["digest"], recipe])
    if recipe is not None and not refit and key in run._fitted:
        return run._fitted[key]
    if not state["is_complete"]:
        _log.warning(
            "this run is unfinished: %s of %s %s are used. Repeat its collect command to "
            "complete it.",
            f"{state['n_contributions']:,}",
            f"{run.progress().n_planned:,}",
            run.unit,
        )
    is_kept = file is not None and (refit or (state["is_complete"] and is_asked))
    if is_kept and not reason and not refit:
        _log.info("no laws yet: fitting them by %s into %s", estimator.name, file)
    if file is None and isinstance(run.store, FolderStore):
        _log.info("fitting laws by %s; in an object store they are not kept", estimator.name)
    has_backtest = stored is not None and is_asked and stored.has_backtest
    laws = fit(run, estimator, dataset=dataset, memory=memory, backtest=has_backtest)
    run._fitted.clear()
    run._fitted[key] = laws
    if is_kept and file is not None:
        _keep(laws, file)
    return laws


def _keep(laws: Laws, file: Path) -> None:
    """Store laws; where that is impossible, say so and go on."""
    try:
        laws.save(file)
    except StoreError as error:
        _log.warning("laws are used without being stored: %s", str(error).split(". ")[0])


def _refuse_foreign(file: Path, laws: Laws, run: Run) -> None:
    """Raise unless stored laws are of this run, perhaps of an earlier state of it."""
    differing = _differing(laws.attrs, run.attrs, _IDENTITY)
    if differing:
        problem = f"holds laws of another run ({differing})"
    elif not np.array_equal(laws.ids.astype(str), run.ids.astype(str)):
        problem = "holds laws of other points than the run values"
    elif laws.provenance.fitted_to is None:
        problem = "does not say which contributions its laws were fitted to"
    else:
        return
    raise StoreError(
        f"{file} {problem}: expected laws of the contributions in {file.parent}. Fit them: apiece "
        f"fit {file.parent}, or in Python run.laws(refit=True)."
    )


def check_laws(laws: Laws, source: Run | Contributions) -> None:
    """Refuse laws that say that they are of another run than what they are shown with.

    Raises
    ------
    DataError
        If dataset, model, metric, design, seed or groups are known of both and differ.

    Examples
    --------
    >>> from apiece import synthetic
    >>> laws = synthetic.random_laws(5, random_state=0)
    >>> check_laws(laws, synthetic.sample(laws, samples=5, random_state=0))
    """
    known = [name for name in _IDENTITY if name in laws.attrs and name in source.attrs]
    if differing := _differing(laws.attrs, source.attrs, known):
        raise DataError(
            f"laws are of another run ({differing}): expected laws of the contributions they are "
            "shown with. Leave laws out, or pass run.laws()."
        )


def _differing(laws: Mapping[str, Any], run: Mapping[str, Any], names: Sequence[str]) -> str:
    """Say in which of some attributes laws and a run differ; empty if in none."""
    theirs, ours = plain(laws), plain(run)
    return "; ".join(
        f"{name} {_short(theirs.get(name))}, here {_short(ours.get(name))}"
        for name in names
        if theirs.get(name) != ours.get(name)
    )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 24 else f"{text[:12]}…"


def _outdated(laws: Laws, state: dict[str, Any]) -> str:
    """Return in words why laws are not those of what the run holds now; empty if they are."""
    known = laws.provenance.fitted_to
    if known is None or known.digest != state["digest"]:
        n, now = 0 if known is None else known.n_contributions, state["n_contributions"]
        if n == now:
            return "was fitted to other contributions than the run holds"
        return f"was fitted to {n:,} contributions, and the run holds {now:,}"
    if laws.provenance.version != version():
        return f"was written by apiece {laws.provenance.version}, and this is {version()}"
    return ""


def _again(
    file: Path, recipe: Recipe | None, run: Run, reason: str
) -> tuple[Estimator, Dataset | None]:
    """Return how to fit stored laws again; raise if the file does not say."""
    try:
        if recipe is None:
            raise StoreError("its estimator or settings cannot be written to a file")
        data = run.manifest.dataset
        source = data.source, data.fingerprint
        return rebuilt(recipe), read_again(*source) if recipe.features else None
    except (ApieceError, KeyError, TypeError) as error:
        how = "" if recipe is None else f" --method {recipe.method}"
        how += " --data FILE" if recipe is not None and recipe.features else ""
        raise StoreError(
            f"{file} {reason}, and cannot be fitted again from what it says ({error}): expected "
            f"laws of what the run holds. Fit them: apiece fit {file.parent}{how}, or in Python "
            "run.laws(method=..., refit=True)."
        ) from error
