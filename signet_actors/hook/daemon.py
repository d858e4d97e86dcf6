"""Find the daemon and send it one request, with the standard library's ``socket`` only.

``http.client`` takes longer to import than the daemon takes to answer. The request is HTTP/1.0, so that the answer is
never in chunks and ends with the connection.

The rule by which the daemon is found is that of ``signet_actors/client/location.py``, which takes too long to import.

Source: docs/cli.md "Which daemon"; docs/security.md "Local mode".
"""

from __future__ import annotations

import json
import os
import socket
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_PORT = 65_535
MAX_ANSWER_BYTES = 4 << 20
REASONS_TO_WAIT = frozenset(
    (
        *("busy", "unavailable", "storage_full", "mutations_frozen", "rate_limited", "unauthorized", "forbidden"),
        *("not_applied", "request_timeout"),
    )
)
"""Why a hook of the daemon did nothing although it answered with 200, if that tells the daemon's state."""
REASONS_TO_RETRY = frozenset(("timeout", "internal", "outcome_unknown"))
"""The same, if the cause may be the request: a later try may succeed."""
REASONS_TO_GIVE_UP = frozenset(("invalid_request", "payload_too_large", "conflict", "idempotency_conflict"))
REASONS_NOT_TO_KEEP = frozenset(("no_hooks", "bypassed", "claimed", "disabled", "other_project", "review", "forgotten"))
"""Why a report is not stored although nothing failed: as the user wants it, or another path has the session."""
CHECKPOINT = "/session-checkpoint-extract"
PROMPT = "/user-prompt-submit"
"""Kept only to switch memory off for its session."""
_NOT_ON_DISK = "not on disk yet"
MAX_KEY_CHARS = 200
"""Of an idempotency key that is repeated as a header; the body always has it."""
_MAX_SMALL_FILE_BYTES = 4096
_MAX_LOGINS_BYTES = 65_536
_WILDCARD_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - how to reach a daemon on all interfaces


START_IT = "Start it with `signet start`."
_MAX_REFUSAL_CHARS = 300


class NoAnswer(Exception):
    """The daemon gave no usable answer: a text and a ``remedy`` for a user, the ``status`` of a refusal, else 0."""

    def __init__(self, text: str, remedy: str = START_IT, *, status: int = 0) -> None:
        super().__init__(text)
        self.remedy = remedy
        self.status = status


class Address:
    """Where the daemon listens. ``owner_token`` is sent to our workspace's own daemon only.

    ``named``: the environment names it, so a report for it is for no other daemon. ``socket``: the Unix socket of our
    workspace's daemon; empty if there is none.
    """

    __slots__ = ("host", "named", "owner_token", "port", "prefix", "secure", "socket")

    def __init__(
        self,
        host: str,
        port: int,
        *,
        secure: bool = False,
        prefix: str = "",
        owner_token: str = "",
        named: bool = False,
        socket: str = "",
    ) -> None:
        self.socket = socket
        self.host = host
        self.port = port
        self.secure = secure
        self.prefix = prefix
        self.owner_token = owner_token
        self.named = named

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.prefix}"


def refused_start(workspace: str) -> str:
    """Return why the last start of the workspace's daemon was refused; empty if it was not, or is corrected since."""
    try:
        path = os.path.join(workspace, ".daemon", "refusal")
        config = os.path.join(workspace, "agent.yaml")
        if os.path.exists(config) and os.path.getmtime(config) > os.path.getmtime(path):
            return ""
        return " ".join(_read_own(path).decode("utf-8", "replace").split())[:_MAX_REFUSAL_CHARS]
    except (OSError, ValueError):
        return ""


def workspace_of(environ: dict[str, str], given: str = "") -> str:
    """Return the workspace: ``given``, else ``SIGNET_WORKSPACE``, else ``~/.agents``."""
    named = given or environ.get("SIGNET_WORKSPACE", "")
    return os.path.abspath(os.path.expanduser(named or "~/.agents"))


