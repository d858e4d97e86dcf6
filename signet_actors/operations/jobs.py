"""Public body of a background job.

Source: docs/compatibility.md "Reading memories".
"""

from __future__ import annotations

import msgspec


class JobReply(msgspec.Struct, frozen=True):
    """A job's state; ``attempts`` and ``error`` are also given under their older names."""

    id: str
    memory_id: str | None
    document_id: str | None
    job_type: str
    status: str
    attempt_count: int
    attempts: int
    max_attempts: int
    next_attempt_at: str | None
    last_error: str | None
    last_error_code: str | None
    error: str | None
    leased_at: str | None
    completed_at: str | None
    failed_at: str | None
    created_at: str
    updated_at: str
