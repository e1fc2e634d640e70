"""The package: its bytes, what is in the zip, and its templates according to cfn-lint."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import re
import tarfile
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from packaging.utils import canonicalize_name

from deploy import __main__ as deploying
from deploy import template
from tests import checkers
from tests.processes.conftest import copy_sources, run_package

STAGES = ["prod", "dev"]
MAX_BYTES = 1_100_000
"""Lambda unpacks the package at a cold start; boto3 alone would be about 15 MB."""


def read(folder: Path) -> dict[str, Any]:
    return copy.deepcopy(_load(folder / "sam.yaml"))


_load = cache(template.load)


def names(folder: Path) -> list[str]:
    with ZipFile(folder / "deployment.zip") as zipped:
        return zipped.namelist()


FILES = {"sam.yaml", "deployment.zip", "deployment.cdx.json", "standalone.cdx.json"}


def test_a_package_from_another_machine_or_after_chalice_deploy_has_the_same_bytes(
    packages: dict[str, Path],
) -> None:
    """The package of dev is made elsewhere, so it has the names of no stack of there."""
    prod, dev = (packages[stage] for stage in STAGES)
    for name in FILES - {"sam.yaml"}:
        assert (dev / name).read_bytes() == (prod / name).read_bytes()
    given = read(prod)
    _name_stage(given, "dev")
    expected = template.dump(template.for_stage(given, "dev"))
    assert (dev / "sam.yaml").read_text() == expected


def _name_stage(given: dict[str, Any], stage: str) -> None:
    """Replace the stage in the tag that Chalice gives its functions."""
    for part in given["Resources"].values():
        tags = part.get("Properties", {}).get("Tags", {})
        if "aws-chalice" in tags:
            tags["aws-chalice"] = re.sub("stage=[a-z]+", f"stage={stage}", tags["aws-chalice"])


def test_a_dependency_without_a_hash_in_the_lock_is_not_packaged(tmp_path: Path) -> None:
    copy_sources(tmp_path)
    with ZipFile(tmp_path / "wheel-1.0-py3-none-any.whl", "w") as made:
        made.writestr("wheel-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: wheel\n")
    (tmp_path / "requirements.txt").write_text("wheel==1.0\n")
    finished = run_package(tmp_path, {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)})
    assert finished.returncode == 1
    assert "Hashes are required" in finished.stderr
    assert not (tmp_path / "made" / "deployment.zip").exists()


def test_a_dependency_without_a_wheel_is_not_built(tmp_path: Path) -> None:
    """A build would run code of packages that have no hash in the lock."""
    copy_sources(tmp_path)
    with tarfile.open(tmp_path / "sdist-1.0.tar.gz", "w:gz") as made:
        for name in ("PKG-INFO", "setup.py"):
            made.addfile(tarfile.TarInfo(f"sdist-1.0/{name}"), io.BytesIO())
    digest = hashlib.sha256((tmp_path / "sdist-1.0.tar.gz").read_bytes()).hexdigest()
    (tmp_path / "requirements.txt").write_text(f"sdist==1.0 --hash=sha256:{digest}\n")
    finished = run_package(tmp_path, {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)})
    assert finished.returncode == 1
    assert "Could not satisfy the requirement: sdist==1.0" in finished.stderr


def test_the_zip_is_small_and_has_the_app_the_runtime_of_chalice_and_the_requirements(
    packages: dict[str, Path],
) -> None:
    tops = {name.split("/")[0] for name in names(packages["prod"])}
    modules = {name for name in tops - {"__pycache__"} if not name.endswith(".dist-info")}
    assert modules == {"app.py", "chalice", "chalicelib"}
    assert (packages["prod"] / "deployment.zip").stat().st_size < MAX_BYTES


def test_the_bill_of_the_package_has_what_is_in_the_zip_and_in_the_runtime(
    packages: dict[str, Path],
) -> None:
    """Chalice copies its own runtime into the zip, without its metadata."""
    bill = json.loads((packages["prod"] / "deployment.cdx.json").read_text())
    listed = {(part["name"], part.get("version")) for part in bill["components"]}
    zipped = metadata.distributions(path=[str(packages["prod"] / "deployment.zip")])
    packed = {(canonicalize_name(part.name), part.version) for part in zipped}
    runtime = {("boto3", None), ("botocore", None), ("python", "3.13")}
    assert listed == packed | runtime | {("chalice", metadata.version("chalice"))}
    digest = hashlib.sha256((packages["prod"] / "deployment.zip").read_bytes()).hexdigest()
    assert bill["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_the_zip_has_the_sources_as_they_are(packages: dict[str, Path]) -> None:
    files = [template.ROOT / "app.py", *(template.ROOT / "chalicelib").rglob("*.*")]
    sources = {
        path.relative_to(template.ROOT).as_posix(): path.read_bytes()
        for path in files
        if path.suffix != ".pyc"
    }
    with ZipFile(packages["prod"] / "deployment.zip") as zipped:
        ours = [name for name in zipped.namelist() if name.startswith(("app.py", "chalicelib/"))]
        given = {name: zipped.read(name) for name in ours if not name.endswith(".pyc")}
    assert given == sources


def test_the_templates_have_no_findings(packages: dict[str, Path], tmp_path: Path) -> None:
    """All of prod is checked at once with the resources that differ in dev, under other names."""
    prod, dev = (read(packages[stage]) for stage in STAGES)
    _name_stage(dev, "prod")
    given, of_dev = prod.pop("Resources"), dev.pop("Resources")
    assert (dev, of_dev.keys()) == (prod, given.keys())
    others = {name: part for name, part in of_dev.items() if part != given[name]}
    assert "Table" in others
    written = tmp_path / "sam.yaml"
    written.write_text(template.dump({**prod, "Resources": {**given, **_renamed(others)}}))
    assert checkers.lint(written) == []


def _renamed(resources: dict[str, Any]) -> dict[str, Any]:
    """Return resources under other names, also where they refer to each other."""
    text = json.dumps(resources)
    for name in resources:
        text = text.replace(f'"{name}"', f'"{name}OfDev"')
    renamed: dict[str, Any] = json.loads(text)
    return renamed


def test_the_template_of_the_table_and_the_queues_alone_has_no_findings(tmp_path: Path) -> None:
    assert deploying.main(["resources", "--stage", "prod", "--out", str(tmp_path)]) == 0
    written = tmp_path / "resources.yaml"
    assert template.load(written) == template.extract_standalone(template.load())
    assert checkers.lint(written) == []
