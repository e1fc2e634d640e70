"""The quotas and bans of an instance for strangers, on a real `python -m vumi`."""

from __future__ import annotations

from pathlib import Path

from tests.processes.server import Server, create_token, run, running

SAID = "no new badges here"


def views(server: Server, badge_id: str) -> str:
    return str(server.badge(badge_id)["message"])


def left(server: Server) -> dict[str, float]:
    """Return how far away the limits are, as the metrics say."""
    lines = server.request("/metrics")[2].decode().splitlines()
    found = [line for line in lines if line.startswith("vumi_limit_left{")]
    return {line.split('"')[1]: float(line.split()[-1]) for line in found}


def test_a_ban_of_the_command_holds_from_the_next_request_and_tells_what_it_hid(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as server:
        server.visit("spam/x", 3)
        assert run(tmp_path, "ban", "spam/*", "--reason", "spam")[0] == 0
        assert views(server, "spam/x") == "not counted here"
        token = create_token(tmp_path, "admin")
        listed = server.ask("GET", "/api/v1/bans", token=token)[1]["bans"]
        assert [(one["by"], one["reason"]) for one in listed] == [("vumi ban", "spam")]
        assert run(tmp_path, "unban", "spam/*")[0] == 0
        assert server.peek("spam/x") == 3
        assert server.ask("PUT", "/api/v1/bans?pattern=spam/x", {}, token)[1]["by"] == "admin"
        assert views(server, "spam/x") == "not counted here"


def test_the_number_of_badges_is_known_after_a_kill_and_deletes_make_place(tmp_path: Path) -> None:
    limits = {"MAX_BADGES": "2", "CLIENT_NEW_IDS_PER_DAY": "9"}
    with running(tmp_path, **limits) as server:
        assert [views(server, one) for one in "aba"] == ["0", "0", "1"]
        assert views(server, "c") == SAID
        assert left(server)["badges"] == 0
        assert left(server)["new_id_a_day"] == 6, "the third one was counted, and refused"
        server.kill()
    with running(tmp_path, **limits) as server:
        assert (views(server, "a"), views(server, "c")) == ("2", SAID)
    assert run(tmp_path, "delete", "b", "--yes")[0] == 0
    with running(tmp_path, **limits) as server:
        assert left(server)["badges"] == 1
        assert [views(server, one) for one in "cd"] == ["0", SAID]
