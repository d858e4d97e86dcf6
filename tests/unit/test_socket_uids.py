"""The owner of a connection, by tables in the kernel's format and by a real connection.

Source: proc_pid_net(5).
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from signet_actors.runtime.socket_uids import SOCKET_CLOSED, End, listener_uids, netlink_uid, peer_uid

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LISTENS = (
    "   0: 0100007F:0F0A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 51 1 0 100 0 0 10 0\n"
)
CLIENT, SERVER = ("127.0.0.1", 41442), ("127.0.0.1", 3850)

pytestmark = pytest.mark.skipif(
    sys.byteorder != "little", reason="the tables below are those of a little-endian machine"
)


def table(tmp_path: Path, *lines: str, name: str = "tcp") -> Path:
    path = tmp_path / name
    path.write_text(HEAD + "".join(lines))
    return path


def line(pair: str, *, state: str = "01", uid: int = 1000, inode: int = 77) -> str:
    return f"   9: {pair} {state} 00000000:00000000 00:00000000 00000000 {uid:5} {0:8} {inode} 1 0 20 0 0 10 -1\n"


FROM_CLIENT = "0100007F:A1E2 0100007F:0F0A"
FROM_SERVER = "0100007F:0F0A 0100007F:A1E2"
MAPPED = "0000000000000000FFFF00000100007F:A1E2 0000000000000000FFFF00000100007F:0F0A"
OF_SIX = "00000000000000000000000001000000:A1E2 00000000000000000000000001000000:0F0A"


def test_the_uid_is_that_of_the_client_s_socket(tmp_path: Path) -> None:
    path = table(tmp_path, LISTENS, line(FROM_SERVER, uid=0), line(FROM_CLIENT, uid=65534))
    assert peer_uid(CLIENT, SERVER, (path,)) == 65534


def test_a_client_that_shut_down_its_side_still_has_its_uid(tmp_path: Path) -> None:
    path = table(tmp_path, LISTENS, line(FROM_CLIENT, state="05"))
    assert peer_uid(CLIENT, SERVER, (path,)) == 1000


def test_a_closed_socket_is_not_attributed_to_root(tmp_path: Path) -> None:
    path = table(tmp_path, LISTENS, line(FROM_CLIENT, state="05", uid=0, inode=0))
    assert peer_uid(CLIENT, SERVER, (path,)) == SOCKET_CLOSED


def test_a_socket_that_still_connects_from_the_same_port_is_not_the_client(tmp_path: Path) -> None:
    connecting, other = line(FROM_CLIENT, state="02", uid=0), line(FROM_CLIENT, uid=65534)
    assert peer_uid(CLIENT, SERVER, (table(tmp_path, LISTENS, connecting),)) == SOCKET_CLOSED
    for lines in ((connecting, other), (other, connecting)):
        assert peer_uid(CLIENT, SERVER, (table(tmp_path, LISTENS, *lines),)) == 65534
    two = table(tmp_path, LISTENS, line(FROM_CLIENT, uid=0, inode=78), other)
    assert peer_uid(CLIENT, SERVER, (two,)) == SOCKET_CLOSED


def test_netlink_does_not_take_a_socket_that_still_connects_for_the_client() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as stack:
        for _ in range(8):  # the queue of the listener is full, so one of them still connects
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        with client:
            assert netlink_uid(client.getsockname(), listener.getsockname()) == SOCKET_CLOSED


@pytest.mark.parametrize(("error", "uid"), [(errno.ENOENT, None), (errno.EMFILE, SOCKET_CLOSED)])
def test_a_table_that_cannot_be_opened_for_now_permits_nothing(
    monkeypatch: pytest.MonkeyPatch, error: int, uid: int | None
) -> None:
    def refuse(_: Path) -> bytes:
        raise OSError(error, "no")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert peer_uid(CLIENT, SERVER) == uid


def test_a_connection_without_an_entry_has_no_owner(tmp_path: Path) -> None:
    assert peer_uid(CLIENT, SERVER, (table(tmp_path, LISTENS, line(FROM_SERVER)),)) == SOCKET_CLOSED


def test_a_client_s_socket_of_the_other_family_is_found(tmp_path: Path) -> None:
    tables = (table(tmp_path, LISTENS), table(tmp_path, line(MAPPED), name="tcp6"))
    assert peer_uid(CLIENT, SERVER, tables) == 1000
    assert peer_uid(("::ffff:127.0.0.1", 41442), ("::ffff:127.0.0.1", 3850), tables) == 1000


def test_a_connection_over_ipv6_is_found(tmp_path: Path) -> None:
    path = table(tmp_path, line(OF_SIX), name="tcp6")
    assert peer_uid(("::1", 41442), ("::1", 3850), (path,)) == 1000


def test_without_a_table_or_an_entry_the_owner_is_unknown(tmp_path: Path) -> None:
    assert peer_uid(CLIENT, SERVER, (tmp_path / "missing",)) is None
    assert peer_uid(CLIENT, SERVER, (table(tmp_path),)) is None


@pytest.mark.parametrize(
    ("listens_at", "connects_to"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "::ffff:127.0.0.1")]
)
@pytest.mark.parametrize("uid_of", [peer_uid, netlink_uid])
def test_a_real_connection_is_this_user_s(
    uid_of: Callable[[End, End], int | None], listens_at: str, connects_to: str
) -> None:
    family = socket.AF_INET6 if ":" in listens_at else socket.AF_INET
    with (
        socket.create_server((listens_at, 0), family=family, dualstack_ipv6=listens_at == "::") as listener,
        socket.socket(family) as client,
    ):
        client.connect((connects_to, listener.getsockname()[1]))
        server, _ = listener.accept()
        with server:
            ends = client.getsockname()[:2], server.getsockname()[:2]
            assert uid_of(*ends) == os.geteuid()
            client.shutdown(socket.SHUT_WR)
            assert uid_of(*ends) == os.geteuid()
            client.close()
            assert uid_of(*ends) == SOCKET_CLOSED


def test_netlink_names_the_other_user_of_a_connection_and_nobody_once_it_has_exited() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can start a program of another user")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        become = "import os, socket, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); c = socket.socket()"
        program = f"{become}; c.connect({listener.getsockname()!r}); sys.stdin.read()"
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as other:
            assert other.stdin is not None
            server, client = listener.accept()
            with server:
                assert netlink_uid(client, server.getsockname()) == 65534
                other.stdin.close()
                other.wait()
                assert netlink_uid(client, server.getsockname()) == SOCKET_CLOSED


def test_netlink_knows_no_connection_of_a_listener_at_the_port_of_the_client() -> None:
    with socket.create_server(("127.0.0.1", 0)) as client, socket.create_server(("127.0.0.1", 0)) as server:
        assert netlink_uid(client.getsockname(), server.getsockname()) is None


def test_without_netlink_the_kernel_s_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(socket, "socket", refuse)
    assert netlink_uid(CLIENT, SERVER) is None


def listens(address: str, *, uid: int, state: str = "0A") -> str:
    anywhere = "0" * (len(address) - 5) + ":0000"
    return line(f"{address} {anywhere}", state=state, uid=uid)


def test_listeners_are_those_that_a_loopback_connection_can_reach(tmp_path: Path) -> None:
    four = table(
        tmp_path,
        listens("0100007F:2CAA", uid=1001),
        listens("00000000:2CAA", uid=0),
        listens("0A01A8C0:2CAA", uid=1002),  # 192.168.1.10
        listens("0100007F:2CAB", uid=1003),
        listens("0100007F:2CAA", uid=1004, state="01"),
    )
    six = table(
        tmp_path,
        listens("00000000000000000000000001000000:2CAA", uid=1005),
        listens("00000000000000000000000000000000:2CAA", uid=1006),
        listens("0000000000000000FFFF00000100007F:2CAA", uid=1007),
        name="tcp6",
    )
    assert listener_uids(0x2CAA, tables=(four, six)) == {1001, 0, 1005, 1006, 1007}
    assert listener_uids(0x2CAA, "192.168.1.10", (four, six)) == {0, 1002, 1006}
    assert listener_uids(0x2CAA, "localhost", (four, six)) == {1001, 0, 1005, 1006, 1007}
    assert listener_uids(0x2CAA, "127.0.0.2", (four, six)) == {0, 1006}
    assert listener_uids(0x2CAA, "::1", (four, six)) == {1005, 1006}
    assert listener_uids(0x2CAC, tables=(four, six)) == frozenset()
    assert listener_uids(0x2CAA, tables=(tmp_path / "missing",)) == frozenset()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_a_real_listener_is_this_user_s(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        assert listener_uids(listener.getsockname()[1]) == {os.geteuid()}
