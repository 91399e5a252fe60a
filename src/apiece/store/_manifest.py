"""The manifest: what a run is about, and whether a new request is about the same thing."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from apiece._base.code import may_be_same_code
from apiece.errors import StoreError
from apiece.store._places import Place
from apiece.store._shards import SCHEMA_VERSION

Manifest = dict[str, Any]

# What must agree before a run may be continued, and how to say that it does not.
_IDENTITY = {
    "dataset": "another dataset",
    "points": "another choice of points to value",
    "model": "another model",
    "metric": "another metric",
    "engine": "another engine",
    "design": "another design",
    "seed": "another seed",
}


_COUNT = range(1, 2**31)
# What a manifest must hold to be worked with: a type, a range of numbers, or parts of a part.
_PARTS: dict[str, Any] = {
    "dataset": {"fingerprint": str, "n_pool": _COUNT},
    "model": {"name": str},
    "engine": {"name": str},
    "design": {},
    "points": {},
    "metric": str,
    "samples": _COUNT,
    "seed": range(2**128),
    "n_contributions": range(2**63),
    "layout": {"n_tasks": _COUNT, "tasks_per_shard": _COUNT, "parts_per_task": _COUNT},
}
# A file deeper than the parser goes ends in a RecursionError.
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def refuse_mismatch(where: object, stored: Manifest, wanted: Manifest) -> None:
    """Raise unless both manifests describe the same contributions.

    Raises
    ------
    StoreError
        Naming everything that differs, with both values.
    """
    differs = [key for key in _IDENTITY if _differs(stored, wanted, key)]
    if not differs:
        return
    details = "; ".join(f"{_IDENTITY[key]} ({_show(stored, wanted, key)})" for key in differs)
    raise StoreError(
        f"{where} belongs to {details}. A run holds one kind of contributions. Point `to` (--to) "
        "at a new folder, or repeat the settings it was started with."
    )


def _differs(stored: Manifest, wanted: Manifest, key: str) -> bool:
    ours, theirs = ((manifest.get("code") or {}).get(key) for manifest in (stored, wanted))
    if ours and theirs:
        is_other = _kind(stored, key) != _kind(wanted, key)
        return is_other or not may_be_same_code(ours, theirs)
    return bool(_identity(stored, key) != _identity(wanted, key))


def _kind(manifest: Manifest, key: str) -> Any:
    """Return the class of a model or the name of a metric; digests of code say the rest."""
    value = manifest.get(key)
    return value.get("class") if isinstance(value, dict) else value


def _identity(manifest: Manifest, key: str) -> Any:
    value = manifest.get(key)
    if key == "dataset" and isinstance(value, dict):
        return value.get("fingerprint")
    if key == "model" and isinstance(value, dict):
        return {name: part for name, part in value.items() if name != "name"}
    if key == "engine" and isinstance(value, dict):  # beside what was measured about it
        return {name: value.get(name) for name in ("name", "is_exact")}
    return value


def _show(stored: Manifest, wanted: Manifest, key: str) -> str:
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
    if _identity(stored, key) == _identity(wanted, key):
        return f"{_identity(stored, key)}, whose code or settings have changed"
    return f"{json.dumps(_identity(stored, key))}, now {json.dumps(_identity(wanted, key))}"


def read_manifest(place: Place) -> Manifest:
    """Read the manifest of the run at ``place``.

    Raises
    ------
    StoreError
        If there is no run, or its manifest cannot be understood.
    """
    file = f"{place}/manifest.json"
    try:
        manifest = json.loads(place.read("manifest.json").decode("utf-8"))
        version = manifest["schema_version"]
        if manifest.pop("digest", None) not in (None, _digest(manifest)):
            raise ValueError("its contents do not match its digest")
        needed = {*_IDENTITY, *_PARTS} - set(manifest)
        if version == SCHEMA_VERSION and not needed:
            _check_parts("", manifest, _PARTS)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(
            f"{place} is not a run: it has no manifest.json. Expected a folder that collect wrote. "
            f"Start one with collect(..., to={str(place)!r}), or apiece collect ... --to {place}."
        ) from None
    except StoreError:
        raise
    except (*_UNREADABLE, OSError) as error:
        raise StoreError(
            f"{file} cannot be read ({error}): expected the JSON that collect wrote. Restore it "
            "from a copy, or collect into a new folder; the shards beside it are plain Parquet."
        ) from error
    if version != SCHEMA_VERSION or needed:
        problem = f"lacks {sorted(needed)}" if needed else f"has schema version {version}"
        raise StoreError(
            f"{file} {problem}: expected schema version {SCHEMA_VERSION} with all its parts. "
            "Open it with the version of apiece that wrote it."
        )
    return dict(manifest)


def _check_parts(where: str, found: Any, parts: dict[str, Any]) -> None:
    """Raise unless a part of a manifest holds what it must."""
    if not isinstance(found, dict):
        raise ValueError(f"{where or 'it'} is not an object")
    for name, expected in parts.items():
        value = found.get(name)
        if isinstance(expected, dict):
            _check_parts(f"{where}{name}", value, expected)
        elif isinstance(expected, range):
            if type(value) is not int or value not in expected:
                raise ValueError(f"{where}{name} is {value!r}")
        elif not isinstance(value, expected):
            raise ValueError(f"{where}{name} is {value!r}")


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as JSON for people: indented, in its own order, with its digest."""
    signed = {**manifest, "digest": _digest(manifest)}
    return (json.dumps(signed, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def _digest(manifest: Manifest) -> str:
    """Return the digest of all but the data's whereabouts, which people may remove."""
    data = manifest.get("dataset")
    if isinstance(data, dict):
        manifest = {**manifest, "dataset": {**data, "source": None}}
    text = json.dumps(manifest, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()
