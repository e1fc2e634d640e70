"""The secrets of the first start: the webhook secret, and the token of an operator.

The webhook secret is stored in a file of the data folder that only its owner can read, because it
signs webhooks. The setting takes precedence over the file. The token is shown to its operator and
to nobody else.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from chalicelib.events.webhooks import signing
from chalicelib.settings import Settings, SettingsError
from vumi.storage.private_files import new_file, open_folder

FILE = "secrets.json"
FIRST_TOKEN = "first-token"  # noqa: S105  the name of a file
FILE_MODE = 0o600


def prepare(settings: Settings, folder: Path) -> Settings:
    """Complete the settings from the file.

    Raises `OSError`, and `SettingsError` if the file is malformed.
    """
    if settings.webhook_secrets:
        return settings
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    if not path.exists():
        _write(path, signing.new_secret())
    return replace(settings, webhook_secrets=(_read(path),))


def show_token(token: str, stream: TextIO, folder: Path) -> None:
    """Print the token to a terminal; otherwise write it to a file, because a stream may be a log.

    Raises `OSError`.
    """
    if stream.isatty():
        shown = f", shown this once: {token}"
    else:
        path = folder / FIRST_TOKEN
        path.unlink(missing_ok=True)
        with open_folder(folder) as opened, os.fdopen(new_file(FIRST_TOKEN, opened), "w") as file:
            file.write(f"{token}\n")
        shown = f": in {path}; store it elsewhere, and remove the file"
    print(f"Token for events and wallets{shown}", file=stream, flush=True)


def _write(path: Path, secret: str) -> None:
    """Write the file atomically."""
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)  # left by a killed start, with an unknown mode
    with os.fdopen(
        os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "w"
    ) as file:
        json.dump({"webhook_secret": secret}, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def _read(path: Path) -> str:
    """Return the secret in the file. Raises `SettingsError` if it has none."""
    try:
        secret = json.loads(path.read_text())["webhook_secret"]
        signing.Signer([secret])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SettingsError(
            f"{path} must have a valid webhook_secret; correct it, or remove it to generate a new"
            " one"
        ) from None
    return str(secret)
