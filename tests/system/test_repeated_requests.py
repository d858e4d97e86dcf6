"""A request that is repeated under its ``Idempotency-Key`` gets the first reply, for every operation declared so.

Source: docs/decisions.md 3.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from signet_actors.operations.forget import FORGET_MEMORIES
from signet_actors.operations.hooks import COMPACTION_COMPLETE
from signet_actors.operations.import_export import IMPORT_MEMORIES
from signet_actors.operations.memory_changes import DELETE_MEMORY, PATCH_MEMORY, RECOVER_MEMORY
from signet_actors.operations.operation import EXAMPLE_MEMORY, Operation
from signet_actors.operations.registry import OPERATIONS
from signet_actors.operations.remember import REMEMBER
from signet_actors.operations.transcripts import FORGET_TRANSCRIPT, SESSION_END
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system

KEYED = [operation for operation in OPERATIONS if operation.takes_key and not operation.performs]
FIELDS = {FORGET_MEMORIES: {"ids": [EXAMPLE_MEMORY], "mode": "execute", "reason": "no longer true"}}
"""Instead of the example, which changes nothing."""
FIRST: tuple[Operation[Any], ...] = (IMPORT_MEMORIES, PATCH_MEMORY, DELETE_MEMORY, RECOVER_MEMORY)
"""The example of the first stores the memory of the others."""
DIFFERENT_AGAIN = (
    IMPORT_MEMORIES,
    PATCH_MEMORY,
    DELETE_MEMORY,
    RECOVER_MEMORY,
    FORGET_MEMORIES,
    REMEMBER,
    FORGET_TRANSCRIPT,
    COMPACTION_COMPLETE,
)
"""A second request under another key gets another reply, because the first one has had its effect."""


def send(daemon: LiveDaemon, operation: Operation[Any], key: str | None = None) -> tuple[int, bytes]:
    """Send the example of the operation; return status and body."""
    fields = dict(FIELDS.get(operation, operation.example))
    target = re.sub(r"\{(\w+)\}", lambda name: str(fields.pop(name[1])), operation.paths[0])
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = daemon.api.request(operation.method, target, fields, headers)
    return answer.status, answer.raw


def test_a_repeated_request_gets_the_first_reply() -> None:
    ordered = [*FIRST, *(operation for operation in KEYED if operation not in FIRST)]
    assert set(ordered) == set(KEYED)
    with live_daemon(pipeline=True) as daemon:
        assert send(daemon, SESSION_END)[0] == 200  # stores the transcript that is forgotten
        for operation in ordered:
            first = send(daemon, operation, "one")
            assert first[0] in {200, 404}, operation.name  # 404: there is no run and no proposal
            assert send(daemon, operation, "one") == first, operation.name
            if operation in DIFFERENT_AGAIN:
                assert first[0] == 200, operation.name
                assert send(daemon, operation, "two") != first, operation.name
        assert daemon.faults() == []
