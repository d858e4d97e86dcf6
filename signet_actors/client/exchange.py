"""One call of an operation without I/O: what to send, how long to wait, when to send again, and what came of it.

A call is a generator. It yields ``Send`` and ``Pause`` and receives what came of them, so that a blocking client, an
asyncio client and a test without any socket run the same code. A repeated change has the ``Idempotency-Key`` of the
first attempt, so it is applied once.

Source: docs/reliability.md "HTTP outcomes"; docs/decisions.md 3.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

import signet_actors
from signet_actors.client.encoding import JSON, HttpReply, Reply, encode_body, encode_target, read_reply
from signet_actors.client.errors import ClientError, DaemonUnreachable, NoReply, TemporarilyRefused
from signet_actors.client.location import ADVICE, Location
from signet_actors.config.daemon_address import Address, owner_token
from signet_actors.errors import ErrorCode
from signet_actors.operations.headers import JSON_LINES, OWNER_TOKEN_HEADER
from signet_actors.operations.operation import Operation

T = TypeVar("T")
ReplyT = TypeVar("ReplyT")
RequestT = TypeVar("RequestT", bound=msgspec.Struct)

FIRST_WAIT_S: Final = 0.1
LONGEST_WAIT_S: Final = 2.0
_log: Final = logging.getLogger("signet_actors.client")


@dataclass(frozen=True, slots=True)
class Send:
    """Send this request, and wait for the whole response at most ``timeout_s``."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait this long."""

    seconds: float


class Loss(Enum):
    """Why there is no response.

    NOT_SENT: no daemon was there to connect to. NO_CONNECTION: all connections of this client were in use, so nothing
    was sent. TIMED_OUT, BROKEN: the daemon may have received the request.
    """

    NOT_SENT = "not_sent"
    NO_CONNECTION = "no_connection"
    TIMED_OUT = "timed_out"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Lost:
    """What came of a ``Send`` without a response."""

    loss: Loss
    detail: str


