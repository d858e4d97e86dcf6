"""HTTP status, code and text of writes that changed nothing. Clients match on the exact texts.

Source: memory-api.txt (the status tables of PATCH, DELETE, recover); docs/compatibility.md "Forget and modify".
"""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.errors import HTTP_STATUS, ErrorCode
from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import HttpResponse
from signet_actors.operations.memory_changes import Refusal
from signet_actors.protocol.writer import Forgotten, Modified, Recovered

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
    "duplicate_in_project": OutcomeError(ErrorCode.CONFLICT, "That project has a memory with this text already"),
    "pinned_requires_force": OutcomeError(ErrorCode.CONFLICT, "Pinned memories require force=true"),
    "autonomous_force_denied": OutcomeError(
        ErrorCode.FORBIDDEN, "Autonomous agents cannot force-delete pinned memories"
    ),
    "autonomous_unpin_denied": OutcomeError(
        ErrorCode.FORBIDDEN, "Only the user can unpin a memory: signet edit ID --unpin"
    ),
    "source_missing": OutcomeError(
        ErrorCode.CONFLICT, "A memory that this answer was made from was forgotten or changed"
    ),
    "retention_expired": OutcomeError(ErrorCode.CONFLICT, "Recover window expired ({days} days)"),
}


def outcome_text(status: str, *, days: int = RECOVERY_DAYS) -> str:
    return OUTCOME_ERRORS[status].text.format(days=days)


def outcome_response(done: Modified | Forgotten | Recovered, *, days: int = RECOVERY_DAYS) -> HttpResponse:
    """Return the error response of PATCH, DELETE and recover, which also has id, status and currentVersion."""
    code = OUTCOME_ERRORS[done.status].code
    body = fill(Refusal, done, error=outcome_text(done.status, days=days), code=code.value)
    return HttpResponse(body, status=HTTP_STATUS[code])
