"""Exception classes and error codes of the daemon. The first docstring line of a class is its default message.

Exceptions never cross a process boundary: a ``protocol.message.Failure`` carries the code and the detail instead. The
gateway maps a code to an HTTP status with ``HTTP_STATUS``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

CHUNK_EXISTS: Final = "chunk content already exists"
"""Refuses a long text of which a part is stored already; clients know this text (docs/compatibility.md)."""
DATABASE_DAMAGED: Final = "the database is damaged"
"""Begins why a daemon whose database is damaged is not ready, which no waiting mends."""


class ErrorCode(StrEnum):
    """Machine-readable reason in a ``Failure`` and in the ``code`` field of an HTTP error body."""

    INVALID_REQUEST = "invalid_request"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONFLICT = "conflict"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    LEASE_LOST = "lease_lost"
    CONFIRM_REQUIRED = "confirm_required"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    MISDIRECTED_REQUEST = "misdirected_request"
    RATE_LIMITED = "rate_limited"
    REQUEST_TIMEOUT = "request_timeout"
    MUTATIONS_FROZEN = "mutations_frozen"
    BUSY = "busy"
    UNAVAILABLE = "unavailable"
    NOT_APPLIED = "not_applied"
    OUTCOME_UNKNOWN = "outcome_unknown"
    STORAGE_FULL = "storage_full"
    NOT_IMPLEMENTED = "not_implemented"
    INTERNAL = "internal"


HTTP_STATUS: dict[ErrorCode, int] = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.METHOD_NOT_ALLOWED: 405,
    ErrorCode.REQUEST_TIMEOUT: 408,
    ErrorCode.CONFLICT: 409,
    ErrorCode.IDEMPOTENCY_CONFLICT: 409,
    ErrorCode.LEASE_LOST: 409,
    ErrorCode.CONFIRM_REQUIRED: 400,
    ErrorCode.PAYLOAD_TOO_LARGE: 413,
    ErrorCode.UNSUPPORTED_MEDIA_TYPE: 415,
    ErrorCode.MISDIRECTED_REQUEST: 421,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.INTERNAL: 500,
    ErrorCode.NOT_IMPLEMENTED: 501,
    ErrorCode.MUTATIONS_FROZEN: 503,
    ErrorCode.BUSY: 503,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.NOT_APPLIED: 503,
    ErrorCode.OUTCOME_UNKNOWN: 504,
    ErrorCode.STORAGE_FULL: 507,
}
"""The HTTP status of each code. 503 means certainly not applied; 504 means that the outcome is unknown.

Source: docs/reliability.md "HTTP outcomes".
"""


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
"""The error code of a reply whose body has none (from a proxy or an older daemon)."""


def code_of_status(status: int, *, changes: bool) -> ErrorCode:
    """Return the code of an error response without one. A 5xx may have come after the change was applied."""
    if status in CODE_OF_STATUS:
        return CODE_OF_STATUS[status]
    if status < 500:
        return ErrorCode.CONFLICT
    return ErrorCode.OUTCOME_UNKNOWN if changes else ErrorCode.INTERNAL


class ExitCode:
    """Process exit codes, documented in docs/operations.md "Exit codes"."""

    OK = 0
    PROVIDER_CONFIG = 69
    IN_USE = 73
    IO_ERROR = 74
    GIVE_UP = 75
    CONFIG = 78


class SignetError(Exception):
    """An internal error occurred in the daemon."""

    code: ErrorCode = ErrorCode.INTERNAL
    retry_after_ms: int | None = None

    def __init__(
        self,
        detail: str | None = None,
        *,
        code: ErrorCode | None = None,
        field: str | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        self.detail = detail or (type(self).__doc__ or "").strip().split("\n", 1)[0]
        if code is not None:
            self.code = code
        if retry_after_ms is not None:
            self.retry_after_ms = retry_after_ms
        self.field = field
        super().__init__(self.detail)


class InvalidRequest(SignetError):
    """The request is not valid."""

    code = ErrorCode.INVALID_REQUEST


class ReplyTooLong(SignetError):
    """The response would be too long."""

    code = ErrorCode.PAYLOAD_TOO_LARGE


class NotFound(SignetError):
    """Not found."""

    code = ErrorCode.NOT_FOUND


class Conflict(SignetError):
    """The request conflicts with the current state."""

    code = ErrorCode.CONFLICT


class RateLimited(SignetError):
    """rate limit exceeded"""

    code = ErrorCode.RATE_LIMITED


class Busy(SignetError):
    """The daemon is at capacity; nothing was applied. Retry shortly."""

    code = ErrorCode.BUSY
    retry_after_ms = 1000


class Unavailable(SignetError):
    """The process that serves this request is restarting; nothing was applied."""

    code = ErrorCode.UNAVAILABLE
    retry_after_ms = 1000


class OutcomeUnknown(SignetError):
    """The write was sent but no answer came in time; retry with the same Idempotency-Key."""

    code = ErrorCode.OUTCOME_UNKNOWN


class StorageFull(SignetError):
    """The disk is full; nothing was applied. Reads still work."""

    code = ErrorCode.STORAGE_FULL


class ConfigError(SignetError):
    """The configuration is not valid."""


class MissingKey(ConfigError):
    """The environment of this process has no key for a provider; that of another one may have it."""


class MutationsFrozen(SignetError):
    """Mutations are frozen (kill switch active)"""

    # Clients match this exact text, so it has no full stop. Only a person lifts the freeze: an early retry is useless.
    code = ErrorCode.MUTATIONS_FROZEN
    retry_after_ms: int = 60_000


class ForeignDatabase(SignetError):
    """The database file was not made by this program."""


class DatabaseMissing(SignetError):
    """The database file is missing or empty; the daemon does not create a new one in its place."""


class NewerSchema(SignetError):
    """The database was written by a newer release of this program."""


class UpgradeRefused(SignetError):
    """The database was not upgraded to this release's schema; it was not changed."""


