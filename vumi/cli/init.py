"""The command `init`, which writes the files of a systemd service and of a proxy.

They are those of `examples/`, with a few words changed. The wheel has them in `vumi/examples`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from vumi.cli.options import Parsed, examples
from vumi.errors import ReportedError, plural

PACKAGE = Path(__file__).parent.parent
EXAMPLES = next(
    folder for folder in (PACKAGE / "examples", PACKAGE.parent / "examples") if folder.is_dir()
)
LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
EXAMPLE_HOST = "badges.example.com"
HOST_NAME = re.compile(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*", re.ASCII)
PORT, SOCKET = "127.0.0.1:8000", "unix:/run/vumi/vumi.sock"
"""The address of `vumi serve`, and that of the service, in the words of nginx."""
SERVER_LINE = re.compile(r"^    (?:# )?server (\S+);$", re.MULTILINE)
"""A line of nginx.conf with one of these addresses; the other one is a comment."""


class ExistingFileError(ReportedError):
    """A file would be overwritten. The message names it."""


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

    def install_from(self, folder: Path) -> str:
        """Return the command that copies the written file to its place."""
        written = shlex.quote(str(folder / self.target.name))
        return f"install -D --backup --mode {self.mode:o} {written} {self.target}"


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
            yield file.install_from(folder)
        if self.systemd:
            yield "systemctl daemon-reload"
            yield "systemctl enable --now vu-mi.service vu-mi-backup.timer"
        if self.caddy:
            yield "systemctl reload caddy"
        if self.nginx:
            yield "nginx -t && systemctl reload nginx"
        yield from self._notes()

    def _notes(self) -> Iterator[str]:
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
    _write({out / file.target.name: setup.adapt(file.example.read_text()) for file in files})
    click.echo(f"{plural(len(files), 'file')} in {out}. The commands that are left:", err=True)
    for line in setup.commands(out):
        click.echo(line)


def _write(texts: Mapping[Path, str]) -> None:
    """Write new files, all or none. Raises `ExistingFileError`."""
    for path in texts:
        if os.path.lexists(path):
            raise ExistingFileError(f"{path} exists; remove it, or give another folder by --out")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
