"""The OpenAPI description is valid, says of each route what the code does, and makes a client."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chalicelib import description
from chalicelib.api import TABLE
from chalicelib.badges.options import NO_CONTROL_CHARACTERS
from chalicelib.counting import ids
from chalicelib.http.dispatch import dispatch
from chalicelib.http.errors import ClientError, MethodNotAllowedError
from chalicelib.http.guards import SwitchedOffError
from chalicelib.http.messages import Request
from chalicelib.http.query import check_characters
from chalicelib.settings import Settings
from chalicelib.wallets import wallet
from simulation.resources import GivenResources
from tests import checkers

ROOT = Path(__file__).parents[2]
SERVER_CODES = {"too_large", "too_many_requests", "internal", "unavailable"}
"""Codes of errors that no feature raises."""
GENERATOR = """
content_type_overrides:
  image/svg+xml: application/octet-stream
  image/png: application/octet-stream
  text/plain: application/octet-stream
"""
"""The types that openapi-python-client passes on as they are."""
DOCUMENT: dict[str, Any] = json.loads(description.text(TABLE.routes))


def find(name: str, part: Any) -> Iterator[Any]:
    """Return every value under this key, however deep."""
    if isinstance(part, dict):
        yield from (part[name],) if name in part else ()
    for inner in part.values() if isinstance(part, dict) else part if type(part) is list else ():
        yield from find(name, inner)


def test_every_page_may_read_it_and_a_cache_keeps_it_for_minutes() -> None:
    response = dispatch(TABLE, Request("GET", "/openapi.json"), GivenResources())
    assert response.status == 200
    assert json.loads(response.body) == DOCUMENT
    assert response.headers == {
        "Content-Type": "application/json",
        "Cache-Control": "public, max-age=300",
        "Access-Control-Allow-Origin": "*",
        "X-Content-Type-Options": "nosniff",
    }


def test_it_is_generated_at_the_first_request() -> None:
    """Lambda pays for imports at each cold start, which mostly is for a badge."""
    program = (
        "import sys\n"
        "from chalicelib import api\n"
        "from simulation.resources import GivenResources\n"
        "late = [name for name in sys.modules if name.endswith(('description', 'openapi'))]\n"
        "assert not late\n"
        "first = api.get_description(None, GivenResources()).body\n"
        "assert api.get_description(None, GivenResources()).body is first\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)  # noqa: S603  our own


def test_it_is_valid() -> None:
    assert checkers.find_errors_of_description(DOCUMENT) == []


def test_a_client_is_generated_without_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.yaml").write_text(GENERATOR)
    (tmp_path / "openapi.json").write_text(json.dumps(DOCUMENT))
    command = "generate --meta none --config config.yaml --path openapi.json --output-path vu_mi"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # for its ruff
    made = subprocess.run(  # noqa: S603  a tool of ours
        [sys.executable, "-m", "openapi_python_client", *command.split()],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stderr) == (0, "")
    assert "warning" not in made.stdout.lower()
    monkeypatch.syspath_prepend(tmp_path)
    get_views = importlib.import_module("vu_mi.api.badge.get_views")
    assert callable(get_views.sync)


def test_each_handler_must_be_described() -> None:
    def get_new(_: object, __: object) -> None:
        """Answer nothing."""

    new = replace(TABLE.routes[0], path="/new", handler=get_new)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no description of getNew"):
        description.document((*TABLE.routes, new))


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        (Settings(wallets=False), {"wallet"}),
        (Settings(events=False), {"event", "timer", "echo"}),
        (Settings(events=False, wallets=False), {"wallet", "event", "timer", "echo"}),
    ],
)
def test_a_feature_that_is_switched_off_is_not_described(
    settings: Settings, left_out: set[str]
) -> None:
    resources = GivenResources(settings=settings)
    document = json.loads(dispatch(TABLE, Request("GET", "/openapi.json"), resources).body)
    assert checkers.find_errors_of_description(document) == []
    gone = DOCUMENT["paths"].keys() - document["paths"].keys()
    assert gone == {
        path for path in DOCUMENT["paths"] if any(word in path.lower() for word in left_out)
    }
    used = {tag for tags in find("tags", document["paths"]) for tag in tags}
    assert {tag["name"] for tag in document["tags"]} == used


def test_every_example_conforms_to_its_schema() -> None:
    parts = [*DOCUMENT["components"]["parameters"].values()]
    parts += find("application/json", [DOCUMENT["paths"], DOCUMENT["components"]["responses"]])
    checked = 0
    for part in parts:
        schema = part["schema"] | {"components": DOCUMENT["components"]}
        named = [one["value"] for one in part.get("examples", {}).values()]
        for example in (*named, *([part["example"]] if "example" in part else [])):
            checkers.schema_validator(schema).validate(example)
            checked += 1
    assert checked > 20


def test_every_code_of_an_error_is_described_and_no_other() -> None:
    codes = [*find("code", DOCUMENT["components"]["responses"])]
    described = {code for schema in codes for code in schema.get("enum") or [schema["const"]]}
    of_no_operation: set[type[ClientError]] = {MethodNotAllowedError, SwitchedOffError}
    raised = {error.code for error in {*subclasses(ClientError)} - of_no_operation}
    assert all(f"`{error.code}`" in DOCUMENT["info"]["description"] for error in of_no_operation)
    refused = {*map(str, wallet.PostingOutcome)} - {str(wallet.PostingOutcome.DONE)}
    assert described == raised | refused | SERVER_CODES


def subclasses(kind: type[ClientError]) -> Iterator[type[ClientError]]:
    """Return all classes of the code that derive from this one."""
    for derived in kind.__subclasses__():
        if derived.__module__.startswith("chalicelib."):
            yield derived
            yield from subclasses(derived)


def test_the_patterns_of_an_id_and_a_label_refuse_what_the_code_refuses() -> None:
    """Above U+FFFF they refuse nothing. Newer versions of Unicode may have more characters."""
    of_id, of_label = re.compile(ids.CHARACTERS), re.compile(NO_CONTROL_CHARACTERS)
    assert of_id.fullmatch("caf\u00e9 \u65e5\u672c \U0001f440")
    for character in map(chr, range(0xD800)):
        is_shown = can_be_shown(character)
        assert (of_label.fullmatch(character) is not None) == is_shown
        is_allowed = is_shown and unicodedata.category(character) != ids.FORMAT
        assert (of_id.fullmatch(character) is not None) == is_allowed


def can_be_shown(character: str) -> bool:
    try:
        check_characters(character, "it")
    except ValueError:
        return False
    return True
