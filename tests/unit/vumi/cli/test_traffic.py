"""The command `traffic`: what it asks GitHub, what it stores, and its errors in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from chalicelib.history import github
from simulation.clocks import NOON
from simulation.loopback import Answer, SilentHandler, answering
from simulation.views import put_summary
from tests.unit.vumi.commands import Vumi

NAME = "octocat/hello"
SAMPLE = json.loads((Path(__file__).parents[2] / "pages" / "github_traffic.json").read_text())


@contextmanager
def host(
    status: int = 200, reply: object = None, headers: Mapping[str, str] | None = None
) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Run a GitHub, or a vu-mi, that answers so; give its URL and what it was sent."""
    asked: list[tuple[str, str, str]] = []

    def respond(request: SilentHandler) -> Answer:
        body = request.read().decode()
        asked.append((request.path, str(request.headers["Authorization"]), body))
        answer = SAMPLE.get(request.path.rpartition("/")[2], {}) if reply is None else reply
        return status, json.dumps(answer).encode(), headers or {}

    with answering(respond) as url:
        yield url, asked


@pytest.fixture(autouse=True)
def _badge(vumi: Vumi) -> None:
    put_summary(vumi.table, NAME, count=3)


def run(vumi: Vumi, folder: Path, github_url: str, *more: str) -> int:
    (folder / "token").write_text("the-token\n")
    (folder / "secret").write_text("the-secret\n")
    given = ("--token-file", str(folder / "token"), "--github", github_url)
    return vumi("traffic", NAME, *given, *more)


def test_the_numbers_are_stored_beside_the_badge(vumi: Vumi, tmp_path: Path) -> None:
    with host() as (url, asked):
        assert run(vumi, tmp_path, url) == 0
    paths = [f"/repos/{NAME}/traffic/{kind}" for kind in github.NAMES]
    assert asked == [(path, "Bearer the-token", "") for path in paths]
    assert github.read_visitors(vumi.table, NAME)[0] == 3782
    assert vumi.out == f"{NAME} has 15 days of views and 15 days of clones from GitHub.\n"


def test_another_vu_mi_is_told_with_the_secret_alone(vumi: Vumi, tmp_path: Path) -> None:
    to = ("--secret-file", str(tmp_path / "secret"), "--id", "a b")
    with host() as (url, _), host() as (other, told):
        assert run(vumi, tmp_path, url, "--to", f"{other}/", *to) == 0
    [(target, secret, body)] = told
    assert (target, secret) == ("/api/v1/badges/traffic?id=a%20b", "Bearer the-secret")
    assert json.loads(body) == SAMPLE
    assert github.read_visitors(vumi.table, NAME) == (0, None)


RESET = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOON) + 60)}


@pytest.mark.parametrize(
    ("status", "reply", "headers", "says"),
    [
        (401, {"message": "Bad credentials"}, {}, "GitHub refuses the token"),
        (403, {"message": "Not accessible\x1b"}, {}, "Administration: read (GitHub says: Not acc"),
        (403, {}, RESET, "rate limit is used up: try again after 2026-03-14 12:01 UTC"),
        (429, {}, {"retry-after": "30"}, "rate limit is used up: try again in 30 s"),
        (429, {}, {}, "rate limit is used up: try again in some minutes"),
        (404, {}, {}, "GitHub has no such repository, or the token is not for it"),
        (301, {}, {}, "the repository has moved: give its present name"),
        (503, {}, {}, "GitHub answered 503: try again later"),
        (200, {"message": "a page"}, {}, "GitHub's response is not one about traffic"),
    ],
)
def test_an_error_of_github_is_told_in_words(  # noqa: PLR0913, PLR0917  a case
    vumi: Vumi, tmp_path: Path, status: int, reply: object, headers: dict[str, str], says: str
) -> None:
    with host(status, reply, headers) as (url, _):
        assert run(vumi, tmp_path, url) == 1
    assert says in vumi.err
    assert "\x1b" not in vumi.err
    assert "the-token" not in vumi.err
    assert github.read_visitors(vumi.table, NAME) == (0, None)


def test_a_refusal_of_the_other_vu_mi_is_passed_on(vumi: Vumi, tmp_path: Path) -> None:
    refusal = {"error": {"code": "wrong_secret", "message": "not the secret of the badge"}}
    with host() as (url, _), host(403, refusal) as (other, _):
        given = ("--to", other, "--secret-file", str(tmp_path / "secret"))
        assert run(vumi, tmp_path, url, *given) == 1
    assert f"{other} did not store the numbers: not the secret" in vumi.err


@pytest.mark.parametrize("more", [("--to", "https://a.example"), ("--secret-file", "secret")])
def test_a_secret_and_a_url_are_given_together(
    vumi: Vumi, tmp_path: Path, more: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(vumi, tmp_path, "http://127.0.0.1:1", *more) == 2
    assert run(vumi, tmp_path, "http://127.0.0.1:1") == 1
