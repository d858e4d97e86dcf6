"""Prevent a process from opening network sockets, whatever code runs in it.

The writer holds the write lock; nothing that it calls, now or in some later version, may wait for a network.

Source: docs/architecture.md "Dependency rules" 2.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

_NETWORK_FAMILIES = frozenset({socket.AF_INET, socket.AF_INET6})
_LOOKUPS = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"})
_ADDRESSED = frozenset({"socket.bind", "socket.connect", "socket.sendto", "socket.sendmsg"})


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if not event.startswith("socket."):
        return
    if event == "socket.__new__":
        if arguments[1] in _NETWORK_FAMILIES:
            raise PermissionError("this process must not open network sockets")
    elif event in _LOOKUPS:
        raise PermissionError("this process must not look up network names")
    elif event in _ADDRESSED and getattr(arguments[0], "family", None) in _NETWORK_FAMILIES:
        raise PermissionError("this process must not connect to network addresses")


def block_network_sockets() -> None:
    """Forbid this process to create, bind, connect or use network sockets; it cannot be undone."""
    sys.addaudithook(_refuse)
