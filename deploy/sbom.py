"""The bills of materials: the packages that run on AWS and on one machine, in CycloneDX's JSON.

They have no time and no random number, so the same locks give the same bytes. A lock is a file of
exact versions, with the hashes of the files of each release.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from chalicelib import VERSION
from deploy import template

PROJECT = "vu-mi"
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")
NEEDED_BY = re.compile(r"^    # (?:via |  )(?!-c )(\S+)", re.MULTILINE)
"""A name in the comment in which uv says who needs a package."""
ENTRY = re.compile(r"^(?=[^\s#])", re.MULTILINE)
LICENSES = LicenseFactory()
LAMBDA_PACKAGES = ("boto3", "botocore")
"""The packages of Lambda's runtime that the functions import. AWS chooses their versions."""


@dataclass(frozen=True)
class LockedPackage:
    """A package of a lock, with the SHA-256 hashes of its files and the packages that need it."""

    requirement: Requirement
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        return str(self.requirement.specifier).removeprefix("==")

    def is_installed(self) -> bool:
        """Return whether this Python on this platform gets it."""
        marker = self.requirement.marker
        return marker is None or marker.evaluate()


def read_lock(lock: Path) -> list[LockedPackage]:
    """Read the packages of a lock."""
    return [_parse(entry) for entry in ENTRY.split(lock.read_text())[1:]]


def _parse(entry: str) -> LockedPackage:
    line = entry.partition("\n")[0].partition(" --hash")[0].removesuffix("\\")
    return LockedPackage(
        Requirement(line), tuple(HASH.findall(entry)), tuple(NEEDED_BY.findall(entry))
    )


def describe_package(package: Path) -> str:
    """Return the bill of a zip: the packages in it, and those of Lambda's runtime."""
    chalice = [part for part in _read("requirements/deploy.txt") if part.name == "chalice"]
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    return _write(
        _project([_hash(digest)]),
        chalice,
        [*map(_provided_package, LAMBDA_PACKAGES), _runtime()],
    )


def describe_standalone() -> str:
    """Return the bill of the program on one machine."""
    return _write(_project(), _read("requirements/standalone.txt"))


def _read(lock: str) -> list[LockedPackage]:
    return [part for part in read_lock(template.ROOT / lock) if part.is_installed()]


def _write(
    project: Component, packages: Sequence[LockedPackage], provided: Sequence[Component] = ()
) -> str:
    components = {part.name: _component(part) for part in packages}
    bom = Bom(components=[*components.values(), *provided])
    bom.metadata.component = project
    owners = {PROJECT: project, **components}
    for name, owner in owners.items():
        needed = [components[part.name] for part in packages if name in part.needed_by]
        bom.register_dependency(owner, [*needed, *provided] if owner is project else needed)
    return _without_time_and_number(JsonV1Dot6(bom).output_as_string())


def _without_time_and_number(written: str) -> str:
    """Return the bill without its time and serial number, which the standard does not require."""
    bill = json.loads(written)
    del bill["serialNumber"], bill["metadata"]["timestamp"]
    return json.dumps(bill, indent=2, sort_keys=True) + "\n"


def _project(hashes: Iterable[HashType] = ()) -> Component:
    return Component(
        type=ComponentType.APPLICATION,
        name=PROJECT,
        version=VERSION,
        bom_ref=PROJECT,
        licenses=[LICENSES.make_from_string("MIT")],
        hashes=hashes,
    )


def _component(package: LockedPackage) -> Component:
    """Return a package with the hashes of all files of its release: pip chooses one of them."""
    url = PackageURL("pypi", name=package.name, version=package.version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(str(url)),
        hashes=map(_hash, package.hashes),
    )
    return Component(
        name=package.name,
        version=package.version,
        bom_ref=str(url),
        purl=url,
        licenses=[LICENSES.make_from_string(_license_of(package.name))],
        external_references=[files],
    )


def _license_of(package: str) -> str:
    described = metadata.metadata(package)
    return described["License-Expression" if "License-Expression" in described else "License"]


def _provided_package(name: str) -> Component:
    url = PackageURL("pypi", name=name)
    described = "Part of Lambda's runtime. AWS chooses its version."
    return Component(name=name, bom_ref=str(url), purl=url, description=described)


def _runtime() -> Component:
    """Return the Python of the functions."""
    version = template.load()["Resources"]["APIHandler"]["Properties"]["Runtime"]
    return Component(
        type=ComponentType.PLATFORM,
        name="python",
        version=version.removeprefix("python"),
        bom_ref="python",
    )


def _hash(sha256: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=sha256)
