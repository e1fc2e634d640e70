"""The command `token`, which creates, lists and revokes API tokens."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from chalicelib.http.authentication import SHOWN_DIGITS
from vumi.cli.options import examples, on_installation
from vumi.cli.output import as_json, log_change, print_objects, print_result
from vumi.operate.admin.installation import Installation
from vumi.tokens import StoredToken, TokenStore


@click.group(
    epilog=examples(
        "vumi token create --name admin",
        "vumi token create --name shop --user 6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11",
        "vumi token list --stack vu-mi-prod",
        "vumi token revoke shop",
    )
)
def token() -> None:
    """Create, list and revoke API tokens.

    It works while a server runs, too.
    """


@token.command(
    epilog=examples("vumi token create --name admin", "vumi token create --name shop --json")
)
@click.option("--name", required=True, help="A name that no other token has.")
@click.option(
    "--user", default="", metavar="UUID", help="The user (default: the token is an operator's)."
)
@click.option("--quiet", is_flag=True, help="Print the token alone, for programs.")
@as_json
@on_installation
def create(installation: Installation, name: str, user: str, *, quiet: bool) -> None:
    """Create a token and print it, only once."""
    created = _store(installation).create(name, user)
    log_change(name)
    text = created if quiet else f"Token {name}, shown only once: {created}"
    print_result(text, {"name": name, "token": created})


@token.command("list", epilog=examples("vumi token list", "vumi token list --json"))
@as_json
@on_installation
def list_(installation: Installation) -> None:
    """List all tokens with the beginnings of their digests."""
    print_objects(map(_describe, _store(installation).read_all()))


@token.command(epilog=examples("vumi token revoke shop"))
@click.argument("wanted", metavar="TOKEN")
@as_json
@on_installation
def revoke(installation: Installation, wanted: str) -> None:
    """Revoke a token by its name, or by 8 or more digits of its digest."""
    revoked = _describe(_store(installation).revoke(wanted))
    log_change(revoked["name"], revoked)
    print_result(f"revoked: {'  '.join(revoked.values())}", revoked)


def _store(installation: Installation) -> TokenStore:
    return TokenStore(installation.table, installation.clock)


def _describe(token: StoredToken) -> dict[str, str]:
    """Return the beginning of its digest, the name, the holder and the time of creation."""
    created = datetime.fromtimestamp(token.created / 1000, UTC)
    return {
        "digest": token.digest[:SHOWN_DIGITS],
        "name": token.name,
        "holder": f"user {token.holder.user}" if token.holder.user else "operator",
        "created": f"{created:%Y-%m-%dT%H:%M:%SZ}",
    }
