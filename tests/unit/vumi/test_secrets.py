"""The secrets of the first start: a webhook secret, which a setting overrides, and a token."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from chalicelib.events.webhooks import signing
from chalicelib.settings import Settings, SettingsError
from vumi.secrets import FILE, FIRST_TOKEN, prepare, show_token

SECRET = signing.new_secret()


@pytest.fixture(params=[0o000, 0o022, 0o077])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_umask")
def test_the_first_start_generates_a_secret_that_only_the_owner_can_read(tmp_path: Path) -> None:
    prepared = prepare(Settings(), tmp_path / "data")
    path = tmp_path / "data" / FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*path.parent.iterdir()] == [path]
    [secret] = prepared.webhook_secrets
    assert json.loads(path.read_text()) == {"webhook_secret": secret}
    signing.Signer([secret])


def test_a_later_start_has_the_same_settings(tmp_path: Path) -> None:
    first = prepare(Settings(), tmp_path)
    before = (tmp_path / FILE).read_bytes()
    assert prepare(Settings(), tmp_path) == first
    assert (tmp_path / FILE).read_bytes() == before


def test_folders_above_are_made_too(tmp_path: Path) -> None:
    assert prepare(Settings(), tmp_path / "above" / "data").webhook_secrets


def test_each_folder_has_a_secret_of_its_own(tmp_path: Path) -> None:
    one, other = (prepare(Settings(), tmp_path / name) for name in ("a", "b"))
    assert one.webhook_secrets != other.webhook_secrets


def test_nothing_is_generated_if_it_is_set(tmp_path: Path) -> None:
    settings = Settings(webhook_secrets=(SECRET,))
    assert prepare(settings, tmp_path / "data") == settings
    assert not (tmp_path / "data").exists()


def test_other_settings_stay_as_they_are(tmp_path: Path) -> None:
    assert prepare(Settings(view_window_seconds=7), tmp_path).view_window_seconds == 7


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


def test_a_right_file_is_read(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps({"webhook_secret": SECRET}))
    assert prepare(Settings(), tmp_path).webhook_secrets == (SECRET,)


def test_a_folder_that_can_not_be_created_raises_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        prepare(Settings(), tmp_path / "file" / "data")


TOKEN = "the-first-token"  # noqa: S105  an example


class Terminal(io.StringIO):
    """A stream that a person reads."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_the_token_and_no_file_has_it(tmp_path: Path) -> None:
    terminal = Terminal()
    show_token(TOKEN, terminal, tmp_path)
    assert terminal.getvalue() == (f"Token for events and wallets, shown this once: {TOKEN}\n")
    assert list(tmp_path.iterdir()) == []


def test_any_other_stream_names_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    stream = io.StringIO()
    show_token(TOKEN, stream, tmp_path)
    path = tmp_path / FIRST_TOKEN
    assert stream.getvalue() == (
        f"Token for events and wallets: in {path}; store it elsewhere, and remove the file\n"
    )
    assert path.read_text() == f"{TOKEN}\n"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("planted", ["link", "file"])
def test_a_planted_file_does_not_get_the_token(tmp_path: Path, planted: str) -> None:
    other = tmp_path / "other"
    other.touch(mode=0o666)
    if planted == "link":
        (tmp_path / FIRST_TOKEN).symlink_to(other)
    else:
        (tmp_path / FIRST_TOKEN).hardlink_to(other)
    show_token(TOKEN, io.StringIO(), tmp_path)
    assert other.read_text() == ""
    assert (tmp_path / FIRST_TOKEN).read_text() == f"{TOKEN}\n"
