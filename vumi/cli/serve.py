"""The command `serve`, which serves badges on one machine until SIGINT or SIGTERM."""

from __future__ import annotations

import errno
import signal
import sys
import time
from functools import partial

import click

from chalicelib.api import TABLE
from chalicelib.http.dispatch import dispatch
from chalicelib.storage.errors import StorageError
from vumi.cli.options import Invocation, examples
from vumi.engine import Engine
from vumi.errors import ReportedError
from vumi.first_token import show_token
from vumi.metrics.monitoring import Monitored, Monitoring
from vumi.server.admin import Admin
from vumi.server.asgi import Application
from vumi.server.client_limits import ClientLimits
from vumi.server.common_commits import CommonCommits
from vumi.server.connections import Connections
from vumi.server.overview import Overview
from vumi.server.web import WebServer
from vumi.settings import StandaloneSettings

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  only compared, never bound
"""The loopback address for a server that listens on every address of the machine."""


class NotServedError(ReportedError):
    """The server can't start or go on. The message says why."""


@click.command(epilog=examples("vumi serve", "PORT=9000 DATA=/var/lib/vu-mi vumi serve"))
@click.pass_obj
def serve(invocation: Invocation) -> None:
    """Serve badges until SIGINT or SIGTERM."""
    settings = invocation.settings
    try:
        _serve(invocation, settings)
    except StorageError as error:
        raise NotServedError(f"the file in {settings.folder}/ can't be opened: {error}") from error
    except OSError as error:
        raise NotServedError(_explain(error, settings)) from error


def _serve(invocation: Invocation, settings: StandaloneSettings) -> None:
    limits = ClientLimits(settings.client_rates, time.monotonic)
    engine = Engine(settings.folder, settings.product, invocation.clock, limits)
    overview = Overview(settings.folder, invocation.clock)
    admin = Admin(engine, overview, invocation.clock).routes if settings.admin else ()
    monitored = Monitored(
        (*TABLE.routes, *admin), engine.storage_metrics(), limits, invocation.clock()
    )
    monitoring = Monitoring(
        monitored, settings.metrics, settings.proxies, access_log=settings.access_log
    )
    try:
        commits = CommonCommits(
            lambda request: dispatch(monitoring.table, request, engine.resources),
            engine.in_one_commit,
            engine.fair_lock,
            monitoring.commits.add,
        )
        connections = Connections(is_proxy=settings.proxies.trusts)
        application = Application(
            commits.answer,
            connections,
            proxies=settings.proxies,
            on_response=monitoring.requests.add,
        )
        server = WebServer(application, settings.host, settings.port)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: server.stop())
        new_token = engine.prepare()
        with monitoring.running():
            engine.start()
            server.serve(partial(_greet, settings, server.port, new_token))
        commits.close()
    finally:
        overview.stop()
        engine.stop()
    click.echo("vu-mi stopped; nothing is lost.")


def address(host: str, port: int) -> str:
    """Return the URL of the server on this machine."""
    reachable = ANY_ADDRESS.get(host, host)
    netloc = f"[{reachable}]:{port}" if ":" in reachable else f"{reachable}:{port}"
    return f"http://{netloc}/"


def _greet(settings: StandaloneSettings, port: int, new_token: str) -> None:
    root = address(settings.host, port)
    click.echo(f"vu-mi serves badges: make yours on {root}")
    badge = f"{root}api/v1/views.svg?id=you%2Fyour-repo"
    click.echo(f"Markdown, once it is reachable from outside: ![views]({badge})")
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
