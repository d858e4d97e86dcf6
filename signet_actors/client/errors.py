"""What a call of the client raises. The first docstring line says what the daemon did.

Source: docs/reliability.md "HTTP outcomes".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signet_actors.errors import ErrorCode, SignetError


class ClientError(SignetError):
    """A call of the daemon failed.

    - ``detail``: the daemon's sentence, or ours if it sent none. ``code``: the reason for programs.
    - ``field``: the field of the request that is wrong. ``retry_after_ms``: how long the daemon asks to wait.
    - ``status``: the HTTP status; None if there was no response. ``body``: the JSON object of the response.
    - ``request_id``: the id of this call, also its Idempotency-Key; the history of a memory shows it.
    - ``trace_id``: the id of the last attempt in the daemon's log.
    """

    def __init__(
        self,
        detail: str | None = None,
        *,
        code: ErrorCode | None = None,
        field: str | None = None,
        retry_after_ms: int | None = None,
        status: int | None = None,
        request_id: str = "",
        trace_id: str | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail, code=code, field=field, retry_after_ms=retry_after_ms)
        self.status = status
        self.request_id = request_id
        self.trace_id = trace_id
        self.body: Mapping[str, Any] = body or {}


class DaemonUnreachable(ClientError):
    """No daemon listens, so nothing was sent."""

    code = ErrorCode.UNAVAILABLE


class NoReply(ClientError):
    """The request was sent, and no answer came; a change may have been applied."""

    code = ErrorCode.OUTCOME_UNKNOWN


class InvalidReply(ClientError):
    """The answer is not one that a Signet daemon of this version sends; a change may have been applied."""

    code = ErrorCode.MISDIRECTED_REQUEST


class Refused(ClientError):
    """The daemon refused the request, and nothing was applied."""


class NotPermitted(Refused):
    """The caller may not do this: 401 or 403."""


class DoesNotExist(Refused):
    """There is no such memory or job, or the caller may not read it: 404."""


class Conflicting(Refused):
    """The request conflicts with what is stored, for example with a newer version of the memory: 409."""


class TemporarilyRefused(Refused):
    """The daemon is busy, restarts, or asks for fewer requests (429, 503), or no connection was free; it was too late
    for another attempt.
    """


class DaemonFailed(ClientError):
    """The daemon failed inside (500), or its disk is full (507)."""


class JobNotEnded(ClientError):
    """The job has not ended in the time of the wait; it goes on."""

    code = ErrorCode.UNAVAILABLE


BY_STATUS: Mapping[int, type[ClientError]] = {
    401: NotPermitted,
    403: NotPermitted,
    404: DoesNotExist,
    409: Conflicting,
    429: TemporarilyRefused,
    503: TemporarilyRefused,
    504: NoReply,
}
"""The error of a status. Any other 4xx is ``Refused``, any other 5xx ``DaemonFailed``."""


def error_type(status: int) -> type[ClientError]:
    return BY_STATUS.get(status, Refused if status < 500 else DaemonFailed)
