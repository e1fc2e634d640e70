"""The secret of webhooks: the first start makes it, and a setting takes precedence over it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from chalicelib.events import sender
from chalicelib.settings import Settings, SettingsError
from vumi.webhook_secret import FILE, prepare

SECRET = sender.new_secret()


@pytest.fixture(params=[0o000, 0o022, 0o077])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_umask")
def test_the_first_start_generates_a_secret_that_only_the_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "above" / "data" / FILE
    prepared = prepare(Settings(view_window_seconds=7), path.parent)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*path.parent.iterdir()] == [path]
    [secret] = prepared.webhook_secrets
    assert json.loads(path.read_text()) == {"webhook_secret": secret}
    sender.Signer([secret])
    assert prepared == Settings(view_window_seconds=7, webhook_secrets=(secret,))


def test_a_later_start_has_the_same_secret_and_another_folder_another(tmp_path: Path) -> None:
    first = prepare(Settings(), tmp_path)
    before = (tmp_path / FILE).read_bytes()
    assert prepare(Settings(), tmp_path) == first
    assert (tmp_path / FILE).read_bytes() == before
    assert prepare(Settings(), tmp_path / "other").webhook_secrets != first.webhook_secrets


def test_nothing_is_generated_if_it_is_set(tmp_path: Path) -> None:
    settings = Settings(webhook_secrets=(SECRET,))
    assert prepare(settings, tmp_path / "data") == settings
    assert not (tmp_path / "data").exists()


def test_the_unfinished_file_of_a_killed_start_is_not_used(tmp_path: Path) -> None:
    left = (tmp_path / FILE).with_suffix(".new")
    left.write_text("half")
    left.chmod(0o644)
    assert prepare(Settings(), tmp_path).webhook_secrets
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
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
    path = tmp_path / FILE
    path.write_bytes(content)
    with pytest.raises(SettingsError) as refusal:
        prepare(Settings(), tmp_path)
    assert str(refusal.value) == (
        f"{path} must have a valid webhook_secret; correct it, or remove it to generate a new one"
    )
    assert path.read_bytes() == content


def test_a_folder_that_can_not_be_created_raises_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        prepare(Settings(), tmp_path / "file" / "data")
