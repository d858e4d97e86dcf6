"""Find the daemon's address and send HTTP requests to it.

The standard library is used, because importing a full HTTP package takes longer than a recall. Each change carries an
``Idempotency-Key``, so that it is safe to retry: once after a broken connection or a 504, and after a 503 as long as
Retry-After fits into ``retry_window_s``. Only a 2xx with a JSON object counts as a reply. Anything else is an error;
after a change its outcome is unknown.

Source: docs/reliability.md "HTTP outcomes"; docs/decisions.md 3.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from signet_actors.cli.presentation import json_object, on_terminal, one_line, print_bytes, print_json, print_message
from signet_actors.cli.tables import print_wrapped
from signet_actors.config.daemon_address import WILDCARD_ADDRESSES, Address, owner_token, read_logins, token_for
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import lock_held
from signet_actors.errors import (
    ConfigError,
    DaemonNotRunning,
    ErrorCode,
    InvalidRequest,
    OutcomeUnknown,
    RequestRefused,
    code_of_status,
)
from signet_actors.operations.headers import JSON_LINES, NEXT_CURSOR_HEADER, OWNER_TOKEN_HEADER, retry_after_ms
from signet_actors.operations.request_path import fill_path

ACTOR = "cli"
JSON = "application/json"
CLIENT_WAIT_S = 5.0
ATTEMPTS = 4
MIN_RETRY_WAIT_S = 0.05

MUTATING = ("POST", "PATCH", "PUT", "DELETE")


def configured_address(workspace: Path, environment: Mapping[str, str]) -> Address:
    """Return the configured address of this workspace's daemon. Another workspace's daemon may listen there."""
    from signet_actors.config.load import load_config  # noqa: PLC0415 - only without a recorded address

    try:
        gateway = load_config(workspace, environment).config.gateway
    except ConfigError as error:
        if _is_unreadable(workspace):
            raise DaemonNotRunning(
                f"this user cannot read {workspace}, so its daemon is not found",
                remedy="Run the command as its owner, or give the address: `--url http://127.0.0.1:3850`.",
            ) from error
        problem = error.detail.split("\n", 1)[0]
        raise DaemonNotRunning(
            f"no daemon runs on {workspace}, and its configuration is not valid ({problem})",
            remedy="Correct it with `signet config edit`, then start it with `signet start`.",
        ) from error
    return Address(WILDCARD_ADDRESSES.get(gateway.host, gateway.host), gateway.port, trusted=False, workspace=workspace)


def _is_unreadable(workspace: Path) -> bool:
    """Return whether this user may not read the configuration, or not enter its directory."""
    try:
        Workspace(workspace).config_file.open("rb").close()
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


class DaemonClient:
    """A client of one daemon. It keeps one connection and reconnects when it breaks.

    ``headers`` are sent with each request; without any, a person acts (``x-signet-actor-type: operator``). ``environ``
    may have a token for this daemon, or the user a login for it. ``agent`` is named in each request but those that
    ``request`` sends.
    """

    def __init__(
        self,
        address: Address,
        *,
        timeout_s: float = 30.0,
        retry_window_s: float = CLIENT_WAIT_S,
        print_warnings: bool = True,
        headers: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        agent: str | None = None,
    ) -> None:
        self.address = address
        self.agent = agent
        self.timeout_s = timeout_s
        self.retry_window_s = retry_window_s
        self.print_warnings = print_warnings
        self.headers = {"x-signet-actor": ACTOR, "x-signet-actor-type": "operator", **(headers or {})}
        self._environ = environ or {}
        token = token_for(address, self._environ)
        if token is not None:
            self.headers["Authorization"] = f"Bearer {_checked(token)}"
        self.last: DaemonReply | None = None
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str, **query: Any) -> DaemonReply:
        """Send a read; return the reply. Query parameters that are None are omitted."""
        return self.request("GET", path, query=self._of_agent(query))

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> DaemonReply:
        """Send a change; return the reply. Members that are None are omitted."""
        return self.request(method, path, body=self._of_agent(body))

    def ask(self, path: str, body: Mapping[str, Any]) -> DaemonReply:
        """Send a POST that changes nothing; return the reply. Members that are None are omitted."""
        return self.request("POST", path, body=self._of_agent(body), changes=False)

    def page(self, path: str, **query: Any) -> DaemonReply:
        """Return a page of JSON Lines; raise RequestRefused if the reply is anything else."""
        return self.request("GET", path, query=self._of_agent(query), accept=JSON_LINES)

    def send_lines(self, path: str, lines: bytes, *, key: str, **query: Any) -> DaemonReply:
        """Send JSON Lines to be stored; return the reply. A repetition with the same ``key`` stores nothing twice."""
        return self.request("POST", path, query=self._of_agent(query), lines=lines, key=key)

    def _of_agent(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of a request that are not None, and the agent."""
        return {name: value for name, value in {"agentId": self.agent, **members}.items() if value is not None}

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
        """Send a request and return the reply; raise RequestRefused, OutcomeUnknown or DaemonNotRunning.

        ``changes`` tells whether the request changes anything; the default depends on the method. ``key`` is the
        Idempotency-Key of a change; the default is a new one.
        """
        changes = method in MUTATING if changes is None else changes
        target = self.address.prefix + path
        given = {
            name: json.dumps(value) if isinstance(value, bool) else str(value) for name, value in (query or {}).items()
        }
        if given:
            target += "?" + urlencode(given, errors="surrogateescape")
        headers = {"Accept": accept, **self.headers}
        payload = lines
        if body is not None:
            payload = _encode_utf8(json.dumps(body, ensure_ascii=False))
        if payload is not None:
            headers["Content-Type"] = JSON if lines is None else JSON_LINES
        owner = owner_token(self.address)
        if owner is not None:
            headers[OWNER_TOKEN_HEADER] = owner
        elif "Authorization" not in headers and (login := read_logins(self._environ).get(str(self.address))):
            headers["Authorization"] = f"Bearer {login}"
        if changes:
            headers["Idempotency-Key"] = key or f"{ACTOR}-{uuid.uuid4()}"
        self._verify_workspace()
        self.last = self._send_with_retries(method, target, payload, headers, changes=changes)
        if self.print_warnings and lines is None:  # an import prints them itself, with line numbers of its input
            for warning in self.last.warnings:
                print_message(f"warning: {warning}")
        return self.last

    def close(self) -> None:
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
            except UnicodeError as error:  # the host name cannot be encoded for a DNS query
                raise self._not_running() from error
            except (http.client.HTTPException, ConnectionError, TimeoutError, OSError) as error:
                self.close()
                if isinstance(error, ConnectionRefusedError | FileNotFoundError | socket.gaierror):
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
            is_tls = self.address.secure and not self.address.socket
            kind = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
            self._connection = kind(self.address.host, self.address.port, timeout=self.timeout_s)
            if self.address.socket:
                self._connection.sock = connected = socket.socket(socket.AF_UNIX)
                connected.settimeout(self.timeout_s)
                connected.connect(self.address.socket)
        self._connection.request(method, target, body=payload, headers=headers)
        response = self._connection.getresponse()
        return response, response.read()

    def _verify_workspace(self) -> None:
        """Raise DaemonNotRunning if the address is not ``trusted`` and its daemon does not serve our workspace.

        Any program can claim to serve it, so a daemon must also hold the workspace, and another user's may not listen.
        """
        if self.address.trusted or self.address.workspace is None:
            return
        address, workspace = self.address, self.address.workspace
        self.address = replace(address, trusted=True)
        try:
            served = self._send_with_retries("GET", "/health", None, {"Accept": "application/json"}).body.get(
                "agentsDir"
            )
        except RequestRefused:
            served = None
        if not isinstance(served, str) or os.path.realpath(served) != os.path.realpath(workspace):
            other = f"the workspace {served}" if isinstance(served, str) else "another program"
            use_it = f"Use that daemon with `--url {address}`, or start" if isinstance(served, str) else "Start"
            raise DaemonNotRunning(
                f"no daemon runs on {workspace} (port {address.port} belongs to {other})",
                remedy=f"{use_it} one on another port: `SIGNET_PORT={address.port + 1} signet start`.",
            )
        from signet_actors.runtime.socket_uids import listener_uids  # noqa: PLC0415 - only if the address is not trusted

        if not lock_held(workspace) or listener_uids(address.port, address.host) - _trusted_uids(workspace):
            raise DaemonNotRunning(
                f"no daemon runs on {workspace} (the program on port {address.port} only claims to serve it)"
            )

    def _not_running(self) -> DaemonNotRunning:
        if self.address.workspace is not None:
            return no_daemon(self.address.workspace)
        return DaemonNotRunning(f"no daemon answers at {self.address}")

    def _no_answer(self, error: Exception, *, changes: bool) -> OutcomeUnknown | RequestRefused:
        timed_out = isinstance(error, TimeoutError)
        reason = f"no answer in time from {self.address}" if timed_out else f"the connection to {self.address} was lost"
        if changes:
            return OutcomeUnknown(f"{reason}; whether the change was applied is unknown")
        return RequestRefused(reason, code=ErrorCode.UNAVAILABLE)


