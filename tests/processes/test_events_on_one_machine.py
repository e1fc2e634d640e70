"""Events on `python -m vumi` as users see them: over HTTP, to a real receiver, also after kills."""

from __future__ import annotations

import http.client
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chalicelib.events import sender
from tests.processes.hosts import Host, hosting
from tests.processes.programs import (
    PATIENCE_SECONDS,
    TOKEN,
    WITH_TOKEN,
    Server,
    running,
    start,
    until,
)

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


def reach(server: Server, badge_id: str, *milestones: dict[str, object]) -> None:
    """Claim a badge, set its milestones, and reach those up to 10."""
    status, claimed = server.ask("POST", "/api/v1/badges", {"id": badge_id})
    assert status == 201, claimed
    for fields in ({"milestones": milestones}, {"base": 10}):
        path = f"/api/v1/badges?id={badge_id}"
        status, answer = server.ask("PATCH", path, fields, claimed["secret"])
        assert status == 200, answer


def test_milestones_whose_receivers_hang_delay_no_event_of_the_operator(
    tmp_path: Path, receiver: Host
) -> None:
    """Five webhooks of each badge; ten share an address, and no address answers."""
    silent = socket.create_server(("0.0.0.0", 0), backlog=512)  # noqa: S104
    with silent, running(tmp_path, **SETTINGS) as server:
        for number in range(40):
            url = f"http://127.0.1.{max(number, 9)}:{silent.getsockname()[1]}/"
            reach(server, f"m/{number}", *({"count": n, "url": url} for n in range(1, 6)))
        refused = {None, "8 other requests are sent to this address"}
        until(lambda: {one.get("last_error") for one in listed(server, "ACTIVE")} == refused)
        at = time.time() + 1
        for number in range(50):
            accept(server, at=moment(at), target={"url": receiver.url()}, id=f"mine-{number}")
        receiver.wait_for(50)
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
    due, finished = dict[str, float](), dict[str, int]()
    first = time.time() + 2
    for goal in (40, 80, 120):
        with running(tmp_path, **settings) as server:
            for number in range(0 if due else 300):
                at = round(first + number / 100, 3)
                due[accept(server, at=at, target={"url": receiver.url()})] = at
            receiver.wait_for(goal)
            ended = _find_ended(server)
            came = Counter(post.webhook_id for post in receiver.posts)
            finished = {event_id: came[event_id] for event_id in ended} | finished
            server.kill()
    with running(tmp_path, **settings) as server:
        until(lambda: _find_ended(server) == due.keys())
    came = Counter(post.webhook_id for post in receiver.posts)
    assert came.keys() == due.keys()
    assert finished.items() <= came.items()
    assert all(post.at >= due[post.webhook_id] for post in receiver.posts)


def _find_ended(server: Server) -> set[str]:
    """Return the ids of all events that have succeeded; of none if the server is away."""
    try:
        return {one["id"] for one in listed(server, "SUCCESS")}
    except (OSError, http.client.HTTPException):
        return set()
