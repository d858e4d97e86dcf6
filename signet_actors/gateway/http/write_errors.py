"""HTTP status, code and text of writes that changed nothing. Clients match on the exact texts.

Source: memory-api.txt (the status tables of PATCH, DELETE, recover); docs/compatibility.md "Forget and modify".
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import UNSET

from signet_actors.errors import HTTP_STATUS, ErrorCode
from signet_actors.gateway.http.route import HttpResponse
from signet_actors.operations.memory_changes import Refusal

RECOVERY_DAYS: Final = 30


class OutcomeError(NamedTuple):
    """The error code and the text of an outcome that changed nothing."""

    code: ErrorCode
    text: str


OUTCOME_ERRORS: Final[dict[str, OutcomeError]] = {
    "not_found": OutcomeError(ErrorCode.NOT_FOUND, "Not found"),
    "deleted": OutcomeError(ErrorCode.CONFLICT, "Cannot modify deleted memory"),
    "already_deleted": OutcomeError(ErrorCode.CONFLICT, "Memory is already deleted"),
    "not_deleted": OutcomeError(ErrorCode.CONFLICT, "Memory is not deleted"),
    "version_conflict": OutcomeError(ErrorCode.CONFLICT, "Version conflict"),
    "duplicate_content_hash": OutcomeError(ErrorCode.CONFLICT, "Duplicate content hash"),
    "pinned_requires_force": OutcomeError(ErrorCode.CONFLICT, "Pinned memories require force=true"),
    "autonomous_force_denied": OutcomeError(
        ErrorCode.FORBIDDEN, "Autonomous agents cannot force-delete pinned memories"
    ),
    "autonomous_unpin_denied": OutcomeError(
        ErrorCode.FORBIDDEN, "Only the user can unpin a memory: signet edit ID --unpin"
    ),
    "retention_expired": OutcomeError(ErrorCode.CONFLICT, "Recover window expired ({days} days)"),
}


def outcome_text(status: str, *, days: int = RECOVERY_DAYS) -> str:
    return OUTCOME_ERRORS[status].text.format(days=days)


def outcome_response(
    id: str,  # noqa: A002  the name in the body
    status: str,
    *,
    current_version: int | None,
    duplicate_memory_id: str | None = None,
    days: int = RECOVERY_DAYS,
) -> HttpResponse:
    """Return the error response of PATCH, DELETE and recover, which also has id, status and currentVersion."""
    code = OUTCOME_ERRORS[status].code
    body = Refusal(
        id=id,
        status=status,
        error=outcome_text(status, days=days),
        code=code.value,
        current_version=UNSET if current_version is None else current_version,
        duplicate_memory_id=UNSET if duplicate_memory_id is None else duplicate_memory_id,
    )
    return HttpResponse(body, status=HTTP_STATUS[code])
