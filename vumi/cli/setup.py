"""The commands `init`, `settings` and `token`, which set a server up."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from chalicelib.http.authentication import SHOWN_DIGITS
from vumi.cli.options import Invocation, Parsed, examples, on_installation
from vumi.cli.output import as_json, log_change, print_objects, print_result, wants_json
from vumi.errors import ReportedError, plural
from vumi.operate.admin.installation import Installation
from vumi.settings import DEFAULT
from vumi.tokens import StoredToken, TokenStore

PACKAGE = Path(__file__).parent.parent
IN_WHEEL = PACKAGE / "examples"
EXAMPLES = IN_WHEEL if IN_WHEEL.is_dir() else PACKAGE.parent / "examples"
LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
EXAMPLE_HOST = "badges.example.com"
HOST_NAME = re.compile(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*", re.ASCII)
PORT, SOCKET = "127.0.0.1:8000", "unix:/run/vumi/vumi.sock"
"""The address of `vumi serve`, and that of the service, in the words of nginx."""
COMMON = {
    *("HOST", "PORT", "DATA", "SETTINGS", "TRUSTED_PROXIES", "PUBLIC_URL", "IDS", "DROP_IN"),
    *("CLIENT_NEW_IDS_PER_DAY", "MAX_BADGES", "ACCESS_LOG", "EVENTS", "WALLETS"),
}
"""The settings that most operators look at."""
SERVER_LINE = re.compile(r"^    (?:# )?server (\S+);$", re.MULTILINE)
"""A line of nginx.conf with one of these addresses; the other one is a comment."""


def _parse_host(value: str) -> str:
    """Return the name of a host, which has no scheme, no port and no path."""
    if not HOST_NAME.fullmatch(value.lower()):
        raise ValueError(f"{value!r} is no host name like {EXAMPLE_HOST}")
    return value.lower()


HOST = Parsed("host", _parse_host)


@dataclass(frozen=True)
class SetupFile:
    """A file of `examples/`, with its place on the machine."""

    example: Path
    target: Path
    mode: int = 0o644


@dataclass(frozen=True)
class Setup:
    """The parts that an operator asked for: the service, and a proxy for a host."""

    systemd: bool
    caddy: str | None
    nginx: str | None

    def files(self) -> Iterator[SetupFile]:
        """Yield the files of the parts."""
        if self.systemd:
            folder = EXAMPLES / "systemd"
            yield SetupFile(folder / "settings.toml", Path("/etc/vu-mi/settings.toml"), 0o600)
            yield SetupFile(folder / "vumi", Path("/usr/local/bin/vumi"), 0o755)
            for unit in sorted(folder.glob("vu-mi*")):
                yield SetupFile(unit, Path("/etc/systemd/system") / unit.name)
        if self.caddy:
            yield SetupFile(EXAMPLES / "Caddyfile", Path("/etc/caddy/Caddyfile"))
        if self.nginx:
            yield SetupFile(EXAMPLES / "nginx.conf", Path("/etc/nginx/conf.d/vu-mi.conf"))

    def adapt(self, text: str) -> str:
        """Return the text of an example for the host, the proxy's group and the upstream."""
        upstream = SOCKET if self.systemd else PORT
        changes = {
            EXAMPLE_HOST: self.caddy or self.nginx or EXAMPLE_HOST,
            "=www-data": "=caddy" if self.caddy else "=www-data",
            f"{{$UPSTREAM:{PORT}}}": f"{{$UPSTREAM:{upstream.replace('unix:', 'unix/')}}}",
        }
        for old, new in changes.items():
            text = text.replace(old, new)
        return SERVER_LINE.sub(
            lambda line: f"    {'' if line[1] == upstream else '# '}server {line[1]};", text
        )

    def commands(self, folder: Path) -> Iterator[str]:
        """Yield the lines of a shell script that installs the written files."""
        if self.systemd:
            yield "# vu-mi itself must be installed in /opt/vu-mi, which the units run."
        yield "# As root:"
        if self.nginx:
            domain = f"--domain {self.nginx}"
            yield f"certbot certonly --webroot --webroot-path /var/www/html {domain}"
        for file in self.files():
            written = shlex.quote(str(folder / file.target.name))
            yield f"install -D --backup --mode {file.mode:o} {written} {file.target}"
        if self.systemd:
            yield "systemctl daemon-reload"
            yield "systemctl enable --now vu-mi.service vu-mi-backup.timer"
        if self.caddy:
            yield "systemctl reload caddy"
        if self.nginx:
            yield "nginx -t && systemctl reload nginx"
        if self.systemd:
            yield "# Then `sudo vumi list`, like all commands, works on the data of the service."
            yield "# The operator's token: sudo cat /var/lib/vu-mi/first-token"
        else:
            yield "# The server must believe the proxy: TRUSTED_PROXIES=127.0.0.1 vumi serve"


@click.command(
    epilog=examples(
        "vumi init --systemd --caddy badges.example.com",
        "vumi init --systemd --nginx badges.example.com --out setup | sudo sh -ex",
    )
)
@click.option("--systemd", is_flag=True, help="Write units, settings and a vumi for root.")
@click.option("--caddy", metavar="HOST", type=HOST, help="Write a Caddyfile for this host.")
@click.option("--nginx", metavar="HOST", type=HOST, help="Write a site of nginx for it.")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default="vu-mi-setup",
    show_default=True,
    help="Write to this folder.",
)
def init(*, systemd: bool, caddy: str | None, nginx: str | None, out: Path) -> None:
    """Write the files of a service and a proxy.

    It prints the commands that are left. Nothing is overwritten, and nothing outside DIR changes.
    """
    if caddy and nginx:
        raise click.UsageError("give one of --caddy HOST and --nginx HOST")
    setup = Setup(systemd, caddy, nginx)
    files = list(setup.files())
    if not files:
        raise click.UsageError("nothing to write: give --systemd, --caddy HOST or --nginx HOST")
    texts = {out / file.target.name: setup.adapt(file.example.read_text()) for file in files}
    for path in texts:
        if os.path.lexists(path):
            raise ReportedError(f"{path} exists; remove it, or give another folder by --out")
    out.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text)
    click.echo(f"{plural(len(files), 'file')} in {out}. The commands that are left:", err=True)
    for line in setup.commands(out):
        click.echo(line)


@click.command(
    epilog=examples(
        "vumi settings",
        "vumi settings --all --json",
        "vumi --settings /etc/vu-mi/settings.toml settings",
    )
)
@click.option("--all", "of_all", is_flag=True, help="Print those that few people change too.")
@as_json
@click.pass_obj
def settings(invocation: Invocation, *, of_all: bool) -> None:
    """Print settings with their values and sources.

    These are the most common ones, and all that have not the default. A source is the environment,
    a file or the default. Secrets are masked. A wrong setting is reported as by serve.
    """
    invocation.given.warn()
    _ = invocation.settings
    found = list(invocation.given.in_force())
    shown = [one for one in found if of_all or one["name"] in COMMON or one["source"] != DEFAULT]
    print_objects(shown, ("SETTING", "VALUE", "SOURCE"))
    if len(shown) < len(found) and not wants_json():
        click.echo(f"{len(shown)} of {len(found)} settings; --all prints the others", err=True)


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
