"""The bills of materials: valid, complete, and the same bytes every time."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from deploy import release_checks, sbom, template

LOCKED = sbom.read_lock(template.ROOT / "requirements" / "standalone.txt")


def needs(bill: dict[str, Any], name: str) -> set[str]:
    """Return the references, without versions, to the packages that a part needs."""
    [found] = [entry for entry in bill["dependencies"] if entry["ref"].split("@")[0] == name]
    return {ref.split("@")[0].removeprefix("pkg:pypi/") for ref in found.get("dependsOn", [])}


def test_the_bill_of_a_zip_is_valid_has_its_hash_and_the_same_bytes_again(tmp_path: Path) -> None:
    package, bill = tmp_path / "deployment.zip", tmp_path / "deployment.cdx.json"
    package.write_bytes(b"a zip")
    bill.write_text(sbom.describe_package(package))
    release_checks.validate_bill(bill)
    assert bill.read_text() == sbom.describe_package(package)
    project = json.loads(bill.read_text())["metadata"]["component"]
    digest = hashlib.sha256(b"a zip").hexdigest()
    assert project["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_one_machine_has_each_package_with_a_licence_and_the_hashes_of_its_lock() -> None:
    bill = json.loads(sbom.describe_standalone())
    locked = {part.name: part for part in LOCKED}
    assert needs(bill, "vu-mi") == {part.name for part in LOCKED if part.is_direct()}
    assert needs(bill, "pkg:pypi/granian") == {"click"}
    assert {part["name"] for part in bill["components"]} <= locked.keys()
    for part in bill["components"]:
        assert part["version"] == locked[part["name"]].version
        assert part["purl"] == f"pkg:pypi/{part['name']}@{part['version']}"
        assert part["licenses"]
        [files] = part["externalReferences"]
        assert {found["content"] for found in files["hashes"]} == {*locked[part["name"]].hashes}
