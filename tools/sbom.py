"""Write the software bill of materials of a release, as CycloneDX 1.6.

It lists what the extras of `pyproject.toml` bring, in the versions of requirements.lock and with
who requires whom, and the library that is vendored in the page. The package itself requires
nothing.
It is a function of the source tree, the commit and its time: two builds write the same bytes.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

OURS = "ldpstream (pyproject.toml)"
VENDORED = re.compile(r"/\*! https://\S+/(?P<name>\w+) \(v(?P<version>[\d.]+)\) \*/")


@dataclass(frozen=True)
class Locked:
    """A package of a lock file, the marker it is installed under, and who requires it."""

    name: str
    version: str
    marker: str
    required_by: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def read_lock(text: str) -> Iterator[Locked]:
    """Read a lock file in the form that `uv pip compile` writes."""
    for entry in re.split(r"\n(?=[a-z0-9])", text):
        head = re.match(r"([a-z0-9._-]+)==([^\s;]+)(?: ; (.*?))? \\\n", entry)
        if head:
            via = re.findall(r"^ +#(?: via)? +(\S.*)$", entry, re.MULTILINE)
            yield Locked(head[1], head[2], head[3] or "", tuple(via))


def reached(locked: list[Locked]) -> list[Locked]:
    """Return what the extras bring, directly or not; what only developers need is left out."""
    names = {OURS}
    while found := {one.name for one in locked if names & {*one.required_by}} - names:
        names |= found
    return [one for one in locked if one.name in names]


def make_sbom(root: Path, version: str, commit: str, epoch: int) -> str:
    """Return the bill of materials of a source tree, as text."""
    packages = reached([*read_lock((root / "requirements.lock").read_text())])
    own = f"pkg:pypi/ldpstream@{version}"
    vendored = [*_vendored(root / "src/ldpstream/collector/page/vendor")]
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).isoformat(),
            "component": _component("application", "ldpstream", version, own)
            | {
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "properties": [{"name": "ldpstream:commit", "value": commit}],
            },
        },
        "components": [*map(_of_lock, packages), *vendored],
        "dependencies": [*_dependencies(own, packages, [one["bom-ref"] for one in vendored])],
    }
    # The serial number of a bill that says the same is the same.
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True))
    return json.dumps(document | {"serialNumber": f"urn:uuid:{serial}"}, indent=1) + "\n"


def _component(kind: str, name: str, version: str, purl: str) -> dict[str, Any]:
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _of_lock(one: Locked) -> dict[str, Any]:
    made = _component("library", one.name, one.version, one.purl) | {"scope": "optional"}
    if one.marker:
        made["properties"] = [{"name": "ldpstream:marker", "value": one.marker}]
    return made


def _vendored(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("*.js")):
        found = VENDORED.match(file.read_text())
        assert found, f"{file.name} does not say which version it is"
        purl = f"pkg:npm/{found['name'].lower()}@{found['version']}"
        yield _component("library", found["name"], found["version"], purl) | {"scope": "required"}


def _dependencies(
    own: str, packages: list[Locked], vendored: list[str]
) -> Iterator[dict[str, Any]]:
    def required(name: str) -> list[str]:
        return sorted(one.purl for one in packages if name in one.required_by)

    yield {"ref": own, "dependsOn": sorted([*required(OURS), *vendored])}
    for one in packages:
        yield {"ref": one.purl, "dependsOn": required(one.name)}
    for ref in vendored:
        yield {"ref": ref, "dependsOn": []}
