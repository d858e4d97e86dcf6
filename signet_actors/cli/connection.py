"""The way to the daemon: where it listens, and a small HTTP client that keeps the promises of the wire.

The client speaks HTTP/1.1 over one kept connection with the standard library, because importing a full HTTP
package costs more than a whole recall. Every mutating request carries an ``Idempotency-Key`` of its own, so
that a lost answer may be asked for again: once after a broken connection or a 504, and after a 503 for as
long as the daemon's Retry-After fits into ``patience_s`` (a writer restarts within a second).

Source: reliability.md appendix B, "HTTP outcomes"; decisions.md 3.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from signet_actors.errors import (
    ConfigError,
    DaemonNotRunning,
    ErrorCode,
    InvalidRequest,
    OutcomeUnknown,
    RequestRefused,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from signet_actors.cli.invocation import Invocation

ACTOR = "cli"
ADDRESS_FILE_NAME = "address"
PATIENCE_S = 5.0
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where to reach one that listens on all

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
    """Where the daemon listens. ``chosen`` is true when the caller named it and it is not to be doubted."""

    host: str
    port: int
    secure: bool = False
    prefix: str = ""
    chosen: bool = True
    workspace: Path | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.prefix}"


@dataclass(frozen=True)
class Answer:
    """An answer of the daemon with a status below 400. ``raw`` is its body as it came."""

    status: int
    raw: bytes
    body: Any


def find_address(invocation: Invocation) -> Address:
    """The daemon's address: ``--url``, else the running daemon's own note, else environment and configuration."""
    if invocation.url:
        return address_from_url(invocation.url)
    workspace = invocation.workspace
    noted = noted_address(workspace)
    if noted is not None:
        return noted
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


def noted_address(workspace: Path) -> Address | None:
    """The address that the daemon of this workspace wrote down when it was ready; None without a usable note."""
    try:
        note = json.loads((workspace / ".daemon" / ADDRESS_FILE_NAME).read_bytes())
        host, port = str(note["host"]), int(note["port"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Address(ANY_ADDRESS.get(host, host), port, workspace=workspace)


def configured_address(invocation: Invocation, workspace: Path) -> Address:
    """The address where a daemon of this configuration would listen.

    Unless the environment names it, another workspace's daemon may hold that port, so it is doubted.
    """
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
        ANY_ADDRESS.get(gateway.host, gateway.host),
        gateway.port,
        chosen=bool(environment.get("SIGNET_PORT") or environment.get("SIGNET_HOST")),
        workspace=workspace,
    )


class DaemonClient:
    """Requests to one daemon over one connection, which is made anew when it breaks."""

    def __init__(self, address: Address, *, timeout_s: float = 30.0, patience_s: float = PATIENCE_S) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self.patience_s = patience_s
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str, **query: Any) -> Answer:
        """The answer to a read. Query parameters that are None are left out."""
        return self.request("GET", path, query=query)

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> Answer:
        """The answer to a request with a body. Members that are None are left out."""
        return self.request(method, path, body={name: value for name, value in body.items() if value is not None})

    def request(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        """The daemon's answer below 400; raises RequestRefused, OutcomeUnknown or DaemonNotRunning."""
        target = self.address.prefix + path
        given = {name: _query_text(value) for name, value in (query or {}).items() if value is not None}
        if given:
            target += "?" + urlencode(given)
        headers = {"Accept": "application/json", "x-signet-actor": ACTOR, "x-signet-actor-type": "operator"}
        payload: bytes | None = None
        if body is not None:
            payload = json.dumps(body, ensure_ascii=True).encode()
            headers["Content-Type"] = "application/json"
        if method in MUTATING:
            headers["Idempotency-Key"] = f"{ACTOR}-{uuid.uuid4()}"
        self._doubt()
        return self._attempts(method, target, payload, headers)

    def close(self) -> None:
        """The connection is closed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _attempts(self, method: str, target: str, payload: bytes | None, headers: dict[str, str]) -> Answer:
        patient_until = time.monotonic() + self.patience_s
        asked_again = False
        while True:
            try:
                response, raw = self._once(method, target, payload, headers)
            except (http.client.HTTPException, ConnectionError, TimeoutError, OSError) as error:
                self.close()
                if isinstance(error, ConnectionRefusedError | socket.gaierror):
                    raise self._not_running() from error
                if asked_again or isinstance(error, TimeoutError):
                    raise self._no_answer(method, error) from error
                asked_again = True
                continue
            if response.status < 400:
                return Answer(response.status, raw, _decoded(raw))
            refused = _refusal(response, raw)
            if refused.code is ErrorCode.OUTCOME_UNKNOWN and not asked_again:
                asked_again = True
                continue
            wait_s = (refused.retry_after_ms or 0) / 1000
            retryable = refused.code in (ErrorCode.BUSY, ErrorCode.UNAVAILABLE, ErrorCode.NOT_APPLIED)
            if retryable and wait_s > 0 and time.monotonic() + wait_s <= patient_until:
                time.sleep(wait_s)
                continue
            raise refused

    def _once(
        self, method: str, target: str, payload: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self.address.secure else http.client.HTTPConnection
            self._connection = kind(self.address.host, self.address.port, timeout=self.timeout_s)
        self._connection.request(method, target, body=payload, headers=headers)
        response = self._connection.getresponse()
        return response, response.read()

    def _doubt(self) -> None:
        """The daemon at a merely configured address is the one of our workspace; raises DaemonNotRunning if not."""
        if self.address.chosen or self.address.workspace is None:
            return
        address, workspace = self.address, self.address.workspace
        self.address = Address(address.host, address.port, workspace=workspace)
        try:
            health = self._attempts("GET", "/health", None, {"Accept": "application/json"}).body
        except RequestRefused:
            health = None
        serves = health.get("agentsDir") if isinstance(health, dict) else None
        if not isinstance(serves, str) or os.path.realpath(serves) != os.path.realpath(workspace):
            other = f"the workspace {serves}" if isinstance(serves, str) else "another program"
            raise DaemonNotRunning(f"no daemon runs on {workspace} (port {address.port} belongs to {other})")

    def _not_running(self) -> DaemonNotRunning:
        if self.address.workspace is not None:
            return DaemonNotRunning(f"no daemon runs on {self.address.workspace}")
        return DaemonNotRunning(f"no daemon answers at {self.address}")

    def _no_answer(self, method: str, error: Exception) -> OutcomeUnknown | RequestRefused:
        reason = "no answer in time" if isinstance(error, TimeoutError) else "the connection broke"
        if method in MUTATING:
            return OutcomeUnknown(f"{reason} from {self.address}; whether the change was applied is unknown")
        return RequestRefused(f"{reason} from {self.address}", code=ErrorCode.UNAVAILABLE)


def memory_path(memory_id: str, tail: str = "") -> str:
    """The path of a memory; an id with unusual characters cannot leave it."""
    return f"/api/memory/{quote(memory_id, safe='')}{tail}"


def _query_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _refusal(response: http.client.HTTPResponse, raw: bytes) -> RequestRefused:
    body = _decoded(raw)
    said: dict[str, Any] = body if isinstance(body, dict) else {}
    try:
        code = ErrorCode(said.get("code", ""))
    except ValueError:
        code = CODE_OF_STATUS.get(response.status, ErrorCode.INTERNAL if response.status >= 500 else ErrorCode.CONFLICT)
    detail = said.get("error") or said.get("status") or f"the daemon answered {response.status} {response.reason}"
    try:
        retry_after_ms: int | None = int(float(response.getheader("Retry-After") or "") * 1000)
    except ValueError:
        retry_after_ms = None
    field = said.get("field")
    return RequestRefused(
        str(detail),
        code=code,
        field=field if isinstance(field, str) else None,
        retry_after_ms=retry_after_ms,
        answer=raw,
    )
