"""The owners of local TCP connections and listeners, as Linux tells them.

About one connection the kernel is asked over netlink, in microseconds. To read the table ``/proc/net/tcp`` takes
milliseconds, since the kernel looks for connections at all places of a large table.

A connection remains for a while after its process has closed the socket or exited. Its inode and uid are 0 then, which
does not prove that the peer is root. The kernel returns the table in pieces, so a line can be missed while connections
open and close; the search is repeated for a line that was not found.

Source: sock_diag(7); proc_pid_net(5); Linux, Documentation/networking/proc_net_tcp.rst.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
SOCKET_CLOSED: Final = -1
"""Returned instead of a uid when the system reports uids, but no process owns the connection any more."""

_LISTEN: Final = b"0A"
_TRIES: Final = 3
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_ANY: Final = 0xFFFF_FFFF
_HEAD: Final = struct.Struct("=IHHII")
"""Length, type, flags, sequence and port of a netlink message."""
_QUESTION: Final = struct.Struct("=BBxxI")
"""Family, protocol and states of ``inet_diag_req_v2``; the connection follows."""
_CONNECTION: Final = struct.Struct("!HH16s16s")
_ANSWER: Final = struct.Struct("=xB62xII")
"""State, uid and inode of ``inet_diag_msg``."""
_CREDENTIALS: Final = struct.Struct("=iII")
"""Pid, uid and gid of the peer of a Unix socket."""
_LISTENING: Final = 10
_CONNECTING: Final = 2
"""A socket that still connects is no accepted peer: it may have got the port that another user's socket has."""
_PAGE: Final = 4096
_LOCAL, _STATE, _UID, _INODE = 1, 3, 7, 9

