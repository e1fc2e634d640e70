"""The module that blocks the network: Python imports it at its start from PYTHONPATH.

No name resolves, and only loopback addresses can be connected to.
"""

from __future__ import annotations

import errno
import sys
from ipaddress import ip_address
from typing import Any


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo" and not _is_loopback(args[0]):
        raise OSError(errno.ENOENT, "no name is known here")
    if event == "socket.connect" and isinstance(args[1], tuple) and not _is_loopback(args[1][0]):
        raise OSError(errno.ENETUNREACH, "only loopback can be reached")


def _is_loopback(host: Any) -> bool:
    try:
        text = host.decode() if isinstance(host, bytes) else host
        return text is None or ip_address(text).is_loopback
    except ValueError:
        return False


sys.addaudithook(_refuse)
