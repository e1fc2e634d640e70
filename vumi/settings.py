"""The settings of one machine: the address to listen on and the data folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chalicelib.settings import Settings, whole_number

RETENTION_SECONDS = 3_600
"""The default retention of a view: no message is delivered again after it was handled."""


@dataclass(frozen=True, slots=True)
class StandaloneSettings:
    """The settings of one machine; `product` has those of every engine."""

    host: str
    port: int
    folder: Path
    product: Settings

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> StandaloneSettings:
        """Read HOST, PORT, DATA and the settings of every engine. Raises `SettingsError`."""
        return cls(
            host=environment.get("HOST") or "127.0.0.1",
            port=whole_number(environment, "PORT", 8000, 0, 65_535),
            folder=Path(environment.get("DATA") or "data"),
            product=Settings.from_environment(environment, retention_seconds=RETENTION_SECONDS),
        )
