"""The documents of the settings: their tables are those of the code, and their example is valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.settings_reference import HEADERS, REFERENCE, written
from vumi.given_settings import GivenSettings


@pytest.mark.parametrize("document", HEADERS, ids=lambda path: path.name)
def test_the_table_has_every_setting(document: Path) -> None:
    """`python -m tests.settings_reference` writes it."""
    assert written(document) == document.read_text(encoding="utf-8")


def test_the_example_of_a_settings_file_is_valid(tmp_path: Path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", REFERENCE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "settings.toml"
    path.write_text(example)
    settings = GivenSettings.read({"SETTINGS": str(path)}).parse()
    assert settings.unix_socket == Path("/run/vumi/vumi.sock")
    assert settings.product.ids == ("owner/*",)
    assert list(settings.product.event_queues) == ["orders"]
