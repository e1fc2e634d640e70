"""The move of a badge of another counter: its count by the program, and its URL by its host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.server import PATIENCE_SECONDS, running, start
from tests.loopback import SilentHandler, serving

BADGE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="137" height="20"><g>'
    b'<text x="42.5" y="15" fill="#010101" fill-opacity=".3">views</text>'
    b'<text x="42.5" y="14">views</text>'
    b'<text x="109.5" y="15" fill="#010101" fill-opacity=".3">4,321</text>'
    b'<text x="109.5" y="14">4,321</text></g></svg>'
)
URL = "/ghpvc/?username=octocat"


@contextmanager
def komarev() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """Run a copy of komarev; give its address, and each path it was asked for with the client."""
    asked: list[tuple[str, str | None]] = []

    class Handler(SilentHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["User-Agent"]))
            self.send_response(200)
            self.send_header("Content-Type", "image/svg+xml")
            self.end_headers()
            self.wfile.write(BADGE)

    with serving(Handler) as port:
        yield f"http://127.0.0.1:{port}", asked


def test_a_badge_keeps_its_count_and_its_url(tmp_path: Path) -> None:
    with running(tmp_path, DROP_IN="komarev") as server, komarev() as (address, asked):
        command = ("import", "--from", "komarev", "octocat", "--at", address)
        process = start(tmp_path, *command, WEBHOOK_ALLOW="127.0.0.0/8")
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, err) == (0, "")
        assert out.startswith("komarev shows 4,321 for octocat, which is octocat/octocat here\n")
        assert asked == [("/ghpvc/?username=octocat&label=views", "vu-mi")]
        shown = [server.request(URL)[2].decode() for _ in range(2)]
        assert [">4,321<" in shown[0], ">4,322<" in shown[1]] == [True, True]
        assert server.badge("octocat/octocat", "&peek=1")["message"] == "4323"
        assert server.request("/get/@octocat")[0] == 404
