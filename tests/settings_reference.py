"""The tables of all settings in the documents: `python -m tests.settings_reference` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chalicelib.settings import Setting, Settings, settings_of
from vumi.settings import DEFAULTS, StandaloneSettings

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
REFERENCE = ROOT / "docs" / "settings.md"
HEADERS = {
    README: "| name | where | default | meaning |",
    REFERENCE: "| name | where | default | valid values | meaning |",
}
FORMS = {
    "text": "string",
    "number": "integer",
    "switch": "boolean",
    "list": "list of strings",
    "numbers": "list of integers",
    "queues": "list of names, or table of URLs",
}


def written(path: Path) -> str:
    """Return a document with its table as the settings are."""
    head, _, rest = path.read_text(encoding="utf-8").partition(HEADERS[path] + "\n")
    lines = rest.splitlines(keepends=True)
    after = next(at for at, line in enumerate(lines) if not line.startswith("|"))
    table = "\n".join([HEADERS[path], *_rows(with_values=path == REFERENCE)])
    return f"{head}{table}\n{''.join(lines[after:])}"


def _rows(*, with_values: bool) -> Iterator[str]:
    yield "|" + "---|" * (5 if with_values else 4)
    for kind in (StandaloneSettings, Settings):
        for _, setting in settings_of(kind):
            where = "AWS" if setting.is_for_aws else ""
            if kind is StandaloneSettings:
                where = "one machine"
            values = [f"{FORMS[setting.form]}: {setting.valid}"] if with_values else []
            meaning = setting.meaning.replace("](docs/", "](") if with_values else setting.meaning
            cells = [f"`{setting.name}`", where, _default(setting), *values, meaning]
            yield "|".join(["", *map(_cell, cells), ""])


def _cell(text: str) -> str:
    return f" {text.replace('|', chr(92) + '|')} " if text else " "


def _default(setting: Setting) -> str:
    other = DEFAULTS.get(setting.name)
    default = f"`{setting.default}`" if setting.default else ""
    return f"{default}, on one machine `{other}`" if other else default


if __name__ == "__main__":
    for document in HEADERS:
        document.write_text(written(document), encoding="utf-8")