Outcome: TypeAlias = "HttpReply | Lost | None"
"""What came of a ``Send``; None after a ``Pause``."""
Exchange: TypeAlias = Generator["Send | Pause", Outcome, T]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a call may take, in seconds.

    ``total_s``: all attempts and the waits between them. ``attempt_s``: one attempt, from the wait for a free
    connection to the end of the response. ``start_s``: waiting for a daemon
    that does not listen, for example because it restarts.
    """

    total_s: float = 30.0
    attempt_s: float = 15.0
    start_s: float = 5.0


@dataclass(frozen=True)
class Caller:
    """Makes exchanges for one daemon and one identity; a client has one.

    ``has_token``: its headers have one, or shall have none, so that a login is not used. ``clock`` and ``jitter`` (a
    random number below 1) are replaced in tests.
    """

    location: Location
    limits: Limits = Limits()
    headers: Mapping[str, str] = field(default_factory=dict)
    has_token: bool = False
    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.random

    def call(
        self, operation: Operation[RequestT, ReplyT], request: RequestT | None = None, /, **path: str
    ) -> Exchange[ReplyT]:
        """Call an operation; ``path`` has the parameters of its path. Raises ClientError."""
        reply = yield from self.exchange(operation, request, path=path)
        return reply.value

    def exchange(
        self,
        operation: Operation[RequestT, ReplyT],
        request: RequestT | None = None,
        *,
        path: Mapping[str, str] | None = None,
        lines: bytes | None = None,
    ) -> Exchange[Reply[ReplyT]]:
        """Call an operation and return its reply with headers; ``lines`` is a body of JSON Lines. Raises ClientError.

        A body of lines is stored in parts, so one attempt may take all the time.
        """
        filled = operation.request() if request is None else request
        target = encode_target(operation, path or {}, filled)
        body = encode_body(operation, filled) if lines is None else lines
        attempt = _Attempts(self.limits, self.clock, self.jitter, operation)
        request_id = uuid.uuid4().hex
        while True:
            outcome: Outcome
            try:
                address = self.location.address()
            except DaemonUnreachable as missing:
                outcome = Lost(Loss.NOT_SENT, missing.detail)
            else:
                headers = self._headers(operation, request_id, address, body)
                limit_s = attempt.left_s if lines is not None else min(self.limits.attempt_s, attempt.left_s)
                outcome = yield Send(operation.method, f"{address.spoken}{target}", headers, body, limit_s)
            try:
                if isinstance(outcome, HttpReply):
                    reply = read_reply(operation, outcome, request_id=request_id)
                    for warning in reply.warnings:
                        _log.warning("%s: %s", operation.name, warning)
                    return reply
                assert outcome is not None, "a pause was not asked for"
                raise _no_reply(operation, outcome, request_id)
            except ClientError as error:
                wait_s = attempt.wait_s(error)
            yield Pause(wait_s)

    def _headers(
        self, operation: Operation[Any, Any], request_id: str, address: Address, body: bytes | None
    ) -> dict[str, str]:
        headers = {
            "accept": ", ".join(operation.media_types) or JSON,
            "user-agent": f"signet-actors/{signet_actors.__version__}",
            "x-signet-request-id": request_id,
            **self.headers,
        }
        if body is not None:
            headers["content-type"] = JSON if operation.lines is None else JSON_LINES
        if operation.has_effect:
            headers["idempotency-key"] = request_id
        owner = owner_token(address)
        if owner is not None:
            headers[OWNER_TOKEN_HEADER] = owner
        elif not self.has_token and (login := self.location.login(address)):
            headers["authorization"] = f"Bearer {login}"
        return headers


class _Attempts:
    """The attempts of one call: whether there is another one, and after which wait."""

    def __init__(
        self, limits: Limits, clock: Callable[[], float], jitter: Callable[[], float], operation: Operation[Any, Any]
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._jitter = jitter
        self._operation = operation
        self._began_s = clock()
        self._failures = 0
        self._reached = False
        self._unknown: ClientError | None = None
        """The first error after which a change may have been applied."""

    @property
    def left_s(self) -> float:
        return max(self._began_s + self._limits.total_s - self._clock(), 0.001)

    def wait_s(self, error: ClientError) -> float:
        """Return how long to wait before the next attempt. Raises the error if there is none.

        If an earlier attempt may have applied the change, the error says so, whatever became of the later ones.
        """
        self._failures += 1
        self._reached = self._reached or not isinstance(error, DaemonUnreachable)
        if isinstance(error, NoReply) and self._operation.has_effect:
            self._unknown = self._unknown or error
        wait_s = self._wait_s(error)
        limits = self._limits
        ends_s = limits.total_s if self._reached else min(limits.start_s, limits.total_s)
        if wait_s is None or self._clock() + wait_s >= self._began_s + ends_s:
            if self._unknown is not None and isinstance(error, DaemonUnreachable | TemporarilyRefused):
                raise self._unknown from error
            raise error
        return wait_s

    def _wait_s(self, error: ClientError) -> float | None:
        if isinstance(error, NoReply) and not self._operation.repeatable:
            return None
        if not isinstance(error, NoReply | DaemonUnreachable | TemporarilyRefused):
            return None
        longest_s = min(FIRST_WAIT_S * 2.0 ** (self._failures - 1), LONGEST_WAIT_S)
        own_s = longest_s * (1 + self._jitter()) / 2
        return own_s if error.retry_after_ms is None else max(error.retry_after_ms / 1000, own_s)


def _no_reply(operation: Operation[Any, Any], lost: Lost, request_id: str) -> ClientError:
    if lost.loss is Loss.NOT_SENT:
        advice = "" if ADVICE in lost.detail else f"; {ADVICE}"
        return DaemonUnreachable(f"{lost.detail}{advice}", request_id=request_id)
    if lost.loss is Loss.NO_CONNECTION:
        return TemporarilyRefused(f"{lost.detail}; nothing was sent", code=ErrorCode.BUSY, request_id=request_id)
    if operation.has_effect:
        return NoReply(f"{lost.detail}; whether the change was applied is unknown", request_id=request_id)
    return NoReply(lost.detail, code=ErrorCode.UNAVAILABLE, request_id=request_id)
