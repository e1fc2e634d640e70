"""The files of a release, as far as no other test makes them: `make release` makes all."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from chalicelib import VERSION
from deploy import bytecode, release
from deploy.package import PackagingError, run
from simulation.environment import ROOT
from tests.processes.programs import WHEELS


@pytest.fixture(scope="module")
def sdists(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the sdists of two clones of the commit with different rights."""
    work = tmp_path_factory.mktemp("release")
    tools = release.prepare_tools(ROOT, work / "tools", WHEELS)
    builds = ((work / name, umask) for name, umask in release.BUILDS)
    return [release.build_sdist(ROOT, folder, umask, tools) for folder, umask in builds]


def test_the_sdist_has_the_same_bytes_from_every_clone(sdists: list[Path]) -> None:
    one, other = sdists
    assert one.name == other.name == f"vu_mi-{VERSION}.tar.gz"
    assert one.read_bytes() == other.read_bytes()


def test_the_sdist_has_all_committed_files_their_time_and_no_user(sdists: list[Path]) -> None:
    clone = sdists[0].parents[1] / "sources"
    committed = run(["git", "ls-files"], clone, os.environ).split()
    time = int(run(["git", "log", "-1", "--format=%ct"], clone, os.environ))
    with tarfile.open(sdists[0]) as sdist:
        members = sdist.getmembers()
    names = {member.name.partition("/")[2] for member in members}
    assert names == {*committed, "PKG-INFO"}
    assert "vumi/storage/migrations/0001_initial.sql" in names
    assert {(member.uid, member.uname, member.gname) for member in members} == {(0, "", "")}
    assert {member.mtime for member in members} == {time}


def test_the_zip_has_every_handler_of_its_template_and_no_other(
    packages: dict[str, Path], tmp_path: Path
) -> None:
    python = bytecode.find_python(os.environ)
    if python is None:
        pytest.skip(f"no Python {bytecode.VERSION} on this machine")
    package, stack = (packages["prod"] / name for name in ("deployment.zip", "sam.yaml"))
    release.import_handlers(package, stack, python)
    other = tmp_path / "stack.yaml"
    other.write_text(stack.read_text().replace("get_views.handler", "gone.handler"))
    with pytest.raises(PackagingError, match=r"No module named 'chalicelib\.aws\.gone'"):
        release.import_handlers(package, other, python)
