"""The users whose processes listen on a port of this machine, as Linux lists them in ``/proc/net/tcp``.

Source: proc_pid_net(5).
"""

from __future__ import annotations

import ipaddress
import struct
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTEN = "0A"
_LOCAL, _STATE, _UID = 1, 3, 7


def listener_uids(host: str, port: int) -> set[int]:
    """Return the uids of the sockets that can accept a connection to ``host`` and ``port``.

    Empty where the system does not tell: it is not Linux, or the address is of another machine.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a name, which may be of either family
        wanted = {"127.0.0.1", "0.0.0.0", "::1", "::"}  # noqa: S104 - compared with, never bound
    else:
        wanted = {str(address), "::"}
        if address.version == 4:
            wanted |= {f"::ffff:{address}", "0.0.0.0"}  # noqa: S104 - same reason
    forms = {f"{_as_table_words(ipaddress.ip_address(one).packed)}:{port:04X}" for one in wanted}
    found = set()
    for table in TABLES:
        try:
            lines = table.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[_STATE] == _LISTEN and fields[_LOCAL] in forms:
                found.add(int(fields[_UID]))
    return found


def _as_table_words(packed: bytes) -> str:
    """Return an address as the tables write it: 32-bit words in this machine's byte order, in hexadecimal."""
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))
