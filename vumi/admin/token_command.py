"""The token command of both engines: its options and output."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

import click

from vumi.admin.tokens import SHOWN_DIGITS, StoredToken, TokenStore


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the actions of the command and their options to a parser."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    creating = actions.add_parser("create", help="create a token and print it, only once")
    creating.add_argument("--name", required=True, help="a name that no other token has")
    creating.add_argument(
        "--user", default="", metavar="UUID", help="the user (default: the token is an operator's)"
    )
    actions.add_parser("list", help="list all tokens with the beginnings of their digests")
    revoking = actions.add_parser("revoke", help="revoke a token")
    revoking.add_argument("token", help="its name, or 8 digits or more of its digest")


def run(store: TokenStore, given: argparse.Namespace) -> None:
    """Create, list or revoke tokens. Raises `TokenError` and `StorageError`."""
    match given.action:
        case "create":
            token = store.create(given.name, given.user)
            click.echo(f"Token {given.name}, shown only once: {token}")
        case "list":
            for stored in store.read_all():
                click.echo(_format(stored))
        case "revoke":
            click.echo(f"revoked: {_format(store.revoke(given.token))}")


def _format(token: StoredToken) -> str:
    """Format a token as its digest, name, holder and time of creation."""
    created = datetime.fromtimestamp(token.created / 1000, UTC)
    holder = f"user {token.holder.user}" if token.holder.user else "operator"
    return f"{token.digest[:SHOWN_DIGITS]}  {token.name}  {holder}  {created:%Y-%m-%dT%H:%M:%SZ}"
