"""The way to the daemon: where it listens, and a small HTTP client that keeps the promises of the wire.

The client speaks HTTP/1.1 over one kept connection with the standard library, because importing a full HTTP
package costs more than a whole recall. Every mutating request carries an ``Idempotency-Key`` of its own, so
that a lost answer may be asked for again: once after a broken connection or a 504, and after a 503 for as
long as the daemon's Retry-After fits into ``retry_window_s`` (a writer restarts within a second).

Only a 2xx with a JSON object is an answer. What else comes (a redirect, an empty body, the page of another
program) claims nothing: it is a refusal, and after a change its outcome is unknown.

Source: docs/reliability.md "HTTP outcomes"; docs/decisions.md 3.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import socket
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from signet_actors.cli.presentation import one_line, say
from signet_actors.config.regular_file import read_regular
from signet_actors.config.workspace import Workspace
from signet_actors.errors import (
    ConfigError,
    DaemonNotRunning,
    ErrorCode,
    InvalidRequest,
    OutcomeUnknown,
    RequestRefused,
)
from signet_actors.protocol.http.headers import NEXT_CURSOR_HEADER, OWNER_TOKEN_HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from signet_actors.cli.invocation import Invocation

ACTOR = "cli"
JSON = "application/json"
JSON_LINES = "application/x-ndjson"
ADDRESS_FILE_NAME = "address"
MAX_SMALL_FILE_BYTES = 4096
CLIENT_WAIT_S = 5.0
MIN_RETRY_WAIT_S = 0.05
MAX_RETRY_AFTER_S = 3600.0
SHOWN_ERROR_CHARS = 500
WILDCARD_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where to reach one that listens on all

CODE_OF_STATUS: dict[int, ErrorCode] = {
    400: ErrorCode.INVALID_REQUEST,
    401: ErrorCode.UNAUTHORIZED,
    403: ErrorCode.FORBIDDEN,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    408: ErrorCode.REQUEST_TIMEOUT,
    409: ErrorCode.CONFLICT,
    413: ErrorCode.PAYLOAD_TOO_LARGE,
    421: ErrorCode.MISDIRECTED_REQUEST,
    429: ErrorCode.RATE_LIMITED,
    501: ErrorCode.NOT_IMPLEMENTED,
    503: ErrorCode.UNAVAILABLE,
    504: ErrorCode.OUTCOME_UNKNOWN,
    507: ErrorCode.STORAGE_FULL,
}
"""The code of an answer whose body names none (a proxy's, or an older daemon's)."""

MUTATING = ("POST", "PATCH", "PUT", "DELETE")


@dataclass(frozen=True)
class Address:
    """Where the daemon listens. ``chosen`` is true where it need not be compared: the caller named it with ``--url``,
    or the daemon that holds the workspace wrote it down.
    """

    host: str
    port: int
    secure: bool = False
    prefix: str = ""
    trusted: bool = True
    workspace: Path | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.prefix}"


@dataclass(frozen=True)
class DaemonReply:
    """An answer of the daemon: 2xx, a JSON object. ``raw`` is its body as it came; ``changes``: to a change.

    ``next_cursor`` is set where the answer is a page of lines that others follow; its ``body`` is empty then.
    """

    status: int
    raw: bytes
    body: dict[str, Any]
    changes: bool = False
    next_cursor: str | None = None

    @property
    def warnings(self) -> list[str]:
        """What of the request had no effect, one line each."""
        found = self.body.get("warnings")
        items = found if isinstance(found, list) else []
        return [one_line(warning, SHOWN_ERROR_CHARS) for warning in items if isinstance(warning, str)]

    def records(self, name: str) -> list[dict[str, Any]]:
        """The member that is a list of objects; raises RequestRefused where it is anything else, or missing."""
        found = self.body.get(name)
        if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
            raise self.malformed(f"no list of {name}")
        return found

    def text(self, name: str) -> str:
        """The member that is a text; raises RequestRefused where it is anything else, empty, or missing."""
        found = self.body.get(name)
        if not isinstance(found, str) or not found:
            raise self.malformed(f"no {name}")
        return found

    def confirm(self, name: str, *words: str | bool) -> None:
        """The member says one of the words; raises RequestRefused where it says anything else, or nothing."""
        value = self.body.get(name)
        if not any(type(value) is type(word) and value == word for word in words):
            raise self.malformed(f"it does not say {name} {' or '.join(json.dumps(word) for word in words)}")

    def malformed(self, why: str) -> RequestRefused:
        """The refusal of this answer: it has not the form that the API gives it."""
        return invalid_reply(why, changes=self.changes, answer=self.raw)


def find_address(invocation: Invocation) -> Address:
    """The daemon's address: ``--url``, else the running daemon's own note, else environment and configuration."""
    if invocation.url:
        return address_from_url(invocation.url)
    workspace = invocation.workspace
    recorded = recorded_address(workspace)
    if recorded is not None:
        return recorded
    return configured_address(invocation, workspace)


def address_from_url(url: str) -> Address:
    """The address that a URL (or a bare ``host:port``) names; raises InvalidRequest where it names none."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError as error:
        raise InvalidRequest(f"--url {url!r} is not an address ({error})") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest(f"--url {url!r} is not an address; it should look like http://127.0.0.1:3850")
    secure = parts.scheme == "https"
    return Address(parts.hostname, port or (443 if secure else 80), secure, parts.path.rstrip("/"))


