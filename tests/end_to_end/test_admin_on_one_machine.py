"""The operator's page and its commands on a real `python -m vumi` that counts meanwhile."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.end_to_end.server import PATIENCE_SECONDS, Server, create_token, running, start
from vumi.operate.admin import overview_file
from vumi.storage.database import FILE


def read(server: Server, token: str, path: str) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    status, _, body = server.request(path, headers=headers)
    assert status == 200
    return json.loads(body)


def wait_for_total(server: Server, token: str, total: int) -> Any:
    """Ask for the badges until the overview has all views; it must never have more."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        body = read(server, token, "/admin/data/badges")
        found = body["overview"].get("total", 0)
        if found == total:
            return body
        assert found < total
        assert time.monotonic() < deadline
        time.sleep(0.05)


def run(folder: Path, *command: str) -> str:
    process = start(folder, *command)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, err) == (0, "")
    return out


def test_the_page_has_the_views_of_a_server_that_counts(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with running(folder) as server:
        token = create_token(folder, "operator")
        assert server.request("/admin")[0] == 200
        assert server.request("/admin/data")[0] == 401
        for _ in range(3):
            server.badge("octocat/hello-world")
        [badge] = wait_for_total(server, token, 3)["badges"]
        assert (badge["id"], badge["now"], sum(badge["days"])) == ("octocat/hello-world", 3, 3)
        listed = json.loads(run(folder, "list", "--json"))
        assert listed == {name: badge[name] for name in listed}
        assert read(server, token, "/admin/data")["file"]["days"] != []
        assert "has no errors" in run(folder, "check")
        status, _, err = server.stop()
    assert (status, json.loads(err)["message"]) == (0, "token_refused")
    with closing(sqlite3.connect(folder / FILE)) as file:
        assert file.execute("SELECT count(*) FROM file_sizes").fetchone() == (1,)


def test_a_backup_has_the_sizes_and_not_the_overview(tmp_path: Path) -> None:
    folder, backup = tmp_path / "data", tmp_path / "backup"
    with running(folder) as server:
        token = create_token(folder, "operator")
        server.badge("a")
        wait_for_total(server, token, 1)
        run(folder, "backup", str(backup))
    assert (folder / overview_file.FILE).exists()
    assert not (backup / overview_file.FILE).exists()
    with closing(sqlite3.connect(backup / FILE)) as file:
        assert file.execute("SELECT count(*) FROM file_sizes").fetchone() == (1,)
