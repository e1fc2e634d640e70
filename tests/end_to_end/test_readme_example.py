"""The example README with every badge: a real server answers each line with a picture."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import pytest

from chalicelib.badges.colors import parse
from chalicelib.http import tokens
from tests.end_to_end.server import Server, running
from tests.gallery import EVENT, SHIELDS, WALLET, Line, read_lines, read_links
from tests.unit.png_pictures import decode

TOKEN = tokens.new_token()
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SVG = "{http://www.w3.org/2000/svg}"
USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
ERROR_REDS = (parse("red"), "#cf222e")
"""Those of a badge and of a chart."""
MAX_BADGE_BYTES, MAX_CHART_BYTES = 4_096, 40_960
LINES = read_lines()


def ask(server: Server, method: str, path: str, body: object) -> dict[str, object]:
    status, _, answer = server.request(path, method, json.dumps(body), BEARER)
    assert status in {200, 201}, answer
    made: dict[str, object] = json.loads(answer)
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"API_TOKEN_DIGESTS": tokens.digest(TOKEN)}
    with running(tmp_path_factory.mktemp("data"), **settings) as started:
        wanted = {"delay": 259_200, "target": {"log": True}, "id": EVENT}
        ask(started, "POST", "/api/v1/events", wanted)
        yield started


@pytest.fixture(scope="module")
def wallet(server: Server) -> str:
    """Return the id of a wallet with a badge, in place of that in the README."""
    opened = str(ask(server, "POST", "/api/v1/wallets", {"user_id": USER})["id"])
    ask(server, "PATCH", f"/api/v1/wallets/{opened}", {"badge": True})
    return opened


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.file or line.target)
def test_a_line_of_the_example_readme_is_answered_with_a_picture(
    server: Server, wallet: str, line: Line
) -> None:
    status, headers, body = server.request(line.target.replace(WALLET, wallet))
    kind = headers["Content-Type"].partition(";")[0]
    assert status == 200
    if line.url.startswith(SHIELDS):
        assert (kind, json.loads(body)["schemaVersion"]) == ("application/json", 1)
        assert "isError" not in json.loads(body)
    elif urlsplit(line.url).path.endswith(".png"):
        assert (kind, len(decode(body).rows)) == ("image/png", 630)
    else:
        check_svg(kind, body, is_chart="history" in line.url)


def check_svg(kind: str, body: bytes, *, is_chart: bool) -> None:
    """Check that an image is whole, within its limit, and no error."""
    image = ET.fromstring(body)  # noqa: S314  our own
    assert (kind, image.tag) == ("image/svg+xml", f"{SVG}svg")
    assert len(body) <= (MAX_CHART_BYTES if is_chart else MAX_BADGE_BYTES)
    assert not [red for red in ERROR_REDS if red.encode() in body]
    assert is_chart or not image.findtext(f"{SVG}desc")  # nothing was left out


def test_an_error_would_be_seen(server: Server) -> None:
    wrong = {"views.svg?id=a&style=round": False, "views/history.svg?id=a&days=0": True}
    for target, is_chart in wrong.items():
        _, _, body = server.request(f"/api/v1/{target}")
        with pytest.raises(AssertionError, match=r"not \["):
            check_svg("image/svg+xml", body, is_chart=is_chart)


def test_a_linked_badge_leads_to_its_page(server: Server) -> None:
    [link] = read_links()
    status, headers, body = server.request(link)
    assert (status, headers["Content-Type"].partition(";")[0]) == (200, "text/html")
    assert b"octocat/hello-world" in body
