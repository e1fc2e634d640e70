"""Events on `python -m vumi` as users see them: over HTTP, to a real receiver, also after kills."""

from __future__ import annotations

import http.client
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chalicelib.events import sender
from tests.processes.hosts import Host, hosting
from tests.processes.programs import PATIENCE_SECONDS, until
from tests.processes.server import TOKEN, WITH_TOKEN, Server, running, start

EVENTS = "/api/v1/events"
SECRET = sender.new_secret()
SETTINGS = WITH_TOKEN | {
    "CLIENT_CLAIMS_PER_MINUTE": "0",
    "WEBHOOK_ALLOW": "127.0.0.0/8",
    "WEBHOOK_SECRETS": SECRET,
    "EVENT_QUEUES": "orders",
    "RETRY_SECONDS": "1,1",
}


@pytest.fixture
def receiver() -> Iterator[Host]:
    with hosting() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Yield a server for tests that look only at their own events."""
    with running(folder, **SETTINGS) as server:
        yield server


def accept(server: Server, **wanted: Any) -> str:
    status, event = server.ask("POST", EVENTS, wanted, TOKEN)
    assert status == 201, event
    return str(event["id"])


def done(server: Server, event_id: str) -> Any:
    """Wait until an event has succeeded, and return it."""

    def look() -> Any:
        event = server.ask("GET", f"{EVENTS}/{event_id}", token=TOKEN)[1]
        return event if event["status"] == "SUCCESS" else None

    return until(look)


def listed(server: Server, status: str) -> list[dict[str, Any]]:
    """Return all events of a status, from every page."""
    found, page = list[dict[str, Any]](), {"cursor": ""}
    while "cursor" in page:
        path = f"{EVENTS}?status={status}&cursor={page['cursor']}"
        page = server.ask("GET", path, token=TOKEN)[1]
        found += page["events"]
    return found


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def test_an_event_has_its_payload_and_signature_and_is_never_early(
    server: Server, receiver: Host
) -> None:
    at = round(time.time() + 1.5, 3)
    payload = {"text": "Grüße", "numbers": [1, 2.5, None]}
    target = {"url": receiver.url()}
    event_id = accept(server, at=moment(at), target=target, payload=payload, id="order-7")
    assert event_id == "order-7"
    ended = done(server, event_id)
    [post] = receiver.posts
    assert post.at >= at
    assert post.verified(SECRET) == payload
    assert post.headers["content-type"] == "application/json"
    [attempt] = ended["attempts"]
    assert attempt["status"] == 204
    assert datetime.fromisoformat(attempt["started"]).timestamp() >= at


@contextmanager
def accepting_only() -> Iterator[int]:
    """Listen at all loopback addresses, and answer nothing; yield the port."""
    with socket.create_server(("0.0.0.0", 0), backlog=512) as listening:  # noqa: S104
        yield int(listening.getsockname()[1])


def set_milestones(server: Server, badge_id: str, *goals: dict[str, object]) -> str:
    """Claim a badge and set its milestones; return its secret."""
    status, claimed = server.ask("POST", "/api/v1/badges", {"id": badge_id})
    assert status == 201, claimed
    change(server, badge_id, claimed["secret"], milestones=goals)
    return str(claimed["secret"])


def change(server: Server, badge_id: str, secret: str, **fields: object) -> None:
    status, answer = server.ask("PATCH", f"/api/v1/badges?id={badge_id}", fields, secret)
    assert status == 200, answer


def test_milestones_whose_receivers_hang_delay_no_event_of_the_operator(
    tmp_path: Path, receiver: Host
) -> None:
    """Five webhooks of each badge; ten share an address, and no address answers."""
    with running(tmp_path, **SETTINGS) as server, accepting_only() as port:
        for number in range(40):
            url = f"http://127.0.1.{max(number, 9)}:{port}/"
            goals = [{"count": count, "url": url} for count in range(1, 6)]
            secret = set_milestones(server, f"m/{number}", *goals)
            change(server, f"m/{number}", secret, base=10)
        refused = {None, "8 other requests are sent to this address"}
        until(lambda: {one.get("last_error") for one in listed(server, "ACTIVE")} == refused)
        at = time.time() + 1
        for number in range(50):
            accept(server, at=moment(at), target={"url": receiver.url()}, id=f"mine-{number}")
        until(lambda: len(receiver.posts) >= 50)
        assert max(post.at for post in receiver.posts) < at + 2


def test_a_follower_of_a_queue_receives_new_events(server: Server, folder: Path) -> None:
    follower = start(folder, "receive", "orders", "--follow", **SETTINGS)
    assert follower.stdout is not None
    for number in range(3):
        accept(server, delay=0, target={"queue": "orders"}, payload=number)
        assert follower.stdout.readline() == f"{number}\n"
    follower.send_signal(signal.SIGINT)
    assert follower.communicate(timeout=PATIENCE_SECONDS) == ("", "")
    assert follower.returncode == 0


def test_after_a_kill_unfinished_events_are_delivered_and_finished_ones_are_not(
    tmp_path: Path, receiver: Host
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
                    due[accept(server, at=at, target={"url": receiver.url()})] = at
            if life < 3:
                until(partial(_has_received, receiver, 40 * (life + 1)))
                ended = _find_ended(server)
                before = Counter(post.webhook_id for post in receiver.posts)
                server.kill()
            else:
                until(lambda: {post.webhook_id for post in receiver.posts} == due.keys())
                until(partial(_have_ended, server, len(due)))
            came = Counter(post.webhook_id for post in receiver.posts)
            assert all(came[event_id] == before[event_id] for event_id in ended)
    assert {post.webhook_id for post in receiver.posts} == set(due)
    assert all(post.at >= due[post.webhook_id] for post in receiver.posts)


def _has_received(receiver: Host, posts: int) -> bool:
    return len(receiver.posts) >= posts


def _have_ended(server: Server, number: int) -> bool:
    return len(_find_ended(server)) == number


def _find_ended(server: Server) -> set[str]:
    """Return the ids of all events that have succeeded; of none if the server is away."""
    try:
        return {one["id"] for one in listed(server, "SUCCESS")}
    except (OSError, http.client.HTTPException):
        return set()
