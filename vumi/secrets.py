"""What one machine makes on its first start: a token that opens the token routes, and a secret.

Both lie in one file of the data folder, which nobody else may read: of the token the digest alone,
of the webhooks' secret all, since they are signed with it. Settings go before what the file has.
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
OWNERS_ALONE = 0o600


class Prepared(NamedTuple):
    """The settings with what they lacked, and the token, if it was made just now."""

    settings: Settings
    new_token: str = ""


def prepare(settings: Settings, folder: Path) -> Prepared:
    """Fill in what the settings leave out.

    Raises `OSError`, and `SettingsError` where the file is wrong.
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
    """Put a new token in the place of the one before; the secret stays.

    Raises `OSError`, and `SettingsError` where the file is wrong.
    """
    path = folder / FILE
    if not path.exists():
        raise SettingsError(f"there is no {path}; it is made on the first start")
    _, secret = _read(path)
    return _write(path, secret)


def _write(path: Path, secret: str) -> str:
    """Write the file whole or not at all, with a new token; returns that."""
    token = tokens.new_token()
    content = {"token_digest": tokens.digest(token), "webhook_secret": secret}
    begun = path.with_suffix(".new")
    begun.unlink(missing_ok=True)  # of a start that was killed, open to whom it may
    with os.fdopen(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNERS_ALONE), "w") as file:
        json.dump(content, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    begun.replace(path)
    return token


def _read(path: Path) -> tuple[str, str]:
    try:
        content = json.loads(path.read_text())
        digest, secret = content["token_digest"], content["webhook_secret"]
        signing.Signer([secret])
        right = DIGEST.fullmatch(digest)
    except (AttributeError, KeyError, TypeError, ValueError):
        right = None
    if right is None:
        raise SettingsError(
            f"{path} must have token_digest and webhook_secret; without the file new ones are made"
        )
    return digest, secret
