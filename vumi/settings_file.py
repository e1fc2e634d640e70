"""The settings file: TOML, with the names of the environment variables."""

from __future__ import annotations

import difflib
import logging
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path

from chalicelib import telemetry
from chalicelib.settings import Form, Setting, SettingsError

FORMS: Mapping[Form, str] = {
    "text": "a string",
    "number": "a whole number without quotes",
    "switch": "true or false, without quotes",
    "list": 'a list of strings without commas, like ["a", "b"]',
    "numbers": "a list of whole numbers without quotes",
    "queues": 'a list of names, like ["a", "b"], or a table of URLs by name',
}
"""The value of each form of a setting."""


def read_texts(path: Path, known: Mapping[str, Setting]) -> dict[str, str]:
    """Return the settings of a file as texts, as the environment has them.

    Raises `SettingsError`. No message has a value, because it may be a secret.
    """
    try:
        with path.open("rb") as file:
            given = tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"SETTINGS: {path} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"SETTINGS: {path} is not valid TOML: {error}") from None
    return {name: _to_text(path, name, value, known) for name, value in given.items()}


def warn_of_readers(path: Path) -> None:
    """Log if users who are neither the owner nor in the group have rights to a file of secrets."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & stat.S_IRWXO:
        telemetry.event(
            logging.WARNING,
            "settings_file_not_private",
            file=str(path),
            mode=f"{mode:o}",
            fix=f"chmod o= {path}",
        )


def _to_text(path: Path, name: str, value: object, known: Mapping[str, Setting]) -> str:
    if name not in known:
        near = difflib.get_close_matches(name.upper(), known, 1)
        hint = f"did you mean {near[0]}?" if near else "docs/settings.md lists all settings"
        raise SettingsError(f"{path}: {name!r} is no setting of one machine; {hint}")
    form = known[name].form
    text = _text_of(form, value)
    if text is None or "\0" in text:
        raise SettingsError(f"{path}: {name} must be {FORMS[form]}")
    return text


def _text_of(form: Form, value: object) -> str | None:
    """Return the text of a value, or None if it does not have the form."""
    match form, value:
        case ("switch", bool()):
            return "on" if value else "off"
        case ("text", str()):
            return value
        case ("number", int()):
            return _join([value], int)
        case ("list" | "queues" | "numbers", list()):
            return _join(value, int if form == "numbers" else str)
        case ("queues", dict()):
            fits = all(isinstance(url, str) and "=" not in name for name, url in value.items())
            return _join(["=".join(pair) for pair in value.items()], str) if fits else None
    return None


def _join(values: list[object], kind: type) -> str | None:
    """Join the values of a list by commas, or return None if one of them has no place in it."""
    texts = [str(value) for value in values]
    fits = all(type(value) is kind for value in values) and "," not in "".join(texts)
    return ",".join(texts) if fits else None