def find_daemon(environ: dict[str, str], workspace: str) -> Address:
    """Return the address of the daemon: that of SIGNET_DAEMON_URL, else of the daemon that runs on the workspace.

    No other port counts: the daemon of another workspace may listen there, and must see no prompt. Raises NoAnswer.
    """
    url = environ.get("SIGNET_DAEMON_URL")
    found = _address_of_url(url) if url else recorded_address(workspace)
    if found is None:
        raise NoAnswer(f"no daemon runs on {workspace}")
    return found


def _address_of_url(url: str) -> Address:
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "http", url
    authority, slash, path = rest.partition("/")
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = authority, ""
    secure = scheme.lower() == "https"
    is_port = not port or (port.isascii() and port.isdigit() and int(port) <= MAX_PORT)
    is_host = bool(host.strip("[]")) and "@" not in host and (":" not in host or host[0] + host[-1] == "[]")
    is_more = "?" in rest or "#" in rest
    if scheme.lower() not in ("http", "https") or not is_host or is_more or not is_port:
        raise NoAnswer("SIGNET_DAEMON_URL is not an address", "It should look like http://127.0.0.1:3850.")
    number = int(port or 0) or (443 if secure else 80)
    return Address(host.strip("[]").lower(), number, secure=secure, prefix=f"{slash}{path}".rstrip("/"), named=True)


def recorded_address(workspace: str) -> Address | None:
    """Return the address that a running daemon of the workspace wrote down; None if there is no such file.

    After a daemon was killed, another program may listen on the recorded port. Therefore the process that wrote the
    address must hold the workspace; raises NoAnswer if it does not, or if another user's program has the port.
    """
    try:
        note = json.loads(_read_own(os.path.join(workspace, ".daemon", "address")))
        host, port, pid = str(note["host"]), int(note["port"]), note.get("pid")
        local = str(note.get("socket") or "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    local = local if _is_own_socket(local) else ""
    if not _is_held_by(workspace, pid) or (not local and _is_other_users_port(port)):
        raise NoAnswer(f"no daemon runs on {workspace}")
    try:
        token = _read_own(os.path.join(workspace, ".daemon", "owner-token")).decode("ascii")
    except (OSError, ValueError):
        token = ""
    token = token if token.isalnum() else ""
    secure = note.get("tls") is True
    return Address(_WILDCARD_ADDRESSES.get(host, host), port, secure=secure, owner_token=token, socket=local)


def _is_own_socket(path: str) -> bool:
    """Return whether the path is a socket of this user: in /tmp another user could make a new one of the same name."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()


def _read_own(path: str, limit: int = _MAX_SMALL_FILE_BYTES) -> bytes:
    """Return the content of a small file of this user. Raises OSError."""
    descriptor = open_own(path)
    try:
        return os.read(descriptor, limit)
    finally:
        os.close(descriptor)


def open_own(path: str) -> int:
    """Return a descriptor of a regular file that belongs to this user, or to root. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.geteuid()):
        os.close(descriptor)
        raise PermissionError(1, "it is not a regular file of this user", path)
    return descriptor


def _is_held_by(workspace: str, pid: object) -> bool:
    """Return whether the workspace is locked and its lock file names this pid. In a container the pid is another."""
    try:
        named = _read_own(os.path.join(workspace, ".daemon", "lock")).decode().strip()
    except (OSError, ValueError):
        return False
    return named == str(pid) and _is_locked(os.path.join(workspace, "memory"))


def _is_locked(directory: str) -> bool:
    """Return whether a process holds the lock on the directory of the database."""
    import fcntl  # noqa: PLC0415 - needed only if a daemon wrote its address down

    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _is_other_users_port(port: int) -> bool:
    """Return whether a program of another user, not root, listens on the port. Linux only; elsewhere False."""
    found: set[str] = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(name, encoding="ascii") as table:
                found |= listeners(table.read(), port)
        except (OSError, ValueError):
            continue
    return bool(found - {"0", str(os.geteuid())})


def listeners(table: str, port: int) -> set[str]:
    """Return the uids of the programs that listen on the port, by Linux's table of TCP sockets.

    Source: proc_pid_net(5) "/proc/pid/net/tcp"; the state TCP_LISTEN in Linux's include/net/tcp_states.h.
    """
    rows = (line.split() for line in table.splitlines()[1:])
    return {row[7] for row in rows if len(row) > 7 and row[1].endswith(f":{port:04X}") and row[3] == "0A"}