def recorded_address(workspace: Path) -> Address | None:
    """The address that a daemon of this workspace wrote down; None without a usable note.

    It is ``chosen`` when the process that wrote it holds the workspace. The note of a daemon that was killed may name
    a port that another workspace's daemon has taken since.
    """
    from signet_actors.cli.daemon_process import is_held_by  # noqa: PLC0415 - not paid by --help and completion

    try:
        note = json.loads(read_regular(workspace / ".daemon" / ADDRESS_FILE_NAME, MAX_SMALL_FILE_BYTES))
        host, port, pid = str(note["host"]), int(note["port"]), note.get("pid")
    except (ConfigError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Address(WILDCARD_ADDRESSES.get(host, host), port, trusted=is_held_by(workspace, pid), workspace=workspace)


def configured_address(invocation: Invocation, workspace: Path) -> Address:
    """The address where a daemon of this configuration would listen; another workspace's daemon may hold that port."""
    from signet_actors.config.load import load_config  # noqa: PLC0415 - only without a running daemon's note

    if invocation.any_port:
        raise DaemonNotRunning(f"no daemon runs on {workspace}")
    environment = invocation.settings
    try:
        gateway = load_config(workspace, environment).config.gateway
    except ConfigError as error:
        problem = error.detail.split("\n", 1)[0]
        raise DaemonNotRunning(
            f"no daemon runs on {workspace}, and its configuration is not valid ({problem})"
        ) from error
    return Address(
        WILDCARD_ADDRESSES.get(gateway.host, gateway.host),
        gateway.port,
        trusted=False,
        workspace=workspace,
    )


class DaemonClient:
    """Requests to one daemon over one connection, which is made anew when it breaks."""

    def __init__(self, address: Address, *, timeout_s: float = 30.0, retry_window_s: float = CLIENT_WAIT_S) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self.retry_window_s = retry_window_s
        self.last: DaemonReply | None = None
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str, **query: Any) -> DaemonReply:
        """The answer to a read. Query parameters that are None are left out."""
        return self.request("GET", path, query=query)

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> DaemonReply:
        """The answer to a change. Members that are None are left out."""
        return self.request(method, path, body=_without_none(body))

    def ask(self, path: str, body: Mapping[str, Any]) -> DaemonReply:
        """The answer to a POST that changes nothing. Members that are None are left out."""
        return self.request("POST", path, body=_without_none(body), changes=False)

    def page(self, path: str, **query: Any) -> DaemonReply:
        """A page of JSON Lines; raises RequestRefused where anything else comes."""
        return self.request("GET", path, query=query, accept=JSON_LINES)

    def send_lines(self, path: str, lines: bytes, *, key: str, **query: Any) -> DaemonReply:
        """The answer to JSON Lines that are to be stored; with the same ``key`` they are stored once."""
        return self.request("POST", path, query=query, lines=lines, key=key)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        changes: bool | None = None,
        lines: bytes | None = None,
        key: str | None = None,
        accept: str = JSON,
    ) -> DaemonReply:
        """The daemon's answer; raises RequestRefused, OutcomeUnknown or DaemonNotRunning.

        ``changes`` tells whether the request changes anything; by default its method does. ``key`` is the
        Idempotency-Key of a change, else a new one.
        """
        changes = method in MUTATING if changes is None else changes
        target = self.address.prefix + path
        given = {name: _query_text(value) for name, value in (query or {}).items() if value is not None}
        if given:
            target += "?" + urlencode(given, errors="surrogateescape")
        headers = {"Accept": accept, "x-signet-actor": ACTOR, "x-signet-actor-type": "operator"}
        payload = lines
        if body is not None:
            payload = _encode_utf8(json.dumps(body, ensure_ascii=False))
        if payload is not None:
            headers["Content-Type"] = JSON if lines is None else JSON_LINES
        headers |= self._owner_token()
        if changes:
            headers["Idempotency-Key"] = key or f"{ACTOR}-{uuid.uuid4()}"
        self._verify_workspace()
        self.last = self._send_with_retries(method, target, payload, headers, changes=changes)
        if lines is None:  # who sends lines knows their numbers in the input
            for warning in self.last.warnings:
                say(f"warning: {warning}")
        return self.last

    def close(self) -> None:
        """The connection is closed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send_with_retries(
        self, method: str, target: str, payload: bytes | None, headers: dict[str, str], *, changes: bool = False
    ) -> DaemonReply:
        retry_until = time.monotonic() + self.retry_window_s
        retried = False
        while True:
            try:
                response, raw = self._send_once(method, target, payload, headers)
            except UnicodeError as error:  # a host name that no name service could take
                raise self._not_running() from error
            except (http.client.HTTPException, ConnectionError, TimeoutError, OSError) as error:
                self.close()
                if isinstance(error, ConnectionRefusedError | socket.gaierror):
                    raise self._not_running() from error
                if retried or isinstance(error, TimeoutError):
                    raise self._no_answer(error, changes=changes) from error
                retried = True
                continue
            if response.status < 400:
                if headers["Accept"] == JSON_LINES:
                    return _parse_page(response, raw)
                return _parse_answer(response, raw, changes=changes)
            refused = _parse_refusal(response, raw, changes=changes)
            if refused.code is ErrorCode.OUTCOME_UNKNOWN and not retried:
                retried = True
                continue
            wait_s = (refused.retry_after_ms or 0) / 1000
            retryable = refused.code in (ErrorCode.BUSY, ErrorCode.UNAVAILABLE, ErrorCode.NOT_APPLIED)
            if retryable and wait_s > 0 and time.monotonic() + wait_s <= retry_until:
                time.sleep(max(wait_s, MIN_RETRY_WAIT_S))
                continue
            raise refused

    def _send_once(
        self, method: str, target: str, payload: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self.address.secure else http.client.HTTPConnection
            self._connection = kind(self.address.host, self.address.port, timeout=self.timeout_s)
        self._connection.request(method, target, body=payload, headers=headers)
        response = self._connection.getresponse()
        return response, response.read()

    def _verify_workspace(self) -> None:
        """Compare the workspace of the daemon at an address that is not ``chosen``; raises DaemonNotRunning."""
        if self.address.trusted or self.address.workspace is None:
            return
        address, workspace = self.address, self.address.workspace
        self.address = Address(address.host, address.port, workspace=workspace)
        try:
            served = self._send_with_retries("GET", "/health", None, {"Accept": "application/json"}).body.get(
                "agentsDir"
            )
        except RequestRefused:
            served = None
        if not isinstance(served, str) or os.path.realpath(served) != os.path.realpath(workspace):
            other = f"the workspace {served}" if isinstance(served, str) else "another program"
            raise DaemonNotRunning(f"no daemon runs on {workspace} (port {address.port} belongs to {other})")

    def _owner_token(self) -> dict[str, str]:
        """The header that proves the owner to the daemon of our workspace, where that has a token.

        Only a running daemon's own note names whom it may be items: another program could have taken the port.
        """
        workspace = self.address.workspace
        if workspace is None:
            return {}
        try:
            token = read_regular(Workspace(workspace).owner_token_file, MAX_SMALL_FILE_BYTES).decode("ascii")
        except (ConfigError, OSError, UnicodeDecodeError):
            return {}
        from signet_actors.cli.daemon_process import lock_held  # noqa: PLC0415 - only where there is a token

        if not token.isalnum() or recorded_address(workspace) != self.address or not lock_held(workspace):
            return {}
        return {OWNER_TOKEN_HEADER: token}

    def _not_running(self) -> DaemonNotRunning:
        if self.address.workspace is not None:
            return DaemonNotRunning(f"no daemon runs on {self.address.workspace}")
        return DaemonNotRunning(f"no daemon answers at {self.address}")

    def _no_answer(self, error: Exception, *, changes: bool) -> OutcomeUnknown | RequestRefused:
        reason = "no answer in time" if isinstance(error, TimeoutError) else "the connection broke"
        if changes:
            return OutcomeUnknown(f"{reason} from {self.address}; whether the change was applied is unknown")
        return RequestRefused(f"{reason} from {self.address}", code=ErrorCode.UNAVAILABLE)


def memory_path(memory_id: str, tail: str = "") -> str:
    """The path of a memory; an id with unusual characters cannot leave it."""
    return f"/api/memory/{quote(memory_id, safe='', errors='surrogateescape')}{tail}"


def invalid_reply(why: str, *, changes: bool, answer: bytes = b"") -> RequestRefused:
    """The refusal of what no Signet daemon would say; after a change nobody knows what was applied."""
    return RequestRefused(
        f"the answer is not one of a Signet daemon ({why})",
        code=ErrorCode.OUTCOME_UNKNOWN if changes else ErrorCode.MISDIRECTED_REQUEST,
        answer=answer,
    )


def retry_after_ms(header: str | None) -> int | None:
    """The wait that a Retry-After in seconds asks for, an hour at most; None without a usable one."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return int(min(seconds, MAX_RETRY_AFTER_S) * 1000)


