"""Events on `python -m vumi` as users see them: over HTTP, to a real receiver, also after kills."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chalicelib.events.webhooks import signing
from chalicelib.http import tokens
from tests.end_to_end.receiver import Receiver, receiving
from tests.end_to_end.server import PATIENCE_SECONDS, Server, create_token, running, start
from vumi import secrets

TOKEN = tokens.new_token()
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SECRET = signing.new_secret()
SETTINGS = {
    "API_TOKEN_DIGESTS": tokens.digest(TOKEN),
    "WEBHOOK_ALLOW": "127.0.0.0/8",
    "WEBHOOK_SECRETS": SECRET,
    "EVENT_QUEUES": "orders",
    "RETRY_SECONDS": "1,1",
}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path, **SETTINGS) as server:
        yield server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server for tests that look only at their own events."""
    with running(tmp_path_factory.mktemp("shared"), **SETTINGS) as server:
        yield server


def ask(server: Server, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Send a request with the token; return the status and the body."""
    sent = None if body is None else json.dumps(body)
    status, _, answer = server.request(path, method, sent, BEARER)
    return status, json.loads(answer)


def accept(server: Server, **wanted: Any) -> str:
    status, event = ask(server, "POST", "/api/v1/events", wanted)
    assert status == 201, event
    return str(event["id"])


def event(server: Server, event_id: str) -> Any:
    status, found = ask(server, "GET", f"/api/v1/events/{event_id}")
    assert status == 200
    return found


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def done(server: Server, event_id: str, status: str = "SUCCESS") -> Any:
    """Wait until an event has this status, and return it."""
    until(lambda: event(server, event_id)["status"] == status)
    return event(server, event_id)


def epoch(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def test_an_event_has_its_payload_and_signature_and_is_never_early(
    shared: Server, receiver: Receiver
) -> None:
    at = round(time.time() + 1.5, 3)
    payload = {"text": "Grüße", "numbers": [1, 2.5, None]}
    moment = datetime.fromtimestamp(at, UTC).isoformat()
    event_id = accept(
        shared, at=moment, target={"url": receiver.url()}, payload=payload, id="order-7"
    )
    assert event_id == "order-7"
    ended = done(shared, event_id)
    [post] = receiver.posts
    assert post.at >= at
    assert post.verified(SECRET) == payload
    assert post.headers["content-type"] == "application/json"
    [attempt] = ended["attempts"]
    assert attempt["status"] == 204
    assert epoch(attempt["started"]) >= at
    assert ended["attempt_count"] == 1


def test_receivers_that_hang_delay_no_other_event(server: Server, receiver: Receiver) -> None:
    for _ in range(20):
        accept(server, delay=0, target={"url": receiver.url("/hang")})
    until(lambda: len(receiver.to("/hang")) == 20)
    for _ in range(20):
        accept(server, delay=0, target={"url": receiver.url("/fine")})
    until(lambda: len(receiver.to("/fine")) == 20)
    assert not receiver.hanging.is_set()


@contextmanager
def accepting_only() -> Iterator[int]:
    """Listen at all loopback addresses, and answer nothing; yield the port."""
    with socket.create_server(("0.0.0.0", 0), backlog=512) as listening:  # noqa: S104
        yield int(listening.getsockname()[1])


def begin_milestones(server: Server, badges: int, port: int) -> None:
    """Send five webhooks for each badge; ten share an address, and no address answers."""
    for number in range(badges):
        status, _, answer = server.request("/api/v1/badges", "POST", f'{{"id": "m/{number}"}}')
        assert status == 201, answer
        owner = {"Authorization": f"Bearer {json.loads(answer)['secret']}"}
        url = f"http://127.0.1.{max(number, 9)}:{port}/"
        goals = [{"count": count, "url": url} for count in range(1, 6)]
        for change in ({"milestones": goals}, {"base": 10}):
            path = f"/api/v1/badges?id=m/{number}"
            status, _, answer = server.request(path, "PATCH", json.dumps(change), owner)
            assert status == 200, answer


def errors_of_active(server: Server) -> set[str | None]:
    """Return the last errors of all active events, None of those that have none."""
    path, errors = "/api/v1/events", set[str | None]()
    page = ask(server, "GET", path)[1]
    while True:
        errors |= {one.get("last_error") for one in page["events"]}
        if "cursor" not in page:
            return errors
        page = ask(server, "GET", f"{path}?cursor={page['cursor']}")[1]


def test_milestones_whose_receivers_hang_delay_no_event_of_the_operator(
    tmp_path: Path, receiver: Receiver
) -> None:
    settings = SETTINGS | {"CLIENT_CLAIMS_PER_MINUTE": "0"}
    with running(tmp_path, **settings) as server, accepting_only() as port:
        begin_milestones(server, 40, port)
        until(
            lambda: errors_of_active(server) == {None, "8 other requests are sent to this address"}
        )
        at = time.time() + 1
        for number in range(50):
            moment = datetime.fromtimestamp(at, UTC).isoformat()
            accept(server, at=moment, target={"url": receiver.url()}, id=f"mine-{number}")
        until(lambda: receiver.has(50))
        assert max(post.at for post in receiver.posts) < at + 2


def test_a_follower_of_a_queue_receives_new_events(server: Server, tmp_path: Path) -> None:
    follower = start(tmp_path, "receive", "orders", "--follow", **SETTINGS)
    assert follower.stdout is not None
    for number in range(3):
        accept(server, delay=0, target={"queue": "orders"}, payload=number)
        assert follower.stdout.readline() == f"{number}\n"
    follower.send_signal(signal.SIGINT)
    assert follower.communicate(timeout=PATIENCE_SECONDS) == ("", "")
    assert follower.returncode == 0


def test_a_private_address_is_refused_when_an_event_is_created(tmp_path: Path) -> None:
    with running(tmp_path, **SETTINGS | {"WEBHOOK_ALLOW": ""}) as server:
        for url in ("http://127.0.0.1/", "https://169.254.169.254/latest/", "https://[::1]/"):
            wanted = {"delay": 0, "target": {"url": url}}
            status, refusal = ask(server, "POST", "/api/v1/events", wanted)
            assert (status, refusal["error"]["code"]) == (400, "bad_request")


def test_the_first_start_has_a_token_once_and_it_opens_the_routes(tmp_path: Path) -> None:
    """The output is no terminal, so it names the file of the token."""
    with running(tmp_path) as server:
        assert server.process.stdout is not None
        server.process.stdout.readline()
        said = server.process.stdout.readline()
        [path] = re.findall(r"^Token for events and wallets: in (\S+); store it elsewhere", said)
        token = Path(path).read_text().strip()
        assert token not in said
        bearer = {"Authorization": f"Bearer {token}"}
        assert server.request("/api/v1/events", headers=bearer)[0] == 200
        server.stop()
    has_token = [path for path in tmp_path.iterdir() if token.encode() in path.read_bytes()]
    assert has_token == [tmp_path / secrets.FIRST_TOKEN]
    with running(tmp_path) as server:
        assert server.request("/api/v1/events", headers=bearer)[0] == 200
        _, out, _ = server.stop()
        assert "Token" not in out


def test_a_token_counts_without_a_restart_from_its_creation_to_its_revocation(
    tmp_path: Path,
) -> None:
    with running(tmp_path, **SETTINGS) as server:
        for name, user, wanted in (("lost", "", 200), ("eva", str(uuid.uuid4()), 403)):
            bearer = {"Authorization": f"Bearer {create_token(tmp_path, name, user)}"}
            assert server.request("/api/v1/events", headers=bearer)[0] == wanted
            assert server.request("/api/v1/wallets/me", headers=bearer)[0] in (403, 404)
            assert f"  {name}  " in token_command(tmp_path, "list")
            assert token_command(tmp_path, "revoke", name).startswith("revoked: ")
            refused = server.request("/api/v1/wallets/me", headers=bearer)
            assert json.loads(refused[2])["error"]["message"] == "this token opens nothing here"
        assert token_command(tmp_path, "list") == ""
        _, _, err = server.stop()
    refusals = [line for line in map(json.loads, err.splitlines()) if "reason" in line]
    assert [(line["reason"], line["left_out"]) for line in refusals] == [("unknown", 0)]


def token_command(folder: Path, *arguments: str) -> str:
    """Return the output of the command `token`."""
    process = start(folder, "token", *arguments)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, err) == (0, "")
    return out


@pytest.mark.parametrize(
    ("setting", "said"),
    [({"WEBHOOK_ALLOW": "home"}, "WEBHOOK_ALLOW must be"), ({"HOST": "192.0.2.1"}, "can't listen")],
)
def test_a_first_start_that_fails_stores_no_token(
    tmp_path: Path, setting: dict[str, str], said: str
) -> None:
    process = start(tmp_path, **setting)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out) == (1, "")
    assert err.startswith(f"vu-mi: {said}")
    assert not (tmp_path / secrets.FILE).exists()


def test_after_a_kill_unfinished_events_are_delivered_and_finished_ones_are_not(
    tmp_path: Path, receiver: Receiver
) -> None:
    """The process is killed three times within the seconds in which 300 events are due.

    A kill takes an attempt of the events that are under way, so each has more than three.
    """
    settings = {**SETTINGS, "RETRY_SECONDS": "1,1,1,1"}
    due: dict[str, float] = {}
    first = time.time() + 2
    for life in range(4):
        with running(tmp_path, **settings) as server:
            if not due:
                for number in range(300):
                    at = round(first + number / 100, 3)
                    wanted = {"at": at, "target": {"url": receiver.url()}}
                    due[accept(server, **wanted)] = at
            if life < 3:
                until(partial(receiver.has, 40 * (life + 1)))
                ended = _find_ended(server)
                before = Counter(post.webhook_id for post in receiver.posts)
                server.process.kill()
                server.process.wait()
            else:
                until(lambda: len({post.webhook_id for post in receiver.posts}) == len(due))
                until(partial(_have_ended, server, len(due)))
            came = Counter(post.webhook_id for post in receiver.posts)
            assert all(came[event_id] == before[event_id] for event_id in ended)
    assert {post.webhook_id for post in receiver.posts} == set(due)
    assert all(post.at >= due[post.webhook_id] for post in receiver.posts)


def _have_ended(server: Server, number: int) -> bool:
    return len(_find_ended(server)) == number


def _find_ended(server: Server) -> set[str]:
    """Return the ids of all events that have succeeded."""
    found: set[str] = set()
    cursor = ""
    while True:
        try:
            _, page = ask(server, "GET", f"/api/v1/events?status=SUCCESS&cursor={cursor}")
        except (OSError, http.client.HTTPException):
            return found
        found |= {one["id"] for one in page["events"]}
        cursor = page.get("cursor", "")
        if not cursor:
            return found


def test_a_milestone_is_posted_once_when_the_badge_reaches_it(
    tmp_path: Path, receiver: Receiver
) -> None:
    windows = {"VIEW_WINDOW_SECONDS": "1", "GRACE_SECONDS": "1", "RETENTION_SECONDS": "60"}
    with running(tmp_path, **SETTINGS, **windows) as server:
        status, _, claimed = server.request("/api/v1/badges", "POST", '{"id": "goal"}')
        assert status == 201
        owner = {"Authorization": f"Bearer {json.loads(claimed)['secret']}"}
        body = json.dumps({"milestones": [{"count": 3, "url": receiver.url("/three")}]})
        assert server.request("/api/v1/badges?id=goal", "PATCH", body, owner)[0] == 200
        for _ in range(5):
            server.request("/api/v1/views?id=goal")
        until(lambda: receiver.posts)
        [post] = receiver.posts
        told = post.verified(SECRET)
        assert (told["type"], told["data"]["id"]) == ("badge.milestone", "goal")
        assert 3 == told["data"]["milestone"] <= told["data"]["count"] <= 5
        shown = json.loads(server.request("/api/v1/badges?id=goal", "GET", None, owner)[2])
        assert shown["milestones"][0]["reached"]
        assert done(server, post.webhook_id)["attempt_count"] == 1
