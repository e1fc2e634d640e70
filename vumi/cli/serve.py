"""The command `serve`, which serves badges on one machine until SIGINT or SIGTERM."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path

import click

from chalicelib.api import table_of
from chalicelib.counting import ids
from chalicelib.http.dispatch import admit, dispatch
from chalicelib.storage.errors import StorageError
from vumi.cli.options import Invocation, examples, setting
from vumi.cli.output import strong
from vumi.engine import Engine
from vumi.errors import ReportedError, plural
from vumi.metrics import access
from vumi.metrics.monitoring import Monitoring, read_process
from vumi.operate.admin.most_viewed import MostViewed
from vumi.operate.admin.overview_file import Overview
from vumi.operate.admin.routes import Admin
from vumi.server.asgi import Application
from vumi.server.clients import ClientLimits, warn_of_exposure
from vumi.server.common_commits import CommonCommits, Crowds
from vumi.server.connections import Connections
from vumi.server.service_manager import Notifier
from vumi.server.sockets import GivenSocket, UnixSocket
from vumi.server.web import WebServer
from vumi.settings import StandaloneSettings
from vumi.storage.limits import DiskSpace
from vumi.tokens import show_first
from vumi.workers.loops import Loop

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  only compared, never bound
"""The loopback address for a server that listens on every address of the machine."""

COUNTED_BADGES = 10_000
"""The greeting counts no more, because 10,000 take 40 ms."""


@click.command(epilog=examples("vumi serve", "vumi serve --port 9000 --data /var/lib/vu-mi"))
@setting("HOST", "ADDRESS", "Listen on this address, or on a Unix socket (unix:PATH)")
@setting("PORT", "NUMBER", "Listen on this port")
@setting("DATA", "FOLDER", "Keep all data in this folder")
@click.pass_obj
def serve(invocation: Invocation) -> None:
    """Serve badges until SIGINT or SIGTERM."""
    settings = invocation.settings
    try:
        _serve(invocation, settings)
    except StorageError as error:
        raise ReportedError(f"the file in {settings.folder}/ can't be opened: {error}") from error
    except OSError as error:
        raise ReportedError(_explain(error, settings)) from error


def _serve(invocation: Invocation, settings: StandaloneSettings) -> None:
    client_limits = ClientLimits(settings.client_rates, time.monotonic)
    crowds = Crowds(client_limits)
    notifier = Notifier(invocation.environment, os.getpid())
    unix_socket = _unix_socket(settings, notifier.given_socket())
    room = DiskSpace(
        lambda: shutil.disk_usage(settings.folder).free, settings.min_free_bytes, time.monotonic
    )
    engine = Engine(
        settings.folder, settings.product, invocation.clock, crowds, room, settings.max_badges
    )
    engine.view_queue.on_hot = crowds.join_hot
    overview = Overview(settings.folder, invocation.clock)
    bursts = Loop("bursts", lambda: overview.watch(engine.resources.view_clock()))
    top = MostViewed(
        engine.database.read,
        settings.public_top,
        lambda badge_id: ids.is_counted(badge_id, engine.resources),
    )
    admin = Admin(engine.database, overview, invocation.clock, engine.limits_left)
    monitoring = Monitoring(
        (*(admin.routes if settings.admin else ()), *table_of(settings.product.drop_in).routes),
        (engine.metrics, partial(read_process, invocation.clock())),
        client_limits,
        partial(access.check, access=settings.metrics, proxies=settings.proxies),
        access_log=settings.access_log,
    )
    try:
        commits = CommonCommits(
            lambda request: dispatch(monitoring.table, request, engine.resources),
            engine.in_one_commit,
            crowds,
            monitoring.requests.add_commit,
        )
        connections = Connections(is_proxy=settings.proxies.trusts)
        application = Application(
            commits.answer,
            connections,
            proxies=settings.proxies,
            admit=lambda request: admit(monitoring.table, request, engine.resources),
            on_response=monitoring.requests.add,
        )
        server = WebServer(
            application,
            settings.host,
            settings.port,
            unix_socket=unix_socket,
            notifier=notifier,
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: server.stop())
        new_token = engine.prepare(top)
        with monitoring.running():
            engine.start()
            if settings.admin:
                bursts.start()
            invocation.given.warn()
            warn_of_exposure((host for host, _ in server.addresses), settings.proxies)
            server.serve(partial(_greet, settings, server.port, engine, new_token, notifier))
        commits.close()
    finally:
        bursts.stop()
        overview.stop()
        engine.stop()
    click.echo("vu-mi stopped; nothing is lost.")


def _unix_socket(settings: StandaloneSettings, given: socket.socket | None) -> UnixSocket | None:
    """Return the socket that `HOST` names, which a service manager may have given."""
    path = settings.unix_socket
    if given is not None:
        return GivenSocket(path or Path(settings.host), given)
    return UnixSocket(path, settings.socket_mode) if path else None


def address(host: str, port: int) -> str:
    """Return the URL of the server on this machine."""
    reachable = ANY_ADDRESS.get(host, host)
    netloc = f"[{reachable}]:{port}" if ":" in reachable else f"{reachable}:{port}"
    return f"http://{netloc}/"


def _greet(
    settings: StandaloneSettings, port: int, engine: Engine, new_token: str, notifier: Notifier
) -> None:
    if settings.unix_socket:
        place = f"the Unix socket {settings.unix_socket}"
        click.echo(f"vu-mi serves badges on {strong(place)}")
        click.echo(f"Try it: curl --unix-socket {settings.unix_socket} http://localhost/healthz")
    else:
        place = address(settings.host, port)
        click.echo(f"vu-mi serves badges: make yours on {strong(place)}")
        badge = f"{place}api/v1/views.svg?id=you%2Fyour-repo"
        click.echo(f"Markdown, once it is reachable from outside: ![views]({badge})")
    click.echo(f"Data: {strong(str(settings.folder.absolute()))}, {_describe_data(engine)}")
    if new_token:
        show_first(new_token, sys.stdout, settings.folder)
    notifier.ready(f"Serves badges on {place}")


def _describe_data(engine: Engine) -> str:
    if engine.is_new:
        return "new"
    badges = engine.badges(COUNTED_BADGES + 1)
    more = "more than " if badges > COUNTED_BADGES else ""
    return more + plural(min(badges, COUNTED_BADGES), "badge")


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