def _without_none(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _encode_utf8(text: str) -> bytes:
    """The text in UTF-8; bytes of an argument that the locale could not read are as they were given."""
    try:
        data = text.encode("utf-8", "surrogateescape")
        data.decode()
    except UnicodeError as error:
        raise InvalidRequest("a given text is not UTF-8") from error
    return data


def _query_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _parse_object(raw: bytes) -> dict[str, Any] | None:
    """The JSON object of a body; None where it is anything else."""
    try:
        decoded = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, dict) else None


def _parse_answer(response: http.client.HTTPResponse, raw: bytes, *, changes: bool) -> DaemonReply:
    body = _parse_object(raw)
    if not 200 <= response.status < 300:
        raise invalid_reply(one_line(f"{response.status} {response.reason}"), changes=changes)
    if body is None:
        raise invalid_reply("it is no JSON object" if raw.strip() else "it is empty", changes=changes)
    return DaemonReply(response.status, raw, body, changes)


def _parse_page(response: http.client.HTTPResponse, raw: bytes) -> DaemonReply:
    kind = (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()
    if response.status != 200 or kind != JSON_LINES:
        raise invalid_reply(one_line(f"{response.status} {response.reason}, {kind or 'no type'}"), changes=False)
    return DaemonReply(response.status, raw, {}, next_cursor=response.getheader(NEXT_CURSOR_HEADER))


def _parse_refusal(response: http.client.HTTPResponse, raw: bytes, *, changes: bool) -> RequestRefused:
    body = _parse_object(raw)
    fields = body or {}
    try:
        code = ErrorCode(fields.get("code", ""))
    except ValueError:
        code = _code_of(response.status, changes=changes)
    words = [word for word in (fields.get("error"), fields.get("status")) if isinstance(word, str) and word]
    detail = words[0] if words else f"the daemon answered {response.status} {response.reason}"
    field = fields.get("field")
    return RequestRefused(
        one_line(detail, SHOWN_ERROR_CHARS),
        code=code,
        field=field if isinstance(field, str) else None,
        retry_after_ms=retry_after_ms(response.getheader("Retry-After")),
        answer=raw if body is not None else b"",
    )


def _code_of(status: int, *, changes: bool) -> ErrorCode:
    """The code of a refusal that names none: a failure behind a proxy may have come after the change."""
    if status in CODE_OF_STATUS:
        return CODE_OF_STATUS[status]
    if status < 500:
        return ErrorCode.CONFLICT
    return ErrorCode.OUTCOME_UNKNOWN if changes else ErrorCode.INTERNAL
