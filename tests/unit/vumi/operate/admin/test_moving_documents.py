"""docs/moving-here.md has each service, its lines of Markdown are answered, its commands import."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from chalicelib.api import table_of
from chalicelib.counting.view_queue import ViewMessages
from chalicelib.http import query
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request
from chalicelib.migration import drop_in
from chalicelib.settings import COUNTERS as DROP_INS
from chalicelib.settings import Settings
from simulation.clocks import NOON
from simulation.installation import MemoryInstallation, invoke_on
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.resources import GivenResources
from simulation.views import shown
from tests.loopback import SilentHandler, serving
from tests.unit.http_requests import Answer
from tests.unit.vumi.operate.admin.test_other_counters import RECORDED
from vumi.cli.program import execute

TEXT = (Path(__file__).parents[5] / "docs" / "moving-here.md").read_text(encoding="utf-8")
OURS = "views.example.com"


def urls() -> list[str]:
    """Return the URLs of the lines of Markdown, those before and those after."""
    blocks = re.findall(r"```markdown\n(.*?)```", TEXT, re.DOTALL)
    return [url for block in blocks for url in re.findall(r"!\[[^]]*\]\((https://[^)]+)\)", block)]


@pytest.mark.parametrize("url", urls())
def test_each_line_is_answered_here(url: str) -> None:
    parts = urlsplit(url)
    given = GivenResources(
        table=MemoryTable(),
        views_queue=ViewMessages(FakeQueue()),
        clock=lambda: NOON,
        settings=Settings(drop_in=DROP_INS),
    )
    request = Request("GET", parts.path, query=query.parse(parts.query))
    answer = Answer(dispatch(table_of(DROP_INS), request, given))
    assert answer.status == 200
    assert "0</text>" in answer.text


def test_the_pair_of_a_change_of_the_host_name_is_one_badge() -> None:
    before, after = urls()[:2]
    assert before.replace("komarev.com", OURS) == after
    parts = urlsplit(after)
    ours = drop_in.translate(parts.path, query.parse(parts.query), DROP_INS)
    assert ours["id"] == ["octocat/octocat"]
    assert "/api/v1/views.svg?id=octocat%2Foctocat" in TEXT


def commands() -> list[list[str]]:
    """Return the arguments of each documented `vumi import --from`, but of the dry run."""
    found = re.findall(
        r"^vumi (import --from .+)$|`vumi (import --from [^`]+)`", TEXT, re.MULTILINE
    )
    return [shlex.split(first or second) for first, second in found]


@contextmanager
def every_counter() -> Iterator[str]:
    """Run the counters on loopback, each with 1,234 views; give their address."""

    class Handler(SilentHandler):
        def do_GET(self) -> None:
            body = next(
                body
                for service, _, _, body in RECORDED
                if self.path.startswith(FIRST_SEGMENTS[service])
            ).replace(b"4,321", b"1,234")
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.replace(b"4321", b"1234"))

    with serving(Handler) as port:
        yield f"http://127.0.0.1:{port}"


FIRST_SEGMENTS = {
    "komarev": "/ghpvc",
    "hits.sh": "/api/urns",
    "dwyl": "/octocat/hello.json",
    "visitor-badge": "/badge",
    "moe-counter": "/record",
    "hit-counter": "/nocount",
    "hitscounter": "/api/history",
}


def run(*arguments: str) -> MemoryInstallation:
    """Run a command on loopback, and agree to the reading."""
    settings = Settings(webhook_allow="127.0.0.0/8")
    installation = MemoryInstallation(clock=lambda: NOON, settings=settings)
    with every_counter() as address:
        assert execute([*arguments, "--at", address, "--yes"], invoke_on(installation)) == 0
    return installation


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_each_command_imports_the_count_into_the_badge_of_the_line_after_it(
    arguments: list[str],
) -> None:
    """The line of Markdown that follows the command has the id of the badge."""
    lines = TEXT.partition("vumi " + " ".join(arguments))[2]
    after = next(url for url in urls() if OURS in url and "/api/v1/" in url and url in lines)
    [badge_id] = query.parse(urlsplit(after).query)["id"]
    assert shown(run(*arguments).table, badge_id) == 1_234
