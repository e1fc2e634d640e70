"""The secret that signs webhooks, which the first start makes if no setting has one.

It is stored in a file of the data folder that only its owner can read.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from chalicelib.events import sender
from chalicelib.settings import Settings, SettingsError

FILE = "secrets.json"
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
        _write(path, sender.new_secret())
    return replace(settings, webhook_secrets=(_read(path),))


def _write(path: Path, secret: str) -> None:
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
        sender.Signer([secret])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SettingsError(
            f"{path} must have a valid webhook_secret; correct it, or remove it to generate a new"
            " one"
        ) from None
    return str(secret)
