"""Write a bill of materials (CycloneDX 1.6, JSON) of apiece as it is installed here.

    python tools/sbom.py dist/sbom.cdx.json

Components are the distributions that apiece needs, directly or not, with the extras that are
installed, and the libraries in ``reporting/assets/vendor`` with their licences and digests.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import uuid
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

VENDORED = Path(__file__).parents[1] / "src/apiece/reporting/assets/vendor"


def reference(found: Distribution) -> str:
    """Return the package URL of a distribution."""
    return f"pkg:pypi/{canonicalize_name(found.metadata['Name'])}@{found.version}"


def licences(found: Distribution) -> list[dict[str, Any]]:
    """Return the SPDX expression, or else the names that classifiers or the old field give."""
    metadata = found.metadata
    if expression := metadata.get("License-Expression"):
        return [{"expression": expression}]
    names = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier") or []
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    first_line = (metadata.get("License") or "").strip().partition("\n")[0]
    names = names or ([first_line[:100]] if first_line else [])
    return [{"license": {"name": name}} for name in names]


def needed(found: Distribution, extras: set[str]) -> list[Distribution]:
    """Return the installed distributions that this one requires here, with the given extras."""
    result = []
    for line in found.requires or []:
        requirement = Requirement(line)
        marker = requirement.marker
        environments = [{"extra": extra} for extra in ("", *sorted(extras))]
        if marker is not None and not any(marker.evaluate(each) for each in environments):
            continue
        try:
            result.append(distribution(requirement.name))
        except PackageNotFoundError:
            continue  # an extra that is not installed
    return result


def closure(root: Distribution) -> dict[str, tuple[Distribution, list[str]]]:
    """Return every distribution that can be reached, and what each requires, by reference."""
    graph: dict[str, tuple[Distribution, list[str]]] = {}
    waiting = [(root, set(root.metadata.get_all("Provides-Extra") or []))]
    while waiting:
        found, extras = waiting.pop()
        if reference(found) not in graph:
            parts = needed(found, extras)
            graph[reference(found)] = found, sorted({reference(part) for part in parts})
            waiting += [(part, set()) for part in parts]
    return graph


def component(found: Distribution) -> dict[str, Any]:
    """Return the entry of a distribution."""
    return {
        "type": "library",
        "bom-ref": reference(found),
        "name": found.metadata["Name"],
        "version": found.version,
        "purl": reference(found),
        "licenses": licences(found),
    }


def vendored() -> list[dict[str, Any]]:
    """Return a component for each library with a licence file ``NAME-VERSION.LICENSE``."""
    result = []
    for file in sorted(VENDORED.glob("*.LICENSE")):
        name, version = re.fullmatch(r"(.+)-([\d.]+)", file.stem).groups()
        text = file.read_text(encoding="utf-8")
        if not text.startswith("The MIT License"):
            raise SystemExit(f"{file} is not the MIT licence: say in tools/sbom.py which it is")
        purl = f"pkg:npm/{name.lower()}@{version}"
        parts = [part for part in sorted(VENDORED.glob(f"{name}-{version}.*")) if part != file]
        result.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "licenses": [{"license": {"id": "MIT", "text": {"content": text}}}],
                "components": [
                    {
                        "type": "file",
                        "bom-ref": f"{purl}#{part.name}",
                        "name": part.name,
                        "hashes": [
                            {
                                "alg": "SHA-256",
                                "content": hashlib.sha256(part.read_bytes()).hexdigest(),
                            }
                        ],
                    }
                    for part in parts
                ],
            }
        )
    return result


def bill() -> dict[str, Any]:
    """Return the whole document."""
    root = distribution("apiece")
    graph = closure(root)
    extra = vendored()
    requires = {ref: parts for ref, (_, parts) in graph.items()}
    requires[reference(root)] += [part["bom-ref"] for part in extra]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "component": component(root),
        },
        "components": [
            *(component(found) for ref, (found, _) in sorted(graph.items()) if found is not root),
            *extra,
        ],
        "dependencies": [
            {"ref": ref, "dependsOn": parts} for ref, parts in sorted(requires.items())
        ],
    }


def main() -> None:
    """Write the file, and say what it holds."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    content = bill()
    Path(sys.argv[1]).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    unknown = [part["name"] for part in content["components"] if not part["licenses"]]
    print(f"{len(content['components'])} components; without a stated licence: {unknown or 'none'}")


if __name__ == "__main__":
    main()
