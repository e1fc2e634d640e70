"""The API token and the webhook secret, which the first start generates.

They are stored in a file of the data folder that only its owner can read: the secret itself,
because it signs webhooks, but only a digest of the token. Settings take precedence over the file.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from chalicelib.events.webhooks import signing
from chalicelib.http import tokens
from chalicelib.settings import DIGEST, Settings, SettingsError

FILE = "secrets.json"
FILE_MODE = 0o600


class Prepared(NamedTuple):
    """The completed settings, and the token if it was generated just now."""

    settings: Settings
    new_token: str = ""


def prepare(settings: Settings, folder: Path) -> Prepared:
    """Complete the settings from the file.

    Raises `OSError`, and `SettingsError` if the file is malformed.
    """
    if settings.api_token_digests and settings.webhook_secrets:
        return Prepared(settings)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    token = "" if path.exists() else _write(path, signing.new_secret())
    digest, secret = _read(path)
    filled = replace(
        settings,
        api_token_digests=settings.api_token_digests or frozenset({digest}),
        webhook_secrets=settings.webhook_secrets or (secret,),
    )
    return Prepared(filled, "" if settings.api_token_digests else token)


def renew_token(folder: Path) -> str:
    """Replace the token in the file and keep the secret.

    Raises `OSError`, and `SettingsError` if the file is malformed.
    """
    path = folder / FILE
    if not path.exists():
        raise SettingsError(f"{path} does not exist; start vu-mi once to create it")
    _, secret = _read(path)
    return _write(path, secret)


def _write(path: Path, secret: str) -> str:
    """Write the file atomically with a new token; return the token."""
    token = tokens.new_token()
    content = {"token_digest": tokens.digest(token), "webhook_secret": secret}
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)  # left by a killed start, with an unknown mode
    with os.fdopen(
        os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "w"
    ) as file:
        json.dump(content, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    return token


def _read(path: Path) -> tuple[str, str]:
    try:
        content = json.loads(path.read_text())
        digest, secret = content["token_digest"], content["webhook_secret"]
        signing.Signer([secret])
        is_valid = DIGEST.fullmatch(digest) is not None
    except (AttributeError, KeyError, TypeError, ValueError):
        is_valid = False
    if not is_valid:
        raise SettingsError(
            f"{path} must have a valid token_digest and webhook_secret; correct it, or remove it to"
            " generate new ones"
        )
    return digest, secret
