"""The table of settings in the documents: `python -m tests.settings_reference` writes it.

It leaves out the names of resources, which a stack on AWS sets itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chalicelib.settings import Setting, Settings, settings_of
from vumi.settings import DEFAULTS, StandaloneSettings

REFERENCE = Path(__file__).parents[1] / "docs" / "settings.md"
HEADER = "| name | where | default | valid values | meaning |"
FORMS = {
    "text": "string",
    "number": "integer",
    "switch": "boolean",
    "list": "list of strings",
    "numbers": "list of integers",
    "queues": "list of names, or table of URLs",
}


def written() -> str:
    """Return the document with its table as the settings are."""
    head, _, rest = REFERENCE.read_text(encoding="utf-8").partition(HEADER + "\n")
    lines = rest.splitlines(keepends=True)
    after = next(at for at, line in enumerate(lines) if not line.startswith("|"))
    table = "\n".join([HEADER, *_rows()])
    return f"{head}{table}\n{''.join(lines[after:])}"


def _rows() -> Iterator[str]:
    yield "|" + "---|" * 5
    for kind in (StandaloneSettings, Settings):
        for setting in (one for _, one in settings_of(kind) if not one.is_for_aws):
            where = "one machine" if kind is StandaloneSettings else ""
            values = f"{FORMS[setting.form]}: {setting.valid}"
            cells = [f"`{setting.name}`", where, _default(setting), values, setting.meaning]
            escaped = [text.replace("|", r"\|") for text in cells]
            yield "|".join(["", *(f" {text} " if text else " " for text in escaped), ""])


def _default(setting: Setting) -> str:
    other = DEFAULTS.get(setting.name)
    default = f"`{setting.default}`" if setting.default else ""
    return f"{default}, on one machine `{other}`" if other else default


if __name__ == "__main__":
    REFERENCE.write_text(written(), encoding="utf-8")
