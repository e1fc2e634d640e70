"""The secrets that the first start generates, and the settings that override them."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from chalicelib.events.webhooks import signing
from chalicelib.http import tokens
from chalicelib.settings import Settings, SettingsError
from vumi.secrets import FILE, prepare, renew_token

DIGEST = tokens.digest("the operator's own")
SECRET = signing.new_secret()
RIGHT = {"token_digest": DIGEST, "webhook_secret": SECRET}


@pytest.fixture(params=[0o000, 0o022, 0o077])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_umask")
def test_the_first_start_generates_secrets_that_only_the_owner_can_read(
    tmp_path: Path,
) -> None:
    prepared = prepare(Settings(), tmp_path / "data")
    path = tmp_path / "data" / FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*path.parent.iterdir()] == [path]
    assert prepared.settings.api_token_digests == {tokens.digest(prepared.new_token)}
    [secret] = prepared.settings.webhook_secrets
    assert json.loads(path.read_text()) == {
        "token_digest": tokens.digest(prepared.new_token),
        "webhook_secret": secret,
    }
    signing.Signer([secret])


def test_only_the_digest_of_the_token_is_stored(tmp_path: Path) -> None:
    prepared = prepare(Settings(), tmp_path)
    assert prepared.new_token
    assert prepared.new_token not in (tmp_path / FILE).read_text()


def test_a_later_start_has_no_new_token_and_the_same_settings(tmp_path: Path) -> None:
    first = prepare(Settings(), tmp_path)
    before = (tmp_path / FILE).read_bytes()
    second = prepare(Settings(), tmp_path)
    assert second == (first.settings, "")
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.usefixtures("_umask")
def test_a_renewed_token_replaces_the_old_one_and_the_secret_stays(
    tmp_path: Path,
) -> None:
    first = prepare(Settings(), tmp_path)
    token = renew_token(tmp_path)
    assert token != first.new_token
    renewed = prepare(Settings(), tmp_path)
    assert renewed.settings.api_token_digests == {tokens.digest(token)}
    assert renewed.settings.webhook_secrets == first.settings.webhook_secrets
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_before_the_first_start_there_is_no_token_to_renew(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        renew_token(tmp_path)
    path = tmp_path / "secrets.json"
    assert str(refused.value) == f"{path} does not exist; start vu-mi once to create it"
    assert [*tmp_path.iterdir()] == []


def test_a_malformed_file_is_not_renewed_because_its_secret_would_be_lost(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text("{}")
    with pytest.raises(SettingsError, match="must have a valid token_digest"):
        renew_token(tmp_path)
    assert path.read_text() == "{}"


def test_folders_above_are_made_too(tmp_path: Path) -> None:
    assert prepare(Settings(), tmp_path / "above" / "data").new_token


def test_each_folder_has_a_token_and_a_secret_of_its_own(tmp_path: Path) -> None:
    one, other = (prepare(Settings(), tmp_path / name) for name in ("a", "b"))
    assert one.new_token != other.new_token
    assert one.settings.webhook_secrets != other.settings.webhook_secrets


def test_nothing_is_generated_if_both_are_set(tmp_path: Path) -> None:
    settings = Settings(api_token_digests=frozenset({DIGEST}), webhook_secrets=(SECRET,))
    assert prepare(settings, tmp_path / "data") == (settings, "")
    assert not (tmp_path / "data").exists()


def test_settings_take_precedence_over_the_file(tmp_path: Path) -> None:
    """No token is printed if it is not valid."""
    own = prepare(Settings(api_token_digests=frozenset({DIGEST})), tmp_path / "a")
    assert own.new_token == ""
    assert own.settings.api_token_digests == {DIGEST}
    assert own.settings.webhook_secrets
    signed = prepare(Settings(webhook_secrets=(SECRET,)), tmp_path / "b")
    assert signed.settings.webhook_secrets == (SECRET,)
    assert signed.settings.api_token_digests == {tokens.digest(signed.new_token)}


def test_other_settings_stay_as_they_are(tmp_path: Path) -> None:
    assert prepare(Settings(view_window_seconds=7), tmp_path).settings.view_window_seconds == 7


def test_the_unfinished_file_of_a_killed_start_is_not_used(tmp_path: Path) -> None:
    left = (tmp_path / FILE).with_suffix(".new")
    left.write_text("half")
    left.chmod(0o644)
    assert prepare(Settings(), tmp_path).new_token
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
        b'"token_digest"',
        *(
            json.dumps(RIGHT | wrong).encode()
            for wrong in (
                {"token_digest": None},
                {"token_digest": 5},
                {"token_digest": ""},
                {"token_digest": DIGEST.upper()},
                {"token_digest": "the token itself"},
                {"webhook_secret": None},
                {"webhook_secret": "whsec_short"},
                {"webhook_secret": ["whsec_"]},
            )
        ),
        json.dumps({"token_digest": DIGEST}).encode(),
        json.dumps({"webhook_secret": SECRET}).encode(),
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
        f"{path} must have a valid token_digest and webhook_secret; correct it, or remove it to"
        " generate new ones"
    )
    assert path.read_bytes() == content


def test_a_right_file_is_read(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps(RIGHT))
    prepared = prepare(Settings(), tmp_path)
    assert prepared.settings.api_token_digests == {DIGEST}
    assert prepared.settings.webhook_secrets == (SECRET,)
    assert prepared.new_token == ""


def test_a_folder_that_can_not_be_created_raises_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        prepare(Settings(), tmp_path / "file" / "data")
