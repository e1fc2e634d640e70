"""The limits per client, `IDS` and pages of other sites, on a real `python -m vumi`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.end_to_end.server import Server, running
from vumi.storage.database import FILE

LIMITS = {
    "CLIENT_NEW_IDS_PER_MINUTE": "2",
    "CLIENT_CLAIMS_PER_MINUTE": "1",
    "TRUSTED_PROXIES": "127.0.0.1",
    "IDS": "owner/*",
}
ANOTHER = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9"}
FURTHER = {"X-Forwarded-For": "198.51.100.1, 2001:db8::9"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path, **LIMITS) as server:
        yield server


def message(server: Server, badge_id: str, headers: dict[str, str]) -> str:
    _, _, body = server.request(f"/api/v1/views?id={badge_id}", headers=headers)
    return str(json.loads(body)["message"])


def claim(server: Server, badge_id: str, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps({"id": badge_id})
    return server.request("/api/v1/badges", "POST", body, named)[0]


def test_a_client_creates_a_number_of_badges_and_views_all_others(
    server: Server, tmp_path: Path
) -> None:
    for badge_id in ("owner/a", "owner/b"):
        assert message(server, badge_id, ANOTHER) == "0"
    for badge_id in ("owner/c", "owner/d"):
        assert message(server, badge_id, ANOTHER).startswith("too many new badges")
    assert [message(server, "owner/a", ANOTHER) for _ in range(5)] == ["1", "2", "3", "4", "5"]
    assert message(server, "owner/c", FURTHER) == "0", "another client"
    assert message(server, "else/a", ANOTHER).startswith("this id is not counted here")
    with closing(sqlite3.connect(tmp_path / FILE)) as file:
        rows = file.execute("SELECT pk FROM items UNION SELECT pk FROM viewed")
        partitions = {pk for (pk,) in rows}
    stored = {one for one in partitions if one.startswith("USER#")}
    assert stored == {"USER#owner/a", "USER#owner/b", "USER#owner/c"}


def test_no_address_is_in_the_folder_or_the_output(server: Server, tmp_path: Path) -> None:
    message(server, "owner/a", ANOTHER)
    message(server, "owner/b", FURTHER)
    claim(server, "owner/b", **{"X-Forwarded-For": "203.0.113.9"})
    status, out, err = server.stop()
    assert status == 0
    written = [out.encode(), err.encode(), *(p.read_bytes() for p in tmp_path.iterdir())]
    for address in (b"203.0.113.9", b"2001:db8:", b"198.51.100.1"):
        assert not [text for text in written if address in text]