class WorkspaceLocked(SignetError):
    """Another daemon runs on this workspace."""


class StoreIOError(SignetError):
    """A disk operation on the database failed; the writer must restart and reread the database from disk."""


class CheckIncomplete(SignetError):
    """A check of a database could not be carried out; the database may be intact."""


class DatabaseDisplaced(StoreIOError):
    """The database file was moved, replaced or deleted while open; further writes to it would be lost."""


class DaemonNotRunning(SignetError):
    """No daemon runs on this workspace."""

    code = ErrorCode.UNAVAILABLE

    def __init__(self, detail: str | None = None, *, remedy: str = "Start it with `signet start`.") -> None:
        super().__init__(detail)
        self.remedy = remedy


class RequestRefused(SignetError):
    """The daemon refused the request; ``answer`` holds the unchanged response body."""

    def __init__(
        self,
        detail: str | None = None,
        *,
        code: ErrorCode | None = None,
        field: str | None = None,
        retry_after_ms: int | None = None,
        answer: bytes = b"",
    ) -> None:
        self.answer = answer
        super().__init__(detail, code=code, field=field, retry_after_ms=retry_after_ms)


class ProviderErrorKind(StrEnum):
    """The kind of failure of a model call, as far as the reaction depends on it."""

    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    RATE_LIMITED = "rate_limited"
    REFUSED = "refused"
    HTTP = "http"
    MALFORMED = "malformed"
    OVER_BUDGET = "over_budget"


class ProviderError(SignetError):
    """The model provider failed to return a usable response.

    ``detail`` is safe for logs and users: it never contains a key, a prompt or an answer. ``costs_attempt`` is true if
    the provider accepted the request and failed at it, so that the request itself may be the cause. It is false if no
    request could have succeeded; the job then loses no attempt (docs/decisions.md 14). ``status`` is the HTTP status of
    the response, if there was one.
    """

    code = ErrorCode.UNAVAILABLE

    def __init__(
        self, kind: ProviderErrorKind, detail: str, *, retry_after_ms: int | None = None, status: int | None = None
    ) -> None:
        super().__init__(detail, retry_after_ms=retry_after_ms)
        self.kind = kind
        self.status = status

    @property
    def costs_attempt(self) -> bool:
        return self.kind in _ATTEMPTED


_ATTEMPTED = frozenset({ProviderErrorKind.TIMEOUT, ProviderErrorKind.HTTP, ProviderErrorKind.MALFORMED})


class UnusableAnswer(SignetError):
    """The model's answer was not usable, or the decider did not answer; another attempt may succeed."""


class NoDecision(UnusableAnswer):
    """The decider did not decide on a fact. ``timed_out``: no answer came in time; else it was not usable."""

    def __init__(self, detail: str, *, timed_out: bool) -> None:
        super().__init__(detail)
        self.timed_out = timed_out


class ActorExit(SignetError):
    """The actor must exit; ``exit_code`` tells the supervisor whether a restart can help."""

    def __init__(self, exit_code: int, detail: str) -> None:
        super().__init__(detail)
        self.exit_code = exit_code
