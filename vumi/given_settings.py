"""The settings that an operator gave, with the place that each comes from.

A settings file is TOML, with the names of the environment variables.
"""

from __future__ import annotations

import logging
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from chalicelib import telemetry
from chalicelib.lazy import lazy
from chalicelib.settings import Form, Setting, SettingsError
from vumi.settings import StandaloneSettings, defaults_in, known_settings

if TYPE_CHECKING:
    import difflib
    import tomllib

    from chalicelib.events import sender
    from chalicelib.owners import places
else:
    difflib, tomllib = lazy("difflib"), lazy("tomllib")
    sender = lazy("chalicelib.events.sender")
    places = lazy("chalicelib.owners.places")

SETTINGS = "SETTINGS"
"""The setting that names the file."""
DEFAULT = "default"
"""The source of a setting that nobody gave."""
MASK = "***"
NAME = re.compile("[A-Z_]+")
SHORT_NAME = 3
NAMES_ALIKE = 0.75
"""The likeness from which a name is reported: PROT is like PORT, and HOSTNAME not like HOST."""
FORMS: Mapping[Form, str] = {
    "text": "a string",
    "number": "a whole number without quotes",
    "switch": "true or false, without quotes",
    "list": 'a list of strings without commas, like ["a", "b"]',
    "numbers": "a list of whole numbers without quotes",
    "queues": 'a list of names, like ["a", "b"], or a table of URLs by name',
}
"""The value of each form of a setting."""


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """A setting with the text in force. A secret is masked.

    `source` is `default`, `environment` or the path of the file.
    """

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """The settings of the environment, and those of a file, which they take precedence over."""

    environment: Mapping[str, str]
    path: str = ""
    of_file: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> GivenSettings:
        """Read the file that the environment names, if any. Raises `SettingsError`."""
        path = environment.get(SETTINGS, "")
        if not path:
            return cls(environment)
        known = known_settings()
        del known[SETTINGS]
        return cls(environment, path, _read_file(Path(path), known))

    def parse(self) -> StandaloneSettings:
        """Return the settings in force. Raises `SettingsError`."""
        given = {name: text for name, text in self.environment.items() if text}
        try:
            settings = StandaloneSettings.from_environment({**self.of_file, **given})
            if settings.product.webhook_secrets or settings.product.webhook_allow:
                sender.sender_of(settings.product)
            if settings.product.proofs:
                places.parse(settings.product.proofs)
        except SettingsError as error:
            named = NAME.match(str(error))
            if self.path and named and self._source(named[0]) == self.path:
                raise SettingsError(f"{self.path}: {error}") from None
            raise
        return settings

    def in_force(self) -> Iterator[SettingInForce]:
        defaults = defaults_in(self.environment)
        for name, setting in known_settings().items():
            default = defaults.get(name, setting.default)
            text = self.environment.get(name) or self.of_file.get(name) or default
            shown = MASK if setting.is_secret and text else text
            yield SettingInForce(name, shown, self._source(name))

    def warn(self) -> None:
        """Log a name that is nearly a setting's, and a file of secrets that others may read."""
        known = known_settings()
        for name in sorted(self.environment.keys() - known.keys()):
            if len(name) > SHORT_NAME and (near := _near(name, known, NAMES_ALIKE)):
                telemetry.event(
                    logging.WARNING, "setting_unknown", name=name, fix=f"did you mean {near}?"
                )
        self._warn_of_readers()

    def _warn_of_readers(self) -> None:
        """Log if the file has secrets, and rights for users who are not in its group."""
        known = known_settings()
        if not any(known[name].is_secret for name in self.of_file):
            return
        mode = stat.S_IMODE(Path(self.path).stat().st_mode)
        if mode & stat.S_IRWXO:
            telemetry.event(
                logging.WARNING,
                "settings_file_not_private",
                file=self.path,
                mode=f"{mode:o}",
                fix=f"chmod o= {self.path}",
            )

    def _source(self, name: str) -> str:
        if self.environment.get(name):
            return "environment"
        return self.path if self.of_file.get(name) else DEFAULT


def _read_file(path: Path, known: Mapping[str, Setting]) -> dict[str, str]:
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


def _near(name: str, known: Mapping[str, Setting], alike: float = 0.6) -> str:
    """Return the known name that is most like another one, or an empty text."""
    return next(iter(difflib.get_close_matches(name, known, 1, alike)), "")


def _to_text(path: Path, name: str, value: object, known: Mapping[str, Setting]) -> str:
    if name not in known:
        near = _near(name.upper(), known)
        hint = f"did you mean {near}?" if near else "docs/settings.md lists all settings"
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
