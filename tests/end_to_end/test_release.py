"""The files of a release, as far as no other test makes them: `make release` makes all."""

from __future__ import annotations

import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from chalicelib.version import VERSION
from deploy import bytecode, release, release_checks
from deploy.release_checks import ReleaseError
from simulation.environment import ROOT
from tests.end_to_end.offline_pip import WHEELS


@dataclass(frozen=True)
class Sources:
    """Two clones of the commit with different rights, and what is built from each."""

    folders: tuple[Path, ...]
    tools: release.Tools


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    work = tmp_path_factory.mktemp("release")
    tools = release.prepare_tools(ROOT, work / "tools", WHEELS)
    folders = tuple(work / name for name, _ in release.BUILDS)
    for folder, (_, umask) in zip(folders, release.BUILDS, strict=True):
        release.build_distributions(ROOT, folder, umask, tools)
    return Sources(folders, tools)


def test_the_sdist_and_the_wheel_have_the_same_bytes_from_every_clone(sources: Sources) -> None:
    one, other = (folder / "out" for folder in sources.folders)
    names = {f"vu_mi-{VERSION}.tar.gz", f"vu_mi-{VERSION}-py3-none-any.whl"}
    assert {path.name for path in one.iterdir()} == names
    release_checks.compare(one, other)


def test_the_sdist_has_all_committed_files_and_names_no_user(sources: Sources) -> None:
    command = ["git", "ls-files"]
    committed = release_checks.run(command, sources.folders[0] / "sources", os.environ).split()
    with tarfile.open(sources.folders[0] / "out" / f"vu_mi-{VERSION}.tar.gz") as sdist:
        members = sdist.getmembers()
    names = {member.name.partition("/")[2] for member in members}
    assert names == {*committed, "PKG-INFO"}
    assert "vumi/storage/migrations/0001_initial.sql" in names
    assert {(member.uid, member.uname, member.gname) for member in members} == {(0, "", "")}


def test_an_installed_program_of_another_version_is_no_release(sources: Sources) -> None:
    [wheel] = (sources.folders[0] / "out").glob("*.whl")
    with pytest.raises(ReleaseError, match=f"is not version 9.9.9: it printed 'vumi {VERSION}"):
        release_checks.install(wheel, "9.9.9", sources.tools.environment)


def test_the_zip_has_every_handler_of_its_template(packages: dict[str, Path]) -> None:
    python = bytecode.find_python(os.environ)
    if python is None:
        pytest.skip(f"no Python {bytecode.VERSION} on this machine")
    package, stack = (packages["prod"] / name for name in ("deployment.zip", "sam.yaml"))
    release_checks.import_handlers(package, stack, python)


def test_a_handler_that_the_zip_does_not_have_is_found(
    packages: dict[str, Path], tmp_path: Path
) -> None:
    python = bytecode.find_python(os.environ)
    if python is None:
        pytest.skip(f"no Python {bytecode.VERSION} on this machine")
    stack = tmp_path / "stack.yaml"
    text = (packages["prod"] / "sam.yaml").read_text()
    stack.write_text(
        text.replace("chalicelib.aws.get_views.handler", "chalicelib.aws.gone.handler")
    )
    with pytest.raises(ReleaseError, match=r"No module named 'chalicelib\.aws\.gone'"):
        release_checks.import_handlers(packages["prod"] / "deployment.zip", stack, python)
