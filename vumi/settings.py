"""The settings that only one machine has: where to listen, where the file lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chalicelib.settings import Settings, whole_number

RETENTION_SECONDS = 3_600
"""How long a view is kept by default: no message comes again after it succeeded."""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """`product` holds the settings that every engine has."""

    host: str
    port: int
    folder: Path
    product: Settings

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> LocalSettings:
        """Read HOST, PORT, DATA and the product's settings. Raises `SettingsError`."""
        return cls(
            host=environment.get("HOST") or "127.0.0.1",
            port=whole_number(environment, "PORT", 8000, 0, 65_535),
            folder=Path(environment.get("DATA") or "data"),
            product=Settings.from_environment(environment, retention_seconds=RETENTION_SECONDS),
        )
