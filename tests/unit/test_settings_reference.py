"""The document of the settings: its table is that of the code, and its example is valid."""

from __future__ import annotations

import re
from pathlib import Path

from tests.settings_reference import REFERENCE, written
from vumi.given_settings import GivenSettings


def test_the_table_has_every_setting() -> None:
    """`python -m tests.settings_reference` writes it."""
    assert written() == REFERENCE.read_text(encoding="utf-8")


def test_the_example_of_a_settings_file_is_valid(tmp_path: Path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", REFERENCE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "settings.toml"
    path.write_text(example)
    settings = GivenSettings.read({"SETTINGS": str(path)}).parse()
    assert settings.unix_socket == Path("/run/vumi/vumi.sock")
    assert settings.product.ids == ("owner/*",)
    assert list(settings.product.event_queues) == ["orders"]
