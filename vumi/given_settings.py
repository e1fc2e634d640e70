"""The settings that an operator gave, with the place that each comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from chalicelib.lazy import lazy
from chalicelib.settings import SettingsError
from vumi.settings import StandaloneSettings, default_of, known_settings

if TYPE_CHECKING:
    from chalicelib.events.webhooks import sender
    from chalicelib.owners import places
    from vumi import settings_file
else:
    sender = lazy("chalicelib.events.webhooks.sender")
    places = lazy("chalicelib.owners.places")
    settings_file = lazy("vumi.settings_file")

SETTINGS = "SETTINGS"
"""The setting that names the file."""
MASK = "***"
NAME = re.compile("[A-Z_]+")


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
        return cls(environment, path, settings_file.read_texts(Path(path), known))

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
        """Yield each setting of one machine."""
        for name, setting in known_settings().items():
            text = self.environment.get(name) or self.of_file.get(name) or default_of(setting)
            shown = MASK if setting.is_secret and text else text
            yield SettingInForce(name, shown, self._source(name))

    def warn_of_readers(self) -> None:
        """Log if the file has secrets that users of no right to them can read."""
        known = known_settings()
        if any(known[name].is_secret for name in self.of_file):
            settings_file.warn_of_readers(Path(self.path))

    def _source(self, name: str) -> str:
        if self.environment.get(name):
            return "environment"
        return self.path if self.of_file.get(name) else "default"
