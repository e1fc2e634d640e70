"""The command `traffic`, which tells GitHub's visitors and clones from a machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO
from urllib.parse import quote

import click

from chalicelib.history.github import NAMES
from chalicelib.outgoing.http_client import CallError, HttpClient, HttpReply, describe_refusal
from chalicelib.outgoing.urls import Allowed
from chalicelib.owners import finding
from chalicelib.pages.owned_badges import TrafficBody, tell
from chalicelib.storage.items import Item
from vumi.cli import badges
from vumi.cli.options import BADGE_ID, Invocation, examples
from vumi.cli.output import log_change
from vumi.errors import ReportedError, plural

API = "https://api.github.com"
HEADERS = {"Accept": "application/vnd.github+json", "Accept-Encoding": "identity"}
REPOSITORY = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
ANY_HOST = "0.0.0.0/0,::/0"
"""The operator names the hosts, so these may be in a private network."""


def _read_secret(file: TextIO) -> str:
    """Return the one word of a file, which goes into a header. Raises `UsageError`."""
    secret = file.read().strip()
    if not (secret.isascii() and re.fullmatch(r"\S+", secret)):
        raise click.UsageError(f"{file.name} must have the token or secret, and nothing else")
    return secret


@click.command(
    epilog=examples(
        "vumi traffic octocat/hello --token-file token.txt",
        "vumi traffic octocat/hello --token-file token.txt --to https://views.example.com \\",
        "    --secret-file secret.txt",
    )
)
@click.argument("repository", metavar="OWNER/NAME")
@click.option("--token-file", type=click.File(), required=True, help="A file with GitHub's token.")
@click.option("--id", "badge_id", type=BADGE_ID, help="The badge (default: OWNER/NAME).")
@click.option(
    "--to", metavar="URL", help="Tell the vu-mi at this URL, instead of the file in DATA."
)
@click.option("--secret-file", type=click.File(), help="With --to: a file with the badge's secret.")
@click.option(
    "--stack", metavar="NAME", help="Tell this stack on AWS, instead of the file in DATA."
)
@click.option("--github", metavar="URL", default=API, show_default=True, help="GitHub's REST API.")
@click.pass_obj
def traffic(  # noqa: PLR0913  the options
    invocation: Invocation,
    repository: str,
    token_file: TextIO,
    *,
    badge_id: str | None,
    to: str | None,
    secret_file: TextIO | None,
    stack: str | None,
    github: str,
) -> None:
    """Ask GitHub for visitors and clones, and store them.

    They stand beside the views of the badge. The token needs "Administration: read", and is not
    stored.
    """
    if not REPOSITORY.fullmatch(repository):
        raise click.UsageError(f"give a repository as OWNER/NAME, not {repository!r}")
    if bool(to) != bool(secret_file) or (to and stack):
        raise click.UsageError("give --to and --secret-file together, and without --stack")
    client, token = HttpClient(Allowed.parse(ANY_HOST)), _read_secret(token_file)
    told = {kind: _ask(client, f"{github}/repos/{repository}", kind, token) for kind in NAMES}
    name = badge_id or repository
    if to and secret_file:
        _send(client, to, name, _read_secret(secret_file), told)
    else:
        with invocation.open_installation(stack) as installation:
            now, body = installation.view_clock(), TrafficBody(json.dumps(told).encode())
            found = badges.reopen(installation.table, badges.find(installation.table, name), now)
            before = finding.describe_for_log(installation.table, found)
            tell(installation.table, found, body.told, now)
            log_change(found.names[-1], before)
    days = " and ".join(f"{plural(len(told[kind][kind]), 'day')} of {kind}" for kind in NAMES)
    click.echo(f"{name} has {days} from GitHub.")


def _ask(client: HttpClient, repository: str, kind: str, token: str) -> Any:
    """Return GitHub's response. Raises `ReportedError`."""
    reply = _call(client, "GET", f"{repository}/traffic/{kind}", token)
    if reply.status == 200:  # noqa: PLR2004  OK
        with suppress(ValueError):
            TrafficBody(json.dumps({kind: (told := json.loads(reply.body or b""))}).encode())
            return told
        raise ReportedError("GitHub's response is not one about traffic: is --github its REST API?")
    raise ReportedError(_explain(reply))


def _send(client: HttpClient, url: str, badge_id: str, secret: str, told: Item) -> None:
    """Tell another vu-mi. Raises `ReportedError`."""
    target = f"{url.rstrip('/')}/api/v1/badges/traffic?id={quote(badge_id, safe='')}"
    reply = _call(client, "PUT", target, secret, json.dumps(told).encode())
    if reply.status != 200:  # noqa: PLR2004  OK
        says = _find(reply, "error", "message") or describe_refusal(reply.status)
        raise ReportedError(f"{url} did not store the numbers: {says}")


def _call(
    client: HttpClient, method: str, url: str, token: str, body: bytes | None = None
) -> HttpReply:
    try:
        return client.call(method, url, {**HEADERS, "Authorization": f"Bearer {token}"}, body)
    except CallError as failure:
        raise ReportedError(f"{url.partition('?')[0]}: {failure}; try again later") from None


def _explain(reply: HttpReply) -> str:
    """Say in words why GitHub did not tell the traffic."""
    if (wait := _find_wait(reply)) and reply.status in {403, 429}:
        return f"GitHub's rate limit is used up: try again {wait}"
    match reply.status:
        case 401:
            return "GitHub refuses the token: it is wrong, revoked or expired; make a new one"
        case 403:
            return (
                "the token may not read the traffic: give it the repository permission"
                f" Administration: read (GitHub says: {_find(reply, 'message') or 'nothing'})"
            )
        case 404:
            return "GitHub has no such repository, or the token is not for it: check both"
        case 301 | 302 | 307 | 308:
            return "the repository has moved: give its present name"
    return f"GitHub {describe_refusal(reply.status)}: try again later"


def _find_wait(reply: HttpReply) -> str:
    """Return when a used up rate limit begins again, or an empty text."""
    if (wait := reply.headers.get("retry-after", "")).isdecimal():
        return f"in {wait} s"
    reset = reply.headers.get("x-ratelimit-reset", "")
    if reply.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return f"after {datetime.fromtimestamp(int(reset), UTC):%Y-%m-%d %H:%M} UTC"
    return "in some minutes" if reply.status == 429 else ""  # noqa: PLR2004  too many requests


def _find(reply: HttpReply, *names: str) -> str:
    """Return a text in a response, as far as it can be printed."""
    found: Any = None
    with suppress(ValueError):
        found = json.loads(reply.body or b"")
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return "".join(filter(str.isprintable, found))[:300] if isinstance(found, str) else ""
