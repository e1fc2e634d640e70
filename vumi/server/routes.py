"""The table of routes of one machine: those of the core, and those that only one machine has."""

from __future__ import annotations

from chalicelib import api
from chalicelib.http.messages import Request
from chalicelib.http.routing import RouteTable
from vumi.server import admin
from vumi.server.admin import Admin
from vumi.server.common_commits import may_call_network


def make_table(page: Admin | None) -> RouteTable:
    """Return the table with the routes of the operator's page, if it is switched on."""
    return RouteTable((*api.TABLE.routes, *(page.routes if page else ())))


def is_slow(request: Request) -> bool:
    """Return whether a request is answered on a thread of its own, so that no visitor waits."""
    return may_call_network(request) or request.path.startswith(admin.DATA)
