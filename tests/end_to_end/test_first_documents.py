"""The calls of the quickstart, of events.md and of wallets.md, in their order, by curl."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from chalicelib.http import tokens
from simulation.environment import ROOT
from tests import readme
from tests.end_to_end.documented_calls import DEFAULT, curl, replaced, to_pattern
from tests.end_to_end.server import Server, running
from tests.readme import COMMENT, Command

DOCUMENTS = ("quickstart.md", "events.md", "wallets.md")
WALLET = "01M7Z…"
TOKEN = tokens.new_token()

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"WEBHOOK_ALLOW": "127.0.0.0/8", "API_TOKEN_DIGESTS": tokens.digest(TOKEN)}
    with running(tmp_path_factory.mktemp("data"), **settings) as server:
        yield server


@pytest.fixture(scope="module")
def known(server: Server) -> dict[str, str]:
    """Return the values of this test by those of the documents."""
    user = json.dumps({"user_id": "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d12"})
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    return {
        DEFAULT: f"{server.host}:{server.port}",
        "TOKEN": TOKEN,
        "2026-12-24T18:00:00": f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%S}",
        "https://example.com/hook": "http://127.0.0.1:9/hook",
        "01M80…": json.loads(server.request("/api/v1/wallets", "POST", user, bearer)[2])["id"],
    }


def calls(text: str) -> Iterator[tuple[Command, list[str] | None]]:
    """Yield the calls of a document: with their answers, or of a script without them."""
    yield from ((call, answer) for call, answer in readme.transcripts(text) if call.kind == "curl")
    for fence in readme.fences(text):
        if fence.info == "sh":
            lines = COMMENT.sub("", fence.content).splitlines()
            yield from ((readme.parse(line), None) for line in lines if line.startswith("curl"))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_calls_and_the_lines_of_a_document_are_answered_as_it_shows(
    document: str, server: Server, known: dict[str, str]
) -> None:
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    for call, expected in calls(text):
        answer = curl(call, known)
        if expected is not None:
            assert re.fullmatch(to_pattern(replaced("\n".join(expected), known)), answer.strip())
        if re.match(r'{"id":"01', answer):
            known[WALLET] = json.loads(answer)["id"]
    for line in readme.markdown_lines(text):
        [path] = re.findall(r"https://views\.example\.com(/[^)]+)\)$", line) or [""]
        assert line in readme.markdown_lines() or server.request(path)[2].startswith(b"<svg")


def test_the_quickstart_starts_as_the_readme_does() -> None:
    text = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    assert next(readme.transcripts(text)) == next(readme.transcripts())
