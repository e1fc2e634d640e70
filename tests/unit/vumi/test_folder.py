"""The data folder: its place, its rights, its lock, and its secret of webhooks."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from chalicelib.events import sender
from chalicelib.settings import Settings, SettingsError
from tests.unit.vumi.operate.backups.test_making import STRANGER, needs_root
from vumi.folder import (
    ENTRIES,
    SECRETS,
    default_folder,
    prepare_secret,
    refuse_foreign,
    refuse_foreign_entries,
)
from vumi.operate.check.check import check_rights
from vumi.operate.check.items import Finding, note, ok, wrong
from vumi.storage.database import FILE
from vumi.storage.private_files import UnsafeFileError
from vumi.tokens import FIRST_FILE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / FILE).touch()
    return folder


HOME = "/home/octocat"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HOME": HOME}, "/home/octocat/.local/share/vu-mi"),
        ({"HOME": HOME, "XDG_DATA_HOME": "/data"}, "/data/vu-mi"),
        ({"HOME": HOME, "XDG_DATA_HOME": "not/absolute"}, "/home/octocat/.local/share/vu-mi"),
        ({}, "data"),
    ],
)
def test_a_user_has_one_folder_wherever_they_start(
    environment: dict[str, str],
    expected: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unless the current folder has the folder `data` with a file, which goes on being used."""
    monkeypatch.chdir(tmp_path)
    assert default_folder(environment) == Path("data")
    (folder / FILE).unlink()
    assert default_folder(environment) == Path(expected)


def check(folder: Path) -> list[Finding]:
    return list(check_rights(folder))


def test_a_private_folder_is_correct(folder: Path) -> None:
    assert check(folder) == [ok(f"no other user has rights to {folder}/")]
    refuse_foreign(folder)


@pytest.mark.parametrize(
    ("mode", "report"),
    [
        *((mode, note) for mode in ("755", "750", "710", "701", "770", "2770")),
        *((mode, wrong) for mode in ("777", "1777", "702")),
    ],
)
def test_rights_of_others_are_reported_with_the_fix(
    folder: Path, mode: str, report: Callable[[str], Finding]
) -> None:
    """A folder that everybody can write is wrong."""
    folder.chmod(int(mode, 8))
    said = f"other users have rights to {folder}/ (mode {mode}): run `chmod -R go= {folder}`"
    assert check(folder) == [report(said)]


def link(path: Path) -> str:
    path.symlink_to("/no/such")
    return f"{path} is a symbolic link: replace it by what it points to"


def link_to_a_device(path: Path) -> str:
    path.symlink_to("/dev/null")
    return f"{path} is a symbolic link: replace it by what it points to"


def fifo(path: Path) -> str:
    os.mkfifo(path)
    return f"{path} is not a regular file: remove it"


def file_of_another_user(path: Path) -> str:
    path.touch()
    os.chown(path, STRANGER, STRANGER)
    return (
        f"{path} belongs to another user (id {STRANGER}): remove it, or give it to the user that"
        " runs vu-mi by `chown`"
    )


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize(
    "plant",
    [link, link_to_a_device, fifo, pytest.param(file_of_another_user, marks=needs_root)],
)
def test_what_is_no_file_of_the_user_is_wrong_and_refused(
    folder: Path, name: str, plant: Callable[[Path], str]
) -> None:
    (folder / name).unlink(missing_ok=True)
    said = plant(folder / name)
    assert check(folder)[0] == wrong(said)
    for refuse in (refuse_foreign, refuse_foreign_entries):
        with pytest.raises(UnsafeFileError) as refused:
            refuse(folder)
        assert str(refused.value) == said


@needs_root
def test_root_may_work_on_the_folder_of_another_user_but_not_serve_it(folder: Path) -> None:
    """A command of root finds the files of the folder's owner correct."""
    for path in (folder, folder / FILE):
        os.chown(path, STRANGER, STRANGER)
    assert check(folder) == [ok(f"no other user has rights to {folder}/")]
    refuse_foreign_entries(folder)
    with pytest.raises(UnsafeFileError) as refused:
        refuse_foreign(folder)
    assert str(refused.value) == (
        f"{folder}/ belongs to another user (id {STRANGER}): run vu-mi as that user, or set DATA"
        " to a folder of your own"
    )


def test_of_other_files_in_the_folder_the_token_of_the_first_start_is_noted(folder: Path) -> None:
    (folder / "lost+found").symlink_to("/")
    (path := folder / FIRST_FILE).touch()
    assert check(folder) == [
        ok(f"no other user has rights to {folder}/"),
        note(f"{path} has the token of the first start: store it elsewhere, and remove it"),
    ]


SECRET = sender.new_secret()


@pytest.fixture(params=[0o000, 0o022, 0o077])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_umask")
def test_the_first_start_generates_a_secret_that_only_the_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "above" / "data" / SECRETS
    prepared = prepare_secret(Settings(view_window_seconds=7), path.parent)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*path.parent.iterdir()] == [path]
    [secret] = prepared.webhook_secrets
    assert json.loads(path.read_text()) == {"webhook_secret": secret}
    sender.Signer([secret])
    assert prepared == Settings(view_window_seconds=7, webhook_secrets=(secret,))


def test_a_later_start_has_the_same_secret_and_another_folder_another(tmp_path: Path) -> None:
    first = prepare_secret(Settings(), tmp_path)
    before = (tmp_path / SECRETS).read_bytes()
    assert prepare_secret(Settings(), tmp_path) == first
    assert (tmp_path / SECRETS).read_bytes() == before
    assert prepare_secret(Settings(), tmp_path / "other").webhook_secrets != first.webhook_secrets


def test_nothing_is_generated_if_it_is_set(tmp_path: Path) -> None:
    settings = Settings(webhook_secrets=(SECRET,))
    assert prepare_secret(settings, tmp_path / "data") == settings
    assert not (tmp_path / "data").exists()


def test_the_unfinished_file_of_a_killed_start_is_not_used(tmp_path: Path) -> None:
    left = (tmp_path / SECRETS).with_suffix(".new")
    left.write_text("half")
    left.chmod(0o644)
    assert prepare_secret(Settings(), tmp_path).webhook_secrets
    assert stat.S_IMODE((tmp_path / SECRETS).stat().st_mode) == 0o600
    assert not left.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'"webhook_secret"',
        *(
            json.dumps({"webhook_secret": wrong}).encode()
            for wrong in (None, 5, "whsec_short", ["whsec_"])
        ),
    ],
    ids=count(),
)
def test_a_malformed_file_is_reported_with_the_fix_and_not_changed(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / SECRETS
    path.write_bytes(content)
    with pytest.raises(SettingsError) as refusal:
        prepare_secret(Settings(), tmp_path)
    assert str(refusal.value) == (
        f"{path} must have a valid webhook_secret; correct it, or remove it to generate a new one"
    )
    assert path.read_bytes() == content
