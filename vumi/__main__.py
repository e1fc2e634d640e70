"""The program `python -m vumi`, which serves badges on one machine until SIGINT or SIGTERM.

Its other commands work on the same file while it serves or not.
"""

from __future__ import annotations

import argparse
import errno
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from chalicelib import telemetry
from chalicelib.api import TABLE
from chalicelib.http.dispatch import dispatch
from chalicelib.lazy import lazy
from chalicelib.settings import SettingsError
from chalicelib.storage.errors import StorageError
from chalicelib.units import Seconds
from vumi.engine import Engine
from vumi.first_token import show_token
from vumi.folder_lock import AlreadyRunningError
from vumi.server.asgi import Application
from vumi.server.client_limits import ClientLimits
from vumi.server.common_commits import CommonCommits
from vumi.server.connections import Connections
from vumi.server.web import WebServer
from vumi.settings import StandaloneSettings
from vumi.storage.private_files import UMASK

if TYPE_CHECKING:
    from vumi.cli import commands
else:
    commands = lazy("vumi.cli.commands")

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  only compared, never bound
"""The loopback address for a server that listens on every address of the machine."""


def main(arguments: Sequence[str], clock: Callable[[], Seconds] = time.time) -> int:
    """Serve, or run the command that the arguments name, and return the exit status.

    It is 0 for success, 1 for failure and 2 for an unknown command. The server uses `clock`.
    """
    _protect_files()
    given = _parse(arguments) if arguments else argparse.Namespace(run=partial(_serve, clock=clock))
    telemetry.write_to(sys.stderr, with_metrics=False)
    try:
        settings = StandaloneSettings.from_environment(os.environ)
        given.run(settings, given)
    except (AlreadyRunningError, SettingsError, *commands.REPORTED_ERRORS) as error:
        return _fail(str(error))
    except StorageError as error:
        return _fail(f"the file in {settings.folder}/ can't be opened: {error}")
    except OSError as error:
        return _fail(_explain(error, settings))
    return 0


def _protect_files() -> None:
    """Make every new file for this user only, and no core file, which would have all requests."""
    os.umask(UMASK)
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments, with the command as `run`; a server does not import the commands."""
    parser = argparse.ArgumentParser("python -m vumi", description=_serve.__doc__)
    commands.add_to(parser.add_subparsers(metavar="COMMAND"))
    return parser.parse_args(arguments)


def _serve(
    settings: StandaloneSettings, _: argparse.Namespace, *, clock: Callable[[], Seconds]
) -> None:
    """Serve badges until SIGINT or SIGTERM."""
    limits = ClientLimits(settings.client_rates, time.monotonic)
    engine = Engine(settings.folder, settings.product, clock, limits)
    try:
        commits = CommonCommits(
            lambda request: dispatch(TABLE, request, engine.resources),
            engine.in_one_commit,
            engine.fair_lock,
        )
        connections = Connections(is_proxy=settings.proxies.trusts)
        application = Application(commits.answer, connections, proxies=settings.proxies)
        server = WebServer(application, settings.host, settings.port)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: server.stop())
        new_token = engine.prepare()
        engine.start()
        server.serve(partial(_greet, settings, server.port, new_token))
        commits.close()
    finally:
        engine.stop()
    print("vu-mi stopped; nothing is lost.", flush=True)  # noqa: T201


def address(host: str, port: int) -> str:
    """Return the URL of the server on this machine."""
    reachable = ANY_ADDRESS.get(host, host)
    netloc = f"[{reachable}]:{port}" if ":" in reachable else f"{reachable}:{port}"
    return f"http://{netloc}/"


def _greet(settings: StandaloneSettings, port: int, new_token: str) -> None:
    root = address(settings.host, port)
    print(f"vu-mi serves badges: make yours on {root}", flush=True)  # noqa: T201
    badge = f"{root}api/v1/views.svg?id=you%2Fyour-repo"
    print(f"Markdown, once it is reachable from outside: ![views]({badge})", flush=True)  # noqa: T201
    if new_token:
        show_token(new_token, sys.stdout, settings.folder)


def _explain(error: OSError, settings: StandaloneSettings) -> str:
    where = f"{settings.host}:{settings.port}"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{where} is in use: stop what listens there, or set PORT to another port"
        case errno.EACCES | errno.EADDRNOTAVAIL if error.filename is None:
            return f"can't listen on {where}: {error.strerror}; set HOST and PORT"
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return f"{error}; make room on the disk, or set DATA to a folder on another"
        case _:
            return f"{error}; set DATA to a folder that can be written"


def _fail(message: str) -> int:
    print(f"vu-mi: {message}", file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