End = tuple[str, int]
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def unix_peer_uid(connection: socket.socket) -> int:
    """Return the uid at the other end of a Unix socket in a private directory: ours where the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return os.geteuid()
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(found)[1]
    return uid


def netlink_uid(client: End, server: End) -> int | None:
    """Return the same as ``peer_uid``; None if the kernel does not answer, or knows no such connection.

    Takes microseconds.
    """
    ends = [_without_mapping(ipaddress.ip_address(end[0].partition("%")[0])) for end in (client, server)]
    family = socket.AF_INET if ends[0].version == 4 else socket.AF_INET6
    connection = _CONNECTION.pack(client[1], server[1], *(end.packed for end in ends))
    body = _QUESTION.pack(family, socket.IPPROTO_TCP, _ANY) + connection + struct.pack("=III", 0, _ANY, _ANY)
    head = _HEAD.pack(_HEAD.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as channel:
            channel.send(head + body)
            answer = channel.recv(_PAGE, socket.MSG_DONTWAIT)
    except (OSError, AttributeError):  # another system, or a sandbox without netlink
        return None
    if len(answer) < _HEAD.size + _ANSWER.size or _HEAD.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    state, uid, inode = _ANSWER.unpack_from(answer, _HEAD.size)
    if state == _LISTENING:  # another socket at the client's port
        return None
    return int(uid) if inode and state != _CONNECTING else SOCKET_CLOSED


def peer_uid(client: End, server: End, tables: tuple[Path, ...] = TABLES) -> int | None:
    """Return the uid of the process at ``client``'s end of its connection to ``server``, or ``SOCKET_CLOSED``.

    Return None if the system does not report uids: there is no such table, or it lacks even the listening socket. Takes
    milliseconds when thousands of connections are open, so do not call it on an event loop.
    """
    wanted = [
        f" {local} {remote} ".encode() for local, remote in zip(_table_forms(client), _table_forms(server), strict=True)
    ]
    has_connection_info = False
    for _ in range(_TRIES):
        for table in tables:
            try:
                lines = table.read_bytes()
            except (FileNotFoundError, PermissionError):
                continue
            except OSError:  # not to be told is no permission
                return SOCKET_CLOSED
            for pair in wanted:
                found = {(int(line[_UID]), int(line[_INODE]) > 0) for line in _lines_with(lines, pair)}
                if found:
                    uid, is_open = found.pop()
                    return uid if is_open and not found else SOCKET_CLOSED
            has_connection_info = has_connection_info or _listens(lines, server[1])
        if not has_connection_info:
            return None
    return SOCKET_CLOSED


def listener_uids(port: int, host: str | None = None, tables: tuple[Path, ...] = TABLES) -> frozenset[int]:
    """Return the uids of the sockets that can accept a connection to ``port`` of ``host``, or of a loopback address.

    Empty if there is none, or if the system does not tell: it reports no uids, or the address is of another machine.
    Read it in a thread, like ``peer_uid``.
    """
    return frozenset(
        int(fields[_UID])
        for fields in _listeners(port, tables)
        if _accepts(_address(fields[_LOCAL].partition(b":")[0]), host)
    )


def listener_inodes(port: int) -> frozenset[int]:
    return frozenset(int(fields[_INODE]) for fields in _listeners(port, TABLES))


def _listeners(port: int, tables: tuple[Path, ...]) -> Iterator[list[bytes]]:
    end = b":%04X" % port
    for table in tables:
        try:
            lines = table.read_bytes()
        except OSError:
            continue
        for fields in _lines_of_port(lines, port):
            if fields[_STATE] == _LISTEN and fields[_LOCAL].endswith(end):
                yield fields


def _address(words: bytes) -> _Address:
    packed = b"".join(struct.pack("=I", int(words[at : at + 8], 16)) for at in range(0, len(words), 8))
    return _without_mapping(ipaddress.ip_address(packed))


def _accepts(listening: _Address, host: str | None) -> bool:
    if host is None:
        return listening.is_loopback or listening.is_unspecified
    try:
        wanted = {_without_mapping(ipaddress.ip_address(host))}
    except ValueError:  # a name, which may be of either family
        wanted = {ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")}
    of_family = listening.version == 6 or any(each.version == 4 for each in wanted)
    return listening in wanted or (listening.is_unspecified and of_family)


def _without_mapping(address: _Address) -> _Address:
    """Return the IPv4 address that an IPv6 address stands for, else the address."""
    return (address.version == 6 and address.ipv4_mapped) or address


def _table_forms(end: End) -> list[str]:
    """Return the address as the tables write it: two forms for IPv4, since a socket of either family may hold it."""
    address = _without_mapping(ipaddress.ip_address(end[0].partition("%")[0]))
    if isinstance(address, ipaddress.IPv6Address):
        forms = [address.packed]
    else:
        forms = [address.packed, ipaddress.IPv6Address(f"::ffff:{address}").packed]
    return [f"{_as_hex_words(form)}:{end[1]:04X}" for form in forms]


def _as_hex_words(packed: bytes) -> str:
    """Return the address as 32-bit words in this machine's byte order, in hexadecimal."""
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))


def _lines_with(lines: bytes, pair: bytes) -> Iterator[list[bytes]]:
    """Yield the lines of connections between the pair of addresses, apart from sockets that still connect."""
    at = lines.find(pair)
    while at >= 0:
        begin, end = lines.rfind(b"\n", 0, at) + 1, lines.find(b"\n", at)
        fields = lines[begin : end if end >= 0 else None].split()
        if int(fields[_STATE], 16) != _CONNECTING:
            yield fields
        at = lines.find(pair, at + 1)


def _listens(lines: bytes, port: int) -> bool:
    return any(fields[_STATE] == _LISTEN for fields in _lines_of_port(lines, port))


def _lines_of_port(lines: bytes, port: int) -> Iterator[list[bytes]]:
    wanted = b":%04X " % port
    at = lines.find(wanted)
    while at >= 0:
        begin, end = lines.rfind(b"\n", 0, at) + 1, lines.find(b"\n", at)
        yield lines[begin : end if end >= 0 else None].split()
        at = lines.find(wanted, at + 1)