def post(address: Address, path: str, body: dict[str, Any], headers: dict[str, str], deadline: float) -> dict[str, Any]:
    """Send a POST and return the JSON object of the 2xx answer, by the monotonic ``deadline``; raise NoAnswer."""
    payload = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    host = f"[{address.host}]" if ":" in address.host else address.host
    given = {
        "Host": f"{host}:{address.port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(payload)),
        "Accept": "application/json",
        **headers,
    }
    if address.owner_token:
        given["x-signet-owner-token"] = address.owner_token
    lines = [f"POST {address.prefix}{path} HTTP/1.0", *(f"{name}: {value}" for name, value in given.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise NoAnswer("a header of the request has a line break", "Check SIGNET_TOKEN and SIGNET_DAEMON_URL.")
    head = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"
    try:
        raw = _exchange(address, head + payload, deadline)
    except TimeoutError:
        raise NoAnswer(f"the daemon at {address} did not answer in time", "Check it with `signet status`.") from None
    except (OSError, UnicodeError):
        raise NoAnswer(f"no daemon answers at {address}") from None
    return _parsed(raw, address)


def status_of_report(path: str, body: dict[str, Any], answer: dict[str, Any]) -> int:
    """Return the status that an answer with 200 to a report stands for: 500 if sending it again may help, else 200.

    200: the answer says that the daemon has it, or does not want it; then no copy may stay. The end of a session
    without a transcript is always answered as skipped, and is noted all the same. A daemon of an earlier release tells
    only in words whether a switch is on its disk.
    """
    if answer.get("skipped") is True and (answer.get("reason") in REASONS_NOT_TO_KEEP or answer.get("claimedBy")):
        return 200
    if path.endswith(PROMPT):
        is_on_disk = answer.get("engine") == "disabled" and _NOT_ON_DISK not in str(answer.get("inject"))
        return 200 if answer.get("bypassed") is True or is_on_disk or answer.get("reason") == "no_session" else 500
    if path.endswith(CHECKPOINT):
        return 200 if "stored" in answer and answer.get("skipped") is not True else 500
    is_end = path.endswith("/session-end")
    is_empty_end = is_end and not body.get("transcript") and not body.get("transcriptPath")
    if answer.get("skipped") is True and answer.get("duplicateSessionEnd") is not True and not is_empty_end:
        return 500
    if is_end:
        return 200 if type(answer.get("memoriesSaved")) is int else 500
    if path.endswith("/compaction-complete"):
        return 200 if answer.get("success") is True else 500
    return 200 if answer.get("saved") is True else 500


def headers_of(
    body: dict[str, Any], harness: str, environ: dict[str, str], address: Address, *, late: bool = False
) -> dict[str, str]:
    """Return the headers of a hook's request: who sends it, the token for the daemon at the address, the body's key.

    ``late``: it waited, and the session may have gone on since.
    """
    headers = {"x-signet-actor": harness, "x-signet-actor-type": "harness"}
    if late:
        headers["x-signet-late"] = "1"
    token = token_for(address, environ) or (login_for(address, environ) if address.named else "")
    if token:
        headers["Authorization"] = f"Bearer {token}"
    key = body.get("idempotencyKey")
    if isinstance(key, str) and len(key) <= MAX_KEY_CHARS and key.isascii() and key.isprintable():
        headers["Idempotency-Key"] = key
    return headers


def token_for(address: Address, environ: dict[str, str]) -> str:
    """Return the token or API key of the environment. One beside SIGNET_DAEMON_URL is for that daemon and no other."""
    if environ.get("SIGNET_DAEMON_URL"):
        try:
            if str(address) != str(_address_of_url(environ["SIGNET_DAEMON_URL"])):
                return ""
        except NoAnswer:
            return ""
    return environ.get("SIGNET_TOKEN") or environ.get("SIGNET_API_KEY") or ""


def login_for(address: Address, environ: dict[str, str]) -> str:
    """Return the token that `signet login` stored for the daemon at this address; empty if there is none."""
    configured = environ.get("XDG_CONFIG_HOME", "")
    directory = (
        configured
        if configured.startswith("/")
        else os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    )
    try:
        token = json.loads(_read_own(os.path.join(directory, "signet", "logins.json"), _MAX_LOGINS_BYTES))[str(address)]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""
    return token if isinstance(token, str) and token.isascii() and token.isprintable() else ""


def _exchange(address: Address, request: bytes, deadline: float) -> bytes:
    """Send the request and return the whole answer. Raises OSError, among them TimeoutError at the deadline."""
    # An ASCII name is given as bytes, because Python encodes any text as an international domain name: 2 ms of imports.
    host: Any = address.host.encode() if address.host.isascii() else address.host
    if address.socket:
        connection = socket.socket(socket.AF_UNIX)
    else:
        connection = socket.create_connection((host, address.port), timeout=_remaining(deadline))
    with connection:
        if address.socket:
            connection.settimeout(_remaining(deadline))
            connection.connect(address.socket)
        elif address.secure:
            import ssl  # noqa: PLC0415 - slow; a daemon on this machine is reached without

            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=address.host)
        connection.settimeout(_remaining(deadline))
        connection.sendall(request)
        answer = bytearray()
        while len(answer) <= MAX_ANSWER_BYTES:
            connection.settimeout(_remaining(deadline))
            part = connection.recv(1 << 16)
            if not part:
                break
            answer += part
            if _is_complete(answer):
                break
        return bytes(answer)


def _remaining(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _is_complete(answer: bytearray) -> bool:
    head, separator, content = answer.partition(b"\r\n\r\n")
    length = _content_length(bytes(head))
    return bool(separator) and length is not None and len(content) >= length


def _content_length(head: bytes) -> int | None:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    return None


def _parsed(raw: bytes, address: Address) -> dict[str, Any]:
    head, separator, content = raw.partition(b"\r\n\r\n")
    status_line = head.split(b"\r\n", 1)[0].split(b" ")
    if not separator or len(status_line) < 2 or not status_line[1].isdigit():
        raise NoAnswer(f"the connection to the daemon at {address} was lost", "Check it with `signet status`.")
    length = _content_length(head)
    if length is not None and len(content) < length:
        raise NoAnswer(f"the connection to the daemon at {address} was lost", "Check it with `signet status`.")
    status = int(status_line[1])
    try:
        answer = json.loads(content[:length])
    except (ValueError, RecursionError):
        answer = None
    if not 200 <= status < 300:
        raise _refusal(address, status, answer)
    if not isinstance(answer, dict):
        raise NoAnswer(f"the program at {address} is not a Signet daemon", "Check SIGNET_DAEMON_URL.")
    if answer.get("skipped") is True and isinstance(answer.get("reason"), str):
        _raise_skipped(address, answer["reason"])
    return answer


def _raise_skipped(address: Address, reason: str) -> None:
    """Raise NoAnswer for a 200 that says that nothing was done, unless it is as the user or the session wants it."""
    if reason in REASONS_TO_WAIT | REASONS_TO_RETRY | REASONS_TO_GIVE_UP:
        status = 400 if reason in REASONS_TO_GIVE_UP else 500 if reason in REASONS_TO_RETRY else 503
        raise NoAnswer(f"the daemon at {address} could not answer ({reason})", "Check `signet status`.", status=status)


def _refusal(address: Address, status: int, answer: object) -> NoAnswer:
    if status == 401:
        return NoAnswer(f"the daemon at {address} does not know this user", "Run `signet login`.", status=status)
    if status == 404:
        return NoAnswer(
            f"the program at {address} knows no hooks", "Upgrade the daemon, or check SIGNET_DAEMON_URL.", status=status
        )
    reason = answer.get("error") if isinstance(answer, dict) else None
    shown = f": {' '.join(reason.split())[:200]}" if isinstance(reason, str) else ""
    return NoAnswer(
        f"the daemon at {address} refused (status {status}{shown})", "Check `signet status`.", status=status
    )
