"""The memory that a job is about, as its worker receives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from signet_actors.protocol.pipeline import JobMemory
from signet_actors.store.errors import Connection

_COLUMNS = JobMemory.__struct_fields__
_SELECT = ", ".join(f"m.{name}" for name in _COLUMNS)


def job_subjects(connection: Connection, memory_ids: Sequence[str]) -> dict[str, JobMemory]:
    """Return those of the memories that are not deleted, by id."""
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT {_SELECT} FROM json_each(?) i JOIN memories m ON m.id = i.value WHERE m.is_deleted = 0",
        (msgspec.json.encode(memory_ids).decode(),),
    ).fetchall()
    found = (JobMemory(**dict(zip(_COLUMNS, row, strict=True))) for row in rows)
    return {memory.id: msgspec.structs.replace(memory, pinned=bool(memory.pinned)) for memory in found}