def until_known(send: Callable[[], DaemonReply]) -> DaemonReply:
    """Send a change whose repetition is harmless, again while its outcome is unknown, and return the reply."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return send()
        except (OutcomeUnknown, RequestRefused) as error:
            if error.code is not ErrorCode.OUTCOME_UNKNOWN or attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _checked(token: str) -> str:
    """Return the token. Raises InvalidRequest if it cannot be the value of a header; the token is not shown."""
    if not (token.isascii() and token.isprintable()):
        raise InvalidRequest("SIGNET_TOKEN or SIGNET_API_KEY has a character that a token cannot have")
    return token.strip()


def no_daemon(workspace: Path) -> DaemonNotRunning:
    """Return the error for a workspace without a daemon; it names a restore or check that holds the workspace."""
    from signet_actors.cli.daemon_process import running_tool  # noqa: PLC0415 - only without a daemon

    tool = running_tool(workspace)
    but = "" if tool is None else f", but {tool} is running; wait until it has ended"
    return DaemonNotRunning(f"no daemon runs on {workspace}{but}")


def _trusted_uids(workspace: Path) -> set[int]:
    """Return the users that a daemon of the workspace may run as: its owner, this user, and root (a port proxy)."""
    owner = {workspace.stat().st_uid} if workspace.exists() else set()
    return {0, os.geteuid()} | owner


def memory_path(memory_id: str, tail: str = "") -> str:
    """Return the URL path of a memory. Raises InvalidRequest for an id that would make it another path."""
    return fill_path(f"/api/memory/{{id}}{tail}", {"id": memory_id})


def _encode_utf8(text: str) -> bytes:
    """Encode the text as UTF-8; bytes of an argument that the locale could not decode are kept."""
    try:
        data = text.encode("utf-8", "surrogateescape")
        data.decode()
    except UnicodeError as error:
        raise InvalidRequest("an argument is not UTF-8") from error
    return data


def _parse_answer(response: http.client.HTTPResponse, raw: bytes, *, changes: bool) -> DaemonReply:
    body = json_object(raw)
    if not 200 <= response.status < 300:
        raise invalid_reply(one_line(f"{response.status} {response.reason}"), changes=changes)
    if body is None:
        raise invalid_reply("it is not a JSON object" if raw.strip() else "it is empty", changes=changes)
    return DaemonReply(response.status, raw, body, changes)


def _parse_page(response: http.client.HTTPResponse, raw: bytes) -> DaemonReply:
    kind = (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()
    if response.status != 200 or kind != JSON_LINES:
        raise invalid_reply(one_line(f"{response.status} {response.reason}, {kind or 'no type'}"), changes=False)
    return DaemonReply(response.status, raw, {}, next_cursor=response.getheader(NEXT_CURSOR_HEADER))


def _parse_refusal(response: http.client.HTTPResponse, raw: bytes, *, changes: bool) -> RequestRefused:
    body = json_object(raw)
    fields = body or {}
    try:
        code = ErrorCode(fields.get("code", ""))
    except ValueError:
        code = code_of_status(response.status, changes=changes)
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


SHOWN_ERROR_CHARS = 500


@dataclass(frozen=True)
class DaemonReply:
    """A 2xx reply of the daemon with a JSON object. ``raw`` is the body as received; ``changes``: it answers a change.

    ``next_cursor`` is set if the reply is a page of lines and more pages follow; then ``body`` is empty.
    """

    status: int
    raw: bytes
    body: dict[str, Any]
    changes: bool = False
    next_cursor: str | None = None

    @property
    def warnings(self) -> list[str]:
        """The daemon's warnings, one line each, about parts of the request that had no effect."""
        found = self.body.get("warnings")
        items = found if isinstance(found, list) else []
        return [one_line(warning, SHOWN_ERROR_CHARS) for warning in items if isinstance(warning, str)]

    def records(self, name: str) -> list[dict[str, Any]]:
        """Return the member ``name``, a list of objects; raise RequestRefused if it is missing or anything else."""
        found = self.body.get(name)
        if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
            raise self.malformed(f"no list of {name}")
        return found

    def text(self, name: str) -> str:
        """Return the member ``name``, a non-empty string; raise RequestRefused if it is missing or anything else."""
        found = self.body.get(name)
        if not isinstance(found, str) or not found:
            raise self.malformed(f"no {name}")
        return found

    def confirm(self, name: str, *words: str | bool) -> None:
        """Raise RequestRefused unless the member ``name`` has one of the given values."""
        value = self.body.get(name)
        if not any(type(value) is type(word) and value == word for word in words):
            raise self.malformed(f"{name} is not {' or '.join(json.dumps(word) for word in words)}")

    def malformed(self, why: str) -> RequestRefused:
        """Return the error for this reply, which lacks the form that the API specifies."""
        return invalid_reply(why, changes=self.changes, answer=self.raw)


def invalid_reply(why: str, *, changes: bool, answer: bytes = b"") -> RequestRefused:
    """Return the error for a reply that no Signet daemon sends. After a change its outcome is unknown."""
    return RequestRefused(
        f"the answer does not come from a Signet daemon ({why})",
        code=ErrorCode.OUTCOME_UNKNOWN if changes else ErrorCode.MISDIRECTED_REQUEST,
        answer=answer,
    )


def print_answer(answer: DaemonReply) -> None:
    """Print the daemon's reply as JSON: indented on a terminal, unchanged on a pipe."""
    if on_terminal() and answer.body is not None:
        print_json(answer.body)
    else:
        print_bytes(answer.raw.rstrip(b"\n") + b"\n")


def print_relations(run: DaemonReply) -> None:
    """Print the relations between entities that the pipeline's run found, one per line, if they are still stored."""
    for one in run.body.get("entities") or []:
        print_wrapped(f"relation: {one.get('source')} {one.get('relationship')} {one.get('target')}", indent=2)
