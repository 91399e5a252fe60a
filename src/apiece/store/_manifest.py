"""The manifest: what a run is about, and whether a new request is about the same thing.

``manifest.json`` is read into frozen records. What a record does not name is kept in its ``more``,
so that a manifest is written as it was read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from apiece._base.code import may_be_same_code
from apiece._base.record import Record
from apiece._base.typing import Count
from apiece.errors import StoreError
from apiece.records import DesignRecord, EngineRecord
from apiece.store._filesystem import FileSystem
from apiece.store._layout import Layout
from apiece.store._shards import SCHEMA_VERSION

# What must agree before a run may be continued, and how to say that it does not.
_IDENTITY: Final = {
    "dataset": "another dataset",
    "points": "another choice of points to value",
    "model": "another model",
    "metric": "another metric",
    "engine": "another engine",
    "design": "another design",
    "seed": "another seed",
}

# A file deeper than the parser goes ends in a RecursionError.
_UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class DatasetRecord(Record):
    """The dataset, see `Dataset.describe`; ``source`` says where to read it again."""

    fingerprint: str
    n_pool: Count
    kind: str | None = None
    target: str | None = None
    classes: list[Any] | None = None
    n_candidates: int = 0
    n_validation: int | None = None
    n_features: int | None = None
    source: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class PointsRecord(Record):
    """How many points are valued, and a digest of which."""

    n_valued: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class ModelRecord(Record):
    """The model by its name, and what it is made of, such as its parameters."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Manifest(Record):
    """What a run is about.

    Parameters
    ----------
    dataset, points, model, metric, engine, design, seed
        What decides the contributions: a run is continued only with the same.
    samples, n_contributions, layout, stages
        The requested amount of work; these grow with the run. ``stages`` say from which task on
        some of the points are valued rarely.
    created, versions, machine
        When the run was started, by which versions, on which kind of machine.
    code, probe
        Digests of the code of model and metric, and contributions of a test task, by which a
        change of either is noticed.
    files
        Digests of other files of the run.

    Examples
    --------
    >>> from apiece.testing import StoreContract
    >>> StoreContract.manifest(None).design.name
    'uniform'
    """

    schema_version: int = SCHEMA_VERSION
    created: str | None = None
    dataset: DatasetRecord
    points: PointsRecord
    model: ModelRecord
    metric: str
    engine: EngineRecord
    design: DesignRecord
    samples: Count
    seed: Annotated[int, range(2**128)]
    n_contributions: Annotated[int, range(2**63)]
    layout: Layout
    stages: list[Any] | None = None
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    code: dict[str, Any] = field(default_factory=dict)
    probe: dict[str, Any] | None = None
    files: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the manifest for JSON."""
        return {"schema_version": self.schema_version, **super().to_json()}


def refuse_mismatch(where: object, stored: Manifest, wanted: Manifest) -> None:
    """Raise unless both manifests describe the same contributions.

    Raises
    ------
    StoreError
        Naming everything that differs, with both values.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from apiece.testing import StoreContract
    >>> stored = StoreContract.manifest(None)
    >>> try:
    ...     refuse_mismatch("a run", stored, replace(stored, seed=1))
    ... except StoreError as error:
    ...     print(str(error)[:44])
    a run belongs to another seed (0, now 1). A
    """
    ours, theirs = stored.to_json(), wanted.to_json()
    differs = [key for key in _IDENTITY if _differs(ours, theirs, key)]
    if not differs:
        return
    details = "; ".join(f"{_IDENTITY[key]} ({_show(ours, theirs, key)})" for key in differs)
    raise StoreError(
        f"{where} belongs to {details}. A run holds one kind of contributions. Point `to` (--to) "
        "at a new folder, or repeat the settings it was started with."
    )


def _differs(stored: dict[str, Any], wanted: dict[str, Any], key: str) -> bool:
    ours, theirs = ((manifest.get("code") or {}).get(key) for manifest in (stored, wanted))
    if ours and theirs:
        is_other = _kind(stored, key) != _kind(wanted, key)
        return is_other or not may_be_same_code(ours, theirs)
    return bool(_identity(stored, key) != _identity(wanted, key))


def _kind(manifest: dict[str, Any], key: str) -> Any:
    """Return the class of a model or the name of a metric; digests of code say the rest."""
    value = manifest.get(key)
    return value.get("class") if isinstance(value, dict) else value


def _identity(manifest: dict[str, Any], key: str) -> Any:
    value = manifest.get(key)
    if key == "dataset" and isinstance(value, dict):
        return value.get("fingerprint")
    if key == "model" and isinstance(value, dict):
        return {name: part for name, part in value.items() if name != "name"}
    if key == "engine" and isinstance(value, dict):  # without what was measured about it
        return {name: value.get(name) for name in ("name", "is_exact")}
    return value


def _show(stored: dict[str, Any], wanted: dict[str, Any], key: str) -> str:
    if key == "dataset":
        ours, theirs = _identity(stored, key), _identity(wanted, key)
        return f"fingerprint {str(ours)[:8]}…, this one is {str(theirs)[:8]}…"
    if key == "points":
        ours, theirs = stored.get(key) or {}, wanted.get(key) or {}
        return f"{ours.get('n_valued')} valued, now {theirs.get('n_valued')}"
    if key == "model":
        ours, theirs = stored.get(key) or {}, wanted.get(key) or {}
        if ours.get("name") != theirs.get("name"):
            return f"{ours.get('name')}, not {theirs.get('name')}"
        ours, theirs = ours.get("params") or {}, theirs.get("params") or {}
        changed = sorted(n for n in {*ours, *theirs} if ours.get(n) != theirs.get(n))
        if not changed:
            return "its code, or a function or object that it holds, has changed"
        return ", ".join(f"{n}={ours.get(n)!r}, now {theirs.get(n)!r}" for n in changed[:4])
    if key == "design":
        ours, theirs = stored.get(key) or {}, wanted.get(key) or {}
        changed = [n for n in (*ours, *theirs) if ours.get(n) != theirs.get(n)]
        return ", ".join(f"{n} {ours.get(n)}, now {theirs.get(n)}" for n in dict.fromkeys(changed))
    if _identity(stored, key) == _identity(wanted, key):
        return f"{_identity(stored, key)}, whose code or settings have changed"
    return f"{json.dumps(_identity(stored, key))}, now {json.dumps(_identity(wanted, key))}"


def read_manifest(files: FileSystem) -> Manifest:
    """Read the manifest of a run.

    Raises
    ------
    StoreError
        If there is no run, or its manifest cannot be understood.
    """
    file = f"{files}/manifest.json"
    try:
        content = json.loads(files.read("manifest.json").decode("utf-8"))
        if content["schema_version"] == SCHEMA_VERSION:
            if content.pop("digest", None) not in (None, _digest(content)):
                raise ValueError("its contents do not match its digest")
            return Manifest.from_json(content)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(
            f"{files} is not a run: it has no manifest.json. Expected a folder that collect wrote. "
            f"Start one with collect(..., to={str(files)!r}), or apiece collect ... --to {files}."
        ) from None
    except StoreError:
        raise
    except (*_UNREADABLE, OSError) as error:
        raise StoreError(
            f"{file} cannot be read ({error}): expected the JSON that collect wrote. Restore it "
            "from a copy, or collect into a new folder; the shards next to it are plain Parquet."
        ) from error
    writer = content.get("versions")
    writer = writer.get("apiece") if isinstance(writer, dict) else None
    raise StoreError(
        f"{file} has schema version {content['schema_version']}"
        + (f", written by apiece {writer}" if writer else "")
        + f": expected schema version {SCHEMA_VERSION}, which this apiece reads. Open the run with "
        "the version of apiece that wrote it, or collect into a new folder."
    )


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as JSON for people: indented, with its digest."""
    content = manifest.to_json()
    signed = {**content, "digest": _digest(content)}
    return (json.dumps(signed, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def _digest(manifest: dict[str, Any]) -> str:
    """Return the digest of all but the location of the data, which people may remove."""
    data = manifest.get("dataset")
    if isinstance(data, dict):
        manifest = {**manifest, "dataset": {**data, "source": None}}
    text = json.dumps(manifest, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()
